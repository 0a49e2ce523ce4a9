"""Messages of an Even G1 in numbered packets of the form `op len 00 seq sub count16 index16 data`,
counted from 1: the dashboard, and the pictures of navigation.
"""

from collections.abc import Iterator
from typing import Final

from firmware_bridge.errors import CommandRefused, RemoteViolation, Violation

HEAD: Final = 9
_MOST: Final = 255
"""Packets of one message: the hosts' counts have one byte, followed by a 0."""
_MOST_JOINED: Final = 8192
"""Packets of one message of the glasses: a spoken note has 250, with the smallest packets 6,000."""


def cut(
    op: int, sub: int, data: bytes, numbers: Iterator[int], *, room: int, max_packet: int
) -> tuple[bytes, ...]:
    """Return the packets of a message, each with the next of `numbers`. Raises `CommandRefused`."""
    size = min(room, max_packet - HEAD)
    pieces = [data[at : at + size] for at in range(0, len(data), size)] or [b""]
    if len(pieces) > _MOST:
        raise CommandRefused("too_big", f"{len(data)} bytes; {_MOST * size} fit at this MTU")
    return tuple(
        bytes((op, HEAD + len(piece), 0, next(numbers) & 0xFF, sub, len(pieces), 0, index, 0))
        + piece
        for index, piece in enumerate(pieces, 1)
    )


class PieceJoiner:
    """Joins the packets of one message of one sub-command, doubles included. Packet 1, or one of
    another count, begins a new message; a packet that is missing at its end drops it.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0
        self._size = 0
        self._pieces: dict[int, bytes] = {}

    def add(self, packet: bytes) -> bytes | None:
        """Add a packet; return the data with the last one, else None. Raises `RemoteViolation`."""
        if len(packet) < HEAD:
            raise RemoteViolation(Violation.TRUNCATED, f"{packet[0]:02X} of {len(packet)} bytes")
        count, index = (int.from_bytes(packet[at : at + 2], "little") for at in (5, 7))
        return self.piece(count, index, packet[HEAD:])

    def piece(self, count: int, index: int, data: bytes) -> bytes | None:
        """Add one numbered piece. Raises `RemoteViolation`."""
        if not 1 <= index <= count <= _MOST_JOINED:
            raise RemoteViolation(Violation.BAD_ORDER, f"packet {index} of {count}")
        if index == 1 or count != self._count:
            self._count, self._size, self._pieces = count, 0, {}
        self._size += len(data) - len(self._pieces.get(index, b""))
        self._pieces[index] = data
        if self._size > self._limit:
            self._size, self._pieces = 0, {}
            raise RemoteViolation(Violation.OVERSIZED, f"more than {self._limit} bytes")
        if index < count:
            return None
        pieces, self._size, self._pieces = self._pieces, 0, {}
        if len(pieces) < count:
            raise RemoteViolation(Violation.BAD_ORDER, f"{len(pieces)} of {count} packets")
        return b"".join(pieces[at] for at in range(1, count + 1))
