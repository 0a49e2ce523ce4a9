"""The processes of a soak: broker, small cloud, mock glasses and the daemon, each ended by its own
pid.

It knows nothing of the load. The broker is Mosquitto where it is installed, with its persistence,
else the embedded one.
"""

import asyncio
import os
import shutil
import socket
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from edge.demo.processes import ChildProcess, StartFailed, glassd

Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]

HOST = "127.0.0.1"
EDGE_ID = "soak"
UP_S = 60.0
MOSQUITTO = """\
listener {port} 127.0.0.1
set_tcp_nodelay true
allow_anonymous true
persistence true
persistence_location {folder}/
max_inflight_messages 64
{user}
"""
CONFIG = """\
version = 1
[edge]
id = "{edge_id}"
state_dir = "{state}"
[glasses]
radio = "{radio}"
model = "mock:full"
backoff_max_s = 2.0
[uplink]
host = "{host}"
port = {port}
tls = false
reconnect_min_s = 0.2
reconnect_max_s = 2.0
stable_s = 5.0
[cloud]
url = "{http}"
refresh_s = 60.0
[audit]
max_bytes = 262144
keep = 3
[control]
socket = "{socket}"
group = ""
"""
AUDIT_MIB = 1.0
"""Of the configuration above: the file in use and three before it; small, so that they turn
within minutes.
"""


class Cast:
    """Start with `enter`; everything is in `folder`, and nothing of it outlives the stack."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.control = folder / "control.sock"
        self.mock_control = folder / "mock.sock"
        self.state = folder / "state"
        self._mosquitto = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
        self._port = _free_port()

    async def enter(self, stack: AsyncExitStack) -> None:
        """Raises `StartFailed` when one of them does not come up."""
        self.glasses = ChildProcess(
            "glasses",
            glassd(
                "sim",
                "mock:full",
                "--radio",
                f"tcp:{HOST}:0",
                "--control",
                str(self.mock_control),
                "--out",
                str(self.folder / "glasses"),
                "--json",
            ),
            log_dir=self.folder,
        )
        stack.push_async_callback(self.glasses.stop)
        await self.glasses.start()
        await self._enter_cloud(stack)
        config = self.folder / "glassd.toml"
        config.write_text(
            CONFIG.format(
                edge_id=EDGE_ID,
                state=self.state,
                radio=self.glasses.announcement["radio"],
                http=self.cloud_url,
                socket=self.control,
                host=self.cloud.announcement["mqtt_host"],
                port=self.cloud.announcement["mqtt_port"],
            ),
            encoding="utf-8",
        )
        self.daemon = ChildProcess(
            "daemon", glassd("run", "--config", str(config)), log_dir=self.folder
        )
        stack.push_async_callback(self.daemon.stop)
        await self.daemon.start(announces=False)
        await self._reachable(self.daemon, lambda: asyncio.open_unix_connection(str(self.control)))

    async def _enter_cloud(self, stack: AsyncExitStack) -> None:
        words = ["devcloud", "--http", f"{HOST}:0", "--state", str(self.folder / "cloud"), "--json"]
        self.broker = self._broker()
        stack.push_async_callback(self._stop_broker)
        if self.broker is not None:
            await self.start_broker()
            words += ["--broker", f"{HOST}:{self._port}"]
        self.cloud = ChildProcess("cloud", glassd(*words), log_dir=self.folder)
        stack.push_async_callback(self.cloud.stop)
        await self.cloud.start()

    @property
    def cloud_url(self) -> str:
        return str(self.cloud.announcement["http"])

    @property
    def broker_kind(self) -> str:
        return "mosquitto" if self.broker is not None else str(self.cloud.announcement["broker"])

    # -------------------------------------------------------------- the broker's switch

    async def stop_broker(self) -> bool:
        """Take the broker away; False when it is the cloud's own, which has a switch for it."""
        await self._stop_broker()
        return self.broker is not None

    async def start_broker(self) -> bool:
        """Bring it back on its port, with the sessions it kept."""
        if self.broker is None:
            return False
        await self._stop_broker()
        self.broker = self._broker()
        assert self.broker is not None
        await self.broker.start(announces=False)
        await self._reachable(self.broker, lambda: asyncio.open_connection(HOST, self._port))
        return True

    async def _stop_broker(self) -> None:
        if self.broker is not None:
            await self.broker.stop()

    def _broker(self) -> ChildProcess | None:
        if self._mosquitto is None:
            return None
        folder = self.folder / "broker"
        folder.mkdir(exist_ok=True)
        user = "user root" if os.geteuid() == 0 else ""
        (folder / "mosquitto.conf").write_text(
            MOSQUITTO.format(port=self._port, folder=folder, user=user)
        )
        return ChildProcess(
            "broker", [self._mosquitto, "-c", str(folder / "mosquitto.conf")], log_dir=self.folder
        )

    async def _reachable(self, member: ChildProcess, connect: Connect) -> None:
        try:
            async with asyncio.timeout(UP_S):
                while True:
                    try:
                        _, writer = await connect()
                    except OSError:
                        if not member.running:
                            raise StartFailed(
                                f"{member.name} ended: {member.last_words()}"
                            ) from None
                        await asyncio.sleep(0.05)
                    else:
                        writer.close()
                        return
        except TimeoutError:
            raise StartFailed(f"{member.name} did not come up: {member.last_words()}") from None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
