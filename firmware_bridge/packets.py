"""Splits messages into packets and reassembles them within a size limit. Shared by the codecs."""

import struct
from typing import Final, NoReturn, Self

from firmware_bridge.errors import LocalMisuse, RemoteViolation, Violation

MIN_PACKET: Final = 20
"""Bytes of one write at the smallest ATT MTU (23 − 3 of ATT header)."""
MAX_PACKET: Final = 512
"""Bytes of one write at any MTU: an attribute's maximum size (Core spec, vol 3, part F, 3.2.9)."""

_TOTAL: Final = struct.Struct("<I")
_HALF: Final = 1 << 15


SUBSCRIBE: Final = b"\x01"
UNSUBSCRIBE: Final = b"\x00"
"""Sent to a channel that is subscribed on request: its notifications are switched on or off."""


class ChannelPacket(bytes):
    """One write or notification of glasses with more characteristics than rx and tx.

    `channel` names its characteristic (`models.Channel`), "" is rx and tx. One sent to a channel
    that is only read asks for its value, which arrives as a packet of that channel; one sent to a
    channel `on_request` is `SUBSCRIBE` or `UNSUBSCRIBE`.
    """

    channel: str

    def __new__(cls, data: bytes, channel: str = "") -> Self:
        packet = super().__new__(cls, data)
        packet.channel = channel
        return packet


def channel_of(packet: bytes) -> str:
    """Return the channel of a packet; "" for plain bytes."""
    return packet.channel if isinstance(packet, ChannelPacket) else ""


def clamp_packet(size: int) -> int:
    """Return the packet size to use when the radio reports `size` bytes. Raises `LocalMisuse`."""
    if size < MIN_PACKET:
        raise LocalMisuse(f"a packet of {size} bytes; ATT carries at least {MIN_PACKET}")
    return min(size, MAX_PACKET)


def serial_distance(wire: int, here: int) -> int:
    """How far the 16-bit number `wire` is ahead of `here` (negative: behind), modulo 2^16."""
    return ((wire - here + _HALF) & 0xFFFF) - _HALF


class Cutter:
    """An outgoing message, its total length first: the peer can refuse before allocating."""

    def __init__(self, message: bytes) -> None:
        self._data = _TOTAL.pack(len(message)) + message
        self._at = 0

    @property
    def left(self) -> int:
        """Bytes not cut yet."""
        return len(self._data) - self._at

    def cut(self, room: int) -> tuple[bytes, bool, bool]:
        """Return the next piece of at most `room` bytes, whether it is the first, and the last."""
        first = self._at == 0
        piece = self._data[self._at : self._at + room]
        self._at += len(piece)
        return piece, first, self.left == 0


class Reassembler:
    """An incoming message of at most `limit` bytes; after a violation it skips to the next."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._data: bytearray | None = None
        self._total = 0
        self._skipping = False

    def add(self, piece: bytes, *, first: bool, last: bool) -> bytes | None:
        """Add a piece; return the message when complete, else None. Raises `RemoteViolation`."""
        if first:
            piece = self._begin(piece)
        elif self._data is None:
            self._stray()
            return None
        assert self._data is not None
        if len(self._data) + len(piece) > self._total:
            self._refuse(Violation.OVERSIZED, f"more than the {self._total} bytes announced")
        self._data += piece
        if not last:
            return None
        if len(self._data) < self._total:
            self._refuse(
                Violation.TRUNCATED, f"{len(self._data)} of the {self._total} bytes announced"
            )
        message, self._data = bytes(self._data), None
        return message

    def _begin(self, piece: bytes) -> bytes:
        interrupted, self._data = self._data is not None, None
        if interrupted:
            self._refuse(Violation.BAD_ORDER, "a message began inside another")
        if len(piece) < _TOTAL.size:
            self._refuse(Violation.TRUNCATED, "a first piece without its total length")
        (total,) = _TOTAL.unpack_from(piece)
        if total > self.limit:
            self._refuse(Violation.OVERSIZED, f"a message of {total} bytes; at most {self.limit}")
        self._data, self._total, self._skipping = bytearray(), total, False
        return piece[_TOTAL.size :]

    def _stray(self) -> None:
        """Reject a piece that belongs to no message; reported once per message."""
        if not self._skipping:
            self._refuse(Violation.BAD_ORDER, "a piece of a message that never began")

    def _refuse(self, reason: Violation, detail: str) -> NoReturn:
        self._data, self._skipping = None, True
        raise RemoteViolation(reason, detail)
