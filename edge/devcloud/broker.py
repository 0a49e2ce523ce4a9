"""The reference cloud's MQTT broker: rumqttd from a wheel, Mosquitto, or an external one by
address.

It can be stopped, killed and restarted on the same port, to demonstrate an outage.
"""

import asyncio
import contextlib
import importlib.util
import logging
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from edge.runtime.subprocesses import Child
from firmware_bridge.deadlines import timeout

if TYPE_CHECKING:
    from edge.devcloud.enrolment.secured import Secured

log = logging.getLogger(__name__)

HOST: Final = "127.0.0.1"
MAX_PAYLOAD: Final = 1 << 20
"""Bytes of one packet: four times the largest body (256 KiB), so that the receiver can refuse a
body that is too large, and name the limit.
"""
START_S: Final = 10.0
_POLL_S: Final = 0.02
_ATTEMPTS: Final = 5
"""Times another port is tried: one found free may be taken before the broker opens it."""
_MOSQUITTO_PATHS: Final = ("/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin")

_EMBEDDED: Final = (
    # rumqttd reports every packet as an error through Python's logging: only silence keeps its log
    # from growing.
    "import logging,sys,iotcore;"
    "logging.getLogger('rumqttd').setLevel(logging.CRITICAL);"
    "iotcore.Broker(config_path=sys.argv[1]).run_forever()"
)
_RUMQTTD_HEAD: Final = """\
id = 0
[router]
id = 0
max_connections = 1000
max_outgoing_packet_count = 200
max_segment_size = 104857600
max_segment_count = 10
"""
_RUMQTTD_LISTENER: Final = """\
[{version}.1]
name = "{version}-1"
listen = "{host}:{port}"
next_connection_delay_ms = 1
[{version}.1.connections]
connection_timeout_ms = 60000
max_payload_size = {payload}
max_inflight_count = 100
dynamic_filters = true
"""
_MOSQUITTO: Final = """\
listener {port} {host}
allow_anonymous true
set_tcp_nodelay true
persistence false
message_size_limit {payload}
max_inflight_messages 64
user root
"""
# "user root": do not change the user, or the kernel would not end it with its parent.


class BrokerFailed(OSError):
    """The broker could not be started; the message says why."""


class PortTaken(BrokerFailed):
    """Another program listens on the broker's port."""


class EmbeddedBroker:
    """One broker process on fixed loopback ports: `start`, `stop`, `kill`, and `start` again on the
    same port.
    """

    def __init__(
        self,
        kind: str = "embedded",
        *,
        port: int = 0,
        folder: Path | None = None,
        secured: "Secured | None" = None,
    ) -> None:
        if kind not in ("embedded", "mosquitto"):
            raise ValueError(f"broker: {kind!r} is neither embedded nor mosquitto")
        self.kind = kind
        self.host = HOST
        self.port = port
        self.port_v4 = 0
        """For MQTT 3.1.1 clients; Mosquitto has one port for both. With TLS: for passwords."""
        self._secured = secured
        self._folder = folder
        """For its configuration and log; None is a temporary directory."""
        self._child: Child | None = None
        self._dir: tempfile.TemporaryDirectory[str] | None = None

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.running

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child is not None and self._child.running else None

    async def start(self) -> None:
        """Start and wait until it listens; does nothing if it runs already. Raises BrokerFailed."""
        if self.running:
            return
        try:
            await self._start_somewhere(self._place())
        except BaseException:
            await self.aclose()
            raise

    def _place(self) -> Path:
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            return self._folder
        if self._dir is None:
            self._dir = tempfile.TemporaryDirectory(
                prefix="glassd-broker-", ignore_cleanup_errors=True
            )
        return Path(self._dir.name)

    async def _start_somewhere(self, folder: Path) -> None:
        """Start on the previous ports; the first time, on any free ones."""
        fixed = self.port != 0
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                with _hold(self.port) as port, _hold(self.port_v4) as port_v4:
                    self._child = await self._launch(folder, port, port_v4)
            except PortTaken:
                if fixed or attempt == _ATTEMPTS:
                    raise
                continue
            one_port = self.kind == "mosquitto" and not self._secured
            self.port, self.port_v4 = port, port if one_port else port_v4
            log.info("%s broker listens on %s:%d (pid %d)", self.kind, HOST, port, self._child.pid)
            return

    async def stop(self) -> None:
        """Stop gracefully; sessions and retained messages are lost."""
        child, self._child = self._child, None
        if child is not None:
            await child.stop()

    async def kill(self) -> None:
        """Stop as in a power cut."""
        child, self._child = self._child, None
        if child is not None:
            await child.kill()

    def reread(self) -> None:
        """Make it read changed access lists and passwords."""
        if self._child is not None:
            self._child.reread()

    async def aclose(self) -> None:
        await self.stop()
        if self._dir is not None:
            self._dir.cleanup()
            self._dir = None

    async def _launch(self, folder: Path, port: int, port_v4: int) -> Child:
        command = self._command(folder, port, port_v4)
        child = await Child.start(
            command, name=f"{self.kind} broker", log_file=folder / "broker.log"
        )
        try:
            await _listening(child, port)
        except BaseException:
            await child.kill()
            raise
        return child

    def _command(self, folder: Path, port: int, port_v4: int) -> Sequence[str]:
        if self.kind == "mosquitto":
            config = folder / "mosquitto.conf"
            text = _MOSQUITTO.format(port=port, host=HOST, payload=MAX_PAYLOAD)
            if self._secured is not None:
                text = self._secured.broker_config(port, port_v4, payload=MAX_PAYLOAD)
            config.write_text(text, encoding="utf-8")
            return (find_mosquitto(), "-c", str(config))
        if importlib.util.find_spec("iotcore") is None:
            raise ModuleNotFoundError("iotcore is not installed", name="iotcore")
        config = folder / "rumqttd.toml"
        listeners = (
            _RUMQTTD_LISTENER.format(version=version, host=HOST, port=of, payload=MAX_PAYLOAD)
            for version, of in (("v5", port), ("v4", port_v4))
        )
        config.write_text(_RUMQTTD_HEAD + "".join(listeners), encoding="utf-8")
        return (sys.executable, "-c", _EMBEDDED, str(config))


