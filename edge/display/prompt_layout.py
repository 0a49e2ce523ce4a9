"""Fits a question to these glasses: pages whose last row says what to do, or spoken words.

Nothing of a question is ever cut; one that cannot be shown or spoken whole is refused.
"""

import math
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain, pairwise
from typing import Final

from msgspec.structs import replace

from edge.core.pages import Canvas, DrawnRow, Page, Typeface, line_of, size_of
from edge.core.words.drawable_text import is_right_to_left, name_lost, needs_drawing
from edge.core.words.visible_text import escaped, visible
from edge.display.drawn_text import CannotDraw, DrawnText
from edge.display.lens import CannotShow, Sheet, canvas_of, typeface_of
from edge.display.lens_plan import drawn_rows, sheet_of
from edge.display.open_prompt import gestures_of
from edge.display.voice.speech import CannotSpeak
from edge.ports import Question
from firmware_bridge.capabilities import Capabilities, Hardware
from firmware_bridge.messages import TextLine

MAX_PAGES: Final = 20
"""A longer question is not asked on a lens: nobody reads so much before answering."""
MOST_SPOKEN: Final = 800
"""Characters of a question that is spoken: about a minute. A longer one is not asked by voice."""
NEXT: Final = "next"
"""The word beside the tap on every page but the last."""
CONTINUED: Final = "| "
"""Begins a row that continues the line above; no line or value can begin so."""
_LEAD_GAP: Final = 4
"""Pixels between it and a row that is drawn: what stands there may be a letter as thin as it."""
_TAPS: Final = ("tap", "double tap")
_PRESSES: Final = ("press", "long press")
_SAY: Final = " or say"
"""Behind the gesture, where the word beside it may be said."""
_MOST_WORD: Final = 40
"""Characters of the word beside a gesture."""
_ELLIPSIS: Final = "…"
_ISOLATE: Final = "\u2068"
_END: Final = "\u2069"
_ISOLATES: Final = dict.fromkeys(map(ord, "\u2066\u2067\u2068\u2069"))
_Hint = tuple[str | DrawnRow, ...]
"""The rows at the bottom of a page."""
_PAUSES: Final = frozenset(",.;:!?")
_QUIET: Final = frozenset({"Pd", "Pi", "Pf"})
"""Dashes and quotation marks: free text means the same without them."""
_SPOKEN: Final = {
    "@": "at",
    ".": "dot",
    ",": "comma",
    ":": "colon",
    ";": "semicolon",
    "!": "exclamation mark",
    "?": "question mark",
    "_": "underscore",
    "-": "dash",
    "–": "dash",
    "—": "dash",
    "+": "plus",
    "/": "slash",
    "\\": "backslash",
    "#": "hash",
    "%": "percent",
    "&": "and",
    "*": "star",
    "=": "equals",
    "(": "open bracket",
    ")": "close bracket",
    "[": "open square bracket",
    "]": "close square bracket",
    "{": "open curly bracket",
    "}": "close curly bracket",
    "<": "less than",
    ">": "greater than",
    "|": "bar",
    "~": "tilde",
    "^": "caret",
    "`": "backtick",
    '"': "quote",
    "'": "apostrophe",
    "’": "apostrophe",
    "€": "euro",
    "$": "dollar",
    "£": "pound",
}


# ------------------------------------------------------------------ the ear


def to_speech(question: Question, capabilities: Capabilities, *, spoken: bool = False) -> str:
    """The whole question as spoken text, and what to press. Raises `CannotSpeak` if impossible.
    `spoken`: an answer by voice is heard.
    """
    presses = capabilities.has(Hardware.BUTTON) or "button" in gestures_of(capabilities)
    yes, no = _ways(_PRESSES if presses else _TAPS, question, spoken=spoken)
    if question.exact:
        text = ".\n".join(map(_spell, question.text.translate(_ISOLATES).split("\n"))) + "."
    else:
        text = " ".join(question.text.split())
    if not all(_is_heard(ch) for ch in text):
        raise CannotSpeak("the question has characters that cannot be spoken")
    if len(text) > MOST_SPOKEN:
        raise CannotSpeak(
            f"the question is too long to be spoken ({len(text)} characters, at most {MOST_SPOKEN})"
        )
    return (
        f"{text}\n{yes.capitalize()}: {question.allow[:_MOST_WORD]}. "
        f"{no.capitalize()}: {question.deny[:_MOST_WORD]}."
    )


