"""Loads how one language writes dates and numbers from `locale_forms.txt` beside this file, which
`python -m tests.locale_forms` makes from Unicode's CLDR.

One line of the file is kept; the whole table would take a megabyte of the daemon's memory.
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from edge.core.words.wearer_forms import ENGLISH, LocaleForms, WearerForms

TABLE: Final = Path(__file__).with_name("locale_forms.txt")
_FROM_ENVIRONMENT: Final = ("LC_ALL", "LC_TIME", "LANG")
_REGIONS: Final = {"UK": "GB"}
"""What people write for a region, and its code."""


def load(name: str) -> LocaleForms | None:
    """Return the forms of `de-AT`: those of the region, else those of the language; None if it is
    not in the table.
    """
    found: LocaleForms | None = None
    language = name.partition("-")[0]
    with TABLE.open(encoding="utf-8") as lines:
        for line in lines:
            key, _, written = line.partition("\t")
            if key == name:
                return _forms(written)
            if key == language:
                found = _forms(written)
    return found


def languages() -> list[str]:
    """Return the codes of all languages of the table, without their regions."""
    with TABLE.open(encoding="utf-8") as lines:
        return sorted({line.partition("\t")[0].partition("-")[0] for line in lines})


def normal(name: str) -> str:
    """Return `de-AT` for `de_at.UTF-8`; "" for C and POSIX, which name no language."""
    language, _, region = name.partition(".")[0].partition("@")[0].replace("_", "-").partition("-")
    if language.upper() in {"C", "POSIX"}:
        return ""
    region = _REGIONS.get(region.upper(), region.upper())
    return "-".join(filter(None, (language.lower(), region)))


def named_by(environment: Mapping[str, str]) -> str:
    """Return the language of this machine as `de-AT`; "" if it names none (C, POSIX)."""
    return normal(next((environment[key] for key in _FROM_ENVIRONMENT if environment.get(key)), ""))


def forms(configured: str, environment: Mapping[str, str]) -> LocaleForms:
    """Return the forms of the configured language, else the machine's, else English ones with the
    day before the month and 24 hours.
    """
    name = configured or named_by(environment)
    return (load(name) if name else None) or ENGLISH


def wearer_forms(locale: str, timezone: str, environment: Mapping[str, str]) -> WearerForms:
    """Return how the wearer reads dates and numbers; what is not configured is the machine's."""
    zone = None
    if timezone:
        from zoneinfo import ZoneInfo  # noqa: PLC0415 - most machines stand where their wearer is

        zone = ZoneInfo(timezone)
    return WearerForms(forms(locale, environment), zone)


def describe(locale: str, timezone: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the language and the time zone in use, for the status."""
    named = named_by(environment)
    return {
        "locale": locale or (named if named and load(named) else "en"),
        "timezone": timezone or time.strftime("%Z"),
    }


def _forms(written: str) -> LocaleForms:
    weekdays, months, day, day_of_year, clock, joined, halves, decimal, group, groups = json.loads(
        written
    )
    return LocaleForms(
        tuple(weekdays),
        tuple(months),
        day,
        day_of_year,
        clock,
        joined,
        (halves[0], halves[1]),
        decimal,
        group,
        (groups[0], groups[1]),
    )
