"""Decompresses an LZ4 block: literals, and copies of what came before, in turn."""

from typing import Final

from firmware_bridge.errors import RemoteViolation, Violation

_MIN_COPY: Final = 4
_LONG: Final = 15
"""A length in a token that goes on in the bytes after it, until one is not 255."""


def decompress(block: bytes, most: int) -> bytes:
    """Return the contents of a block. Raises `RemoteViolation` if it is damaged, or has more than
    `most` bytes.
    """
    out = bytearray()
    at = 0
    try:
        while at < len(block) and len(out) <= most:
            token = block[at]
            count, at = _length(block, at + 1, token >> 4)
            out += _slice(block, at, count)
            at += count
            if at < len(block):  # the last piece has no copy
                back = int.from_bytes(_slice(block, at, 2), "little")
                count, at = _length(block, at + 2, token & 15)
                _copy(out, back, min(count + _MIN_COPY, most + 1))
    except IndexError:
        raise RemoteViolation(Violation.BAD_MESSAGE, "a damaged LZ4 block") from None
    if len(out) > most:
        raise RemoteViolation(Violation.OVERSIZED, f"more than {most} bytes in an LZ4 block")
    return bytes(out)


def _slice(block: bytes, at: int, count: int) -> bytes:
    """Return so many bytes. Raises IndexError if there are fewer."""
    if at + count > len(block):
        raise IndexError
    return block[at : at + count]


def _length(block: bytes, at: int, count: int) -> tuple[int, int]:
    """Return a length, and the place after it."""
    if count == _LONG:
        while block[at] == 255:
            count, at = count + 255, at + 1
        count, at = count + block[at], at + 1
    return count, at


def _copy(out: bytearray, back: int, count: int) -> None:
    """Append `count` bytes from `back` bytes ago; they may be more than there are yet. Raises
    IndexError if nothing is there.
    """
    if not 0 < back <= len(out):
        raise IndexError
    piece = bytes(out[-back:])
    out += (piece * (count // back + 1))[:count]
