"""Dates, times and numbers in the wearer's form: their language's patterns, their time zone.

Digits are always 0 to 9. What cannot be written without loss stays as it was.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, tzinfo
from typing import Final, NamedTuple

from msgspec import Struct

from edge.core.words.drawable_text import isolate

_PATTERN: Final = re.compile(r"'((?:[^']|'')*)'|(([A-Za-z])\3*)|([^A-Za-z']+)")
"""Pieces of a CLDR pattern: quoted text, a field (`MMM`), other text."""
_ISO: Final = r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d\d:?\d\d)?"
_ISO_MOMENT: Final = re.compile(_ISO)
_ISO_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_ALONE: Final = r"(?<![\w./:?&=%-]){}(?![\w/:&=%-]|\.\w)"
"""Not a part of an address, a file name or a longer number."""
_IN_TEXT: Final = re.compile(_ALONE.format(rf"(?:({_ISO})(?:–({_ISO}))?|{_ISO_DAY.pattern})"))
"""A moment, one and the end of its span, or a day."""
_DURATION: Final = re.compile(
    _ALONE.format(r"P(?:(\d{1,4})D)?T(?=\d)(?:(\d{1,4})H)?(?:(\d{1,4})M)?(?:(\d{1,5})S)?")
)
_SHORT_UNITS: Final = ("d", "h", "min", "s")
_LEAST_GROUPED: Final = 5
"""Digits from which a whole number is grouped; 2026 may be a year."""
_NUMBER: Final = re.compile(r"(-?)(\d+)((?:\.\d+)?)")
_LIKE_NUMBER: Final = re.compile(r"[-+−]?\d[\d.,'’  \u00a0\u202f]*")
_WORDS: Final = {True: "yes", False: "no", None: "nothing"}
_YEARS: Final = range(1900, 2200)
_NEAR_DAYS: Final = 183
"""A day of this year that is further away is easily taken for one of the next or the last."""
_UNITS: Final = ((86_400, "day", "day"), (3600, "hour", "h"), (60, "minute", "min"))
_LONGEST: Final = 100
"""Characters of the longest moment of any language, doubled."""


class LocaleForms(NamedTuple):
    """What a language needs for dates and numbers; patterns are those of Unicode's CLDR."""

    weekdays: tuple[str, ...]
    """Short names from Monday on."""
    months: tuple[str, ...]
    """Short names from January on."""
    day: str
    """Pattern of a day of this year: `E d MMM`."""
    day_of_year: str
    """Pattern of a day of another year: `E, d MMM y`."""
    clock: str
    """Pattern of a time: `HH:mm`."""
    joined: str
    """How a day {1} and a time {0} are joined: `{1}, {0}`."""
    halves: tuple[str, str]
    """Words for the halves of a day: `am`, `pm`."""
    decimal: str
    group: str
    groups: tuple[int, int]
    """Digits of the last group of a whole number, and of those before it."""


ENGLISH: Final = LocaleForms(
    ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
    tuple("Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec".split()),
    "E d MMM",
    "E, d MMM y",
    "HH:mm",
    "{1}, {0}",
    ("am", "pm"),
    ".",
    ",",
    (3, 3),
)


