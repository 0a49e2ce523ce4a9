"""How a text reaches the wearer when the lens cannot draw all of its characters."""

import unicodedata
from collections.abc import Collection
from enum import Enum, auto
from typing import Final

_FEW: Final = 4
_SHARE: Final = 0.2
"""A text that lacks more than `_FEW` characters, and this share of its own, is mostly lost."""
_SPELLED: Final = (
    *("GREEK", "COPTIC", "CYRILLIC", "ARMENIAN", "GEORGIAN", "CHEROKEE"),
    *("HANGUL", "HIRAGANA", "KATAKANA", "FULLWIDTH", "HALFWIDTH", "MATHEMATICAL"),
)
"""Scripts whose letters alone say how a word sounds. Arabic, Hebrew and the Indic scripts leave
vowels out, and a Han character sounds different in each language.
"""
_EMOJI: Final = "\U0001f000"
"""Emoji, from this character on, are written by their name: `:thumbsup:`."""


class TextRoute(Enum):
    """The ways of a text to the wearer."""

    DISPLAY = auto()
    """On the lens as it is."""
    LATIN = auto()
    """On the lens, what it cannot draw in Latin letters."""
    SPEECH = auto()


def choose_route(text: str, lost: Collection[str], *, has_voice: bool) -> TextRoute:
    """Choose the way of a text of which the lens cannot draw `lost`: characters, or clusters of
    them. `has_voice`: the glasses can speak, and a voice can read this text.

    Not for questions (`prompt_layout.py`): Latin letters or a box may hide what the wearer agrees
    to.
    """
    if not lost:
        return TextRoute.DISPLAY
    if has_voice and is_mostly_lost(text, lost) and not can_spell(lost):
        return TextRoute.SPEECH
    return TextRoute.LATIN


def is_mostly_lost(text: str, lost: Collection[str]) -> bool:
    """Return whether so much of a text is lost that the rest is no longer readable."""
    missing = sum(text.count(cluster) * len(cluster) for cluster in set(lost))
    written = sum(not ch.isspace() for ch in text)
    return missing > _FEW and missing > _SHARE * written


def can_spell(lost: Collection[str]) -> bool:
    """Return whether Latin letters say the same as these characters."""
    return all(_is_spelled(ch) for cluster in lost for ch in cluster)


def _is_spelled(ch: str) -> bool:
    if ch >= _EMOJI and unicodedata.category(ch)[0] == "S":
        return True
    return unicodedata.category(ch)[0] in "PMC" or unicodedata.name(ch, "").startswith(_SPELLED)
