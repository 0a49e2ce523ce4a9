"""Recognised words in the letters that these glasses can write."""

from contextlib import suppress

from edge.core.pages import break_rows
from edge.core.words.drawable_text import clean
from edge.display.lens import canvas_of, typeface_of
from firmware_bridge.capabilities import Capabilities


def break_words(text: str, capabilities: Capabilities) -> tuple[str, ...]:
    """Break words into rows for these glasses; letters that they lack become Latin ones: a row that
    is drawn takes too long to follow somebody who speaks.
    """
    face = typeface_of(capabilities)
    if clean(text, face.has_glyph).lost:
        with suppress(ImportError):  # the library may be missing
            from edge.core.words.latin_letters import to_latin  # noqa: PLC0415 - words of a script that these glasses lack

            text = to_latin(text, face.has_glyph)
    return break_rows(text, canvas_of(capabilities), face)