class WearerForms(Struct, frozen=True):
    """`zone` None is the machine's own. `now` is an aware moment: days near it need no year."""

    locale: LocaleForms = ENGLISH
    zone: tzinfo | None = None

    def moment(self, at: datetime, *, now: datetime) -> str:
        """Return `Tue 1 Dec, 13:00` in the wearer's zone; seconds only if there are some."""
        local = at.astimezone(self.zone)
        day, time = self.day(local.date(), now=now), self.clock(local)
        return self.locale.joined.replace("{1}", day).replace("{0}", time)

    def day(self, day: date, *, now: datetime) -> str:
        """Return `Tue 1 Dec`, with the year if it is not this one, or the day could be taken for
        one of next year.
        """
        today = now.astimezone(self.zone).date()
        near = day.year == today.year and abs((day - today).days) <= _NEAR_DAYS
        pattern = self.locale.day if near else self.locale.day_of_year
        return _filled(pattern, self._fields_of_day(day))

    def clock(self, at: datetime) -> str:
        """Return the time of a moment that is in the wearer's zone already: `13:00`, `1:00 pm`."""
        return _filled(self.locale.clock, self._fields_of_time(at))

    def span(self, start: datetime, end: datetime, *, now: datetime, day: bool = True) -> str:
        """Return `Tue 1 Dec, 12:00–14:00`; `day` False leaves the day out where both are on it."""
        first, last = start.astimezone(self.zone), end.astimezone(self.zone)
        if first.date() != last.date():
            return f"{self.moment(start, now=now)} – {self.moment(end, now=now)}"
        times = f"{self.clock(first)}–{self.clock(last)}"
        if not day:
            return times
        said = self.day(first.date(), now=now)
        return self.locale.joined.replace("{1}", said).replace("{0}", times)

    def number(self, value: float) -> str:
        """Return a number of JSON with the wearer's decimal mark; large ones are grouped."""
        written = json.dumps(value)
        found = _NUMBER.fullmatch(written)
        if found is None:  # 1e+22
            return written
        whole = self._grouped(found[2]) if len(found[2]) >= _LEAST_GROUPED else found[2]
        return found[1] + whole + found[3].replace(".", self.locale.decimal)

    def text(self, text: str, *, now: datetime) -> str:
        """Return a text with its ISO moments, days and durations in the wearer's form; all else
        stays as it is. Of spans (`moment–moment`) in a row the day is said once, and today's not at
        all.
        """
        if "PT" in text or "DT" in text:
            text = _DURATION.sub(_duration, text)
        if "-" not in text:
            return text
        day = now.astimezone(self.zone).date()

        def write(found: re.Match[str]) -> str:
            nonlocal day
            if found[1] is None:
                alone = _parsed(found[0])
                return isolate(self.day(alone.date(), now=now)) if alone else found[0]
            if found[2] is None:
                return isolate(self._moment_of(found[0], now) or found[0])
            start, end = _parsed(found[1]), _parsed(found[2])
            if start is None or end is None or start.tzinfo is None or end.tzinfo is None:
                return found[0]
            before, day = day, start.astimezone(self.zone).date()
            return isolate(self.span(start, end, now=now, day=day != before))

        return _IN_TEXT.sub(write, text)

    # ------------------------------------------------------------------ in a question

    def exact(self, value: object, *, now: datetime) -> str | None:
        """Return a value of JSON in the wearer's form, where that loses nothing; else None.

        A moment given in another zone than the wearer's has that time too: it may matter.
        """
        if isinstance(value, bool) or value is None:
            return _WORDS[value]
        if isinstance(value, int | float):
            return self.number(value)
        if not isinstance(value, str):
            return None
        if _ISO_DAY.fullmatch(value):
            try:
                return self.day(date.fromisoformat(value), now=now)
            except ValueError:
                return None
        return self._exact_moment(value, now)

    def resembles(self, text: str) -> bool:
        """Return whether a text could be taken for something that `exact` wrote."""
        return (
            text in _WORDS.values()
            or _LIKE_NUMBER.fullmatch(text) is not None
            or (len(text) <= _LONGEST and any(re.search(day, text) for day in self._days()))
        )

    def _exact_moment(self, value: str, now: datetime) -> str | None:
        if not _ISO_MOMENT.fullmatch(value):
            return None
        at = _parsed(value)
        if at is None or at.microsecond or "." in value:
            return None
        if at.tzinfo is None:
            return f"{self._local(at, now)} (no time zone)"
        said = self.moment(at, now=now)
        if at.utcoffset() == at.astimezone(self.zone).utcoffset():
            return said
        offset = f"{at:%z}"
        theirs = f"UTC{offset[:3]}:{offset[3:5]}" if at.utcoffset() else "UTC"
        there = self._local(at.replace(tzinfo=None), now)
        same_day = at.date() == at.astimezone(self.zone).date()
        return f"{said} ({self.clock(at) if same_day else there} {theirs})"

    def _days(self) -> Iterator[str]:
        """Yield expressions for a day as this language writes it."""
        day = r"\d{1,4}"
        names = {
            "E": "|".join(map(re.escape, self.locale.weekdays)),
            "M": "|".join((*map(re.escape, self.locale.months), day)),
        }
        for pattern in (self.locale.day, self.locale.day_of_year):
            pieces = [
                f"(?:{names.get(name[0], day)})" if name else re.escape(plain)
                for name, plain in _pieces(pattern)
            ]
            yield "".join(pieces)

    # ------------------------------------------------------------------ pieces

    def _moment_of(self, iso: str, now: datetime) -> str | None:
        at = _parsed(iso)
        if at is None:
            return None
        at = at.replace(microsecond=0)
        return self._local(at, now) if at.tzinfo is None else self.moment(at, now=now)

    def _local(self, at: datetime, now: datetime) -> str:
        """Return a moment without a zone as it is written."""
        day, time = self.day(at.date(), now=now), self.clock(at)
        return self.locale.joined.replace("{1}", day).replace("{0}", time)

    def _fields_of_day(self, day: date) -> Mapping[str, str]:
        return {
            "E": self.locale.weekdays[day.weekday()],
            "d": str(day.day),
            "dd": f"{day.day:02}",
            "M": str(day.month),
            "MM": f"{day.month:02}",
            "MMM": self.locale.months[day.month - 1],
            "y": str(day.year),
        }

    def _fields_of_time(self, at: datetime) -> Mapping[str, str]:
        minutes = f"{at.minute:02}" + (f":{at.second:02}" if at.second else "")
        twelve = at.hour % 12 or 12
        return {
            "H": str(at.hour),
            "HH": f"{at.hour:02}",
            "h": str(twelve),
            "hh": f"{twelve:02}",
            "K": str(at.hour % 12),
            "KK": f"{at.hour % 12:02}",
            "mm": minutes,
            "a": self.locale.halves[at.hour >= 12],
        }

    def _grouped(self, digits: str) -> str:
        last, before = self.locale.groups
        parts, rest = [digits[-last:]], digits[:-last]
        while rest:
            parts.append(rest[-before:])
            rest = rest[:-before]
        return self.locale.group.join(reversed(parts))