def _ways(gestures: tuple[str, str], question: Question, *, spoken: bool) -> tuple[str, str]:
    """Return how to say yes and no."""
    yes, no = gestures
    return yes + _SAY * (spoken and question.by_voice), no + _SAY * spoken


def _is_heard(ch: str) -> bool:
    """Whether a voice can say it, if one knows its letters: all voices skip symbols in silence."""
    if ch <= "\xff" or ch in _SPOKEN or ch == _ELLIPSIS:
        return True
    category = unicodedata.category(ch)
    return category[0] in "LMN" or category in _QUIET


def _spell(line: str) -> str:
    """Replace signs that voices swallow by names: -5 is not 5. Raises `CannotSpeak`."""
    out: list[str] = []
    for at, ch in enumerate(line):
        pause = ch in _PAUSES and line[at + 1 : at + 2] in ("", " ")
        if pause and out:
            out[-1] = out[-1].rstrip() + ch
        elif ch == " " or ch.isalnum():
            out.append(ch)
        elif ch in _SPOKEN:
            out.append(f" {_SPOKEN[ch]} ")
        else:
            raise CannotSpeak("the question has characters that cannot be spoken")
    return " ".join("".join(out).split()).rstrip(".")


# ------------------------------------------------------------------ the lens


async def pages(
    question: Question, capabilities: Capabilities, drawn: DrawnText, *, spoken: bool = False
) -> tuple[Sheet, ...]:
    """The whole question for the lens, the yes only on its last page. Raises `CannotShow`.
    `spoken`: an answer by voice is heard; the lens says so if it has room for that.
    """
    try:
        if spoken:
            with suppress(CannotShow):
                return await _Lens(question, capabilities, drawn, spoken=True).pages()
        return await _Lens(question, capabilities, drawn).pages()
    except CannotDraw as e:
        raise CannotShow(f"this lens cannot draw the characters of the question: {e}") from None


class _TooManyPages(Exception):
    pass


