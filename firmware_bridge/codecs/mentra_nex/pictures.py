"""One picture on its way to a Mentra Display: chunks, and those that are missing again."""

from typing import Final

from firmware_bridge.codecs.mentra_nex.picture import cut
from firmware_bridge.codecs.mentra_nex.wire import (
    HEIGHT,
    MAX_CHUNKS,
    PICTURE,
    PICTURE_HEAD,
    WIDTH,
    ToGlasses,
    chunk,
    encode,
)
from firmware_bridge.errors import CommandRefused

WAIT_S: Final = 5.0
"""Seconds for the glasses' word about a picture (SPEC: 5 s a chunk)."""
TRIES: Final = 5
_MARGIN: Final = 17
"""Bytes that a chunk stays below a packet of the phone, besides 3 of ATT (M26: MTU − 20)."""


class PictureOrder:
    """Used once. `due`: when the glasses are late. Chunks have no checksum, except for an older
    firmware, which drops all without: then they are sent with one.
    """

    def __init__(self, number: int, stream: int, file: bytes, now: float) -> None:
        self.number = number
        self.due = now + WAIT_S
        self._stream = stream
        self._file = file
        self._checked = False
        self._tries = 1
        self._pieces: list[bytes] = []
        self._left = MAX_CHUNKS
        """Chunks that were missing when the glasses last named them."""

    def packets(self, max_packet: int) -> list[bytes]:
        """Return all chunks. Raises `CommandRefused`."""
        room = max_packet - _MARGIN - PICTURE_HEAD
        if room <= 0:
            raise CommandRefused("too_big", f"no picture fits packets of {max_packet} bytes")
        self._pieces = cut(self._file, room)
        return self._chunks(range(len(self._pieces)))

    def announcement(self) -> bytes:
        """Return the message that announces it."""
        name, count = f"{self._stream:04X}", len(self._pieces)
        body = encode({1: name, 2: 0, 3: 0, 4: WIDTH, 5: HEIGHT, 6: "raw", 7: count})
        return encode({ToGlasses.MSG_ID: "img_start_1", ToGlasses.IMAGE: body})

    def is_named(self, name: str) -> bool:
        return name.upper() == f"{self._stream:04X}"

    def is_mine(self, packet: bytes) -> bool:
        """Return whether a packet is one of its chunks."""
        return packet[:3] == bytes((PICTURE,)) + self._stream.to_bytes(2, "big")

    def again(self, missing: list[int], max_packet: int, now: float) -> list[bytes] | None:
        """Return the missing chunks, or all if none is named; None if that was done often and no
        more came.
        """
        self._tries = 1 if 0 < len(missing) < self._left else self._tries + 1
        self._left = len(missing) or self._left
        if self._tries > TRIES:
            return None
        wanted = [at for at in dict.fromkeys(missing) if 0 <= at < len(self._pieces)]
        whole = range(len(self._pieces))
        if not wanted or len(wanted) == len(self._pieces):
            wanted = list(whole)
            self._checked = self._checked or bool(missing)
        self.due = now + WAIT_S
        return [each for each in self._chunks(wanted) if len(each) <= max_packet]

    def _chunks(self, wanted: "range | list[int]") -> list[bytes]:
        return [chunk(self._stream, at, self._pieces[at], checked=self._checked) for at in wanted]
