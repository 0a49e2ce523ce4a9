"""Promises about the daemon's state on a disk that is full, read-only or damaged."""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "I16-answered-first": Promise(
        "A local tool that only reads, whose caller waits on a connection, is answered before it "
        "is on disk; a repetition is known at once, and a kill leaves it there as a whole or not.",
        "issue 16, Build",
    ),
    "I16-together": Promise(
        "A call is accepted with its message to the cloud, and answered with the result for the "
        "cloud and what it answers, in one transaction each: no kill falls between.",
        "issue 16, Build",
    ),
    "I11-damage-once": Promise(
        "After damage nothing that may have been done is done again: it ends as INTERRUPTED.",
        "issue 11, The store 10",
    ),
    "I11-damage-said": Promise(
        "A damaged, missing, empty or replaced database is an alarm that says what was lost.",
        "issue 11, The store 10",
    ),
    "I11-damage-saved": Promise(
        "What can be read of a damaged database is saved: a damaged page costs its own rows only.",
        "issue 11, The store 10",
    ),
    "I11-disk-alarm": Promise(
        "A full or read-only disk is an alarm of `status` with what "
        "to do, until it takes writes again.",
        "issue 11, The store 11",
    ),
    "I11-disk-code": Promise(
        "A call that cannot be stored fails with STORAGE_UNAVAILABLE, "
        "which says that and when to try again.",
        "issue 11, The store 11",
    ),
    "I11-disk-directory": Promise(
        "A directory in the database's place is named as that, "
        "and the daemon is not started again and again.",
        "issue 11, The store 11",
    ),
    "I11-edge-id": Promise(
        "A damaged or missing `edge_id` never becomes a new name in "
        "silence; the old one is restored where it is known.",
        "issue 11, The store 12",
    ),
}
DECLINED: Final[dict[str, str]] = {}
