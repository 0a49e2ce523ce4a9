"""Real brokers on free loopback ports for tests, and a TCP proxy that can cut, or swallow, what
passes.

Knows nothing of glassd's own topics.
"""

import asyncio
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.system import find, program

MOSQUITTO = find("mosquitto") or "mosquitto"
HOST = "127.0.0.1"
_given: set[int] = set()


def free_port() -> int:
    """A port for a process that binds it later. Not of those from which the kernel takes the near
    ends of connections: one of the many that other tests open meanwhile would be in its way.
    """
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind((HOST, port))
            if port not in _given:  # who asks twice wants two
                _given.add(port)
                return port


@dataclass
class Broker:
    """One broker process; `stop` and `start` keep the port (a restart without sessions, as
    nothing is persisted).
    """

    argv: list[str]
    port: int
    log: Path
    env: dict[str, str] | None = None
    process: subprocess.Popen | None = None

    def start(self, *, deadline_s: float = 40.0) -> "Broker":
        with self.log.open("ab") as out:
            # iotcore leaves when its stdin closes, so it gets a pipe that lives as long as we do.
            self.process = subprocess.Popen(
                self.argv, stdin=subprocess.PIPE, stdout=out, stderr=out, env=self.env
            )
        until = time.monotonic() + deadline_s
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise RuntimeError(f"broker ended: {self.log.read_text(errors='replace')[-500:]}")
            with suppress(OSError), socket.create_connection((HOST, self.port), timeout=0.2):
                return self
            time.sleep(0.01)
        raise RuntimeError("broker did not come up")

    def stop(self) -> None:
        if self.process is None:
            return
        self.process.kill()
        self.process.wait(10)
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process = None


@contextmanager
def mosquitto(
    tmp_path: Path,
    *,
    port: int | None = None,
    nodelay: bool = True,
    extra: str = "",
    start: bool = True,
    stock: bool = False,
) -> Iterator[Broker]:
    """Mosquitto 2 that asks nobody who they are; `extra` is more of its configuration. `stock`: its
    own limits, not ours.

    Skips the test where there is none.
    """
    port = port or free_port()
    config = tmp_path / f"mosquitto-{port}.conf"
    config.write_text(
        f"listener {port} {HOST}\nset_tcp_nodelay "
        f"{str(nodelay).lower()}\npersistence false\nuser root\n"
        f"allow_anonymous true\n{'' if stock else 'max_inflight_messages 64'}\n{extra}\n"
    )
    broker = Broker(
        [program("mosquitto"), "-c", str(config)], port, tmp_path / f"mosquitto-{port}.log"
    )
    try:
        yield broker.start() if start else broker
    finally:
        broker.stop()


_RUMQTTD = """\
id = 0
[router]
id = 0
max_connections = 100
max_outgoing_packet_count = 200
max_segment_size = 104857600
max_segment_count = 10
[v4.1]
name = "v4-1"
listen = "127.0.0.1:{v4}"
next_connection_delay_ms = 1
[v4.1.connections]
connection_timeout_ms = 60000
max_payload_size = 1048576
max_inflight_count = 100
dynamic_filters = true
[v5.1]
name = "v5-1"
listen = "127.0.0.1:{v5}"
next_connection_delay_ms = 1
[v5.1.connections]
connection_timeout_ms = 60000
max_payload_size = 1048576
max_inflight_count = 100
dynamic_filters = true
"""


@contextmanager
def iotcore(tmp_path: Path) -> Iterator[Broker]:
    """Start the demo's broker: rumqttd from the iotcore wheel, in a process that ends with us."""
    port = free_port()
    config = tmp_path / f"rumqttd-{port}.toml"
    config.write_text(_RUMQTTD.format(v4=free_port(), v5=port))
    code = (
        "import sys; from iotcore.iotcore import IotCoreBroker as B; "
        "B(config_path=sys.argv[1]).run_forever()"
    )
    env = dict(os.environ, RUST_LOG="off")
    broker = Broker(
        [sys.executable, "-c", code, str(config)], port, tmp_path / f"rumqttd-{port}.log", env
    )
    try:
        yield broker.start()
    finally:
        broker.stop()


class Proxy:
    """TCP in the middle: passes bytes until told to `cut` (reset) or to be `black` (swallow
    both ways, say nothing).
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = 0
        self.black = False
        self.accepted = 0
        self._transports: set[asyncio.WriteTransport] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        up_reader, up_writer = await asyncio.open_connection(HOST, self.target)
        ends = {writer.transport, up_writer.transport}
        self._transports |= ends
        try:
            await asyncio.gather(self._pump(reader, up_writer), self._pump(up_reader, writer))
        finally:
            for transport in ends:
                transport.abort()
            self._transports -= ends

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                if not self.black:
                    sink.write(data)
                    await sink.drain()
        if not self.black:
            sink.transport.abort()

    def cut(self) -> None:
        """Reset every connection; new ones pass."""
        for transport in list(self._transports):
            transport.abort()


@asynccontextmanager
async def proxy(target: int) -> AsyncIterator[Proxy]:
    middle = Proxy(target)
    async with serving(middle.serve) as port:
        middle.port = port
        yield middle


@asynccontextmanager
async def serving(handler, *, tls=None) -> AsyncIterator[int]:
    """Run a TCP server of `handler(reader, writer)`; gives its port; leaves no socket and no
    task behind.
    """
    tasks: set[asyncio.Task] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await handler(reader, writer)
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(handle, HOST, 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # aborted transports close in the loop's next turn


async def until(
    condition, *, deadline_s: float = 40.0, what: str = "condition", every_s: float = 0.005
) -> None:
    """Wait until `condition()` is true; fails by name at the deadline. For what no event
    announces.
    """
    async with asyncio.timeout(deadline_s):
        while not condition():
            await asyncio.sleep(every_s)
