"""Splits a stream of bytes into lines, holding at most one line's limit in memory."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

CHUNK: Final = 64 * 1024
EXCERPT: Final = 256
"""Bytes of the beginning and the end of a line that is too long: enough to find the request id."""


@dataclass(frozen=True, slots=True)
class Overlong:
    """The beginning and the end of a line beyond the limit."""

    head: bytes
    tail: bytes = b""


class Endless(Exception):
    """A line went on for many times the limit; the writer will not stop."""


async def lines(
    stream: asyncio.StreamReader, *, limit: int, patience: int
) -> AsyncIterator[bytes | Overlong]:
    """Yield every line; at the end of one longer than `limit`, an `Overlong`. Raises `Endless`
    after `patience` more bytes.
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
                yield Overlong(head, (bytes(held) + piece)[-EXCERPT:])
            elif len(held) + len(piece) > limit:
                yield Overlong(bytes(held[:EXCERPT]) or piece[:EXCERPT], piece[-EXCERPT:])
            else:
                yield bytes(held) + piece
            held.clear()
            skipped = 0
        held += chunk[start:]
        if len(held) > limit or skipped:
            head = head if skipped else bytes(held[:EXCERPT])
            skipped += len(held)
            if skipped > limit + patience:
                raise Endless(f"a line of more than {limit + patience} bytes")
            del held[:-EXCERPT]
    if held and not skipped:
        yield bytes(held)
