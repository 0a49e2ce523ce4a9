"""Lays text out in pages that fit a lens by pixels, lines and bytes. Nothing is lost silently.

Paragraphs that the font of the glasses cannot write may come as rows drawn elsewhere; they share
pages with those that it can.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from edge.core.words import text_columns
from edge.core.words.drawable_text import HasGlyph, clean, needs_drawing
from edge.core.words.text_columns import CellRow, Room, cells_of, rows_of
from firmware_bridge.messages import MAX_LINES, TextLine, Tile

Width = Callable[[str], float]
"""Width of a text in pixels. Two texts joined must not be wider than side by side."""
Cursor = tuple[int, int, str | None]
"""Start of the next row: paragraph, piece, and the rest of a piece that was cut."""

MAX_TEXT: Final = 8000
"""Characters laid out at most: half an hour of reading aloud; `CUT` marks that there were more."""
CUT: Final = " […]"
MAX_SEPARATE: Final = 50
"""Texts that may begin a page of their own; `CUT` marks that there were more."""
LINE_START_FORBIDDEN: Final = frozenset(".,!?:;)]}…。，、！？：；）】」』")
LINE_END_FORBIDDEN: Final = frozenset("([{（【「『")
_UNIT: Final = re.compile(r"(?:m|km|km/h|mi|ft|mph|d|h|min|s|%|°C|°F|kg|g|€|EUR|kr)[.,;:!?)]*")
_START: Final[Cursor] = (0, 0, None)
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_FOOTER: Final = re.compile(r"\d+/\d+")
_FOOTER_GAP: Final = "  "
_FOOTER_BYTES: Final = 8
_WIDE: Final = (
    *((0x2E80, 0x9FFF), (0xAC00, 0xD7AF), (0xF900, 0xFAFF)),
    *((0xFF00, 0xFFEF), (0x20000, 0x3FFFF)),
)
COLUMN: Final = 0.45
"""Share of the width that a column has."""
_SECOND_COLUMN: Final = 0.55


class Canvas(NamedTuple):
    """The size of a lens. `width` in pixels; `page_bytes` of UTF-8, line breaks included."""

    width: float
    lines: int
    page_bytes: int


class DrawnRow(NamedTuple):
    """A row of a paragraph as pixels: `tile` at its place in the row, None if there is nothing to
    see. `native`: the glasses' own font writes the same.
    """

    text: str
    tile: Tile | None = None
    lost: tuple[str, ...] = ()
    clipped: int = 0
    native: bool = False


class DrawnLine(TextLine, frozen=True, kw_only=True):
    """A line of a page that is a drawn row; its tile is moved by `x`."""

    drawn: DrawnRow


Row = str | DrawnRow | CellRow
Paragraphs = list[Sequence[str] | Sequence[DrawnRow] | Sequence[CellRow]]
Drawn = Mapping[str, Sequence[DrawnRow]]
"""Paragraph → its rows, for paragraphs that are drawn."""
Lines = list[TextLine]


class Page(Struct, frozen=True):
    """One page. `words` is its reading weight, without the footer."""

    lines: tuple[TextLine, ...]
    words: float = 0.0


class Layout(Struct, frozen=True):
    """A laid out text. `replaced`: how many characters the font lacks stand there as something
    similar; `lost`: which are boxes; `cut`: longer than `MAX_TEXT`.
    """

    pages: tuple[Page, ...]
    replaced: int = 0
    cut: bool = False
    lost: tuple[str, ...] = ()


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


# ------------------------------------------------------------------ layouts


def paragraphs_of(text: str) -> tuple[list[str], bool]:
    """Return the lines of a text of at most `MAX_TEXT` characters, and whether it was cut."""
    cut = len(text) > MAX_TEXT
    if cut:
        text = text[: MAX_TEXT - len(CUT)] + CUT
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), cut


def limit_separate(texts: Sequence[str]) -> tuple[tuple[str, ...], bool]:
    """Return the texts of separate pages, at most `MAX_SEPARATE` of together `MAX_TEXT` characters,
    and whether they were cut.
    """
    kept: list[str] = []
    left = MAX_TEXT
    for text in texts[:MAX_SEPARATE]:
        if len(text) > left:
            return (*kept, text[: max(0, left - len(CUT))] + CUT), True
        kept.append(text)
        left -= len(text)
    if len(texts) > MAX_SEPARATE:
        kept[-1] += CUT
    return tuple(kept), len(texts) > MAX_SEPARATE


def lay_out(text: str, canvas: Canvas, face: Typeface, drawn: Drawn = _NOTHING) -> Layout:
    """Break a text into pages. Several pages have a footer `1/3` at the right of their last row."""
    return _lay_out((text,), canvas, face, drawn)


def lay_out_separate(
    texts: Sequence[str], canvas: Canvas, face: Typeface, drawn: Drawn = _NOTHING
) -> Layout:
    """Begin a page with each of these texts; one that needs more takes further pages. Blank texts
    take none. The footers count all pages.
    """
    texts, cut = limit_separate(texts)
    laid = _lay_out(texts, canvas, face, drawn)
    return replace(laid, cut=cut or laid.cut)


def _lay_out(texts: Sequence[str], canvas: Canvas, face: Typeface, drawn: Drawn) -> Layout:
    ready = [_prepared(settle_tables(text, canvas, face), face, drawn) for text in texts]
    face = _remembering(face)

    def fill(footer: str, most: int = MAX_TEXT) -> list[Lines]:
        filled = (_fill(each.paragraphs, canvas, face, footer=footer, most=most) for each in ready)
        return [lines for pages in filled for lines in pages]

    pages = fill("", 2 if canvas.lines > 1 else MAX_TEXT)
    if len(pages) > 1 and canvas.lines > 1:
        pages = _with_footers(fill, canvas, face)
    return _layout(pages, ready)


def _layout(pages: Sequence[Lines], ready: Sequence["_Ready"]) -> Layout:
    return Layout(
        tuple(map(_page, pages)),
        sum(each.replaced for each in ready),
        any(each.cut for each in ready),
        tuple(dict.fromkeys(ch for each in ready for ch in each.lost)),
    )


def lay_out_columns(
    left: str, right: str, canvas: Canvas, face: Typeface, drawn: Drawn = _NOTHING
) -> Layout:
    """Set two texts side by side: the left in 45 % of the width, the right from 55 % on."""
    sides = [_prepared(without_tables(text), face, drawn) for text in (left, right)]
    face = _remembering(face)
    columns = [_column(side.paragraphs, canvas, face) for side in sides]
    pages = _pair(columns, canvas, canvas.lines, reserve=0)
    if len(pages) > 1 and canvas.lines > 1:
        pages = _with_footers(
            lambda footer: _pair(
                columns, canvas, canvas.lines - 1, reserve=len(footer.encode()) + 1
            ),
            canvas,
            face,
        )
    return _layout(pages, sides)


def break_rows(text: str, canvas: Canvas, face: Typeface) -> tuple[str, ...]:
    """Break a text into the rows of one page that has no end."""
    paragraphs = _prepared(without_tables(text), face, _NOTHING).paragraphs
    fits = _Fit(_remembering(face).width, canvas.width, canvas.page_bytes - 1)
    rows: list[str] = []
    cursor = _START
    while cursor[0] < len(paragraphs):
        row, cursor = _row(paragraphs, cursor, fits)
        if isinstance(row, str) and row:
            rows.append(row)
    return tuple(rows)


def settle_tables(text: str, canvas: Canvas, face: Typeface) -> str:
    """Return a text whose tables fit as columns; in others a point is between the cells."""
    return text_columns.settle(
        text,
        Room(
            canvas.width,
            (MAX_LINES - 1) // canvas.lines,
            canvas.page_bytes - _FOOTER_BYTES,
            _measure_of(face),
            lambda cell: not needs_drawing(cell, face.has_glyph),
        ),
    )


def without_tables(text: str) -> str:
    """Return a text in which a point is between the cells of each table."""
    return text_columns.settle(text, Room(0, 0, 0, len, lambda _: True))


def _measure_of(face: Typeface) -> Width:
    return lru_cache(lambda cell: face.width(clean(cell, face.has_glyph).text))


class _Ready(NamedTuple):
    """Paragraphs without blank ones at both ends, and what is said of them in a `Layout`."""

    paragraphs: Paragraphs
    replaced: int
    cut: bool
    lost: tuple[str, ...]


def _prepared(text: str, face: Typeface, drawn: Drawn) -> _Ready:
    lines, cut = paragraphs_of(text)
    paragraphs: Paragraphs = []
    lost: list[str] = []
    replaced = 0
    for is_table, group in text_columns.groups(lines):
        if is_table:
            cells = [[clean(cell, face.has_glyph) for cell in cells_of(line)] for line in group]
            written = [[cell.text for cell in row] for row in cells]
            paragraphs += [[row] for row in rows_of(written, face.width)]
            replaced += sum(cell.replaced for row in cells for cell in row)
            continue
        for line in group:
            rows = drawn.get(line)
            if rows is None:
                text, similar, boxes = clean(line, face.has_glyph)
                pieces: Sequence[str] | Sequence[DrawnRow] = _pieces(text)
                replaced, lost = replaced + similar, [*lost, *boxes]
            else:
                pieces = rows
                lost += [ch for row in rows for ch in row.lost]
            if pieces or (paragraphs and paragraphs[-1]):
                paragraphs.append(pieces)  # one blank line is a pause, more of them waste the lens
    while paragraphs and not paragraphs[-1]:
        paragraphs.pop()
    return _Ready(paragraphs, replaced, cut, tuple(dict.fromkeys(lost)))


def footer_width(pages: int, face: Typeface) -> float:
    """Return the room that the footer of so many pages takes from a row."""
    return face.width(f"{_FOOTER_GAP}{pages}/{pages}")


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
    budget = canvas.page_bytes - (len((_FOOTER_GAP + footer).encode()) if footer else 0)
    room = canvas.width - (face.width(_FOOTER_GAP + footer) if footer else 0)
    rows = canvas.lines if room >= canvas.width / 2 else canvas.lines - 1
    pages: list[Lines] = []
    lines: Lines = []
    number, used, cursor = 0, 0, _START
    while cursor[0] < len(paragraphs) and len(pages) < most:
        if not number and not paragraphs[cursor[0]]:
            cursor = (cursor[0] + 1, 0, None)  # a page does not begin with a blank line
            continue
        limit = room if number == canvas.lines - 1 else canvas.width
        row, after = _row(paragraphs, cursor, _Fit(face.width, limit, budget - 1))
        size = size_of(row)
        if number and (number == rows or used + size > budget or _end(row) > limit):
            pages.append(lines)
            lines, number, used = [], 0, 0
            continue
        lines += _lines(number, row)
        number, used, cursor = number + 1, used + size, after
    return [*pages, lines] if lines else pages


def _column(paragraphs: Paragraphs, canvas: Canvas, face: Typeface) -> list[str | DrawnRow]:
    fits = _Fit(face.width, canvas.width * COLUMN, (canvas.page_bytes - _FOOTER_BYTES) // 2 - 1)
    rows: list[str | DrawnRow] = []
    cursor = _START
    while cursor[0] < len(paragraphs):
        row, cursor = _row(paragraphs, cursor, fits)
        assert not isinstance(row, CellRow), "a column has no tables"
        rows.append(row)
    return rows


def _pair(
    columns: Sequence[Sequence[str | DrawnRow]], canvas: Canvas, rows: int, *, reserve: int
) -> list[Lines]:
    """Distribute two columns to pages row by row, within the page's bytes."""
    second = math.floor(canvas.width * _SECOND_COLUMN)
    pages: list[Lines] = []
    lines: Lines = []
    row = used = 0
    for texts in zip_longest(*columns, fillvalue=""):
        size = sum(map(size_of, texts))
        if row == rows or (row and used + size > canvas.page_bytes - reserve):
            pages.append(lines)
            lines, row, used = [], 0, 0
        lines += [line_of(row, text, x) for text, x in zip(texts, (0, second), strict=True) if text]
        row, used = row + 1, used + size
    return [*pages, lines] if lines else pages


