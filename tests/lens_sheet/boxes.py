"""Finds the characters that a lens shows as boxes: in its rows of text, and in rows of pixels that
the daemon drew.
"""

from functools import lru_cache
from typing import Any

from PIL import Image

from edge.core.pages import DrawnRow
from edge.display.drawn_text import DrawnText
from edge.display.typesetting.fonts import find_fonts, font_folders
from edge.display.typesetting.typesetter import Typesetter
from firmware_bridge.pixels import unpack
from firmware_bridge.sim.lens import SimLens

_ROW_HEIGHT = 27


class DrawnRows:
    """Remembers the rows that a daemon drew, to find them on its lens by their pixels."""

    def __init__(self) -> None:
        self.rows: list[DrawnRow] = []
        self._fonts: tuple[str, ...] = ()

    def watch(self, drawn: DrawnText) -> None:
        """Remember from now on what this one draws."""
        draw, self._fonts = drawn.draw, drawn._fonts

        async def remembered(*args: Any) -> list[tuple[DrawnRow, ...]]:
            found = await draw(*args)
            self.rows += (row for rows in found for row in rows)
            return found

        drawn.draw = remembered  # type: ignore[method-assign]

    def on(self, image: Image.Image) -> list[DrawnRow]:
        """Return those whose pixels are on this lens."""
        lit = image.point(lambda level: 1 if level else 0).tobytes()
        size = image.width
        lines = [lit[at : at + size] for at in range(0, len(lit), size)]
        return [row for row in self.rows if _is_on(row, lines)]

    def lost_in(self, row: DrawnRow) -> set[str]:
        """Return what a row lost: what the daemon says, and what its fonts draw as a box."""
        return {*row.lost, *_boxes(row.text, self._fonts)}


def _is_on(row: DrawnRow, lines: list[bytes]) -> bool:
    if row.tile is None:
        return False
    levels = unpack(row.tile.pixels, row.tile.width, row.tile.bpp)
    size, high = row.tile.width, row.tile.height
    wanted = [bytes(map(bool, levels[y * size : (y + 1) * size])) for y in range(high)]
    for top in range(len(lines) - high + 1):
        x = lines[top].find(wanted[0])
        while x >= 0:
            if all(lines[top + y].startswith(line, x) for y, line in enumerate(wanted)):
                return True
            x = lines[top].find(wanted[0], x + 1)
    return False


@lru_cache(maxsize=2048)
def _boxes(text: str, folders: tuple[str, ...]) -> frozenset[str]:
    """Return the characters for which the shaped text has the glyph `.notdef`."""
    setter = _typesetter(folders)
    levels = [0] * len(text)
    runs, _ = setter._itemise(text, levels)
    glyphs = (info for run in runs for info in setter._shape(text, run, "").glyph_infos)
    return frozenset(text[glyph.cluster] for glyph in glyphs if glyph.codepoint == 0)


@lru_cache(maxsize=2)
def _typesetter(folders: tuple[str, ...]) -> Typesetter:
    return Typesetter(find_fonts(font_folders(folders)), _ROW_HEIGHT)


def boxes_in_text(lens: SimLens) -> set[str]:
    """Return what the font of the glasses draws as a box."""
    text = "".join(line.text for line in lens.lines)
    return {ch for ch in text if lens._font._known(ch) is None or ch == "□"}
