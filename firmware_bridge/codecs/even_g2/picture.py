"""Pictures of the Even G2: tiles → pieces of the canvas as BMP files of 16 greys, and back."""

import struct
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from firmware_bridge.codecs.even_g2 import HEIGHT, WIDTH
from firmware_bridge.codecs.even_g2.hub import Rect
from firmware_bridge.errors import RemoteViolation, Violation
from firmware_bridge.messages import Tile
from firmware_bridge.pixels import pack, unpack

MIN_SIDE: Final = 20
MAX_WIDTH: Final = 288
MAX_HEIGHT: Final = 144
"""Pixels of one container of a picture."""
MAX_PICTURES: Final = 4
_HEADER: Final = struct.Struct("<2sIII IiiHHIIiiII")
_COLOURS: Final = 16
_RESOLUTION: Final = 2835
"""Pixels a metre, as two hosts send."""
_PALETTE: Final = b"".join(bytes((grey * 17, grey * 17, grey * 17, 0)) for grey in range(_COLOURS))
_GREYS: Final = {
    bpp: bytes(level * 15 // ((1 << bpp) - 1) & 0x0F for level in range(256)) for bpp in (1, 2, 4)
}
"""Bits of a pixel → level of a tile → level of the lens."""
_OFFSET: Final = _HEADER.size + len(_PALETTE)


class Picture(Struct, frozen=True):
    """One container of a picture and the file it shows."""

    place: Rect
    file: bytes


def pictures(tiles: Sequence[Tile]) -> tuple[Picture, ...]:
    """Return what must be sent to show the tiles: only what is lit, in as few pieces as it takes.

    A page holds four pictures of at most 288 × 144 pixels, which is the whole canvas.
    """
    canvas = _draw(tiles)
    return tuple(Picture(place, bmp(canvas, place)) for place in _places(canvas))


def _draw(tiles: Iterable[Tile]) -> bytearray:
    """Draw tiles on a dark canvas, a byte of 0 to 15 for each pixel, clipped at its edges."""
    canvas = bytearray(WIDTH * HEIGHT)
    for tile in tiles:
        wide = min(tile.width, WIDTH - tile.x)
        if wide <= 0:
            continue
        greys = unpack(tile.pixels, tile.width, tile.bpp).translate(_GREYS[tile.bpp])
        for y in range(min(tile.height, HEIGHT - tile.y)):
            at = (tile.y + y) * WIDTH + tile.x
            row = greys[y * tile.width : y * tile.width + wide]
            canvas[at : at + wide] = row
    return canvas


def _places(canvas: bytearray) -> list[Rect]:
    """Return the containers that hold everything lit: the area of the ink, cut to their size."""
    rows = _lit(canvas)
    if rows is None:
        return []
    ink = 0
    for start in range(0, len(canvas), WIDTH):
        ink |= int.from_bytes(canvas[start : start + WIDTH], "big")
    columns = _lit(ink.to_bytes(WIDTH, "big")) or (0, 0)
    x, width = _span(*columns, WIDTH)
    y, height = _span(rows[0] // WIDTH, rows[1] // WIDTH, HEIGHT)
    return [
        Rect(left, top, wide, high)
        for top, high in _parts(y, height, MAX_HEIGHT)
        for left, wide in _parts(x, width, MAX_WIDTH)
    ]


def _lit(pixels: bytes | bytearray) -> tuple[int, int] | None:
    """Return the places of the first and the last pixel that is not dark; None if all are."""
    end = len(pixels.rstrip(b"\0"))
    return (len(pixels) - len(pixels.lstrip(b"\0")), end - 1) if end else None


def _span(first: int, last: int, limit: int) -> tuple[int, int]:
    """Return begin and length of what is lit, at least as long as the smallest container."""
    length = max(MIN_SIDE, last + 1 - first)
    return min(first, limit - length), length


def _parts(begin: int, length: int, most: int) -> list[tuple[int, int]]:
    if length <= most:
        return [(begin, length)]
    half = length // 2
    return [(begin, half), (begin + half, length - half)]


def bmp(canvas: bytearray | bytes, place: Rect) -> bytes:
    """Return a part of the canvas as a BMP file: 4 bits, rows bottom up, padded to 4 bytes."""
    padded = (place.width + 7) // 8 * 8
    starts = (y * WIDTH + place.x for y in range(place.y, place.y + place.height))
    rows = [bytes(canvas[at : at + place.width]).ljust(padded, b"\0") for at in starts]
    pixels = pack(b"".join(reversed(rows)), 4)
    shape = (40, place.width, place.height, 1, 4, 0, len(pixels), _RESOLUTION, _RESOLUTION)
    size = _OFFSET + len(pixels)
    header = _HEADER.pack(b"BM", size, 0, _OFFSET, *shape, _COLOURS, 0)
    return header + _PALETTE + pixels


def read(file: bytes, place: Rect) -> Tile:
    """Return a file as a tile at its container's place. Raises `RemoteViolation`."""
    if len(file) < _HEADER.size:
        raise RemoteViolation(Violation.TRUNCATED, f"a picture of {len(file)} bytes")
    magic, _, _, offset, _, width, height, _, depth, packing, *_ = _HEADER.unpack_from(file)
    if magic != b"BM" or depth != 4 or packing or (width, height) != (place.width, place.height):
        detail = f"not a picture for its container: {width} × {height}, {depth} bit"
        raise RemoteViolation(Violation.BAD_MESSAGE, detail)
    stride, wide = (width + 7) // 8 * 4, (width + 1) // 2
    pixels = file[offset : offset + stride * height]
    if len(pixels) < stride * height:
        raise RemoteViolation(Violation.TRUNCATED, f"{len(pixels)} bytes of pixels")
    rows = [pixels[at : at + wide] for at in range(0, len(pixels), stride)]
    return Tile(place.x, place.y, width, height, 4, b"".join(reversed(rows)))