class _Lens:
    """One question on one lens. What the glasses cannot write is drawn; methods raise `CannotDraw`,
    `CannotShow`.
    """

    def __init__(
        self,
        question: Question,
        capabilities: Capabilities,
        drawn: DrawnText,
        *,
        spoken: bool = False,
    ) -> None:
        self._question = question
        self._spoken = spoken
        self._capabilities = capabilities
        self._drawn = drawn
        self._canvas, self._face = canvas_of(capabilities), typeface_of(capabilities)
        self._whole = capabilities.get("display.tiles") is not True
        self._all_drawn = False
        self._lead = CONTINUED if question.exact else ""
        self._lead_width = math.ceil(self._face.width(self._lead)) + _LEAD_GAP

    async def pages(self) -> tuple[Sheet, ...]:
        text = self._question.text if self._question.exact else _prose(self._question.text)
        lines = await self._lines(text.split("\n"))
        words = gestures_of(self._capabilities)
        gestures = _PRESSES if "button" in words and "tap" not in words else _TAPS
        yes, no = _ways(gestures, self._question, spoken=self._spoken)
        last = (yes, self._question.allow), (no, self._question.deny)
        early = (gestures[0], NEXT), (no, self._question.deny)
        try:
            hint = await self._hints(*last)
            return await self._sheets(self._filled(lines, [hint], most=1), [hint])
        except _TooManyPages:
            widest = f"{MAX_PAGES}/{MAX_PAGES}"
        hints = [await self._hints(*pair, widest) for pair in (early, last)]
        try:
            filled = self._filled(lines, hints, most=MAX_PAGES)
        except _TooManyPages:
            text = f"the question needs more than {MAX_PAGES} pages on this lens"
            raise CannotShow(text) from None
        numbered = [
            await self._hints(*(last if n == len(filled) else early), f"{n}/{len(filled)}")
            for n in range(1, len(filled) + 1)
        ]
        return await self._sheets(filled, numbered)

    # -------------------------------------------------------------- lines

    async def _lines(self, lines: list[str]) -> list[str | tuple[DrawnRow, ...]]:
        """Return the lines, those to draw as rows: on some glasses all if there is one."""
        needed = [self._needs_drawing(line) for line in lines]
        answers = self._question.allow + self._question.deny
        self._all_drawn = self._whole and (any(needed) or self._needs_drawing(answers))
        if not (any(needed) or self._all_drawn):
            return [_drawable(line.translate(_ISOLATES), self._face) for line in lines]
        return [
            await self._rows(line)
            if line and (wanted or self._all_drawn)
            else line.translate(_ISOLATES)
            for line, wanted in zip(lines, needed, strict=True)
        ]

    def _needs_drawing(self, text: str) -> bool:
        return needs_drawing(text, self._face.has_glyph, exact=True)

    async def _rows(self, line: str) -> tuple[DrawnRow, ...]:
        """Draw a line; of an exact question from left to right, its value by itself, and rows after
        the first begin with `CONTINUED`.
        """
        if not self._question.exact:
            rows = await self._draw(line, self._canvas.width, base=None)
        else:
            rows = await self._draw(_isolated(line), self._canvas.width)
        if len(rows) > 1 and self._lead:
            narrow = self._canvas.width - self._lead_width
            rows = await self._draw(_isolated(line), narrow)
        if self._needs_drawing(line) and is_right_to_left(line):
            return rows
        return tuple(row._replace(native=self._is_native(row)) for row in rows)

    def _is_native(self, row: DrawnRow) -> bool:
        fits = self._face.width(self._lead + row.text) <= self._canvas.width
        return fits and not self._needs_drawing(row.text)

    async def _draw(self, text: str, width: float, *, base: int | None = 0) -> tuple[DrawnRow, ...]:
        """Draw a text of a question: whole, or not at all."""
        (rows,) = await self._drawn.draw([text], drawn_rows(self._capabilities, width), base)
        if lost := name_lost(tuple(dict.fromkeys(ch for row in rows for ch in row.lost))):
            raise CannotDraw(lost)
        if any(row.clipped for row in rows):
            raise CannotDraw("some of its letters are too high for a row")
        return rows

    # -------------------------------------------------------------- pages

    def _filled(
        self, text: list[str | tuple[DrawnRow, ...]], hints: list[_Hint], *, most: int
    ) -> list[list[TextLine]]:
        """Fill pages row by row, leaving room for a hint. Raises `_TooManyPages`."""
        canvas = self._canvas
        rows = canvas.lines - max(map(len, hints))
        room = canvas.page_bytes - max(sum(map(size_of, hint)) for hint in hints)
        if rows < 1 or room < 2:
            raise CannotShow("this lens has no room for a question")
        filled: list[list[TextLine]] = [[]]
        at = used = 0
        broken = self._broken(text, Canvas(canvas.width, rows, room))
        for (lead, row), (_, following) in pairwise(chain(broken, [("", "")])):
            size = size_of(row) + len(lead.encode())
            words = row if isinstance(row, str) else row.text
            heads = self._question.exact and words.endswith(":") and rows > 1
            needs = size + heads * size_of(following)  # a list's first item comes with its head
            if at + heads >= rows or (at and used + needs > room):
                if len(filled) == most:
                    raise _TooManyPages
                filled.append([])
                at = used = 0
            if isinstance(row, DrawnRow) and lead:
                filled[-1] += [TextLine(at, lead), line_of(at, row, self._lead_width)]
            elif row:
                filled[-1].append(line_of(at, row))
            at, used = at + 1, used + size
        return filled

    def _broken(
        self, text: list[str | tuple[DrawnRow, ...]], canvas: Canvas
    ) -> Iterator[tuple[str, str | DrawnRow]]:
        """Yield what a row begins with, if it is drawn beside that, and the row."""
        for line in text:
            if isinstance(line, str):
                for row in _rows(line, canvas, self._face, self._lead):
                    yield "", row
            else:
                for number, drawn in enumerate(line):
                    lead = self._lead if number else ""
                    native = drawn._replace(text=lead + drawn.text)
                    yield ("", native) if drawn.native and not self._whole else (lead, drawn)

    async def _sheets(self, filled: list[list[TextLine]], hints: list[_Hint]) -> tuple[Sheet, ...]:
        pages = [
            Page((*lines, *self._bottom(hint))) for lines, hint in zip(filled, hints, strict=True)
        ]
        lead = self._all_drawn and self._lead
        pictures = {lead: (await self._row(lead)).tile} if lead else {}
        return tuple(
            replace(sheet_of(page, self._capabilities, pictures), dwell_s=Sheet().dwell_s)
            for page in pages
        )

    def _bottom(self, hint: _Hint) -> list[TextLine]:
        return [line_of(self._canvas.lines - len(hint) + n, row) for n, row in enumerate(hint)]

    async def _hints(
        self, allow: tuple[str, str], deny: tuple[str, str], number: str = ""
    ) -> _Hint:
        """`tap: yes · double tap: no  3/3`, on two rows if too wide."""
        (yes, allowed), (no, denied) = (
            (gesture, " ".join(answer[:_MOST_WORD].split())) for gesture, answer in (allow, deny)
        )
        if not (self._all_drawn or self._needs_drawing(allowed + denied)):
            hints = f"{yes}: {allowed}", f"{no}: {denied}"
            return _written(*hints, number, self._canvas, self._face)
        first, second = (
            _isolated(f"{gesture}: {visible(answer)}")
            for gesture, answer in ((yes, allowed), (no, denied))
        )
        numbered = f"  {number}" if number else ""
        for both in (f"{first} · {second}{numbered}", f"{first} · {second}"):
            if len(rows := await self._rows(both)) == 1:
                return rows
        return (await self._row(first + numbered), await self._row(second))

    async def _row(self, text: str) -> DrawnRow:
        rows = await self._rows(text)
        if len(rows) > 1:
            raise CannotShow("this lens has no room for a question")
        return rows[0]


