"""Pictures of the Even G2: tiles → pieces of the canvas as BMP files of 16 greys, and back."""

import struct
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from firmware_bridge.codecs.even_g2 import HEIGHT, WIDTH, lz4
from firmware_bridge.codecs.even_g2.hub import Rect
from firmware_bridge.errors import RemoteViolation, Violation
from firmware_bridge.messages import Tile
from firmware_bridge.pixels import pack, unpack

MIN_SIDE: Final = 20
MAX_WIDTH: Final = 288
MAX_HEIGHT: Final = 144
"""Pixels of one container of a picture."""
MAX_PICTURES: Final = 4
STRIDE: Final = WIDTH // 2
"""Bytes of a row of the canvas."""
_HEADER: Final = struct.Struct("<2sIII IiiHHIIiiII")
_COLOURS: Final = 16
_RESOLUTION: Final = 2835
"""Pixels a metre, as two hosts send."""
_PALETTE: Final = b"".join(bytes((grey * 17, grey * 17, grey * 17, 0)) for grey in range(_COLOURS))
_GREYS: Final = {
    bpp: bytes(level * 15 // ((1 << bpp) - 1) & 0x0F for level in range(256)) for bpp in (1, 2, 4)
}
"""Bits of a pixel → level of a tile → level of the lens."""
_HIGH: Final = bytes(level >> 4 for level in range(256))
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
    """Draw tiles on a dark canvas of 4 bits a pixel, clipped at its edges."""
    canvas = bytearray(STRIDE * HEIGHT)
    for tile in tiles:
        wide, high = min(tile.width, WIDTH - tile.x), min(tile.height, HEIGHT - tile.y)
        if wide <= 0 or high <= 0:
            continue
        rows, stride = _packed(tile)
        if (wide, stride) == (WIDTH, STRIDE):
            canvas[tile.y * STRIDE : (tile.y + high) * STRIDE] = rows[: high * STRIDE]
            continue
        first, end = (tile.x + 1) // 2, (tile.x + wide) // 2  # whole bytes; half ones beside them
        for y in range(high):
            at, row = (tile.y + y) * STRIDE, rows[y * stride : (y + 1) * stride]
            begin = at + tile.x // 2
            canvas[at + first : at + end] = row[first - tile.x // 2 : end - tile.x // 2]
            if tile.x % 2:
                canvas[begin] = canvas[begin] & 0xF0 | row[0] & 0x0F
            if (tile.x + wide) % 2:
                canvas[at + end] = canvas[at + end] & 0x0F | row[end - tile.x // 2] & 0xF0
    return canvas


def _packed(tile: Tile) -> tuple[bytes, int]:
    """Return a tile's rows in 4 bits a pixel, as they lie on the canvas, and the bytes of each."""
    if tile.bpp == 4 and tile.x % 2 == 0:
        return tile.pixels, (tile.width + 1) // 2
    greys = unpack(tile.pixels, tile.width, tile.bpp).translate(_GREYS[tile.bpp])
    before = b"\0" * (tile.x % 2)
    after = b"\0" * ((tile.width + tile.x) % 2)
    starts = range(0, len(greys), tile.width)
    rows = b"".join(before + greys[at : at + tile.width] + after for at in starts)
    return pack(rows, 4), (len(before) + tile.width + len(after)) // 2


def _places(canvas: bytearray) -> list[Rect]:
    """Return the containers that hold everything lit: the area of the ink, cut to their size. All
    begin and end at whole bytes.
    """
    rows = _lit(canvas)
    if rows is None:
        return []
    first, last = rows[0] // STRIDE, rows[1] // STRIDE
    ink = 0
    for start in range(first * STRIDE, (last + 1) * STRIDE, STRIDE):
        ink |= int.from_bytes(canvas[start : start + STRIDE], "big")
    columns = _lit(ink.to_bytes(STRIDE, "big")) or (0, 0)
    x, width = _span(2 * columns[0], 2 * columns[1] + 1, WIDTH)
    y, height = _span(first, last, HEIGHT)
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
    half = (length // 2 + 1) // 2 * 2  # even: half a byte cannot be cut off
    return [(begin, half), (begin + half, length - half)]


def bmp(canvas: bytearray | bytes, place: Rect) -> bytes:
    """Return a part of the canvas as a BMP file: 4 bits, rows bottom up, padded to 4 bytes. It
    begins at a whole byte.
    """
    wide, stride = (place.width + 1) // 2, (place.width + 7) // 8 * 4
    start = place.y * STRIDE + place.x // 2
    starts = range(start + (place.height - 1) * STRIDE, start - 1, -STRIDE)
    rows = [canvas[at : at + wide] for at in starts]
    pixels = (b"\0" * (stride - wide)).join([*rows, b""])
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


def read_lz4(file: bytes, place: Rect) -> Tile:
    """Return a compressed picture as a tile: a byte for each pixel, its grey in the low half, or in
    the high one where any byte has more; or a BMP file. Raises `RemoteViolation`.

    That it has a byte for each pixel is all that one host says of it; which half has the grey is
    assumed.
    """
    size = place.width * place.height
    levels = lz4.decompress(file, max(size, _OFFSET + size))
    if levels[:2] == b"BM" and len(levels) != size:
        return read(levels, place)
    if len(levels) != size:
        raise RemoteViolation(Violation.TRUNCATED, f"{len(levels)} pixels where {size} are needed")
    if max(levels) >= _COLOURS:
        levels = levels.translate(_HIGH)
    rows = (levels[at : at + place.width] for at in range(0, size, place.width))
    even = b"".join(row + b"\0" * (place.width % 2) for row in rows)
    return Tile(place.x, place.y, place.width, place.height, 4, pack(even, 4))
