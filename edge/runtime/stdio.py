"""Standard input and output of a process that speaks a protocol over them."""

import os
import select
import sys
from collections.abc import Callable
from typing import BinaryIO


def claim_stdio() -> tuple[int, int]:
    """Return new file descriptors of stdin and stdout, for the protocol alone.

    From then on all other code reads an empty stdin and prints to stderr: a stray print of a
    library, or of a program it starts, cannot break the protocol.
    """
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout.flush()
    os.dup2(2, 1)
    return incoming, outgoing


def serve_frames(answer: Callable[[bytes], bytes], *, idle_s: float, max_request: int) -> None:
    """Answer requests (u32 length, big endian, then the bytes) in the same form, until the input
    ends, a request is too long, or none came for `idle_s` seconds.
    """
    incoming, outgoing = claim_stdio()
    with os.fdopen(incoming, "rb", buffering=0) as source, os.fdopen(outgoing, "wb") as sink:
        while is_readable(source, idle_s) and (request := read_frame(source, max_request)):
            write_frame(sink, answer(request))


def is_readable(source: BinaryIO, within_s: float) -> bool:
    """Wait at most so long for input; its end counts as input."""
    return bool(select.select([source], [], [], within_s)[0])


def read_frame(source: BinaryIO, most: int) -> bytes:
    """Return one frame's bytes; b"" at the end of the input, and if it is empty or longer than
    `most`.
    """
    size = int.from_bytes(_read(source, 4), "big")
    if not 0 < size <= most:
        return b""
    body = _read(source, size)
    return body if len(body) == size else b""


def write_frame(sink: BinaryIO, body: bytes) -> None:
    sink.write(len(body).to_bytes(4, "big") + body)
    sink.flush()


def _read(source: BinaryIO, size: int) -> bytes:
    """Read so many bytes, fewer only at the end: a pipe hands over 64 KiB at once."""
    parts: list[bytes] = []
    while size and (part := source.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
