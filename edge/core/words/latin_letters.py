"""Writes text of other scripts in Latin letters: for glasses that cannot draw it."""

import unicodedata
from collections.abc import Callable
from typing import Final

_ALEF: Final = "\u0627"
"""An Arabic long a, for which the library writes nothing."""

_ANY_SIGN: Final = "*"
"""What the library writes for a sign that it has nothing like."""

_HAN: Final = "CJK UNIFIED"
"""How the names of Han characters begin. Each is a syllable: joined, they cannot be read."""


def to_latin(text: str, has_glyph: Callable[[str], bool]) -> str:
    """Replace the characters that a lens cannot draw by Latin letters; an emoji, or a sign that
    looks like no letter, by its name. What has no such form stays as it is.
    """
    from anyascii import anyascii  # noqa: PLC0415 - hundreds of tables, needed by few glasses

    def spell(ch: str) -> str:
        if ch.isspace() or has_glyph(ch):
            return ch
        spelled = "a" if ch == _ALEF else str(anyascii(ch))
        if spelled == _ANY_SIGN and unicodedata.category(ch) == "So":
            return f":{unicodedata.name(ch).lower()}:"
        if unicodedata.name(ch, "").startswith(("HANGUL", _HAN)):
            spelled = spelled.lower()  # the library begins each syllable with a capital
        return ch if not spelled and unicodedata.category(ch) == "Lo" else spelled

    out, after = "", False
    for ch in unicodedata.normalize("NFC", text):
        spelled = spell(ch)
        syllable = spelled != ch and unicodedata.name(ch, "").startswith(_HAN)
        if (syllable or after) and out[-1:].isalnum() and spelled[:1].isalnum():
            out += " "
        out, after = out + spelled, syllable
    return out