def _isolated(line: str) -> str:
    """Set the value of a line apart, so that its direction moves nothing else on the line."""
    label, mark, value = line.partition(": ")
    if not mark or line.translate(_ISOLATES) != line:
        return line
    return f"{_ISOLATE}{label}{_END}{mark}{_ISOLATE}{value}{_END}"


def _rows(text: str, canvas: Canvas, face: Typeface, continued: str) -> Iterator[str]:
    """Break a line into rows; every character stays, breaks are behind a space where possible."""
    rest, lead = text, ""
    while True:

        def fits(piece: str, lead: str = lead) -> bool:
            row = lead + piece
            return face.width(row) <= canvas.width and len(row.encode()) < canvas.page_bytes

        cut = _most_that_fits(rest, fits, most=canvas.page_bytes)
        if cut == 0 and rest:
            raise CannotShow("this lens has no room for a question")
        if cut < len(rest):
            cut = rest.rfind(" ", cut // 3, cut) + 1 or cut
        yield lead + rest[:cut]
        rest, lead = rest[cut:], continued
        if not rest:
            break


def _prose(text: str) -> str:
    """Free text: line ends and spaces are layout, all else that is not seen is escaped."""
    composed = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    return "\n".join(visible(" ".join(line.split())) for line in composed.strip().split("\n"))


def _written(allow: str, deny: str, number: str, canvas: Canvas, face: Typeface) -> _Hint:
    """Hints in the font of the glasses; most bytes are the question's."""

    def fits(text: str, share: int = 3) -> bool:
        return face.width(text) <= canvas.width and len(text.encode()) <= canvas.page_bytes // share

    allow, deny = (_drawable(visible(hint), face) for hint in (allow, deny))
    numbered = f"  {number}" if number else ""
    dot = "·" if face.has_glyph("·") else "|"
    for both in (f"{allow} {dot} {deny}{numbered}", f"{allow} {dot} {deny}"):
        if fits(both, 2):
            return (both,)
    first = allow + numbered if fits(allow + numbered) else allow
    end = _ELLIPSIS if face.has_glyph(_ELLIPSIS) else "..."
    return _longest(first, fits, end), _longest(deny, fits, end)


def _drawable(text: str, face: Typeface) -> str:
    """Escape what a font cannot write, such as a joiner between other letters."""
    return "".join(ch if face.has_glyph(ch) else escaped(ch) for ch in text)


def _most_that_fits(text: str, fits: Callable[[str], bool], *, most: int) -> int:
    """How many characters fit. One takes a byte at least: over `most` of them never do."""
    low, high = 0, min(len(text), most)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(text[:middle]) else (low, middle - 1)
    return low


def _longest(text: str, fits: Callable[[str], bool], ellipsis: str) -> str:
    """The text if it fits, else as much of it as fits with an ellipsis."""
    if fits(text):
        return text
    cut = _most_that_fits(text, lambda part: fits(part.rstrip() + ellipsis), most=1000)
    return text[:cut].rstrip() + ellipsis
