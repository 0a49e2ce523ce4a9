"""Reads when something should happen from words: "tomorrow at nine", "jeden Montag um halb zehn".

A phrase is understood whole or not at all: a reminder at a wrong time is worse than a question. The
words of each language are one table of patterns; each pattern is one part of a phrase (a day, a
time, a span, a repeat), and parts may stand in any order.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime, time, timedelta
from functools import cache
from typing import Final

from tools_cache.everyday.dates.spoken_date_words import ENGLISH, GERMAN, DateWords

MAX_WORDS: Final = 12
"""Words at either end of a text that are looked at for a date."""
MAX_TEXT: Final = 500
YEARS: Final = range(2026, 2100)
MORNING: Final = 9
"""The hour of a day that was named without a time."""
NEXT_WEEK: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class When:
    """A moment read from words: `local` is on the wearer's clock, `after` is from now on; one of
    both. `repeat`: a rule of RFC 5545, or "".
    """

    local: datetime | None = None
    after: timedelta | None = None
    repeat: str = ""


@dataclass(frozen=True, slots=True)
class _Part:
    """What some words say. `bare`: the hour may be one of the afternoon; `pm`: part of the day."""

    day: date | None = None
    at: time | None = None
    bare: bool = False
    part_of_day: str = ""
    span: timedelta | None = None
    months: int = 0
    rule: str = ""
    weekday: int | None = None

    def kinds(self) -> set[str]:
        """Return what it says; no two parts of a phrase may say the same."""
        return {
            name
            for name, said in (
                ("day", self.day is not None or self.weekday is not None or self.months > 0),
                ("span", self.span is not None),
                ("time", self.at is not None),
                ("part of day", bool(self.part_of_day)),
                ("rule", bool(self.rule)),
            )
            if said
        }


def read(words: str, now: datetime) -> When | None:
    """Return the moment that `words` name, None if they are not wholly understood. `now`: the
    wearer's clock, without a zone.
    """
    parts = _parts(_plain(words), now)
    return _when(parts, now) if parts else None


def split(text: str, now: datetime) -> tuple[str, When | None]:
    """Return what is left of `text` without the moment that it begins or ends with, and that
    moment: "tomorrow at nine to call Anna" is ("call Anna", tomorrow at nine).
    """
    words = text[:MAX_TEXT].split()
    if len(words) <= 2 * MAX_WORDS and (moment := read(text, now)):
        return "", moment
    for size in range(min(len(words), 2 * MAX_WORDS), 0, -1):
        for head in range(min(size, MAX_WORDS), -1, -1):
            tail = size - head
            if tail > MAX_WORDS:
                continue
            rest = words[head : len(words) - tail]
            named = [*words[:head], *words[len(words) - tail :]]
            if rest and (head == 0 or tail == 0 or _stands_alone(words[:head], now)):
                moment = read(" ".join(named), now)
                if moment is not None:
                    return _without_connector(rest), moment
    return _without_connector(words), None


def _stands_alone(head: Sequence[str], now: datetime) -> bool:
    return _parts(_plain(" ".join(head)), now) is not None


def _without_connector(words: Sequence[str]) -> str:
    """Return a text without the words that connect it with "remind me"."""
    text = " ".join(words).strip(" ,.;:!?")
    said = _CONNECTOR.match(text)
    return (text[said.end() :] if said else text).strip(" ,") or text


_CONNECTOR: Final = re.compile(
    r"(?:to|that|about|of|daran,? dass|daran,?|an|dass)\s+", re.IGNORECASE
)


# ------------------------------------------------------------------ from words to parts


def _plain(words: str) -> str:
    """Return lower-case words, single spaces, without commas and a final stop."""
    text = " ".join(words.lower().replace(",", " ").split()).strip(" !?")
    return text.removesuffix(".") if not re.search(r"\d\.\d{1,2}\.$", text) else text


def _parts(text: str, now: datetime) -> list[_Part] | None:
    """Return the parts of the first language that understands all of the text."""
    for patterns in _languages():
        if found := _consume(text, now, patterns):
            return found
    return None


def _consume(text: str, now: datetime, patterns: Sequence["_Pattern"]) -> list[_Part] | None:
    found: list[_Part] = []
    while text:
        matches = [(match, pattern) for pattern in patterns if (match := pattern.regex.match(text))]
        best = max(matches, key=lambda pair: pair[0].end(), default=None)
        if best is None:
            return None
        part = best[1].meaning(best[0], now)
        if part is None or any(part.kinds() & other.kinds() for other in found):
            return None
        found.append(part)
        text = text[best[0].end() :].lstrip()
    return found


def _when(parts: Sequence[_Part], now: datetime) -> When | None:
    """Return the moment that parts name together; None where they do not fit, or it is over."""
    whole = _merged(parts)
    if whole.span is not None:
        return _after(whole, now)
    if whole.rule:
        return _repeating(whole, now)
    return _once(whole, now)


def _merged(parts: Sequence[_Part]) -> _Part:
    """Return the parts as one; no two of them say the same."""
    told = {
        field.name: value
        for part in parts
        for field in fields(part)
        if (value := getattr(part, field.name)) != field.default
    }
    return _Part(**told)


def _after(whole: _Part, now: datetime) -> When | None:
    assert whole.span is not None
    if whole.day or whole.weekday is not None or whole.rule:
        return None
    if whole.span % timedelta(days=1):
        return When(after=whole.span) if whole.at is None and not whole.part_of_day else None
    day = now + whole.span
    at = _time(whole) if whole.at or whole.part_of_day else now.time().replace(second=0)
    return When(local=datetime.combine(day.date(), at.replace(microsecond=0)))


def _once(whole: _Part, now: datetime) -> When | None:
    day = whole.day
    if whole.weekday is not None:
        day = now.date() + timedelta(days=(whole.weekday - now.weekday()) % 7)
    if whole.months:
        day = _months_on(now.date(), whole.months)
    if day is None:
        return _next_time(whole, now)
    if whole.at is None and not whole.part_of_day and day == now.date():
        if whole.weekday is not None:
            return When(local=datetime.combine(day + NEXT_WEEK, time(MORNING)))
        evening = datetime.combine(day, time(18))
        return When(local=evening) if evening > now else When(after=timedelta(hours=1))
    moment = datetime.combine(day, _time(whole))
    if day == now.date() and whole.bare and moment <= now and moment.hour < 12:
        moment += timedelta(hours=12)
    if moment <= now and whole.weekday is not None:
        moment += NEXT_WEEK
    return When(local=moment) if moment > now and moment.year in YEARS else None


def _next_time(whole: _Part, now: datetime) -> When | None:
    """Return the next moment with this time of day: for "at seven" the nearer of 7:00 and 19:00."""
    at = _time(whole, next_to_come=True)
    steps = (0, 12, 24, 36) if whole.bare and not whole.part_of_day and at.hour <= 12 else (0, 24)
    start = datetime.combine(now.date(), at)
    if at.hour == 12 and len(steps) == 4:
        steps = (0, 24)
    return When(local=next(m for h in steps if (m := start + timedelta(hours=h)) > now))


def _repeating(whole: _Part, now: datetime) -> When | None:
    if whole.day or whole.weekday is not None or whole.months:
        return None
    return When(local=datetime.combine(now.date(), _time(whole)), repeat=whole.rule)


def _time(whole: _Part, *, next_to_come: bool = False) -> time:
    """Return the time of day. Between one and six, "at five" on another day is in the afternoon,
    unless a part of the day says otherwise.
    """
    if whole.at is None:
        return time(_HOURS.get(whole.part_of_day, MORNING))
    hour = whole.at.hour
    if whole.bare and hour <= 12:
        if whole.part_of_day in ("afternoon", "evening") or (
            whole.part_of_day == "night" and 6 <= hour < 12
        ):
            hour = hour % 12 + 12
        elif whole.part_of_day in ("morning", "night"):
            hour %= 12
        elif not next_to_come and 1 <= hour <= 6:
            hour += 12
    return whole.at.replace(hour=hour)


_HOURS: Final = {"morning": 9, "noon": 12, "afternoon": 15, "evening": 18, "night": 22}


def _months_on(day: date, months: int) -> date:
    """Return the day months later; the last of the month where it is shorter."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    last = (date(year + (month == 11), (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
    return date(year, month + 1, min(day.day, last))


