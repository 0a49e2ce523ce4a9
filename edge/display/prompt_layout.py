"""Fits a question to these glasses: pages whose last row says what to do, or spoken words.

Nothing of a question is ever cut; one that cannot be shown or spoken whole is refused.
"""

import unicodedata
from collections.abc import Callable, Iterator
from itertools import chain, pairwise
from typing import Final

from edge.core.pages import Canvas, Typeface
from edge.core.words.visible_text import escaped, visible
from edge.display.lens import CannotShow, Sheet, canvas_of, typeface_of
from edge.display.voice.speech import CannotSpeak
from edge.ports import Question
from firmware_bridge.capabilities import Capabilities, Hardware
from firmware_bridge.messages import Answer, Gesture, TextLine

ANSWERS: Final = {
    Gesture.TAP: Answer.ALLOW,
    Gesture.BUTTON: Answer.ALLOW,
    Gesture.DOUBLE_TAP: Answer.DENY,
    Gesture.BUTTON_LONG: Answer.DENY,
}
MAX_PAGES: Final = 20
"""A longer question is not asked on a lens: nobody reads so much before answering."""
MOST_SPOKEN: Final = 800
"""Characters of a question that is spoken: about a minute. A longer one is not asked by voice."""
NEXT: Final = "next"
"""The word beside the tap on every page but the last."""
CONTINUED: Final = "| "
"""Begins a row that continues the line above; no line or value can begin so."""
_TAPS: Final = ("tap", "double tap")
_PRESSES: Final = ("press", "long press")
_MOST_WORD: Final = 40
"""Characters of the word beside a gesture."""
_ELLIPSIS: Final = "…"
_FEW: Final = 4
_SHARE: Final = 0.2
"""A line with more than `_FEW` characters, and this share, that the lens lacks is unreadable."""
_PAUSES: Final = frozenset(",.;:!?")
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


def can_press(capabilities: Capabilities) -> bool:
    """True when the wearer can say yes and no with a finger."""
    return capabilities.has(Hardware.BUTTON) or bool(_gestures(capabilities) & {"tap", "button"})


def _gestures(capabilities: Capabilities) -> set[str]:
    return {word.strip() for word in str(capabilities.get("gestures", "")).split(",")}


# ------------------------------------------------------------------ the ear


def to_speech(question: Question, capabilities: Capabilities) -> str:
    """The whole question as spoken text, and what to press. Raises `CannotSpeak` if impossible."""
    presses = capabilities.has(Hardware.BUTTON) or "button" in _gestures(capabilities)
    yes, no = _PRESSES if presses else _TAPS
    if question.exact:
        text = ".\n".join(map(_spell, question.text.split("\n"))) + "."
    else:
        text = " ".join(question.text.split())
    if any(ch.isalnum() and not _is_latin(ch) for ch in text):
        raise CannotSpeak("the question has characters that cannot be spoken")
    if len(text) > MOST_SPOKEN:
        raise CannotSpeak(
            f"the question is too long to be spoken ({len(text)} characters, at most {MOST_SPOKEN})"
        )
    return (
        f"{text}\n{yes.capitalize()}: {question.allow[:_MOST_WORD]}. "
        f"{no.capitalize()}: {question.deny[:_MOST_WORD]}."
    )


def _is_latin(ch: str) -> bool:
    """All voices speak languages written in Latin letters, and skip other letters in silence."""
    return (ch.isascii() and ch.isalnum()) or unicodedata.name(ch, "").startswith("LATIN ")


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


def pages(question: Question, capabilities: Capabilities) -> tuple[Sheet, ...]:
    """The whole question for the lens, the yes only on its last page. Raises `CannotShow`."""
    canvas, face = canvas_of(capabilities), typeface_of(capabilities)
    words = _gestures(capabilities)
    yes, no = _PRESSES if "button" in words and "tap" not in words else _TAPS
    text = _readable(question, face)
    last = f"{yes}: {question.allow[:_MOST_WORD]}", f"{no}: {question.deny[:_MOST_WORD]}"
    try:
        return _laid_out(text, question, canvas, face, [_hints(*last, "", canvas, face)], most=1)
    except _TooManyPages:
        early = f"{yes}: {NEXT}", last[1]
    widest = f"{MAX_PAGES}/{MAX_PAGES}"
    hints = [_hints(*pair, widest, canvas, face) for pair in (early, last)]
    try:
        laid = _laid_out(text, question, canvas, face, hints, most=MAX_PAGES)
    except _TooManyPages:
        raise CannotShow(f"the question needs more than {MAX_PAGES} pages on this lens") from None
    numbered = [
        _hints(*(last if n == len(laid) else early), f"{n}/{len(laid)}", canvas, face)
        for n in range(1, len(laid) + 1)
    ]
    return tuple(
        Sheet((*sheet.lines, *_bottom(hint, canvas)))
        for sheet, hint in zip(laid, numbered, strict=True)
    )


