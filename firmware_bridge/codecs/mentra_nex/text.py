"""Text for a Mentra Display: rows become one text; characters that it lacks, a near one."""

import unicodedata
from collections.abc import Callable, Iterable
from typing import Final

from firmware_bridge.errors import CommandRefused
from firmware_bridge.messages import TextLine

_KNOWN: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,!?;:-[](){}'\"+=/\n"
)
"""The characters that the newest application lets through; it removes all others (N)."""
_NEAR: Final = {
    **dict.fromkeys("‐‑‒–—―−·•→_~|", "-"),
    **dict.fromkeys("‘’‚`´", "'"),
    **dict.fromkeys("“”„«»", '"'),
    **dict.fromkeys("\u00a0\u2009\u202f\u2007", " "),
    "…": "...",
    "ß": "ss",
    "&": "+",
    "×": "x",
    "°": " deg",
    "%": " pct",
    "<": "(",
    ">": ")",
}


def plain(text: str) -> str:
    """Return a text in the characters that these glasses have. Raises `CommandRefused`: what they
    leave out would be missing without a word.
    """
    out = "".join(_NEAR.get(ch, ch) for ch in text)
    bare = "".join(ch for ch in unicodedata.normalize("NFKD", out) if not unicodedata.combining(ch))
    lacking = sorted(set(bare) - _KNOWN)
    if lacking:
        shown = " ".join(lacking[:10])
        raise CommandRefused("unsupported", f"these glasses have no characters for {shown}")
    return bare


def lay_out(lines: Iterable[TextLine], width: Callable[[str], float]) -> str:
    """Return rows as one text; columns become spaces."""
    rows: dict[int, str] = {}
    for line in sorted(lines, key=lambda line: (line.row, line.x)):
        before = rows.get(line.row, "")
        gap = round((line.x - width(before)) / width(" "))
        rows[line.row] = before + " " * max(gap, 1 if before else 0) + plain(line.text)
    return "\n".join(rows.get(row, "") for row in range(max(rows, default=-1) + 1))