# ------------------------------------------------------------------ the words

Meaning = Callable[[re.Match[str], datetime], _Part | None]


@dataclass(frozen=True, slots=True)
class _Pattern:
    regex: re.Pattern[str]
    meaning: Meaning


@cache
def _languages() -> tuple[tuple[_Pattern, ...], ...]:
    return tuple(tuple(_compiled(words)) for words in (ENGLISH, GERMAN))


def _compiled(words: DateWords) -> Iterator[_Pattern]:
    """Yield the patterns of a language, with `{num}` and the like replaced by its words."""
    lists = {
        "num": (r"\d{1,4}", *words.numbers),
        "ord": (*words.ordinals, r"\d{1,2}(?:st|nd|rd|th|\.)?"),
        "unit": words.units,
        "weekday": words.weekdays,
        "month": words.months,
        "part": words.parts_of_day,
    }
    named = {
        key: "(?:" + "|".join(sorted(found, key=len, reverse=True)) + ")"
        for key, found in lists.items()
    }
    clock = rf"(?P<hour>\d{{1,2}}|{named['num']})(?:[:.](?P<min>\d\d)| (?P<min2>{named['num']}))?"
    for name, pattern in words.patterns:
        text = pattern.replace("{clock}", clock)
        for key, alternatives in named.items():
            text = text.replace("{" + key + "}", alternatives)
        yield _Pattern(re.compile(text + r"(?![\w:])"), _meaning(name, words))