class _TooManyPages(Exception):
    pass


def _laid_out(
    text: str,
    question: Question,
    canvas: Canvas,
    face: Typeface,
    hints: list[tuple[str, ...]],
    *,
    most: int,
) -> tuple[Sheet, ...]:
    """Fill pages row by row, leaving room for a hint; one page gets it. Raises `_TooManyPages`."""
    rows = canvas.lines - max(map(len, hints))
    room = canvas.page_bytes - max(sum(len(row.encode()) + 1 for row in hint) for hint in hints)
    if rows < 1 or room < 2:
        raise CannotShow("this lens has no room for a question")
    filled: list[list[TextLine]] = [[]]
    row = used = 0
    lead = CONTINUED if question.exact else ""
    broken = _rows(text, Canvas(canvas.width, rows, room), face, lead)
    for line, following in pairwise(chain(broken, [""])):
        size = len(line.encode()) + 1
        heads = question.exact and line.endswith(":") and rows > 1  # its first item comes with it
        needs = size + heads * (len(following.encode()) + 1)
        if row + heads >= rows or (row and used + needs > room):
            if len(filled) == most:
                raise _TooManyPages
            filled.append([])
            row = used = 0
        if line:
            filled[-1].append(TextLine(row, line))
        row, used = row + 1, used + size
    if most == 1:
        filled[0] += _bottom(hints[0], canvas)
    return tuple(Sheet(tuple(lines)) for lines in filled)


def _bottom(hint: tuple[str, ...], canvas: Canvas) -> list[TextLine]:
    return [TextLine(canvas.lines - len(hint) + at, row) for at, row in enumerate(hint)]


def _rows(text: str, canvas: Canvas, face: Typeface, continued: str) -> Iterator[str]:
    """Break lines into rows; every character stays, breaks are behind a space where possible."""
    for line in text.split("\n"):
        rest, lead = line, ""
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


def _readable(question: Question, face: Typeface) -> str:
    """Escape what this lens cannot draw. Raises `CannotShow` if that leaves a line unreadable."""
    text = question.text if question.exact else _prose(question.text)
    shown = []
    for line in text.split("\n"):
        lost = sum(not face.has_glyph(ch) for ch in line)
        if lost > _FEW and lost > _SHARE * len(line.replace(" ", "")):
            raise CannotShow("this lens cannot draw the characters of the question")
        shown.append(_drawable(line, face))
    return "\n".join(shown)


def _prose(text: str) -> str:
    """Free text: line ends and spaces are layout, all else that is not seen is escaped."""
    composed = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    return "\n".join(visible(" ".join(line.split())) for line in composed.strip().split("\n"))


def _hints(allow: str, deny: str, number: str, canvas: Canvas, face: Typeface) -> tuple[str, ...]:
    """`tap: yes · double tap: no  3/3`, on two rows if too wide; most bytes are the question's."""

    def fits(text: str, share: int = 3) -> bool:
        return face.width(text) <= canvas.width and len(text.encode()) <= canvas.page_bytes // share

    allow, deny = (_drawable(visible(" ".join(hint.split())), face) for hint in (allow, deny))
    numbered = f"  {number}" if number else ""
    for both in (f"{allow} · {deny}{numbered}", f"{allow} · {deny}"):
        if fits(both, 2):
            return (both,)
    first = allow + numbered if fits(allow + numbered) else allow
    return _longest(first, fits), _longest(deny, fits)


def _drawable(text: str, face: Typeface) -> str:
    return "".join(ch if face.has_glyph(ch) else escaped(ch) for ch in text)


def _most_that_fits(text: str, fits: Callable[[str], bool], *, most: int) -> int:
    """How many characters fit. One takes a byte at least: over `most` of them never do."""
    low, high = 0, min(len(text), most)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(text[:middle]) else (low, middle - 1)
    return low


def _longest(text: str, fits: Callable[[str], bool]) -> str:
    """The text if it fits, else as much of it as fits with an ellipsis."""
    if fits(text):
        return text
    cut = _most_that_fits(text, lambda part: fits(part.rstrip() + _ELLIPSIS), most=1000)
    return text[:cut].rstrip() + _ELLIPSIS
