"""Text width on a lens: from committed tables (sim/make_metrics.py generates those of our own
fonts), and from the ranges of characters that a family draws itself (`display.glyphs`).
"""

import json
import re
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec import Struct

_TABLES: Final = MappingProxyType(
    {
        "lens-22": "metrics_lens22.json",
        "g1-21": "metrics_g1_21.json",
        "frame": "metrics_frame.json",
        "halo": "metrics_halo.json",
        "monocle": "metrics_monocle.json",
    }
)
_RANGE: Final = re.compile(r"([0-9a-f]{1,6})-([0-9a-f]{1,6}):([1-9][0-9]{0,2})")


class UnknownFont(LookupError):
    """No table for the font the glasses announced."""


class Box(NamedTuple):
    """A glyph in whole pixels from the pen: advance, first ink (≤ 0), end of ink (≥ advance)."""

    advance: int
    left: int
    right: int


class GlyphRange(NamedTuple):
    """Characters that glasses draw themselves, each `advance` pixels wide."""

    first: str
    last: str
    advance: int


def glyph_ranges(declared: str) -> tuple[GlyphRange, ...]:
    """Read `display.glyphs`: `4e00-9fff:18 ac00-d7a3:24`. What is not of this form is ignored."""
    found = (_RANGE.fullmatch(item) for item in declared.split())
    ranges = ((int(m[1], 16), int(m[2], 16), int(m[3])) for m in found if m)
    return tuple(
        GlyphRange(chr(first), chr(last), advance)
        for first, last, advance in ranges
        if first <= last <= sys.maxunicode
    )


def declared_box(ch: str, ranges: Iterable[GlyphRange]) -> Box | None:
    """Return the box of a character that glasses declare to draw; None for any other."""
    for first, last, advance in ranges:
        if first <= ch <= last:
            return Box(advance, 0, advance)
    return None


class TextMetrics(Struct, frozen=True):
    """One font at one size. Widths include every overhang: text that fits is never clipped."""

    font: str
    line_height: int
    baseline: int
    missing: Box
    glyphs: Mapping[str, Box]
    ranges: tuple[GlyphRange, ...] = ()

    def width(self, text: str) -> float:
        """Return the pixels from first to last lit column; missing glyphs count as a box."""
        left, right = self.extent(text)
        return float(right - left)

    def extent(self, text: str) -> tuple[int, int]:
        """Return the columns covered by text at pen position 0: (first ≤ 0, after the last)."""
        pen = left = right = 0
        for ch in text:
            box = self.glyphs.get(ch) or declared_box(ch, self.ranges) or self.missing
            left = min(left, pen + box.left)
            right = max(right, pen + box.right)
            pen += box.advance
        return left, right

    def has_glyph(self, ch: str) -> bool:
        return ch in self.glyphs or declared_box(ch, self.ranges) is not None


@lru_cache(maxsize=8)
def metrics_for(font: str, declared: str = "") -> TextMetrics:
    """Return the table of a font by its announced name (`display.font`), with what the glasses
    declare beside it (`display.glyphs`), which counts more. Raises `UnknownFont`.
    """
    name = _TABLES.get(font)
    if name is None:
        raise UnknownFont(f"no text metrics for font {font!r}; known: {', '.join(sorted(_TABLES))}")
    table = json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    ranges = glyph_ranges(declared)
    glyphs = {
        ch: Box(*box)
        for *box, characters in table["glyphs"]
        for ch in characters
        if declared_box(ch, ranges) is None
    }
    return TextMetrics(
        table["font"],
        table["line_height"],
        table["baseline"],
        Box(*table["missing"]),
        MappingProxyType(glyphs),
        ranges,
    )
