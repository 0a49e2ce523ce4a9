"""Text width on a lens, from committed tables that sim/make_metrics.py generates."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

_TABLES: Final = MappingProxyType({"lens-22": "metrics_lens22.json", "g1-21": "metrics_g1_21.json"})


class UnknownFont(LookupError):
    """No table for the font the glasses announced."""


class Box(NamedTuple):
    """A glyph in whole pixels from the pen: advance, first ink (≤ 0), end of ink (≥ advance)."""

    advance: int
    left: int
    right: int


@dataclass(frozen=True, slots=True)
class TextMetrics:
    """One font at one size. Widths include every overhang: text that fits is never clipped."""

    font: str
    line_height: int
    baseline: int
    missing: Box
    glyphs: Mapping[str, Box]

    def width(self, text: str) -> float:
        """Return the pixels from first to last lit column; missing glyphs count as a box."""
        left, right = self.extent(text)
        return float(right - left)

    def extent(self, text: str) -> tuple[int, int]:
        """Return the columns covered by text at pen position 0: (first ≤ 0, after the last)."""
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
    """Return the table of a font by its announced name (`display.font`). Raises `UnknownFont`."""
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