def _meaning(name: str, words: DateWords) -> Meaning:
    def mean(match: re.Match[str], now: datetime) -> _Part | None:
        try:
            return _MEANINGS[name](match, now, words)
        except (ValueError, KeyError, OverflowError):
            return None

    return mean


def _number(text: str | None, words: DateWords) -> int:
    if text is None:
        return 0
    return int(text) if text.isdigit() else words.numbers[text]


def _span(match: re.Match[str], _now: datetime, words: DateWords) -> _Part | None:
    said = {"n2": None, "u2": None, "half": None, **match.groupdict()}
    span, months = timedelta(), 0
    for amount, unit in ((said["n"], said["u"]), (said["n2"], said["u2"])):
        if unit is None:
            continue
        length, count = words.units[unit], _number(amount, words)
        if isinstance(length, int):
            months += length * count
        else:
            span += length * count
    if said["half"]:
        length = words.units[str(said["u"])]
        if isinstance(length, int):
            return None
        span += length / 2
    if months:
        return None if span else _Part(months=months)
    return _Part(span=span) if timedelta() < span <= timedelta(days=3650) else None


def _fixed_span(minutes: int) -> Callable[..., _Part]:
    return lambda _match, _now, _words: _Part(span=timedelta(minutes=minutes))


def _days_on(days: int) -> Callable[..., _Part]:
    return lambda _match, now, _words: _Part(day=now.date() + timedelta(days=days))


def _weekday(match: re.Match[str], now: datetime, words: DateWords) -> _Part:
    day = words.weekdays[match["d"]]
    if match["next"]:
        days = (day - now.weekday() - 1) % 7 + 1
        return _Part(day=now.date() + timedelta(days=days))
    return _Part(weekday=day)


def _month_day(match: re.Match[str], now: datetime, words: DateWords) -> _Part:
    said = match["o"]
    day = words.ordinals.get(said) or int(re.sub(r"\D", "", said))
    return _Part(day=_coming(day, words.months[match["m"]], match["y"], now))


def _numeric_day(match: re.Match[str], now: datetime, _words: DateWords) -> _Part:
    return _Part(day=_coming(int(match["o"]), int(match["m"]), match["y"], now))


def _iso_day(match: re.Match[str], _now: datetime, _words: DateWords) -> _Part:
    return _Part(day=date.fromisoformat(match["iso"]))


def _coming(day: int, month: int, year: str | None, now: datetime) -> date:
    """Return a day of a month: without a year, the next to come."""
    if year:
        return date(int(year) + (2000 if len(year) == 2 else 0), month, day)
    for candidate in range(now.year, now.year + 9):
        try:
            found = date(candidate, month, day)
        except ValueError:  # the 29th of February comes in a later year
            continue
        if found >= now.date():
            return found
    raise ValueError("no such day")


def _months_ahead(months: int) -> Callable[..., _Part]:
    return lambda _match, _now, _words: _Part(months=months)


def _clock(match: re.Match[str], _now: datetime, words: DateWords) -> _Part:
    groups = match.groupdict()
    said = match["hour"]
    hour = _number(said, words)
    minute = _number(groups.get("min") or groups.get("min2"), words)
    half = groups.get("half") or ""
    if half == "am":
        hour = hour % 12 if 1 <= hour <= 12 else 99
    elif half == "pm":
        hour = hour % 12 + 12 if 1 <= hour <= 12 else 99
    certain = half or groups.get("whole") or said.startswith("0") or hour > 12 or hour == 0
    return _Part(at=time(hour % 24 if hour == 24 else hour, minute), bare=not certain)