# ------------------------------------------------------------------ breaking into rows


def line_of(number: int, row: str | DrawnRow, x: int = 0) -> TextLine:
    """Put a row on a page."""
    if isinstance(row, str):
        return TextLine(number, row, x)
    return DrawnLine(number, row.text, x, drawn=row)


def _lines(number: int, row: Row) -> Lines:
    if isinstance(row, CellRow):
        return [
            TextLine(number, cell, start)
            for cell, start in zip(row.cells, row.starts, strict=True)
            if cell
        ]
    return [line_of(number, row)]


def size_of(row: Row) -> int:
    """Return how many bytes of text a row takes of a page; none if it is sent as pixels."""
    if isinstance(row, CellRow):
        return row.size
    if isinstance(row, DrawnRow) and not row.native:
        return 0
    return len((row if isinstance(row, str) else row.text).encode()) + 1


def _end(row: Row) -> float:
    """Return where a drawn row or one of cells ends; other text always ends within the limit it was
    set for.
    """
    if isinstance(row, CellRow):
        return row.end
    return 0 if isinstance(row, str) or row.tile is None else row.tile.x + row.tile.width


def _pieces(paragraph: str) -> list[str]:
    """Return unbreakable pieces; one after a space begins with it. A number stays with its unit."""
    pieces: list[str] = []
    for word in paragraph.split():
        lead = " " if pieces else ""
        if pieces and pieces[-1][-1].isdigit() and _UNIT.fullmatch(word):
            pieces[-1] += lead + word
            continue
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


class _Fit(Struct, frozen=True):
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


def _row(paragraphs: Paragraphs, cursor: Cursor, fits: _Fit) -> tuple[Row, Cursor]:
    """Take the longest row that fits, at least one character, so that nothing is lost."""
    paragraph, index, rest = cursor
    pieces = paragraphs[paragraph]
    row, wide = "", 0.0
    while index < len(pieces):
        piece = pieces[index] if rest is None else rest
        if isinstance(piece, DrawnRow | CellRow):
            last = index + 1 == len(pieces)
            return piece, (paragraph + 1, 0, None) if last else (paragraph, index + 1, None)
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
    if cut < len(piece) and unicodedata.combining(piece[cut]):
        cut = low
    return piece[:cut].rstrip() or piece[:cut], piece[cut:].lstrip()


def _is_wide(ch: str) -> bool:
    """Return whether it belongs to a script without spaces: CJK, kana, Hangul, full-width forms."""
    code = ord(ch)
    return code >= _WIDE[0][0] and any(first <= code <= last for first, last in _WIDE)