class Writer(Struct, frozen=True):
    """The wearer's forms at one moment."""

    forms: WearerForms = WearerForms(ENGLISH, UTC)
    now: datetime = datetime(1900, 1, 1, tzinfo=UTC)

    def exact(self, value: object) -> str | None:
        return self.forms.exact(value, now=self.now)

    def resembles(self, text: str) -> bool:
        return self.forms.resembles(text)

    def text(self, text: str) -> str:
        """Return a text with its moments in the wearer's form."""
        return self.forms.text(text, now=self.now)

    def written(self, value: object) -> str:
        """Return a value of JSON for reading: text as it is, but moments in the wearer's form."""
        if isinstance(value, str):
            return self.text(value)
        return self.exact(value) or str(value)


def _duration(found: re.Match[str]) -> str:
    """Return `1 h 30 min` for `PT1H30M`."""
    counts = zip(found.groups(), _SHORT_UNITS, strict=True)
    return " ".join(f"{int(count)} {unit}" for count, unit in counts if count)


def _parsed(iso: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(iso.upper())
    except ValueError:
        return None
    return at if at.year in _YEARS else None  # others may leave the calendar in another zone


def _pieces(pattern: str) -> Iterator[tuple[str, str]]:
    """Yield (field, "") or ("", text) for each piece of a pattern."""
    for quoted, field, _, plain in _PATTERN.findall(pattern):
        yield (field, "") if field else ("", quoted.replace("''", "'") or plain)


def _filled(pattern: str, fields: Mapping[str, str]) -> str:
    return "".join(fields[name] if name else text for name, text in _pieces(pattern))


def age(seconds: float, *, spoken: bool = False) -> str:
    """Return how long ago something was: `just now`, `5 min ago`, `2 days ago`; spoken
    `5 minutes ago`.
    """
    for size, word, short in _UNITS:
        if seconds >= size:
            count = int(seconds // size)
            unit = word + "s" * (count > 1) if spoken or word == "day" else short
            return f"{count} {unit} ago"
    return "just now"


def utc(seconds: float) -> datetime:
    """Return a time of the wall clock as an aware moment."""
    return datetime.fromtimestamp(seconds, UTC)
