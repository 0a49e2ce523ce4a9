"""Right-to-left letters beside other text: shown where the order on the lens can have one reading
only.

The display orders such a line by Unicode's rules (UAX 9), which may draw two different texts alike:
`a א 5` and `a 5 א`. So each value is isolated, each word with a digit in it too, and a text that
begins right to left and has other letters is marked. What may still be drawn alike is escaped.
"""

import unicodedata
from typing import Final

LTR, RTL, END = "\u2066", "\u2067", "\u2069"
ISOLATES: Final = dict.fromkeys(map(ord, (LTR, RTL, END)))
"""For `str.translate`, where a text is not drawn by its directions."""
MARK: Final = "(right to left) "
"""Before a text with letters of both directions that is read from the right."""
_LETTERS: Final = frozenset({"R", "AL"})
_DIGITS: Final = frozenset({"EN", "AN"})


def is_right_to_left(ch: str) -> bool:
    return unicodedata.bidirectional(ch) in {"R", "AL", "AN"}


def has_one_reading(text: str) -> bool:
    """Return whether `isolated` text is drawn like no other text: no two right-to-left scripts
    together, and no word in which digits stand beside letters of both directions, or beside
    right-to-left letters and a sign such as %.
    """
    letters = _kinds(text) & _LETTERS
    if not letters:
        return not any(map(is_right_to_left, text))
    return len(letters) == 1 and all(map(_is_clear, text.split(" ")))


def isolated(text: str) -> str:
    """Return a text that stands in a left-to-right line and neither moves nor is moved by what is
    beside it; one without right-to-left letters as it is.
    """
    kinds = [kind for ch in text if (kind := unicodedata.bidirectional(ch)) in {"L", *_LETTERS}]
    if _LETTERS.isdisjoint(kinds):
        return text
    words = " ".join(_word(word) for word in text.split(" "))
    if kinds[0] == "L":
        return LTR + words + END
    return (MARK if "L" in kinds else "") + RTL + words + END


def _word(word: str) -> str:
    kinds = _kinds(word)
    if _DIGITS.isdisjoint(kinds):
        return word
    return (LTR if _LETTERS.isdisjoint(kinds) else RTL) + word + END


def _is_clear(word: str) -> bool:
    kinds = _kinds(word)
    return (
        _DIGITS.isdisjoint(kinds)
        or _LETTERS.isdisjoint(kinds)
        or ("L" not in kinds and "ET" not in kinds)
    )


def _kinds(text: str) -> set[str]:
    return set(map(unicodedata.bidirectional, text))
