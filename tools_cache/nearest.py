"""The known word nearest to one that is unknown, for errors that ask "did you mean …?"."""

from collections.abc import Iterable
from typing import Final

LONGEST: Final = 200
"""Characters of the unknown word that are compared: it comes from outside."""
MOST: Final = 2000
"""Maximum number of known words compared; a registry has up to 1,000 tools."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that was probably meant, or "". `add` is near `notes:add`."""
    import difflib  # noqa: PLC0415 - 7 ms, only for a word that is wrong

    words = [*known][:MOST]
    found = difflib.get_close_matches(word[:LONGEST], words, n=1) or [
        name for name in words if word and name.endswith(f":{word}")
    ]
    return found[0] if found else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return "did you mean notes:add?" for the nearest known word; "" if none is similar."""
    near = nearest(word, known)
    return f"did you mean {near}?" if near else ""
