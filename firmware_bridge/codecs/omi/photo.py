"""Photo packets of OMI Glass and OpenGlass ↔ whole photos."""

from collections.abc import Iterator
from typing import Final

from firmware_bridge.codecs.omi.wire import PHOTO_BYTES, PHOTO_END, PHOTO_HEAD
from firmware_bridge.errors import RemoteViolation, Violation
from firmware_bridge.messages import PhotoFailed, PhotoTaken

MAX_BYTES: Final = 256 * 1024
"""Of a photo; the makers' app takes 200 KB."""
_BEGINS: Final = b"\xff\xd8"
_ENDS: Final = b"\xff\xd9"
"""What a JPEG file begins and ends with."""
_ORIENTATIONS: Final = 4
OLD_TURN: Final = 180
"""Degrees for firmware that says no orientation, as in the makers' app."""


class PhotoJoiner:
    """Joins packets to photos. A photo that lacks a packet is never returned."""

    def __init__(self) -> None:
        self._photo: int | None = None
        """The number of the photo that is being received."""
        self._jpeg = bytearray()
        self._turned = 0
        self._next = 0
        self._last = b""

    @property
    def photo(self) -> int | None:
        """The number of the photo that is being received; None: none is."""
        return self._photo

    def give_up(self) -> None:
        """Drop the rest of the photo that is being received."""
        self._photo = None

    def begins(self, packet: bytes) -> bool:
        """Return whether this is the first packet of a photo, and no repetition of it."""
        repeated = self._photo is not None and self._next == 1 and packet == self._last
        return packet[:PHOTO_HEAD] == b"\0\0" and not repeated

    def add(self, packet: bytes, photo: int) -> PhotoTaken | PhotoFailed | None:
        """Add a packet; `photo` is the number of one that begins. Return the photo that is complete
        or has failed, if one has. Raises `RemoteViolation`.
        """
        if len(packet) < PHOTO_HEAD:
            raise RemoteViolation(Violation.TRUNCATED, f"photo packet of {len(packet)} bytes")
        if self.begins(packet):
            interrupted = self._fail("the next photo began before its end")
            self._begin(packet, photo)
            return interrupted
        if self._photo is None:
            return None  # the rest of one that has failed
        if packet.startswith(PHOTO_END):  # no photo has so many packets
            return self._end()
        index = int.from_bytes(packet[:PHOTO_HEAD], "little")
        if index == self._next - 1 and packet == self._last:
            return None
        if index != self._next:
            return self._fail(f"packet {index} came where {self._next} was due")
        if len(self._jpeg) + len(packet) > MAX_BYTES:
            return self._fail(f"it has more than {MAX_BYTES} bytes")
        self._jpeg += packet[PHOTO_HEAD:]
        self._next, self._last = self._next + 1, packet
        return None

    def _begin(self, packet: bytes, photo: int) -> None:
        """Begin a photo. An orientation is recognised by the picture that follows it."""
        data, self._turned = packet[PHOTO_HEAD:], OLD_TURN
        if data[:2] != _BEGINS and data[1:3] == _BEGINS:
            self._turned = data[0] % _ORIENTATIONS * 90
            data = data[1:]
        self._photo, self._jpeg = photo, bytearray(data)
        self._next, self._last = 1, packet

    def _end(self) -> PhotoTaken | PhotoFailed | None:
        jpeg = bytes(self._jpeg)
        if not (jpeg.startswith(_BEGINS) and jpeg.rstrip(b"\0").endswith(_ENDS)):
            return self._fail("it is no whole JPEG file")
        photo, self._photo = self._photo or 0, None
        return PhotoTaken(photo, jpeg, self._turned)

    def _fail(self, why: str) -> PhotoFailed | None:
        photo, self._photo = self._photo, None
        return None if photo is None else PhotoFailed(photo, why)


def cut_photo(taken: PhotoTaken, max_packet: int, *, oriented: bool) -> Iterator[bytes]:
    """Yield the packets of a photo; with its orientation if `oriented`."""
    room = min(PHOTO_BYTES, max_packet - PHOTO_HEAD)
    data = (bytes([taken.turned // 90]) if oriented else b"") + taken.jpeg
    for index, at in enumerate(range(0, len(data), room)):
        yield index.to_bytes(PHOTO_HEAD, "little") + data[at : at + room]
    yield PHOTO_END
