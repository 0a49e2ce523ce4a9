"""Cuts a stream of bytes into lines without ever holding more than one line's bound. Knows no
JSON and no process.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

CHUNK: Final = 64 * 1024
KEPT: Final = 256
"""Bytes kept of the beginning and of the end of a line that is too long: enough to see whose
answer it was.
"""


@dataclass(frozen=True, slots=True)
class Overlong:
    """A line beyond the bound: where it began, and its end when it had one."""

    head: bytes
    tail: bytes = b""


class Endless(Exception):
    """A line went on for many times the bound; the writer will not stop by itself."""


async def lines(
    stream: asyncio.StreamReader, *, limit: int, patience: int
) -> AsyncIterator[bytes | Overlong]:
    """Give every line; one longer than `limit` as `Overlong`, at its end. Raises `Endless`
    after `patience` bytes more.
    """
    held = bytearray()
    skipped = 0
    head = b""
    while chunk := await stream.read(CHUNK):
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            piece = chunk[start:end]
            start = end + 1
            if skipped:
                yield Overlong(head, (bytes(held) + piece)[-KEPT:])
            elif len(held) + len(piece) > limit:
                yield Overlong(bytes(held[:KEPT]) or piece[:KEPT], piece[-KEPT:])
            else:
                yield bytes(held) + piece
            held.clear()
            skipped = 0
        held += chunk[start:]
        if len(held) > limit or skipped:
            head = head if skipped else bytes(held[:KEPT])
            skipped += len(held)
            if skipped > limit + patience:
                raise Endless(f"a line of more than {limit + patience} bytes")
            del held[:-KEPT]
    if held and not skipped:
        yield bytes(held)
