"""Which characters a font of the glasses can write, and what stands for those that it cannot."""

import unicodedata
from collections.abc import Callable
from typing import Final, NamedTuple

HasGlyph = Callable[[str], bool]
_STAND_INS: Final = ("□", "?")
_FOLDED: Final = {
    **dict(zip("‘’“”–—−•·×", "''\"\"---**x", strict=True)),
    "…": "...",
    "→": "->",
    "←": "<-",
    "℃": "°C",
    "℉": "°F",
}
_DROPPED: Final = frozenset({"Cc", "Cf", "Cs"})
_RIGHT_TO_LEFT: Final = frozenset({"R", "AL", "AN"})
_MARKS: Final = frozenset("\u200f\u061c")
"""Invisible marks of direction: without a letter they turn nothing."""
_FSI, _PDI = "\u2068", "\u2069"
ISOLATES: Final = dict.fromkeys(map(ord, _FSI + _PDI))
"""What `isolate` adds (UAX 9), for `str.translate` where a text is not drawn by its directions."""
_NAMED: Final = 8
"""Lost characters that a remark names; of more it says the number."""


class Cleaned(NamedTuple):
    """A drawable text. `replaced`: characters that something similar stands for; `lost`: those that
    a box stands for.
    """

    text: str
    replaced: int = 0
    lost: tuple[str, ...] = ()


def clean(text: str, has_glyph: HasGlyph = lambda _: True) -> Cleaned:
    """Make a text drawable. Control characters are removed; a missing glyph is replaced by a plain
    relative, else by a box.
    """
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    changed = {ch: plain for ch in set(text) if (plain := _plain(ch, has_glyph)) != ch}
    if not changed:
        return Cleaned(text)
    lost, similar = set(), set()
    for ch in [ch for ch, plain in changed.items() if plain is None]:
        if (relative := _relative(ch, has_glyph)) is None:
            lost.add(ch)
            relative = next((c for c in _STAND_INS if has_glyph(c)), "?")
        else:
            similar.add(ch)
        changed[ch] = relative
    replaced = sum(map(text.count, similar))
    return Cleaned(
        "".join(changed.get(ch, ch) or "" for ch in text),
        replaced,
        tuple(ch for ch in text if ch in lost),
    )


def _plain(ch: str, has_glyph: HasGlyph) -> str | None:
    """Return how a font writes a character, "" for one that is not seen; None if it cannot."""
    if ch == "\n":
        return ch
    if ch.isspace():
        return " "
    if unicodedata.category(ch) in _DROPPED or "\ufe00" <= ch <= "\ufe0f":
        return ""
    return ch if has_glyph(ch) else None


def _relative(ch: str, has_glyph: HasGlyph) -> str | None:
    """Return something similar that the font has; None if there is nothing."""
    base = "".join(c for c in unicodedata.normalize("NFKD", ch) if not unicodedata.combining(c))
    for candidate in (_FOLDED.get(ch, ""), base):
        if candidate.strip() and all(map(has_glyph, candidate)):
            return candidate
    # without its base letter a mark cannot be seen; a box per accent would read as noise
    return "" if unicodedata.combining(ch) else None


def needs_drawing(text: str, has_glyph: HasGlyph, *, exact: bool = False) -> bool:
    """Return whether a font cannot write a text: it lacks a glyph, or the text runs from right to
    left. `exact`: something similar, such as "..." for an ellipsis, does not do.
    """
    if text.isascii():
        return False
    return any(
        _plain(ch, has_glyph) is None and (exact or ch not in _FOLDED)
        for ch in set(unicodedata.normalize("NFC", text))
    ) or is_right_to_left(text)


def is_right_to_left(text: str) -> bool:
    """Return whether any of it runs from right to left."""
    return any(unicodedata.bidirectional(ch) in _RIGHT_TO_LEFT for ch in set(text) - _MARKS)


def isolate(text: str) -> str:
    """Return a text that, where it runs from right to left, neither moves nor is moved by what is
    beside it on its line.
    """
    return f"{_FSI}{text}{_PDI}" if is_right_to_left(text) else text


def name_lost(lost: tuple[str, ...]) -> str:
    """Return a remark that names characters which are not readable; "" if there are none."""
    if not lost:
        return ""
    named = " ".join(ch if ch.isprintable() else f"U+{ord(ch[0]):04X}" for ch in lost[:_NAMED])
    more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
    return f"not readable on this lens: {named}{more}"
