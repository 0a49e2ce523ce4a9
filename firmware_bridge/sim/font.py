"""The fonts of the simulated firmware: Source Sans Pro Semibold, drawn one glyph at a time, and
for what a family draws beyond it Noto Sans CJK where that is installed.

Like most display firmware it moves its pen by whole pixels, without kerning.
"""

import unicodedata
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import font_source_sans_pro
from PIL import Image, ImageDraw, ImageFont

from firmware_bridge.metrics import Box, declared_box, glyph_ranges

NAME: Final = "lens-22"
PIXELS: Final = 22
LINE_HEIGHT: Final = 27
"""Pixels per line: accented letters with descenders need 26, and a row between; 5 lines: 135."""
BASELINE: Final = 20
"""Pixels from the top of a line to the baseline: capitals with accents are 20 high."""
SIZES: Final = {NAME: PIXELS, "g1-21": 21, "frame": 28, "halo": 9, "monocle": 27}
"""Font name → pixel size. The first two use the same lines: 5 of 27 pixels. Those of `frame`,
`halo` and `monocle` are the largest at which no character is wider than in the maker's own font.
"""
_NOTDEF: Final = "\uffff"
_BOX: Final = "\u25a1"
"""White square: the box drawn for missing glyphs, so that a missing character is visible."""
_WIDE_FONTS: Final = (
    "manimgx_fonts_cjk:NotoSansCJK-VF.otf.ttc",
    "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc",
)
"""The second font: in the wheel (package:file), or Debian's fonts-noto-cjk."""
_WIDE_STEMS: Final = 450
_CELL: Final = (64, 64)
_ORIGIN: Final = (16, 40)
"""Pen position in a cell; every glyph of the font fits around it."""


class LensFont:
    """Boxes and pictures of glyphs. `declared`: the ranges of characters that the family draws
    beyond this font, as in `display.glyphs`.
    """

    def __init__(self, pixels: int = PIXELS, declared: str = "") -> None:
        self._pixels = pixels
        self._ranges = glyph_ranges(declared)
        # The basic layout engine, so that no shaping library of the machine changes a pixel.
        self._font = ImageFont.truetype(
            font_source_sans_pro.SourceSansProSemibold, pixels, layout_engine=ImageFont.Layout.BASIC
        )
        self._notdef = self._picture(_NOTDEF)
        self.missing = self._measure(_NOTDEF)
        """The box drawn for what the font lacks."""

    def box(self, ch: str) -> Box | None:
        """Measure a glyph; None if there is none, or it combines or is invisible."""
        if ch == _BOX:
            return self.missing
        category = unicodedata.category(ch)
        if category[0] in "CM" or (category[0] == "Z" and category != "Zs"):
            return None
        picture = self._picture(ch)
        if picture == self._notdef or (not any(picture) and category != "Zs"):
            return None
        return self._measure(ch)

    def draw(self, image: Image.Image, text: str, x: int, baseline: int, *, aliased: bool) -> None:
        """Draw a line, nothing of it left of pixel column `x`; `aliased` for one-bit lenses."""
        pen = x - self._extent(text)[0]
        for ch in text:
            box = self._known(ch)
            mask = self._mask(ch if box is not None and ch != _BOX else _NOTDEF, aliased)
            image.paste(255, (pen - _ORIGIN[0], baseline - _ORIGIN[1]), mask)
            pen += (box or self.missing).advance

    def width(self, text: str) -> int:
        """Return the columns that the ink and advances of a line cover."""
        first, end = self._extent(text)
        return end - first

    def _extent(self, text: str) -> tuple[int, int]:
        pen = first = end = 0
        for ch in text:
            box = self._known(ch) or self.missing
            first, end = min(first, pen + box.left), max(end, pen + box.right)
            pen += box.advance
        return first, end

    @lru_cache(maxsize=4096)  # noqa: B019 - one font lives as long as its process
    def _known(self, ch: str) -> Box | None:
        declared = declared_box(ch, self._ranges)
        return declared if declared is not None else self.box(ch)

    @lru_cache(maxsize=4096)  # noqa: B019 - as above
    def _mask(self, glyph: str, aliased: bool) -> Image.Image:  # noqa: FBT001 - a cache key
        glyph, font, x = self._placed(glyph)
        image = Image.new("L", _CELL)
        canvas = ImageDraw.Draw(image)
        canvas.fontmode = "1" if aliased else "L"
        canvas.text((_ORIGIN[0] + x, _ORIGIN[1]), glyph, fill=255, font=font, anchor="ls")
        return image

    def _placed(self, glyph: str) -> tuple[str, ImageFont.FreeTypeFont, float]:
        """Return what to draw, with which font, and how many pixels behind the pen."""
        declared = declared_box(glyph, self._ranges)
        if declared is None or self.box(glyph) is not None:
            return glyph, self._font, 0
        font = _wide_font(min(self._pixels, declared.advance))
        if font is None:
            return _NOTDEF, self._font, 0
        return glyph, font, (declared.advance - font.getlength(glyph)) // 2

    def _measure(self, glyph: str) -> Box:
        advance = round(self._font.getlength(glyph, mode="1"))
        first, _, end, _ = self._font.getbbox(glyph, mode="1", anchor="ls")
        return Box(advance, min(0, int(first)), max(advance, int(end)))

    def _picture(self, glyph: str) -> bytes:
        image = Image.new("1", _CELL)
        ImageDraw.Draw(image).text(_ORIGIN, glyph, fill=1, font=self._font, anchor="ls")
        return image.tobytes()


@lru_cache(maxsize=4)
def _wide_font(pixels: int) -> ImageFont.FreeTypeFont | None:
    """Return the second font at this size, if it is installed."""
    for path in filter(Path.is_file, map(_located, _WIDE_FONTS)):
        font = ImageFont.truetype(path, pixels, layout_engine=ImageFont.Layout.BASIC)
        with suppress(OSError):  # Debian's has one weight
            font.set_variation_by_axes([_WIDE_STEMS])
        return font
    return None


def _located(place: str) -> Path:
    package, colon, name = place.partition(":")
    spec = find_spec(package) if colon else None
    return Path((spec.submodule_search_locations or [""])[0] if spec else "", name or package)
