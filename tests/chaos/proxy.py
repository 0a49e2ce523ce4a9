"""The bad network: a relay between daemon and broker that knows where an MQTT packet begins, and
does harm on request.

Standard library only. `python -m tests.chaos.proxy TARGET_PORT RECORD`; orders are JSON lines on
stdin, see `ORDERS`.
"""

import asyncio
import json
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.records import Record, announce

UP, DOWN = "up", "down"
PUBLISH, PUBACK = 3, 4
ORDERS = ("cut_up", "cut_down", "swallow_up", "swallow_down", "reorder", "delay")
"""cut: the next PUBLISH that way gets through in part, then both ends are reset · swallow: the next
PUBACK that way is lost, and soon the connection with it, so that the message must come again ·
reorder: the next message for the daemon waits until one has overtaken it · delay: for a while every
packet takes its time.

Two more orders are for tests alone: lose_up and lose_down lose every message of `kind` that way
until `calm`; `aim` says at which port the broker is from now on.
"""


@dataclass(eq=False)
class Line:
    """One connection through here."""

    near: asyncio.StreamWriter
    far: asyncio.StreamWriter
    held: bytes = b""
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    def reset(self) -> None:
        self.gone.set()
        for end in (self.near, self.far):
            end.transport.abort()


class Proxy:
    def __init__(self, target: int, record: Record) -> None:
        self._target = target
        self._record = record
        self._armed: dict[str, dict[str, Any]] = {}
        self._slow_s = 0.0
        self._lines: set[Line] = set()

    async def serve(self, near_in: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        try:
            far_in, far = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            near.transport.abort()
            return
        line = Line(near, far)
        self._lines.add(line)
        flows = [
            asyncio.ensure_future(self._carry(line, UP, near_in, far)),
            asyncio.ensure_future(self._carry(line, DOWN, far_in, near)),
        ]
        try:
            await asyncio.wait(
                [*flows, gone := asyncio.ensure_future(line.gone.wait())],
                return_when=asyncio.FIRST_COMPLETED,
            )
            gone.cancel()
        finally:
            for flow in flows:
                flow.cancel()
            line.reset()
            self._lines.discard(line)

    async def _carry(
        self, line: Line, way: str, source: asyncio.StreamReader, sink: asyncio.StreamWriter
    ) -> None:
        buffer = b""
        with suppress(OSError):
            while chunk := await source.read(65536):
                buffer += chunk
                while (size := _packet(buffer)) and not line.gone.is_set():
                    packet, buffer = buffer[:size], buffer[size:]
                    if self._slow_s:
                        await asyncio.sleep(self._slow_s)
                    await self._pass(line, way, packet, sink)

    async def _pass(self, line: Line, way: str, packet: bytes, sink: asyncio.StreamWriter) -> None:
        kind = packet[0] >> 4
        lost = self._armed.get(f"lose_{way}")
        if kind == PUBLISH and lost is not None and _of_kind(lost["kind"]) in packet:
            self._done(f"lose_{way}", kind=lost["kind"])
            return
        if kind == PUBLISH and (order := self._armed.pop(f"cut_{way}", None)):
            sink.write(packet[: max(1, int(len(packet) * order["share"]))])
            with suppress(OSError):
                await sink.drain()
            self._done(f"cut_{way}", size=len(packet))
            asyncio.get_running_loop().call_later(0.02, line.reset)  # let the part out first
            await line.gone.wait()
            return
        if kind == PUBACK and f"swallow_{way}" in self._armed:
            order = self._armed.pop(f"swallow_{way}")
            self._done(f"swallow_{way}")
            asyncio.get_running_loop().call_later(order["lasts_s"], line.reset)
            return
        if kind == PUBLISH and way == DOWN and "reorder" in self._armed and not line.held:
            order = self._armed.pop("reorder")
            line.held = packet
            asyncio.get_running_loop().call_later(order["lasts_s"], self._let_go, line)
            return
        sink.write(packet)
        if way == DOWN and kind == PUBLISH and line.held:
            self._done("reorder")
            self._let_go(line)
        await sink.drain()

    def _let_go(self, line: Line) -> None:
        held, line.held = line.held, b""
        if held and not line.gone.is_set():
            line.near.write(held)

    def _done(self, fault: str, **more: Any) -> None:
        self._record.say(ev="fault", fault=fault, **more)

    def order(self, order: dict[str, Any]) -> None:
        if order["do"] == "delay":
            self._slow_s = order["share"] / 5
            self._done("delay")
            asyncio.get_running_loop().call_later(order["lasts_s"], self._fast)
        elif order["do"] == "aim":
            self._target = order["port"]
        elif order["do"] == "calm":
            self._armed.clear()
            self._fast()
        else:
            self._armed[order["do"]] = order

    def _fast(self) -> None:
        self._slow_s = 0.0


def _of_kind(kind: str) -> bytes:
    """The user property by which glassd's messages say what they are (MQTT 5, 3.3.2.3.7)."""
    return b"\x26\x00\x01k" + len(kind).to_bytes(2, "big") + kind.encode()


def _packet(buffer: bytes) -> int:
    """The length of the whole packet at the head of the buffer; 0 while it is not all there
    (MQTT 5, 1.5.5 and 2.1.4).
    """
    length = shift = 0
    for at in range(1, min(5, len(buffer))):
        length |= (buffer[at] & 0x7F) << shift
        shift += 7
        if not buffer[at] & 0x80:
            return at + 1 + length if len(buffer) >= at + 1 + length else 0
    return 0


async def main() -> None:
    proxy = Proxy(int(sys.argv[1]), Record(Path(sys.argv[2])))
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    announce(port=server.sockets[0].getsockname()[1])
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while line := await reader.readline():
        proxy.order(json.loads(line))


if __name__ == "__main__":
    asyncio.run(main())
