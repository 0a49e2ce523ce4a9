"""Where characters that are not seen themselves change what is seen: joiners in Persian, in Indic
scripts and between emoji, and the sign for the emoji style.
"""

import unicodedata
from functools import cache
from typing import Final

_NON_JOINER: Final = "\u200c"
_JOINER: Final = "\u200d"
_EMOJI_STYLE: Final = "\ufe0f"
JOINERS: Final = frozenset({_NON_JOINER, _JOINER, _EMOJI_STYLE})
_INDIC: Final = frozenset(
    "DEVANAGARI BENGALI GUJARATI ORIYA TELUGU KANNADA MALAYALAM SINHALA".split()
)
_VIRAMA: Final = 9
"""Unicode's combining class of the sign that joins two consonants."""
_NEAR: Final = 4
"""Characters on each side that are looked at: a letter, and the marks on it."""
_SKIN: Final = range(0x1F3FB, 0x1F400)


def is_seen(text: str, at: int) -> bool:
    """Return whether the one of `JOINERS` at this place changes what is beside it."""
    if text[at] == _EMOJI_STYLE:
        return at > 0 and _is_emoji(text[at - 1])
    before, after = text[max(0, at - _NEAR) : at], text[at + 1 : at + 1 + _NEAR]
    if text[at] == _JOINER and _is_emoji(after[:1]):
        base = before[-1:] if before[-1:] != _EMOJI_STYLE else before[-2:-1]
        return _is_emoji(base) or (base != "" and ord(base) in _SKIN)
    if _is_after_virama(before, after[:1]):
        return True
    return text[at] == _NON_JOINER and _would_join(before, after)


def _is_after_virama(before: str, after: str) -> bool:
    if len(before) < 2 or unicodedata.combining(before[-1]) != _VIRAMA or not after:
        return False
    scripts = {unicodedata.name(ch, "").partition(" ")[0] for ch in (*before[-2:], after)}
    return len(scripts) == 1 and scripts <= _INDIC and before[-2].isalpha() and after.isalpha()


def _would_join(before: str, after: str) -> bool:
    """Return whether two Arabic letters would be joined without what is between them."""
    first = next((ch for ch in reversed(before) if not unicodedata.combining(ch)), "")
    then = next((ch for ch in after if not unicodedata.combining(ch)), "")
    return first in _with_form("initial") and then in _with_form("final")


def _is_emoji(ch: str) -> bool:
    return unicodedata.category(ch) == "So" and ch >= "\u2600" if ch else False


@cache
def _with_form(form: str) -> frozenset[str]:
    """Return the Arabic letters that have an `initial` or a `final` form, as Unicode lists them."""
    prefix = f"<{form}> "
    forms = (unicodedata.decomposition(chr(code)) for code in range(0xFB50, 0xFF00))
    codes = (shown.removeprefix(prefix) for shown in forms if shown.startswith(prefix))
    return frozenset(chr(int(code, 16)) for code in codes if " " not in code)
