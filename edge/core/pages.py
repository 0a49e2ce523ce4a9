"""Lays text out in pages that fit a lens by pixels, lines and bytes. Nothing is lost silently."""

import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import Final, NamedTuple

from firmware_bridge.messages import TextLine

Width = Callable[[str], float]
"""Width of a text in pixels. Two texts joined must not be wider than side by side."""
HasGlyph = Callable[[str], bool]
Paragraphs = list[list[str]]
Lines = list[TextLine]
Cursor = tuple[int, int, str | None]
"""Start of the next row: paragraph, piece, and the rest of a piece that was cut."""

MAX_TEXT: Final = 8000
"""Characters laid out at most: half an hour of reading aloud; `CUT` marks that there were more."""
CUT: Final = " […]"
LINE_START_FORBIDDEN: Final = frozenset(".,!?:;)]}…。，、！？：；）】」』")
LINE_END_FORBIDDEN: Final = frozenset("([{（【「『")
_STAND_INS: Final = ("□", "?")
_FOLDED: Final = {
    **dict(zip("‘’“”–—−•·×", "''\"\"---**x", strict=True)),
    "…": "...",
    "→": "->",
    "←": "<-",
}
_DROPPED: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_START: Final[Cursor] = (0, 0, None)
_FOOTER: Final = re.compile(r"\d+/\d+")
_FOOTER_GAP: Final = "  "
_FOOTER_BYTES: Final = 8
_WIDE: Final = (
    *((0x2E80, 0x9FFF), (0xAC00, 0xD7AF), (0xF900, 0xFAFF)),
    *((0xFF00, 0xFFEF), (0x20000, 0x3FFFF)),
)
_COLUMN: Final = 0.45
_SECOND_COLUMN: Final = 0.55


class Canvas(NamedTuple):
    """The size of a lens. `width` in pixels; `page_bytes` of UTF-8, line breaks included."""

    width: float
    lines: int
    page_bytes: int


@dataclass(frozen=True, slots=True)
class Page:
    """One page. `words` is its reading weight, without the footer."""

    lines: tuple[TextLine, ...]
    words: float = 0.0


@dataclass(frozen=True, slots=True)
class Layout:
    """A laid out text. `replaced`: characters the font lacks; `cut`: longer than `MAX_TEXT`."""

    pages: tuple[Page, ...]
    replaced: int = 0
    cut: bool = False


class Typeface(NamedTuple):
    """The properties of a font that layout needs."""

    width: Width
    has_glyph: HasGlyph


# ------------------------------------------------------------------ reading time


def reading_words(text: str) -> float:
    """Weigh a text for reading: a word is 1, two characters of a script without spaces are 1."""
    cjk = sum(map(_is_wide, text))
    spaced = "".join(" " if _is_wide(ch) else ch for ch in text)
    return len(spaced.split()) + cjk / 2


def dwell_s(words: float) -> float:
    """Return the seconds a page stays: 2.5 + 0.3 a word (200 words a minute, and time to look up),
    from 3 to 20.
    """
    return min(20.0, max(3.0, 2.5 + 0.3 * words))


# ------------------------------------------------------------------ cleaning


def clean(text: str, has_glyph: HasGlyph = lambda _: True) -> tuple[str, int]:
    """Make a text drawable: (text, characters replaced). Control characters are removed; a missing
    glyph is replaced by a plain relative, else by a box.
    """
    out: list[str] = []
    replaced = 0
    for ch in unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n")):
        drawable, lost = _drawable(ch, has_glyph)
        out.append(drawable)
        replaced += lost
    return "".join(out), replaced


def _drawable(ch: str, has_glyph: HasGlyph) -> tuple[str, int]:
    if ch == "\n":
        return ch, 0
    if ch.isspace():
        return " ", 0
    if unicodedata.category(ch) in _DROPPED or "\ufe00" <= ch <= "\ufe0f":
        return "", 0
    if has_glyph(ch):
        return ch, 0
    return _relative(ch, has_glyph), 1


def _relative(ch: str, has_glyph: HasGlyph) -> str:
    base = "".join(c for c in unicodedata.normalize("NFKD", ch) if not unicodedata.combining(c))
    for candidate in (_FOLDED.get(ch, ""), base):
        if candidate.strip() and all(map(has_glyph, candidate)):
            return candidate
    if unicodedata.combining(ch):
        return ""  # its base letter is there; a box per accent would read as noise
    return next((c for c in _STAND_INS if has_glyph(c)), "?")


