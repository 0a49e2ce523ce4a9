"""Files of a Mentra Live, such as photos: packets in any order, until none is missing."""

from typing import Final

from firmware_bridge.codecs.mentra_live.wire import FILE_PACK, FilePacket, Kind
from firmware_bridge.messages import MAX_PHOTO_BYTES

MOST_ASKED: Final = 40
"""Missing packets that are asked for at a time: more do not fit a message of the glasses' size."""
_NAME_BYTES: Final = 16


def packets_of(name: str, data: bytes, pack: int, *, inflated: bool = True) -> list[FilePacket]:
    """Return the packets of a photo. `inflated`: as real glasses, which announce a multiple of 400
    bytes, because their chip shortens other transfers (M26).
    """
    pieces = [data[at : at + pack] for at in range(0, len(data), pack)]
    size = FILE_PACK * len(pieces) if inflated else len(data)
    return [
        FilePacket(Kind.PHOTO, at, size, name[:_NAME_BYTES], piece)
        for at, piece in enumerate(pieces)
    ]


class IncomingFile:
    """One file being received. `count`: how many packets were announced (`file_announce`)."""

    def __init__(self, name: str, file_size: int, *, count: int = 0) -> None:
        self.name = name
        self.file_size = file_size
        self._announced = count
        self._pieces: dict[int, bytes] = {}
        self._pack = 0
        """Data bytes of all packets but the last: the most that any had."""

    def add(self, packet: FilePacket) -> bool:
        """Take a packet; return whether it is new. One that comes again is the same, or the file
        was begun again.
        """
        if packet.file_size != self.file_size:
            self.file_size, self._pack, self._pieces = packet.file_size, 0, {}
        size = len(packet.data)
        if size > self._pack and any(len(each) == self._pack for each in self._full()):
            self._pieces = {}  # begun again with larger packets
        self._pack = max(self._pack, size)
        is_new = self._pieces.get(packet.index) != packet.data
        self._pieces[packet.index] = packet.data
        return is_new

    def _full(self) -> list[bytes]:
        """Packets that cannot be the last."""
        last = max(self._pieces, default=0)
        return [piece for at, piece in self._pieces.items() if at != last]

    def is_last(self, index: int) -> bool:
        return index == self.count - 1

    @property
    def count(self) -> int:
        """Packets of the file, as far as is known.

        Announced sizes are inflated to 400 bytes a packet, whatever the packets' real size; some
        firmware announces the real size, which may be a multiple of 400 too: then there are packets
        beyond the smaller count.
        """
        if self._announced:
            return self._announced
        if not self._pack:
            return 0
        plain = -(-self.file_size // self._pack)
        if self.file_size % FILE_PACK or self._pack >= FILE_PACK:
            return plain
        inflated = self.file_size // FILE_PACK
        return plain if max(self._pieces) >= inflated else inflated

    @property
    def expected(self) -> int:
        """The first packet that is not there."""
        return next(at for at in range(len(self._pieces) + 1) if at not in self._pieces)

    @property
    def missing(self) -> list[int]:
        """Packets that are not there, or too short for their place."""
        last = self.count - 1
        return [
            at
            for at in range(self.count)
            if at not in self._pieces or (at != last and len(self._pieces[at]) < self._pack)
        ]

    @property
    def is_sure(self) -> bool:
        """Whether a file without missing packets has no more: its last packet is the shorter one,
        or all that was announced is there.
        """
        last = self._pieces.get(self.count - 1, b"")
        received = sum(map(len, self._pieces.values()))
        return bool(self._announced) or len(last) < self._pack or received >= self.file_size

    def data(self) -> bytes:
        """Return the file; call it when nothing is missing."""
        return b"".join(self._pieces[at] for at in range(self.count))


def is_too_large(packet: FilePacket) -> bool:
    """Return whether a packet's file is larger than any photo, or has more packets than it."""
    return not 0 < packet.file_size <= MAX_PHOTO_BYTES or packet.index >= packet.file_size


def kind_of(picture: bytes) -> str:
    """Return "jpeg" or "avif", by the first bytes; "" for anything else."""
    if picture.startswith(b"\xff\xd8\xff"):
        return "jpeg"
    brands = picture[8:64] if picture[4:8] == b"ftyp" else b""
    return "avif" if b"avif" in brands or b"avis" in brands else ""
