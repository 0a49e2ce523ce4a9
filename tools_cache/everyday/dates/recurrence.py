"""Rules of RFC 5545 (section 3.3.10) for things that happen again, on the wearer's clock."""

import re
from datetime import datetime, timedelta
from typing import Final

from tools_cache.errors import ErrorCode, ToolFailure

MAX_RULE: Final = 200
MAX_COUNT: Final = 1000
_HORIZON: Final = timedelta(days=3660)
"""A rule is looked into no further than ten years: one that never comes true would take seconds."""
_FORMS: Final = {
    "FREQ": r"DAILY|WEEKLY|MONTHLY|YEARLY",
    "INTERVAL": r"[1-9]\d{0,2}",
    "COUNT": r"[1-9]\d{0,3}",
    "UNTIL": r"\d{8}(T\d{6}Z?)?",
    "BYDAY": r"([+-]?[1-5])?(MO|TU|WE|TH|FR|SA|SU)(,([+-]?[1-5])?(MO|TU|WE|TH|FR|SA|SU)){0,6}",
    "BYMONTHDAY": r"-?([1-9]|[12]\d|3[01])(,-?([1-9]|[12]\d|3[01])){0,30}",
    "BYMONTH": r"([1-9]|1[0-2])(,([1-9]|1[0-2])){0,11}",
    "BYSETPOS": r"-?[1-5]",
    "WKST": r"MO|TU|WE|TH|FR|SA|SU",
}
_DAYS: Final = dict(
    zip("MO TU WE TH FR SA SU".split(), "Mon Tue Wed Thu Fri Sat Sun".split(), strict=True)
)


def check(rule: str, start: datetime) -> tuple[str, datetime]:
    """Return a rule in its plain form, and its first moment at or after `start`. `COUNT` becomes
    `UNTIL`, so that each moment may be the start of what is left. Raises `ToolFailure`.
    """
    text = rule.strip().upper().removeprefix("RRULE:")
    parts = [part.partition("=")[::2] for part in text.split(";")]
    named = dict(parts)
    wrong = next((key for key, value in parts if not _fits(key, value)), None)
    if len(rule) > MAX_RULE or wrong is not None:
        raise _bad(rule, f"{(wrong or 'it')[:20]} is not understood")
    if len(named) < len(parts):
        raise _bad(rule, "it says a part twice")
    if "FREQ" not in named:
        raise _bad(rule, "it has no FREQ")
    if named["FREQ"] in ("DAILY", "WEEKLY") and {"BYMONTHDAY", "BYSETPOS"} & named.keys():
        raise _bad(rule, "days of a month need FREQ=MONTHLY or YEARLY")
    if {"COUNT", "UNTIL"} <= named.keys():
        raise _bad(rule, "it has both COUNT and UNTIL")
    if until := named.get("UNTIL", "").removesuffix("Z"):
        named["UNTIL"] = until if "T" in until else f"{until}T235959"
    count = int(named.pop("COUNT", "0"))
    if count:
        named["UNTIL"] = _last(_text(named), start, min(count, MAX_COUNT))
    plain = _text(named)
    first = next_after(plain, start, start - timedelta(seconds=1))
    if first is None:
        raise _bad(rule, "it never comes true within ten years")
    return plain, first


def next_after(rule: str, start: datetime, after: datetime) -> datetime | None:
    """Return the first moment of a checked rule that is later than `after`; None if there is none.
    All moments are on the wearer's clock, without a zone.
    """
    from dateutil.rrule import rrulestr  # noqa: PLC0415 - most daemons repeat nothing

    named = dict(part.partition("=")[::2] for part in rule.split(";"))
    end = f"{max(start, after) + _HORIZON:%Y%m%dT%H%M%S}"
    named["UNTIL"] = min(named.get("UNTIL", end), end)
    found: datetime | None = rrulestr(_text(named), dtstart=start).after(after)
    return found


def describe(rule: str) -> str:
    """Return a rule in words, as the lens shows it: "every Mon and Wed"."""
    named = dict(part.partition("=")[::2] for part in rule.split(";"))
    every, unit = int(named.get("INTERVAL", "1")), _UNITS[named["FREQ"]]
    if named["FREQ"] == "WEEKLY" and every == 1 and "BYDAY" in named:
        days = [_DAYS[day[-2:]] for day in named["BYDAY"].split(",")]
        if days == list(_DAYS.values())[:5]:
            return "every workday"
        return "every " + " and ".join(filter(None, (", ".join(days[:-1]), days[-1])))
    return f"every {unit}" if every == 1 else f"every {every} {unit}s"


_UNITS: Final = {"DAILY": "day", "WEEKLY": "week", "MONTHLY": "month", "YEARLY": "year"}


def _fits(key: str, value: str) -> bool:
    return key in _FORMS and re.fullmatch(_FORMS[key], value) is not None


def _text(named: dict[str, str]) -> str:
    return ";".join(f"{key}={value}" for key, value in named.items() if value)


def _last(rule: str, start: datetime, count: int) -> str:
    """Return the moment of the last of `count` repeats, as UNTIL writes it."""
    moment, after = start, start - timedelta(seconds=1)
    for _ in range(count):
        following = next_after(rule, start, after)
        if following is None:
            break
        moment = after = following
    return moment.strftime("%Y%m%dT%H%M%S")


def _bad(rule: str, why: str) -> ToolFailure:
    return ToolFailure.of(
        ErrorCode.INVALID_ARGUMENTS,
        f"Invalid parameters: /repeat {rule[:80]!r}: {why}",
        suggestion="Give a rule of RFC 5545, such as FREQ=WEEKLY;BYDAY=MO,WE",
    )
