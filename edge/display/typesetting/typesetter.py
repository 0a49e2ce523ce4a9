"""Draws text of any script as rows of pixels: the only importer of HarfBuzz and of Unicode
segmentation. It runs in the picture worker; the daemon itself loads neither.

A paragraph is cut into runs of one direction (UAX 9) and one font, shaped, broken into rows
(UAX 14), and drawn. Sizes are pixels; inside they are 64ths of a pixel, as fonts are scaled.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from math import ceil
from typing import Final, NamedTuple

import uharfbuzz as hb
from unicode_segmentation_rs import graphemes, line_break_units

from edge.display.typesetting.bidi import find_levels, reorder

MAX_TEXT: Final = 8000
MAX_ROWS: Final = 400
MAX_CLUSTER: Final = 16
"""Characters that belong together; a family of emoji has 11."""
SIZE_SHARE: Final = 22 / 27
"""Size of the letters by the height of a row, as in the glasses' own font."""
BASELINE_SHARE: Final = 20 / 27
LEAST_SHARE: Final = 0.65
"""Letters with high stacks of marks become smaller so that a row holds them, at most so much."""
_STEMS: Final = 600
"""Weight of the strokes: with thinner ones parts of letters vanish at one bit a pixel."""
_DENSE_STEMS: Final = 450
"""The same for Han and Hangul, whose strokes stand closer, and for emoji."""
_EMBOLDEN: Final = 0.02
"""Share of the size added to the strokes of fonts of one weight."""
_LIT: Final = 100
"""Coverage from which a pixel is lit at one bit, of 255."""
_UNIT: Final = 64
_DENSE: Final = ("CJK", "Emoji")
_NEVER_LAST: Final = frozenset("เแโใไເແໂໃໄ")
"""Vowels written before the consonant they follow: a row does not end with one."""
_NEVER_FIRST: Final = frozenset("ะาำๆฯๅະາຳໆຯ")
_LEFT_ALONE: Final = frozenset({"Cf", "Mn", "Me", "Cc"})


class OpenFont(NamedTuple):
    """One font at the size of the row."""

    name: str
    font: hb.Font

    def has(self, ch: str) -> bool:
        return self.font.get_nominal_glyph(ord(ch)) is not None


class Run(NamedTuple):
    """Characters `start` to `end` of a paragraph: one direction, one font."""

    start: int
    end: int
    level: int
    face: int


class PixelRow(NamedTuple):
    """A row of a paragraph as pixels: `text` in the order of reading, the ink's place in the row,
    the characters that no font has, and lines or columns of ink that did not fit.
    """

    text: str
    x: int
    y: int
    width: int
    height: int
    pixels: bytes
    lost: tuple[str, ...] = ()
    clipped: int = 0


