"""Promises about text in every script."""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "I13-scripts": Promise(
        "What the glasses' own font cannot write is drawn: shaped, and in the order in which it is "
        "read.",
        "issue 13, Every script is readable",
    ),
    "I13-mixed-page": Promise(
        "Only the rows that need it are drawn; glasses that take no pictures beside text get a "
        "page with such a row as one picture, and all other pages as text.",
        "issue 13, Every script is readable",
    ),
    "I13-lost-named": Promise(
        "A delivery with characters that cannot be read is acknowledged at most, and names them.",
        "issue 13, Every script is readable",
    ),
    "I13-question-drawn": Promise(
        "Lines of a question that the glasses cannot write are drawn whole, from left to right, "
        "with each value in its own direction; such a question is asked on a page of ours.",
        "issue 13, Consent in plain words",
    ),
    "I13-drawn-returns": Promise(
        "A page of drawn text comes back after a restart of the daemon.",
        "issue 13, Every script is readable",
    ),
    "I13-worker-ends": Promise(
        "The child that draws text ends after a minute without work, and is replaced once if it "
        "dies.",
        "issue 13, Every script is readable",
    ),
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
    "I13-second-renderer": Promise(
        "Of the words of 102 sentences in 32 groups of languages, 95 of 100 have the shape that "
        "Pango gives them: nine tenths of the lit pixels are the same.",
        "issue 13, Shows 2",
    ),
}

DECLINED: Final[dict[str, str]] = {}
