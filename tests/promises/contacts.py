"""Promises about the user's contacts."""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "S4-38": Promise(
        "Contacts are added, found, listed, changed and removed; of several that are added at "
        "once, one that is wrong does not stop the others.",
        "seed S4-38",
    ),
    "S4-39": Promise("No two contacts have one name, whatever its capitals.", "seed S4-39"),
    "S4-40": Promise(
        "A contact is found by its id, else its name, else the beginning, else a part of it.",
        "seed S4-40",
    ),
    "S4-41": Promise(
        "Of several contacts that match ten are named, and the id is required.", "seed S4-41"
    ),
    "S4-42": Promise(
        "A contact is removed after a yes to its whole name or id; a part of it is refused.",
        "seed S4-42",
    ),
    "I15-contacts-private": Promise(
        "Contacts are encrypted on disk, and no other user sees them.", "issue 15"
    ),
}

DECLINED: Final[dict[str, str]] = {}
