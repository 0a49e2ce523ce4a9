"""Pictures of Frame and Halo: tiles ↔ sprites in a palette of greys, cut into strips.

All colours of the lens come from one palette of 16. This one begins with the levels of 1 and 2
bits, so that text and pictures of any depth can be on the lens together.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from firmware_bridge.codecs.frame.wire import Sprite
from firmware_bridge.messages import Tile
from firmware_bridge.pixels import pack, unpack

STRIP_BYTES: Final = 4096
"""Bytes of pixels in one message: the glasses have little memory, and draw strip by strip."""
PAGE_BYTES: Final = 24_000
"""Bytes of pixels in a page: about 3 s at one packet in 30 ms. Pictures beyond have fewer bits."""

_LEVELS: Final = (0, 15, 10, 5, 1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14)
"""Brightness (of 15) of each colour of the palette."""
_SHADES: Final = bytes(level * 17 for level in _LEVELS)


def palette_of(bpp: int) -> bytes:
    """Return red, green and blue of the first colours, which `bpp` bits can name."""
    return b"".join(bytes((shade,) * 3) for shade in _SHADES[: 1 << bpp])


def _colour_table(tile_bpp: int, bpp: int) -> bytes:
    """Return level of a tile → colour for sprites of `bpp` bits: the nearest that there is."""
    top = (1 << tile_bpp) - 1
    usable = _LEVELS[: 1 << bpp]
    levels = (level * 15 / top for level in range(top + 1))
    nearest = [min(range(len(usable)), key=lambda c: abs(usable[c] - level)) for level in levels]
    return bytes(nearest).ljust(256, b"\0")


def sprites_of(
    tiles: Iterable[Tile], *, width: int, height: int
) -> Iterator[tuple[int, int, Sprite]]:
    """Yield place (from 0) and sprite of each strip that is not dark; what is beyond the edges of
    a lens of this size is cut off.
    """
    pictures = [picture for tile in tiles if (picture := _cropped(tile, width, height))]
    sizes = [bits_needed(tile, levels) for tile, _, levels in pictures]
    most = 4
    while most > 1 and _bytes(pictures, sizes, most) > PAGE_BYTES:
        most //= 2
    for (tile, across, levels), bits in zip(pictures, sizes, strict=True):
        bpp = min(bits, most)
        colours = levels.translate(_colour_table(tile.bpp, bpp))
        rows = max(1, STRIP_BYTES * 8 // (across * bpp))
        for top in range(0, len(colours) // across, rows):
            strip = colours[top * across : (top + rows) * across]
            if any(strip):
                down = len(strip) // across
                sprite = Sprite(across, down, bpp, palette_of(bpp), pack(strip, bpp))
                yield tile.x, tile.y + top, sprite


def bits_needed(tile: Tile, levels: bytes) -> int:
    """Return the fewest bits that hold every level of a tile: its text may be black and white."""
    top = (1 << tile.bpp) - 1
    used = {level * 15 / top for level in range(top + 1) if level in levels}
    return next(bits for bits in (1, 2, 4) if used <= set(_LEVELS[: 1 << bits]))


def _bytes(pictures: list[tuple[Tile, int, bytes]], sizes: list[int], most: int) -> int:
    return sum(
        len(levels) * min(bits, most) // 8
        for (_, _, levels), bits in zip(pictures, sizes, strict=True)
    )


def _cropped(tile: Tile, width: int, height: int) -> tuple[Tile, int, bytes] | None:
    """Return the tile, the width and the levels of what is on the lens; None for nothing."""
    across, down = min(tile.width, width - tile.x), min(tile.height, height - tile.y)
    if across <= 0 or down <= 0:
        return None
    levels = unpack(tile.pixels, tile.width, tile.bpp)
    rows = (levels[y * tile.width : y * tile.width + across] for y in range(down))
    return tile, across, b"".join(rows)


def tile_of(x: int, y: int, sprite: Sprite) -> Tile:
    """Return a sprite as a tile of 4 bits: the brightness of its colours."""
    colours = unpack(sprite.pixels, sprite.width * sprite.height, sprite.bpp)
    shades = bytes(
        max(sprite.palette[at : at + 3]) // 17 for at in range(0, len(sprite.palette), 3)
    )
    levels = colours.translate(shades.ljust(256, b"\0"))
    rows = (pack(levels[at : at + sprite.width], 4) for at in range(0, len(levels), sprite.width))
    return Tile(x, y, sprite.width, sprite.height, 4, b"".join(rows))


def lit(sprite: Sprite) -> int:
    """Return how many pixels of a sprite are not dark."""
    colours = unpack(sprite.pixels, sprite.width * sprite.height, sprite.bpp)
    return len(colours) - colours.count(0)
