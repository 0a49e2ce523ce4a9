"""Pixels of a lens, for people: what a tile holds, and a picture as braille characters or in the
sixels of a terminal. Standard library only.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Final

_DOTS: Final = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Dots of a braille cell by row and column (Unicode 15, chapter 21)."""
_LIT_SHARE: Final = 0.3
"""Share of its pixels that must be lit for a braille dot: strokes stay, specks vanish."""
_LIT: Final = bytes([0, *[1] * 255])


def unpack(pixels: bytes, width: int, bpp: int) -> bytes:
    """Return one byte per pixel, row by row: its level. Each row begins at a whole byte, and its
    first pixel is in the highest bits.
    """
    each = 8 // bpp
    levels = bytearray(len(pixels) * each)
    for place, table in enumerate(_tables(bpp)):  # one step for each place in a byte, not a pixel
        levels[place::each] = pixels.translate(table)
    padded = (width * bpp + 7) // 8 * each
    if padded == width:
        return bytes(levels)
    return b"".join(levels[start : start + width] for start in range(0, len(levels), padded))


@cache
def _tables(bpp: int) -> tuple[bytes, ...]:
    """Return, for each place in a byte, what values of the byte hold there."""
    mask = (1 << bpp) - 1
    return tuple(
        bytes(byte >> shift & mask for byte in range(256)) for shift in range(8 - bpp, -1, -bpp)
    )


def pack(levels: bytes, bpp: int) -> bytes:
    """Return levels of one byte each in `bpp` bits each, the first in the highest; the last byte is
    filled with zeros.
    """
    each = 8 // bpp
    size = -(-len(levels) // each)
    packed = 0
    for place in range(each):
        column = levels[place::each].ljust(size, b"\0")
        packed |= int.from_bytes(column, "big") << 8 - bpp * (place + 1)
    return packed.to_bytes(size, "big")


def braille(levels: bytes, width: int, columns: int) -> list[str]:
    """Return a picture of one byte per pixel (0 is dark) in braille, 2 × 4 dots a character, at
    most `columns` wide: larger pictures are made smaller.
    """
    step = max(1, -(-width // (2 * columns)))
    lit = levels.translate(_LIT)
    rows = [lit[start : start + width] for start in range(0, len(lit), width)]
    dots = [_dots(rows[top : top + step], step) for top in range(0, len(rows), step)]
    return [_cells(dots[top : top + 4]) for top in range(0, len(dots), 4)]


def _dots(rows: Sequence[bytes], step: int) -> list[bool]:
    """Return one row of dots, each of `step` × `step` pixels."""
    if step == 1:
        return [bool(pixel) for pixel in rows[0]]
    return [
        sum(row.count(1, x, x + step) for row in rows)
        >= _LIT_SHARE * len(rows) * min(step, len(rows[0]) - x)
        for x in range(0, len(rows[0]), step)
    ]


def _cells(dots: Sequence[Sequence[bool]]) -> str:
    cells = [0] * -(-len(dots[0]) // 2)
    for bits, row in zip(_DOTS, dots, strict=False):
        for x, lit in enumerate(row):
            cells[x // 2] |= bits[x % 2] if lit else 0
    return "".join(chr(0x2800 + cell) for cell in cells).rstrip("\u2800")


def sixel(levels: bytes, width: int) -> str:
    """Return a picture of one byte per pixel (0 is dark) as a terminal with sixels takes it: its
    lit pixels, each as bright as its level of all there are.
    """
    rows = [levels[start : start + width] for start in range(0, len(levels), width)]
    shades = sorted(set(levels) - {0})
    shares = [100 * shade // shades[-1] for shade in shades]
    colours = "".join(f"#{n};2;{share};{share};{share}" for n, share in enumerate(shares, 1))
    bands = (rows[top : top + 6] for top in range(0, len(rows), 6))
    drawn = "-".join("$".join(_band(band, shades)) for band in bands)
    return f'\x1bP0;1;0q"1;1;{width};{len(rows)}{colours}{drawn}\x1b\\'


def _band(rows: Sequence[bytes], shades: Sequence[int]) -> Iterator[str]:
    """Yield six rows of a picture, one shade after the other."""
    for number, shade in enumerate(shades, 1):
        columns = [
            chr(63 + sum(1 << y for y, pixel in enumerate(column) if pixel == shade))
            for column in zip(*rows, strict=True)
        ]
        runs = ((same, len(list(run))) for same, run in groupby(columns))
        line = "".join(f"!{count}{ch}" if count > 3 else ch * count for ch, count in runs)
        if set(columns) != {"?"}:
            yield f"#{number}{line}"
