"""Promises about reminders."""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "S4-30": Promise("Reminders are one table with 11 columns and 4 indexes.", "seed features"),
    "S4-31": Promise(
        "A reminder is added, listed, completed, updated and removed, without a network.",
        "seed features",
    ),
    "S4-32": Promise(
        "Reminders are listed by today, tomorrow, upcoming, past, overdue, all, a date or a range "
        "of dates.",
        "seed features",
    ),
    "S4-33": Promise(
        "The moment of a reminder is ISO 8601 or words in English or German; what is not wholly "
        "understood is no moment, and a time that the clock skips or repeats has one.",
        "seed features",
    ),
    "S4-34": Promise(
        "The moment of a reminder is stored in UTC: another time zone does not move it.",
        "seed features",
    ),
    "S4-35": Promise(
        "A reminder names a contact by part of its name; several that match are reported.",
        "seed features",
    ),
    "S4-36": Promise(
        "A reminder of category internal is never shown to the wearer.", "seed features"
    ),
    "S4-37": Promise("Whether a reminder is done and when are set together.", "seed features"),
}

DECLINED: Final[dict[str, str]] = {}
