"""How wide text is on a lens: per-glyph boxes of the fonts that glasses draw with, from committed
tables.

Needs no font library and no font file: the tables are generated (sim/make_metrics.py) and checked
by the tests.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

_TABLES: Final = MappingProxyType({"lens-22": "metrics_lens22.json", "g1-21": "metrics_g1_21.json"})


class UnknownFont(LookupError):
    """No table for a font that glasses announced."""


class Box(NamedTuple):
    """One glyph, in whole pixels from the pen: how far the pen moves, where ink begins (≤ 0)
    and ends (≥ advance).
    """

    advance: int
    left: int
    right: int


@dataclass(frozen=True, slots=True)
class TextMetrics:
    """One font at one size. Widths include every overhang, so that what is measured to fit is
    never clipped.
    """

    font: str
    line_height: int
    baseline: int
    missing: Box
    glyphs: Mapping[str, Box]

    def width(self, text: str) -> float:
        """Pixels from the first lit column to behind the last; a character without glyph counts
        as the missing box.
        """
        left, right = self.extent(text)
        return float(right - left)

    def extent(self, text: str) -> tuple[int, int]:
        """Columns a text covers around a pen that starts at 0: (first ≤ 0, behind the last)."""
        pen = left = right = 0
        for ch in text:
            box = self.glyphs.get(ch, self.missing)
            left = min(left, pen + box.left)
            right = max(right, pen + box.right)
            pen += box.advance
        return left, right

    def has_glyph(self, ch: str) -> bool:
        return ch in self.glyphs


@lru_cache(maxsize=8)
def metrics_for(font: str) -> TextMetrics:
    """Give the table of a font by the name glasses announce (`display.font`). Raises
    `UnknownFont`.
    """
    name = _TABLES.get(font)
    if name is None:
        raise UnknownFont(f"no text metrics for font {font!r}; known: {', '.join(sorted(_TABLES))}")
    table = json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    glyphs = {ch: Box(*box) for *box, characters in table["glyphs"] for ch in characters}
    return TextMetrics(
        table["font"],
        table["line_height"],
        table["baseline"],
        Box(*table["missing"]),
        MappingProxyType(glyphs),
    )