def free_port() -> int:
    """Return a loopback port that is free at the moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _hold(port: int) -> Iterator[int]:
    """Keep a loopback port from other programs until the broker listens on it; 0 picks a free one.

    Linux lets two sockets with SO_REUSEADDR bind one port while neither or only one listens, and
    gives it to nobody else who asks for any port. Raises PortTaken.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            held.bind((HOST, port))
        except OSError as e:
            problem = f"MQTT port {port} of {HOST} cannot be used ({e.strerror})"
            fix = "choose another: --broker embedded:PORT, or leave :PORT out for one that is free"
            raise PortTaken(f"{problem}; {fix}") from None
        yield int(held.getsockname()[1])


def find_mosquitto() -> str:
    """Return the path of Mosquitto; distributions put it outside a user's PATH. Raises
    BrokerFailed.
    """
    found = shutil.which("mosquitto") or shutil.which("mosquitto", path=":".join(_MOSQUITTO_PATHS))
    if found is None:
        raise BrokerFailed("mosquitto is not installed; install it or use --broker embedded")
    return found


async def _listening(child: Child, port: int) -> None:
    """Wait until the child itself listens; raise with its output if it has ended."""
    try:
        async with timeout(START_S):
            while child.running and not await _answers(port):  # noqa: ASYNC110 - another process cannot set our Event
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        problem = f"{child.name} does not listen after {START_S:g} s: {child.last_words()}"
        raise BrokerFailed(problem) from None
    if not child.running:
        words = child.last_words()
        kind = PortTaken if "in use" in words.lower() else BrokerFailed
        raise kind(f"{child.name} ended at once: {words or 'without output'}")


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return False
    writer.close()
    return True


KINDS: Final = ("embedded", "mosquitto")


def own_port(text: str) -> tuple[str, int]:
    """Parse `KIND` or `KIND:PORT` of our own broker; port 0 picks a free one. Raises ValueError."""
    kind, _, port = text.partition(":")
    if port and not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise ValueError(f"broker: {text!r} has no port number after the colon")
    return kind, int(port or 0)


def parse_broker(text: str) -> tuple[str, int] | None:
    """Parse `--broker`: (host, port) of an external broker, None for our own. Raises ValueError."""
    if text.partition(":")[0] in KINDS:
        own_port(text)
        return None
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        kinds = "embedded, mosquitto (each with :PORT, if you like) or HOST:PORT"
        raise ValueError(f"broker: {text!r} is not {kinds}")
    return host.strip("[]"), int(port)