# ------------------------------------------------------------------ layouts


def lay_out(text: str, canvas: Canvas, face: Typeface) -> Layout:
    """Break a text into pages. Several pages have a footer `1/3` at the right of their last row."""
    text, replaced, cut = _prepared(text, face)
    paragraphs, face = _paragraphs(text), _remembering(face)
    pages = _fill(paragraphs, canvas, face, footer="", most=2 if canvas.lines > 1 else len(text))
    if len(pages) > 1 and canvas.lines > 1:
        pages = _with_footers(
            lambda footer: _fill(paragraphs, canvas, face, footer=footer), canvas, face
        )
    return Layout(tuple(_page(lines) for lines in pages), replaced, cut)


def lay_out_columns(left: str, right: str, canvas: Canvas, face: Typeface) -> Layout:
    """Set two texts side by side: the left in 45 % of the width, the right from 55 % on."""
    lost, cut, columns, face = 0, False, [], _remembering(face)
    for raw in (left, right):
        text, replaced, over = _prepared(raw, face)
        lost, cut = lost + replaced, cut or over
        columns.append(_column(_paragraphs(text), canvas, face))
    pages = _pair(columns, canvas, canvas.lines, reserve=0)
    if len(pages) > 1 and canvas.lines > 1:
        pages = _with_footers(
            lambda footer: _pair(
                columns, canvas, canvas.lines - 1, reserve=len(footer.encode()) + 1
            ),
            canvas,
            face,
        )
    return Layout(tuple(_page(lines) for lines in pages), lost, cut)


def _prepared(text: str, face: Typeface) -> tuple[str, int, bool]:
    cut = len(text) > MAX_TEXT
    if cut:
        text = text[: MAX_TEXT - len(CUT)] + CUT
    cleaned, replaced = clean(text, face.has_glyph)
    return cleaned.strip("\n"), replaced, cut


def _page(lines: Lines) -> Page:
    return Page(
        tuple(lines),
        reading_words(" ".join(line.text for line in lines if not _FOOTER.fullmatch(line.text))),
    )


def _with_footers(
    fill: Callable[[str], list[Lines]], canvas: Canvas, face: Typeface
) -> list[Lines]:
    """Fill with room for `n/m`, again until the room is as wide as the numbers."""
    digits = 0
    pages: list[Lines] = []
    while digits == 0 or len(str(len(pages))) > digits:
        digits = max(digits + 1, len(str(len(pages))))
        pages = fill(f"{'9' * digits}/{'9' * digits}")
    for number, lines in enumerate(pages, 1):
        footer = f"{number}/{len(pages)}"
        x = max(0, math.floor(canvas.width - face.width(footer)))
        lines.append(TextLine(canvas.lines - 1, footer, x))
    return pages


def _fill(
    paragraphs: Paragraphs, canvas: Canvas, face: Typeface, *, footer: str, most: int = MAX_TEXT
) -> list[Lines]:
    """Set rows until the text ends or `most` pages are full; rows and bytes are limited."""
    budget = canvas.page_bytes - len(footer.encode())
    room = canvas.width - (face.width(_FOOTER_GAP + footer) if footer else 0)
    rows = canvas.lines if room >= canvas.width / 2 else canvas.lines - 1
    pages: list[Lines] = []
    lines: Lines = []
    used, cursor = 0, _START
    while cursor[0] < len(paragraphs) and len(pages) < most:
        if not lines and not paragraphs[cursor[0]]:
            cursor = (cursor[0] + 1, 0, None)  # a page does not begin with a blank line
            continue
        limit = room if len(lines) == canvas.lines - 1 else canvas.width
        row, after = _row(paragraphs, cursor, _Fit(face.width, limit, budget - 1))
        size = len(row.encode()) + 1
        if len(lines) == rows or (lines and used + size > budget):
            pages.append(lines)
            lines, used = [], 0
            continue
        lines.append(TextLine(len(lines), row))
        used, cursor = used + size, after
    return [*pages, lines] if lines else pages