def _around(match: re.Match[str], _now: datetime, words: DateWords) -> _Part:
    """Read "quarter past nine", "ten to nine": minutes after or before an hour."""
    hour, said = _number(match["hour"], words), match["n"]
    minutes = _MINUTES[said] if said in _MINUTES else _number(said, words)
    return _near(hour, -minutes if match["dir"] in ("to", "before", "vor") else minutes)


def _before(minutes: int) -> Callable[..., _Part]:
    """Read "halb zehn" and "dreiviertel zehn": so many minutes before the hour."""
    return lambda match, _now, words: _near(_number(match["hour"], words), -minutes)


def _near(hour: int, minutes: int) -> _Part:
    whole = (hour * 60 + minutes) % (24 * 60)
    return _Part(at=time(whole // 60, whole % 60), bare=hour <= 12)


_MINUTES: Final = {"quarter": 15, "viertel": 15, "half": 30}


def _fixed_time(hour: int, *, days: int = 0) -> Callable[..., _Part]:
    return lambda _m, now, _w: _Part(
        at=time(hour), day=now.date() + timedelta(days=days) if days else None
    )


def _part_of_day(match: re.Match[str], _now: datetime, words: DateWords) -> _Part:
    return _Part(part_of_day=words.parts_of_day[match["p"]])


def _day_and_part(match: re.Match[str], now: datetime, words: DateWords) -> _Part:
    """Read "this evening", "heute abend": a part of today."""
    return _Part(day=now.date(), part_of_day=words.parts_of_day[match["p"]])


def _tonight(_match: re.Match[str], now: datetime, _words: DateWords) -> _Part:
    return _Part(day=now.date(), part_of_day="evening")


def _every(match: re.Match[str], _now: datetime, words: DateWords) -> _Part | None:
    unit = words.units[match["u"]]
    every = 2 if match.groupdict().get("other") else _number(match["n"], words) or 1
    if isinstance(unit, int):
        freq, every = ("YEARLY", every * unit // 12) if unit == 12 else ("MONTHLY", every * unit)
    elif unit == timedelta(days=7):
        freq = "WEEKLY"
    elif unit == timedelta(days=1):
        freq = "DAILY"
    else:
        return None
    return _Part(rule=f"FREQ={freq}" + (f";INTERVAL={every}" if every > 1 else ""))


def _every_weekday(match: re.Match[str], _now: datetime, words: DateWords) -> _Part:
    days = sorted(
        {
            words.weekdays[day]
            for day in re.split(r" and | und | ", match["days"])
            if day in words.weekdays
        }
    )
    return _Part(rule="FREQ=WEEKLY;BYDAY=" + ",".join(_BYDAY[day] for day in days))


def _every_part(match: re.Match[str], _now: datetime, words: DateWords) -> _Part:
    """Read "every evening", "jeden Morgen"."""
    return _Part(rule="FREQ=DAILY", part_of_day=words.parts_of_day[match["p"]])


def _fixed_rule(rule: str) -> Callable[..., _Part]:
    return lambda _match, _now, _words: _Part(rule=rule)


_BYDAY: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
WORKDAYS: Final = "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"
_MEANINGS: Final[Mapping[str, Callable[[re.Match[str], datetime, DateWords], _Part | None]]] = {
    "span": _span,
    "half an hour": _fixed_span(30),
    "quarter of an hour": _fixed_span(15),
    "three quarters": _fixed_span(45),
    "today": _days_on(0),
    "tomorrow": _days_on(1),
    "day after tomorrow": _days_on(2),
    "next week": _days_on(7),
    "next month": _months_ahead(1),
    "next year": _months_ahead(12),
    "weekday": _weekday,
    "month day": _month_day,
    "numeric day": _numeric_day,
    "iso day": _iso_day,
    "clock": _clock,
    "around": _around,
    "half to": _before(30),
    "quarter to": _before(15),
    "noon": _fixed_time(12),
    "midnight": _fixed_time(0, days=1),
    "part of day": _part_of_day,
    "part of today": _day_and_part,
    "tonight": _tonight,
    "every": _every,
    "every weekday": _every_weekday,
    "every part": _every_part,
    "workdays": _fixed_rule(WORKDAYS),
    "daily": _fixed_rule("FREQ=DAILY"),
}
