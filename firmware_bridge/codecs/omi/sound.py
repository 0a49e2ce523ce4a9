"""Sound packets of an Omi ↔ whole frames."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from firmware_bridge.codecs.omi.wire import SOUND_HEAD, Dialect
from firmware_bridge.errors import RemoteViolation, Violation
from firmware_bridge.messages import MAX_CHUNK_BYTES
from firmware_bridge.packets import serial_distance

_SILENT: Final = 2.0
_RANDOM: Final = 40.0
"""Roughness of bytes below and above which nothing can be told of them."""
_SURE: Final = 5
"""Blocks that must look like 8 bits before they are taken for it."""
_FAR_BACK: Final = 64
"""A number so far back is no late packet: the glasses count from the beginning again."""


class FrameJoiner:
    """Joins packets to frames. The end of a frame is not marked: it is over when the next begins.

    Each packet has a number and its place in the frame. One document can be read as if all packets
    of a frame had one number; that is understood too. A frame that lacks a packet is dropped.
    """

    def __init__(self) -> None:
        self._first: int | None = None
        """Number of the first packet of the current frame."""
        self._last = 0
        self._fragment = 0
        self._frame: bytearray | None = None
        self._may_go_on = False
        """Whether the last packet was full, so that more may belong to its frame."""
        self._span = 1
        """Numbers that one frame takes."""
        self._index = 0

    def add(self, packet: bytes, max_packet: int) -> tuple[int, bytes] | None:
        """Add a packet of at most `max_packet` bytes; return the index and bytes of the frame that
        is complete now, if one is. Lost frames leave a gap in the index. Raises `RemoteViolation`.
        """
        if len(packet) <= SOUND_HEAD:
            raise RemoteViolation(Violation.TRUNCATED, f"sound packet of {len(packet)} bytes")
        number, fragment = int.from_bytes(packet[:2], "little"), packet[2]
        step = 1 if self._first is None else serial_distance(number, self._last)
        goes_on = fragment == self._fragment + 1 and step in (0, 1)
        if -_FAR_BACK < step <= 0 and not goes_on:
            return None  # it came late, or twice
        done = None
        if goes_on and self._frame is not None:
            self._append(packet[SOUND_HEAD:])
        else:
            done = self._finish(lost=step - fragment != 1)
            self._begin(number - fragment, packet[SOUND_HEAD:], fragment)
        self._last, self._fragment = number, fragment
        self._may_go_on = len(packet) >= max_packet
        return done

    def _begin(self, number: int, data: bytes, fragment: int) -> None:
        """Begin a frame. Of one that lacks its beginning only the place is kept."""
        if self._first is not None:
            passed = serial_distance(number, self._first)
            self._index += max(0 if fragment else 1, round(passed / self._span))
        self._first, self._frame = number, None if fragment else bytearray(data)

    def _append(self, data: bytes) -> None:
        assert self._frame is not None
        if len(self._frame) + len(data) > MAX_CHUNK_BYTES:
            self._frame = None
            raise RemoteViolation(Violation.OVERSIZED, f"sound over {MAX_CHUNK_BYTES} bytes")
        self._frame += data

    def _finish(self, *, lost: bool) -> tuple[int, bytes] | None:
        frame, self._frame = self._frame, None
        if frame is None or self._first is None or (lost and self._may_go_on):
            return None
        if not lost:
            self._span = serial_distance(self._last, self._first) + 1
        return self._index, bytes(frame)


class SampleWidth:
    """Finds out whether the samples of codec 1 have 16 bits, as the firmware has it, or 8, as one
    document says, and returns 16 bits.

    Of 16 bits the high bytes are much smoother than the low ones; of 8 bits all are alike.
    """

    def __init__(self) -> None:
        self._narrow = 0
        """Blocks that look like 8 bits."""
        self._decided = False

    def widen(self, block: bytes) -> bytes:
        """Return a block of samples with 16 bits."""
        if not self._decided:
            self._look_at(block)
        if self._narrow < _SURE:
            return block
        return b"".join((sample - 128 << 8).to_bytes(2, "little", signed=True) for sample in block)

    def _look_at(self, block: bytes) -> None:
        low, high = _roughness(block[::2]), _roughness(block[1::2])
        if low < _SILENT:
            return
        if 2 * high < low:
            self._narrow, self._decided = 0, True
        elif low < _RANDOM:  # else it is too loud to tell
            self._narrow += 1
            self._decided = self._narrow == _SURE


def _roughness(data: bytes) -> float:
    """Return the mean step from byte to byte, the shorter way round: 64 for random bytes."""
    steps = [min(a - b & 0xFF, b - a & 0xFF) for a, b in pairwise(data)]
    return sum(steps) / max(1, len(steps))


class FrameCutter:
    """Cuts frames to packets, as the glasses do."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._number = 0
        self._index = 0

    def cut(self, index: int, frame: bytes, max_packet: int) -> Iterator[bytes]:
        """Yield the packets of a frame. A gap in the index becomes one in the numbers."""
        room = max_packet - (0 if self._dialect.overlong else SOUND_HEAD)
        pieces = [frame[at : at + room] for at in range(0, len(frame), room)]
        span = 1 if self._dialect.numbers_frames else len(pieces)
        number = self._number + (index - self._index) * span
        if index >= self._index:
            self._number, self._index = number + span, index + 1
        for fragment, piece in enumerate(pieces):
            at = number if self._dialect.numbers_frames else number + fragment
            yield (at & 0xFFFF).to_bytes(2, "little") + bytes([fragment & 0xFF]) + piece
