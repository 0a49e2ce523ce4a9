"""The ear on the air: a TCP relay between daemon and mock that writes down every HCI byte, in
order, with its direction.

Standard library only; it understands nothing of what it carries. `python -m tests.chaos.tap
TARGET_PORT RECORDING`; on stdin `off SECONDS` takes the glasses away for a while.
"""

import asyncio
import socket
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path

from tests.chaos.records import announce

HEAD = struct.Struct("<dIBI")
"""Moment, connection number, what, length of the bytes that follow."""
OPENED, TO_CONTROLLER, TO_HOST, CLOSED = 0, 1, 2, 3


class Tap:
    def __init__(self, target: int, recording: Path) -> None:
        self._target = target
        self._file = recording.open("ab", buffering=0)
        self._number = 0
        self._away_until = 0.0
        self._writers: set[asyncio.StreamWriter] = set()

    def note(self, number: int, what: int, data: bytes = b"") -> None:
        self._file.write(HEAD.pack(time.monotonic(), number, what, len(data)) + data)

    async def join(self, host_in: asyncio.StreamReader, host_out: asyncio.StreamWriter) -> None:
        self._number += 1
        number, writers = self._number, [host_out]
        self._writers.add(host_out)
        self.note(number, OPENED)
        try:
            if time.monotonic() < self._away_until:
                return
            ours, theirs = await asyncio.open_connection("127.0.0.1", self._target)
            writers.append(theirs)
            for writer in writers:
                writer.get_extra_info("socket").setsockopt(
                    socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
                )
            flows = [
                asyncio.ensure_future(self._flow(host_in, theirs, number, TO_CONTROLLER)),
                asyncio.ensure_future(self._flow(ours, host_out, number, TO_HOST)),
            ]
            await asyncio.wait(flows, return_when=asyncio.FIRST_COMPLETED)
            for flow in flows:
                flow.cancel()
        except OSError:
            pass  # the mock is away: so are the glasses
        finally:
            for writer in writers:
                writer.close()
            self._writers.discard(host_out)
            self.note(number, CLOSED)

    async def _flow(
        self, source: asyncio.StreamReader, drain: asyncio.StreamWriter, number: int, what: int
    ) -> None:
        with suppress(ConnectionError):
            while chunk := await source.read(65536):
                self.note(number, what, chunk)
                drain.write(chunk)
                await drain.drain()

    async def orders(self) -> None:
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
        )
        while line := await reader.readline():
            word, _, seconds = line.decode().strip().partition(" ")
            if word == "off":
                self._away_until = time.monotonic() + float(seconds)
                for writer in list(self._writers):
                    writer.transport.abort()


async def main() -> None:
    tap = Tap(int(sys.argv[1]), Path(sys.argv[2]))
    server = await asyncio.start_server(tap.join, "127.0.0.1", 0)
    announce(port=server.sockets[0].getsockname()[1])
    await tap.orders()  # whoever started us has gone when stdin ends


if __name__ == "__main__":
    asyncio.run(main())
