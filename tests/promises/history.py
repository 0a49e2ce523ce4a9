"""Promises about the history."""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "I15-history-off": Promise(
        "The history is off at first; a daemon without it loads nothing of it and makes no file.",
        "issue 15",
    ),
    "I15-history-encrypted": Promise(
        "No text of the history and no word of it can be read in any of its files.", "issue 15"
    ),
    "I15-history-forgotten": Promise(
        "What is forgotten is deleted from the files before the answer, after a yes.", "issue 15"
    ),
    "I15-calls-forgotten": Promise(
        "Forgetting also empties matching finished calls on disk; none is done again for it.",
        "issue 15",
    ),
    "I15-history-bounded": Promise(
        "Entries go after their days, the oldest of too many first; the file is bounded.",
        "issue 15",
    ),
    "I15-history-recorded": Promise(
        "Answers are recorded, not arguments; words only where switched on, private ones never.",
        "issue 15",
    ),
    "I15-history-search": Promise(
        "The history is searched by words, days of the wearer and names, newest first.",
        "issue 15",
    ),
}

DECLINED: Final[dict[str, str]] = {}
