"""Reads LZ4 frames (LZ4 Frame Format Description 1.6.3, Block Format): the form of compressed
sprites, which hosts may send to a simulated Frame. Checksums are skipped.
"""

from typing import Final

from firmware_bridge.errors import RemoteViolation, Violation

_MAGIC: Final = b"\x04\x22\x4d\x18"
_STORED: Final = 1 << 31
"""Bit of a block's size: its bytes are not compressed."""
_BLOCK_SUMS, _SIZE, _SUM, _DICTIONARY = 0x10, 0x08, 0x04, 0x01
"""Flags of a frame: what else it has."""


def read_frame(data: bytes, limit: int) -> bytes:
    """Return what is in a frame. Raises `RemoteViolation` if it is damaged or more than `limit`."""
    if len(data) < 7 or data[:4] != _MAGIC or data[4] >> 6 != 1:
        raise _damaged("no frame")
    flags = data[4]
    at = 7 + (8 if flags & _SIZE else 0) + (4 if flags & _DICTIONARY else 0)
    out = bytearray()
    while True:
        size = int.from_bytes(_take(data, at, 4), "little")
        at += 4
        if size == 0:
            return bytes(out)
        block = _take(data, at, size & ~_STORED)
        at += len(block) + (4 if flags & _BLOCK_SUMS else 0)
        if size & _STORED:
            out += block
        else:
            _read_block(block, out, limit)
        if len(out) > limit:
            raise _damaged(f"more than {limit} bytes")


def _read_block(block: bytes, out: bytearray, limit: int) -> None:
    """Append what a block holds: literals, and copies of what is already there."""
    at = 0
    while at < len(block):
        token = block[at]
        literals, at = _length(block, at + 1, token >> 4)
        out += _take(block, at, literals)
        at += literals
        if at == len(block):
            return  # the last sequence has literals only
        back = int.from_bytes(_take(block, at, 2), "little")
        length, at = _length(block, at + 2, token & 15)
        length += 4
        if not 0 < back <= len(out) or len(out) + length > limit:
            raise _damaged(f"a copy of {length} bytes from {back} before")
        for _ in range(length):
            out.append(out[-back])


def _length(block: bytes, at: int, length: int) -> tuple[int, int]:
    """Return a length, which more bytes may follow, and where it ends."""
    if length < 15:
        return length, at
    while True:
        (more,) = _take(block, at, 1)
        length, at = length + more, at + 1
        if more < 255:
            return length, at


def _take(data: bytes, at: int, size: int) -> bytes:
    piece = data[at : at + size]
    if len(piece) < size:
        raise _damaged("it ends too early")
    return piece


def _damaged(why: str) -> RemoteViolation:
    return RemoteViolation(Violation.BAD_MESSAGE, f"a compressed sprite: {why}")