class Typesetter:
    """Sets paragraphs for one height of rows. Fonts are opened when a character needs them."""

    def __init__(self, fonts: Sequence[str], row_height: int, bpp: int = 1) -> None:
        self._paths = tuple(fonts)
        self._row_height = row_height
        self._size = round(row_height * SIZE_SHARE)
        self._bpp = bpp
        self._face = lru_cache(maxsize=None)(self._open)
        self._choose = lru_cache(maxsize=4096)(self._find_face)
        self._ink = lru_cache(maxsize=8192)(self._measure)

    def set_paragraph(self, text: str, width: int, *, base: int | None = None) -> list[PixelRow]:
        """Draw a paragraph in rows of at most `width` pixels; right to left it is set right."""
        text = _cleaned(text)[:MAX_TEXT]
        if not text:
            return []
        first, levels = find_levels(text, base)
        runs, lost = self._itemise(text, levels)
        language = _language(text)
        advances, top, bottom = self._shape_all(text, runs, language)
        share, baseline = self._fit(top, bottom)
        rows = []
        for start, end in _broken(text, advances, width * _UNIT / share)[:MAX_ROWS]:
            inside = [
                (run.level, run._replace(start=max(run.start, start), end=min(run.end, end)))
                for run in runs
                if run.start < end and run.end > start
            ]
            image = self._draw(text, reorder(inside), language, share)
            here = tuple(dict.fromkeys(g for at, g in lost if start <= at < end))
            rows.append(self._row(text[start:end], image, baseline, (width, first & 1), here))
        return rows

    def _fit(self, top: float, bottom: float) -> tuple[float, int]:
        """Return the share of the full size at which a row holds this ink, and its baseline."""
        share, row = 1.0, self._row_height
        if ceil(top) + ceil(-bottom) > row:
            share = max(LEAST_SHARE, (row - 1) / (top - bottom))
        usual = min(round(row * BASELINE_SHARE), row - ceil(-bottom * share))
        return share, max(usual, ceil(top * share))

    # ------------------------------------------------------------------ fonts

    def _open(self, index: int) -> OpenFont:
        path = self._paths[index]
        face = hb.Face(hb.Blob.from_file_path(path))
        font = hb.Font(face)
        font.scale = (self._size * _UNIT, self._size * _UNIT)
        weight = _DENSE_STEMS if any(word in path for word in _DENSE) else _STEMS
        if face.has_var_data:
            font.set_variations({"wght": weight})
        elif "Bold" not in path:
            font.synthetic_bold = (_EMBOLDEN, _EMBOLDEN, True)
        return OpenFont(path, font)

    def _find_face(self, cluster: str, now: int) -> tuple[int, bool]:
        """Return the font that draws a cluster, and whether it has all of it. What is no letter
        prefers the font before it.
        """
        needed = [ch for ch in cluster if not _is_ignorable(ch)] or [" "]
        order = list(range(len(self._paths)))
        if _is_emoji(cluster):
            order.sort(key=lambda index: "Emoji" not in self._paths[index])
        elif now >= 0 and not needed[0].isalpha() and "Emoji" not in self._paths[now]:
            order = [now, *order]
        for wanted in (needed, needed[:1]):
            for index in order:
                if all(map(self._face(index).has, wanted)):
                    return index, wanted == needed
        return max(now, 0), False

    # ------------------------------------------------------------------ runs and shapes

    def _itemise(self, text: str, levels: Sequence[int]) -> tuple[list[Run], list[tuple[int, str]]]:
        runs: list[Run] = []
        lost: list[tuple[int, str]] = []
        at, now = 0, -1
        for cluster in _clusters(text):
            now, whole = self._choose(cluster, now)
            if not whole:
                lost.append((at, cluster))
            end = at + len(cluster)
            if runs and (runs[-1].level, runs[-1].face) == (levels[at], now):
                runs[-1] = runs[-1]._replace(end=end)
            else:
                runs.append(Run(at, end, levels[at], now))
            at = end
        return runs, lost

    def _shape(self, text: str, run: Run, language: str) -> hb.Buffer:
        buffer = hb.Buffer()
        buffer.add_str(text, run.start, run.end - run.start)
        buffer.guess_segment_properties()
        buffer.direction = "rtl" if run.level & 1 else "ltr"
        if language:
            buffer.language = language
        hb.shape(self._face(run.face).font, buffer)
        return buffer

    def _shape_all(
        self, text: str, runs: Sequence[Run], language: str
    ) -> tuple[list[int], float, float]:
        """Return the advance of each character, and the highest and lowest ink, in pixels."""
        advances, top, bottom = [0] * len(text), 0, 0
        for run in runs:
            buffer = self._shape(text, run, language)
            for info, place in zip(buffer.glyph_infos, buffer.glyph_positions, strict=True):
                advances[info.cluster] += place.x_advance
                high, low = self._ink(run.face, info.codepoint)
                top, bottom = max(top, high + place.y_offset), min(bottom, low + place.y_offset)
        return advances, top / _UNIT, bottom / _UNIT

    def _measure(self, face: int, glyph: int) -> tuple[int, int]:
        box = self._face(face).font.get_glyph_extents(glyph)
        return (box.y_bearing, box.y_bearing + box.height) if box else (0, 0)

    # ------------------------------------------------------------------ pixels

    def _draw(self, text: str, runs: Sequence[Run], language: str, share: float) -> hb.RasterImage:
        raster, pen, scale = hb.RasterDraw(), 0, share / _UNIT
        for run in runs:
            font, buffer = self._face(run.face).font, self._shape(text, run, language)
            for info, place in zip(buffer.glyph_infos, buffer.glyph_positions, strict=True):
                x, y = (pen + place.x_offset) * scale, place.y_offset * scale
                raster.transform = (scale, 0, 0, scale, x, y)
                raster.draw_glyph(font, info.codepoint)
                pen += place.x_advance
        return raster.render()

    def _row(
        self,
        text: str,
        image: hb.RasterImage | None,
        baseline: int,
        place: tuple[int, int],
        lost: tuple[str, ...],
    ) -> PixelRow:
        box = image.extents if image is not None else None
        if image is None or box is None or not box.width or not box.height:
            return PixelRow(text, 0, 0, 0, 0, b"", lost)
        (limit, right), bpp = place, self._bpp
        width = min(box.width, limit)
        start = box.width - width if right else 0
        top, stride, data = baseline - box.y_origin - box.height, box.stride, bytes(image.buffer)
        begins = range((box.height - 1) * stride + start, -1, -stride)
        lines = [data[at : at + width] for at in begins]
        lit = [y for y, line in enumerate(lines, top) if max(line) >= _LIT]
        kept = [y for y in lit if 0 <= y < self._row_height]
        cut = len(lit) - len(kept) + box.width - width
        if not kept:
            return PixelRow(text, 0, 0, 0, 0, b"", lost, cut)
        size, table = (width * bpp + 7) // 8, _SHADES[bpp]
        spare, inside = size * 8 - width * bpp, lines[kept[0] - top : kept[-1] - top + 1]
        pixels = b"".join(
            (int(line.translate(table), 1 << bpp) << spare).to_bytes(size, "big") for line in inside
        )
        x = limit - width if right else min(max(0, box.x_origin), limit - width)
        return PixelRow(text, x, kept[0], width, len(inside), pixels, lost, cut)