def _column(paragraphs: Paragraphs, canvas: Canvas, face: Typeface) -> list[str]:
    fits = _Fit(face.width, canvas.width * _COLUMN, (canvas.page_bytes - _FOOTER_BYTES) // 2 - 1)
    rows: list[str] = []
    cursor = _START
    while cursor[0] < len(paragraphs):
        row, cursor = _row(paragraphs, cursor, fits)
        rows.append(row)
    return rows


def _pair(
    columns: Sequence[Sequence[str]], canvas: Canvas, rows: int, *, reserve: int
) -> list[Lines]:
    """Distribute two columns to pages row by row, within the page's bytes."""
    second = math.floor(canvas.width * _SECOND_COLUMN)
    pages: list[Lines] = []
    lines: Lines = []
    row = used = 0
    for texts in zip_longest(*columns, fillvalue=""):
        size = sum(len(text.encode()) + 1 for text in texts)
        if row == rows or (row and used + size > canvas.page_bytes - reserve):
            pages.append(lines)
            lines, row, used = [], 0, 0
        lines += [
            TextLine(row, text, x) for text, x in zip(texts, (0, second), strict=True) if text
        ]
        row, used = row + 1, used + size
    return [*pages, lines] if lines else pages


# ------------------------------------------------------------------ breaking into rows


def _paragraphs(text: str) -> Paragraphs:
    """Return paragraphs as lists of unbreakable pieces; a piece after a space begins with it."""
    out: Paragraphs = []
    for paragraph in text.split("\n"):
        pieces = _pieces(paragraph)
        if pieces or (out and out[-1]):  # one blank line is a pause, more of them waste the lens
            out.append(pieces)
    return out


def _pieces(paragraph: str) -> list[str]:
    pieces: list[str] = []
    for word in paragraph.split():
        lead = " " if pieces else ""
        for atom in _atoms(word):
            if pieces and (atom[0] in LINE_START_FORBIDDEN or pieces[-1][-1] in LINE_END_FORBIDDEN):
                pieces[-1] += lead + atom
            else:
                pieces.append(lead + atom)
            lead = ""
    return pieces


def _atoms(word: str) -> Iterator[str]:
    """Split a word where a script without spaces may break: around each of its characters."""
    run = ""
    for ch in word:
        if _is_wide(ch):
            if run:
                yield run
            run = ch
        elif run and _is_wide(run[0]) and not unicodedata.combining(ch):
            yield run
            run = ch
        else:
            run += ch
    if run:
        yield run


@dataclass(frozen=True, slots=True)
class _Fit:
    """The room of one row. Joined text is never wider than its parts side by side, so most of it
    need not be measured.
    """

    width: Width
    limit: float
    size: int

    def __call__(self, text: str) -> bool:
        return len(text.encode()) <= self.size and self.width(text) <= self.limit

    def grown(self, row: str, row_width: float, piece: str) -> float | None:
        """Return an upper bound of the width of `row + piece`; None if it does not fit."""
        if len(row.encode()) + len(piece.encode()) > self.size:
            return None
        bound = row_width + self.width(piece)
        if bound > self.limit:
            bound = self.width(row + piece)
        return bound if bound <= self.limit else None


def _remembering(face: Typeface) -> Typeface:
    """Return the same face, which measures each word once."""
    return Typeface(lru_cache(maxsize=4096)(face.width), face.has_glyph)


def _row(paragraphs: Paragraphs, cursor: Cursor, fits: _Fit) -> tuple[str, Cursor]:
    """Take the longest row that fits, at least one character, so that nothing is lost."""
    paragraph, index, rest = cursor
    pieces = paragraphs[paragraph]
    row, wide = "", 0.0
    while index < len(pieces):
        piece = pieces[index] if rest is None else rest
        if not row:
            piece = piece.lstrip()
        grown = fits.grown(row, wide, piece)
        if grown is not None:
            row, wide, index, rest = row + piece, grown, index + 1, None
            continue
        if not row:
            row, rest = _split(piece, fits)
            index, rest = (index, rest) if rest else (index + 1, None)
        break
    return row, (paragraph, index, rest) if index < len(pieces) else (paragraph + 1, 0, None)


def _split(piece: str, fits: Callable[[str], bool]) -> tuple[str, str]:
    """Cut a piece longer than a row; between a letter and its accent only if unavoidable."""
    low, high = 1, len(piece)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(piece[:middle]) else (low, middle - 1)
    cut = low
    while 1 < cut < len(piece) and unicodedata.combining(piece[cut]):
        cut -= 1
    cut = low if cut == 1 else cut
    return piece[:cut].rstrip() or piece[:cut], piece[cut:].lstrip()


def _is_wide(ch: str) -> bool:
    """Return whether it belongs to a script without spaces: CJK, kana, Hangul, full-width forms."""
    code = ord(ch)
    return code >= _WIDE[0][0] and any(first <= code <= last for first, last in _WIDE)
