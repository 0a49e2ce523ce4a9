"""Loads how one language writes dates and numbers from `locale_forms.txt` beside this file, which
`python -m tests.locale_forms` makes from Unicode's CLDR.

One line of the file is kept; the whole table would take a megabyte of the daemon's memory.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from edge.core.words.wearer_forms import ENGLISH, LocaleForms

TABLE: Final = Path(__file__).with_name("locale_forms.txt")
_FROM_ENVIRONMENT: Final = ("LC_ALL", "LC_TIME", "LANG")


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


def named_by(environment: Mapping[str, str]) -> str:
    """Return the language of this machine as `de-AT`; "" if it names none (C, POSIX)."""
    named = next((environment[key] for key in _FROM_ENVIRONMENT if environment.get(key)), "")
    name = named.partition(".")[0].partition("@")[0].replace("_", "-")
    return "" if name in {"C", "POSIX"} else name


def forms(configured: str, environment: Mapping[str, str]) -> LocaleForms:
    """Return the forms of the configured language, else the machine's, else English ones with the
    day before the month and 24 hours.
    """
    name = configured or named_by(environment)
    return (load(name) if name else None) or ENGLISH


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
