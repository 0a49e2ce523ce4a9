"""Pictures of a Mentra Display: tiles ↔ a BMP file of one bit, which is sent in chunks."""

import struct
from collections.abc import Iterable
from typing import Final

from firmware_bridge.codecs.mentra_nex.wire import HEIGHT, MAX_CHUNKS, WIDTH
from firmware_bridge.errors import CommandRefused, RemoteViolation, Violation
from firmware_bridge.messages import Tile
from firmware_bridge.pixels import unpack

_HEADER: Final = struct.Struct("<2sIIIIiiHHIIiiII8s")
_PALETTE: Final = b"\xff\xff\xff\0\0\0\0\0"
"""Inverted, as the applications send them: a set bit is black on white paper, and lit here."""
_STRIDE: Final = (WIDTH + 31) // 32 * 4


def bmp(tiles: Iterable[Tile]) -> bytes:
    """Draw tiles on a dark canvas; pixels of at least half their brightness are lit."""
    rows = [0] * HEIGHT
    for tile in tiles:
        _draw(tile, rows)
    pixels = b"".join(row.to_bytes(_STRIDE, "big") for row in reversed(rows))
    size = _HEADER.size + len(pixels)
    shape = (40, WIDTH, HEIGHT, 1, 1, 0, len(pixels), 0, 0, 2, 2)
    return _HEADER.pack(b"BM", size, 0, _HEADER.size, *shape, _PALETTE) + pixels


def _draw(tile: Tile, rows: list[int]) -> None:
    """Draw a tile row by row, each a number of one bit per pixel; clip it at the edges."""
    levels, half = unpack(tile.pixels, tile.width, tile.bpp), 1 << tile.bpp - 1
    digits = bytes(b"01"[level >= half] for level in range(256))
    width = min(tile.width, WIDTH - tile.x)
    if width <= 0:
        return
    left = _STRIDE * 8 - tile.x - width
    for y in range(min(tile.height, HEIGHT - tile.y)):
        start = y * tile.width
        lit = int(levels[start : start + width].translate(digits), 2)
        mask = (1 << width) - 1 << left
        rows[tile.y + y] = rows[tile.y + y] & ~mask | lit << left


def cut(file: bytes, room: int) -> list[bytes]:
    """Return the data of each chunk. Raises `CommandRefused` if there would be too many."""
    pieces = [file[at : at + room] for at in range(0, len(file), room)]
    if len(pieces) > MAX_CHUNKS:
        raise CommandRefused("too_big", f"a picture in chunks of {room} bytes")
    return pieces


def read(file: bytes) -> Tile:
    """Return a picture as one tile. Raises `RemoteViolation`."""
    if len(file) < _HEADER.size:
        raise RemoteViolation(Violation.TRUNCATED, f"a picture of {len(file)} bytes")
    magic, _, _, at, _, width, height, _, depth, packing, *_ = _HEADER.unpack_from(file)
    good = magic == b"BM" and depth == 1 and not packing and at >= _HEADER.size
    if not good or not 0 < width <= WIDTH or not 0 < height <= HEIGHT:
        raise RemoteViolation(Violation.BAD_MESSAGE, f"a picture of {width} × {height} pixels")
    stride, row = (width + 31) // 32 * 4, (width + 7) // 8
    pixels = file[at : at + stride * height]
    if len(pixels) < stride * height:
        raise RemoteViolation(Violation.TRUNCATED, f"{len(pixels)} bytes of pixels")
    lines = [pixels[y * stride : y * stride + row] for y in reversed(range(height))]
    return Tile(0, 0, width, height, 1, b"".join(lines))
