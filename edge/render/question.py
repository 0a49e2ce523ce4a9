"""What a question looks and sounds like on these glasses: one page whose last row says what to do, or spoken words.

Refuses to ask: it fits words. Pure.
"""

from collections.abc import Callable
from typing import Final

from edge.core.pages import Canvas, Layout, Typeface, clean, lay_out
from edge.ports import Question
from edge.render.display import CannotShow, Sheet, canvas_of, typeface_of
from firmware_bridge.capabilities import Capabilities, Hardware
from firmware_bridge.messages import Answer, Gesture, TextLine

ANSWERS: Final = {
    Gesture.TAP: Answer.ALLOW, Gesture.BUTTON: Answer.ALLOW,
    Gesture.DOUBLE_TAP: Answer.DENY, Gesture.BUTTON_LONG: Answer.DENY,
}  # fmt: skip
_TAPS: Final = ("tap", "double tap")
_PRESSES: Final = ("press", "long press")
_MOST_SPOKEN: Final = 400
"""Characters of a question that are spoken: half a minute. What to do comes after it and must still be heard."""
_MOST_WORD: Final = 40
"""Characters of the word beside a gesture."""
_ELLIPSIS: Final = "…"


def can_press(capabilities: Capabilities) -> bool:
    """True when the wearer can say yes and no with a finger."""
    return capabilities.has(Hardware.BUTTON) or bool(_gestures(capabilities) & {"tap", "button"})


def _gestures(capabilities: Capabilities) -> set[str]:
    return {word.strip() for word in str(capabilities.get("gestures", "")).split(",")}


def spoken(question: Question, capabilities: Capabilities) -> str:
    """The question for the ear, and what to press."""
    presses = capabilities.has(Hardware.BUTTON) or "button" in _gestures(capabilities)
    yes, no = _PRESSES if presses else _TAPS
    text = " ".join(question.text.split())
    if len(text) > _MOST_SPOKEN:
        text = text[:_MOST_SPOKEN].rpartition(" ")[0] or text[:_MOST_SPOKEN]
    return f"{text}\n{yes.capitalize()}: {question.allow[:_MOST_WORD]}. {no.capitalize()}: {question.deny[:_MOST_WORD]}."


def page(question: Question, capabilities: Capabilities) -> Sheet:
    """The question for the lens. Text over one page is cut, so that the last row is always there. Raises `CannotShow`."""
    canvas, face = canvas_of(capabilities), typeface_of(capabilities)
    hints = _hints(question, capabilities, canvas, face)
    room = canvas.page_bytes - sum(len(hint.encode()) + 1 for hint in hints)
    rows = canvas.lines - len(hints)
    if rows < 1 or room < 1:
        raise CannotShow("this lens has no room for a question")
    lines = _one_page(question.text, Canvas(canvas.width, rows, room), face)
    asked = tuple(TextLine(rows + at, hint) for at, hint in enumerate(hints))
    return Sheet((*lines, *asked))


def _hints(question: Question, capabilities: Capabilities, canvas: Canvas, face: Typeface) -> tuple[str, ...]:
    """`tap: yes · double tap: no`, on two rows where one is too narrow. The larger part of the bytes is the question's."""
    words = _gestures(capabilities)
    yes, no = _PRESSES if "button" in words and "tap" not in words else _TAPS
    allow, deny = f"{yes}: {question.allow[:_MOST_WORD]}", f"{no}: {question.deny[:_MOST_WORD]}"

    def fits(text: str, share: int = 3) -> bool:
        return face.width(text) <= canvas.width and len(text.encode()) <= canvas.page_bytes // share

    both = _plain(f"{allow} · {deny}", face)
    return (both,) if fits(both, 2) else tuple(_longest(_plain(hint, face), fits) for hint in (allow, deny))


def _plain(text: str, face: Typeface) -> str:
    return " ".join(clean(text, face.has_glyph)[0].split())


def _one_page(text: str, canvas: Canvas, face: Typeface) -> tuple[TextLine, ...]:
    def laid(text: str) -> Layout:
        return lay_out(text, canvas, face)

    fitted = _longest(text.strip(), lambda text: len(laid(text).pages) <= 1, most=canvas.page_bytes)
    pages = laid(fitted).pages
    return tuple(line for line in pages[0].lines if line.text) if pages else ()


def _longest(text: str, fits: Callable[[str], bool], *, most: int = 1000) -> str:
    """The text if it fits, else as much of it as fits with an ellipsis. A character takes a byte at least: over `most`
    of them never fit.
    """
    if len(text) <= most and fits(text):
        return text
    low, high = 0, min(len(text), most)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(text[:middle].rstrip() + _ELLIPSIS) else (low, middle - 1)
    return text[:low].rstrip() + _ELLIPSIS