def _shades(bpp: int) -> bytes:
    """Coverage → the digit of a pixel, in the base that a pixel has levels."""
    top = (1 << bpp) - 1
    levels = (value * top / 255 for value in range(256))
    return bytes(
        ord("0123456789abcdef"[int(value >= _LIT) if bpp == 1 else round(level)])
        for value, level in enumerate(levels)
    )


_SHADES: Final = {bpp: _shades(bpp) for bpp in (1, 2, 4)}


# ------------------------------------------------------------------ characters


def _cleaned(text: str) -> str:
    """One paragraph in composed form: white space as single spaces, without control characters."""
    text = " ".join(unicodedata.normalize("NFC", text).split())
    return "".join(ch for ch in text if unicodedata.category(ch) not in ("Cc", "Cs"))


def _is_ignorable(ch: str) -> bool:
    return unicodedata.category(ch) == "Cf" or "\ufe00" <= ch <= "\ufe0f" or ch == "\u20e3"


def _is_emoji(cluster: str) -> bool:
    """Whether a cluster is meant as a picture: by its own nature or by a selector."""
    if "\ufe0e" in cluster:
        return False
    return cluster[0] >= "\U0001f000" or bool({"\ufe0f", "\u20e3"} & set(cluster))


@lru_cache(maxsize=512)
def _language(text: str) -> str:
    """Return whose forms of Han characters a text wants; "" where there are none."""
    han = "".join(ch for ch in text if "\u3400" <= ch <= "\u9fff" or ch >= "\U00020000")
    if any("\u3040" <= ch <= "\u30ff" for ch in text):
        return "ja"
    if any("\uac00" <= ch <= "\ud7af" for ch in text):
        return "ko"
    if not han:
        return ""
    simple = len(han.encode("gb2312", "ignore"))
    return "zh-Hant" if len(han.encode("big5", "ignore")) > simple else "zh-Hans"


# ------------------------------------------------------------------ rows


def _broken(text: str, advances: Sequence[int], limit: float) -> list[tuple[int, int]]:
    """Break where UAX 14 allows, without the spaces at the ends; a word longer than a row breaks
    between its clusters.
    """
    pens = [0, *accumulate(advances)]
    allowed = {0, *accumulate(map(len, line_break_units(text)))}
    clusters = list(accumulate(map(len, _clusters(text))))
    rows, start = [], 0
    while start < len(text):
        best = forced = start
        for at in (at for at in clusters if at > start):
            if pens[len(text[:at].rstrip())] - pens[start] > limit:
                break
            forced = at if _may_force(text, at) or forced == start else forced
            best = at if at in allowed or at == len(text) else best
        end = best if best > start else forced if forced > start else _next(clusters, start)
        rows.append((start, start + len(text[start:end].rstrip())))
        start = end
    return rows


def _clusters(text: str) -> Iterator[str]:
    """What a reader takes for one character; a longer pile is cut, so that no row is wider."""
    for cluster in graphemes(text, is_extended=True):
        for at in range(0, len(cluster), MAX_CLUSTER):
            yield cluster[at : at + MAX_CLUSTER]


def _next(clusters: Sequence[int], start: int) -> int:
    return next(at for at in clusters if at > start)


def _may_force(text: str, at: int) -> bool:
    return text[at - 1] not in _NEVER_LAST and text[at : at + 1] not in _NEVER_FIRST
