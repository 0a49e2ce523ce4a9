"""Promises about text in every script."""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "I13-readable": Promise(
        "A text that the lens cannot draw is spelled in Latin letters, spoken or dropped, never "
        "shown as boxes; of a question not one character is lost.",
        "issue 13, Every script is readable",
    ),
    "I13-own-glyphs": Promise(
        "Characters that the glasses draw themselves, by the facts of their family, are measured "
        "with the family's widths and go to them as text.",
        "issue 13, Every script is readable",
    ),
}

DECLINED: Final[dict[str, str]] = {}
