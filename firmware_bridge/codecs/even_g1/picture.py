"""Pictures of the Even G1: tiles ↔ BMP file ↔ packets 15, 20, 16."""

import struct
import zlib
from collections.abc import Iterable
from typing import Final

from firmware_bridge.codecs.even_g1.wire import HEIGHT, STOCK, WIDTH, Dialect, Op
from firmware_bridge.errors import CommandRefused, RemoteViolation, Violation
from firmware_bridge.messages import Tile

PIECE: Final = 194
"""Bytes of the file in one packet."""
END: Final = bytes((Op.PICTURE_END, 0x0D, 0x0E))
_PLACE: Final = b"\x00\x1c\x00\x00"
"""Address of the file in the glasses' memory; sent in packet 0 and included in the checksum."""
_STRIDE: Final = WIDTH // 8
_HEADER: Final = struct.Struct("<2sIII IiiHHIIiiII 8s")
_PALETTE: Final = b"\0\0\0\0\xff\xff\xff\0"
_MOST_PACKETS: Final = 256
_HALVES: Final = {
    bpp: [
        "".join(str(value >> at >> bpp - 1 & 1) for at in range(8 - bpp, -1, -bpp))
        for value in range(256)
    ]
    for bpp in (2, 4)
}
"""Byte → for each pixel in it, whether it is at least half bright (its highest bit)."""
_INVERT: Final = bytes(255 - value for value in range(256))


def bmp(tiles: Iterable[Tile], dialect: Dialect = STOCK) -> bytes:
    """Draw tiles on a dark lens; return the BMP file: 1 bit, 62 bytes of header, rows bottom up."""
    rows = [0] * HEIGHT
    for tile in tiles:
        _draw(tile, rows)
    pixels = b"".join(row.to_bytes(_STRIDE, "big") for row in reversed(rows))
    if dialect.inverted:
        pixels = pixels.translate(_INVERT)
    size = _HEADER.size + len(pixels)
    shape = (40, WIDTH, HEIGHT, 1, 1, 0, len(pixels), 0, 0, 2, 2)
    return _HEADER.pack(b"BM", size, 0, _HEADER.size, *shape, _PALETTE) + pixels


def centred(what: str, tile: Tile, width: int, height: int) -> bytes:
    """Return a tile of 1 bit on a dark picture of this size, whose width is in whole bytes. Raises
    `CommandRefused`: it hangs over.
    """
    right = width - tile.x - tile.width
    if right < 0 or tile.y + tile.height > height:
        detail = f"a {what} of {tile.width} × {tile.height} at {tile.x}, {tile.y}"
        raise CommandRefused("bad_message", f"{detail}; it must be within {width} × {height}")
    size, stride = width // 8, (tile.width + 7) // 8
    starts = range(0, stride * tile.height, stride)
    rows = [_lit(tile.pixels[at : at + stride], tile) << right for at in starts]
    body = b"".join(row.to_bytes(size, "big") for row in rows)
    return (bytes(size * tile.y) + body).ljust(size * height, b"\0")


def _draw(tile: Tile, rows: list[int]) -> None:
    """Light all pixels that are at least half bright, row by row; clip at the lens's edges."""
    stride = (tile.width * tile.bpp + 7) // 8
    # columns to the right of the tile; fewer than none where it hangs over
    left = WIDTH - tile.x - tile.width
    mask = _shifted((1 << tile.width) - 1, left)
    for y in range(min(tile.height, HEIGHT - tile.y)):
        lit = _lit(tile.pixels[y * stride : (y + 1) * stride], tile)
        rows[tile.y + y] = rows[tile.y + y] & ~mask | _shifted(lit, left)


def _lit(line: bytes, tile: Tile) -> int:
    """Return one row as a number, one bit per pixel, the leftmost highest."""
    if tile.bpp > 1:
        bits = "".join(_HALVES[tile.bpp][value] for value in line)
        return int(bits[: tile.width], 2)
    return int.from_bytes(line, "big") >> len(line) * 8 - tile.width


def _shifted(bits: int, left: int) -> int:
    return bits << left if left >= 0 else bits >> -left


def cut(file: bytes, *, max_packet: int) -> tuple[bytes, ...]:
    """Return the data packets; below an MTU of about 48 their one-byte number is too small."""
    room = min(PIECE, max_packet - 2 - len(_PLACE))
    pieces = [file[at : at + room] for at in range(0, len(file), room)]
    if len(pieces) > _MOST_PACKETS:
        raise CommandRefused("too_big", f"a picture needs packets of more than {max_packet} bytes")
    return tuple(
        bytes((Op.PICTURE, index)) + (_PLACE if index == 0 else b"") + piece
        for index, piece in enumerate(pieces)
    )


def checksum(file: bytes) -> bytes:
    """CRC-32 (as in zip) over address and file, most significant byte first."""
    return zlib.crc32(_PLACE + file).to_bytes(4, "big")


def read(file: bytes, *, inverted: bool = False) -> Tile:
    """Return the file as one tile. Raises `RemoteViolation`."""
    if len(file) < _HEADER.size:
        raise RemoteViolation(Violation.TRUNCATED, f"a picture of {len(file)} bytes")
    magic, _, _, offset, _, width, height, _, depth, packing, *_ = _HEADER.unpack_from(file)
    if magic != b"BM" or depth != 1 or packing or width != WIDTH or not 0 < height <= HEIGHT:
        raise RemoteViolation(
            Violation.BAD_MESSAGE, f"not a picture for this lens: {width} × {height}, {depth} bit"
        )
    pixels = file[offset : offset + _STRIDE * height]
    if len(pixels) < _STRIDE * height:
        raise RemoteViolation(Violation.TRUNCATED, f"{len(pixels)} bytes of pixels")
    if inverted:
        pixels = pixels.translate(_INVERT)
    rows = [pixels[at : at + _STRIDE] for at in range(0, len(pixels), _STRIDE)]
    return Tile(0, 0, WIDTH, height, 1, b"".join(reversed(rows)))


class PictureIn:
    """Collects the data packets of one picture, duplicates included; packet 0 starts a new one."""

    def __init__(self) -> None:
        self._pieces: dict[int, bytes] = {}

    def add(self, packet: bytes) -> None:
        """Add a data packet. Raises `RemoteViolation`."""
        if len(packet) < 2:
            raise RemoteViolation(Violation.TRUNCATED, "a picture packet without number")
        if packet[1] == 0:
            self._pieces = {}
        self._pieces[packet[1]] = packet[2:].removeprefix(_PLACE) if packet[1] == 0 else packet[2:]

    def file(self) -> bytes | None:
        """Return the received file, or None while a piece is missing."""
        if not self._pieces or len(self._pieces) != max(self._pieces) + 1:
            return None
        return b"".join(self._pieces[at] for at in range(len(self._pieces)))
