"""Converts iCalendar text to busy times. Only importer of icalendar and dateutil.

Runs in the child: a recurrence rule can keep a computer busy without end.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import islice
from typing import Any, Final

MAX_STEPS: Final = 50_000
"""Repetitions computed per event: a daily one since 1900 has 46,000."""
MAX_EVENTS: Final = 5000
MAX_TITLE: Final = 200
_EARLIEST: Final = 1900
_MARGIN: Final = timedelta(days=2)
"""Zones are at most 14 hours from UTC: what ends two days before the window is outside in all."""
_RARE: Final = frozenset({"DAILY", "WEEKLY", "MONTHLY", "YEARLY"})
_FOLD: Final = re.compile(rb"\r?\n[ \t]")
_EVENT: Final = re.compile(
    rb"^BEGIN:VEVENT\s*$.*?^END:VEVENT\s*$", re.MULTILINE | re.DOTALL | re.IGNORECASE
)
_ZONE: Final = re.compile(
    rb"^BEGIN:VTIMEZONE\s*$.*?^END:VTIMEZONE\s*$", re.MULTILINE | re.DOTALL | re.IGNORECASE
)
_OFTEN: Final = re.compile(rb"FREQ=(?:SECONDLY|MINUTELY|HOURLY|DAILY)", re.IGNORECASE)
_REPEATS: Final = re.compile(
    rb"^(?:RRULE|RDATE|RECURRENCE-ID|DURATION)\b", re.MULTILINE | re.IGNORECASE
)
_DAY: Final = re.compile(rb"^(DTSTART|DTEND)[^:\r\n]*:(\d{8})", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class BusyTime:
    """A busy period, in UTC."""

    start: datetime
    end: datetime
    title: str
    all_day: bool


@dataclass(frozen=True, slots=True)
class CalendarEvent:
    """One parsed VEVENT. `start` is a wall clock; `zone` None means this machine's own."""

    uid: str
    title: str
    start: datetime
    zone: tzinfo | None
    length: timedelta
    all_day: bool
    busy: bool
    rule: str = ""
    count: int | None = None
    until: datetime | None = None
    also: tuple[datetime, ...] = ()
    never: frozenset[datetime | date] = frozenset()
    instead_of: datetime | None = None

    def at(self, wall: datetime) -> datetime:
        """Return the moment of one of its wall clock times, in UTC."""
        return _moment(wall, self.zone)

    def ends(self, wall: datetime) -> datetime:
        """Return the end: an all-day event ends at midnight, others after their exact length."""
        return self.at(wall + self.length) if self.all_day else self.at(wall) + self.length


def busy(texts: Iterable[bytes], start: datetime, end: datetime) -> tuple[list[BusyTime], int]:
    """Return the busy times between two moments, and how many events (or whole texts) could not be
    read.
    """
    events: list[CalendarEvent] = []
    unread = 0
    for text in texts:
        found, bad = parse(text, start, end)
        room = MAX_EVENTS - len(events)
        events += found[:room]
        unread += bad + len(found[room:])
    out: list[BusyTime] = []
    moved = {(e.uid, e.instead_of) for e in events if e.instead_of is not None}
    for event in events:
        if not event.busy:
            continue
        try:
            walls = [
                w
                for w in _times(event, end)
                if event.instead_of is not None or (event.uid, event.at(w)) not in moved
            ]
            out += _within(event, walls, start, end)
        except (ValueError, OverflowError):
            unread += 1
    return out, unread


def _within(
    event: CalendarEvent, walls: Iterable[datetime], start: datetime, end: datetime
) -> list[BusyTime]:
    """Return an event's times in the window. Raises OverflowError for an end after year 9999."""
    spans = [(event.at(wall), event.ends(wall)) for wall in walls]
    return [
        BusyTime(b, e, event.title, event.all_day)
        for b, e in spans
        if b < end and e > start and b < e
    ]


def parse(text: bytes, start: datetime, end: datetime) -> tuple[list[CalendarEvent], int]:
    """Parse one text's events, except those that are plainly outside the window."""
    from icalendar import Component  # noqa: PLC0415 - an extra; 5 MiB that only this child carries

    text = _FOLD.sub(b"", text)
    if any(_OFTEN.search(zone) for zone in _ZONE.findall(text)):
        return [], 1  # clocks that change daily are none; computing them may never end
    first, last = (start - _MARGIN).astimezone(UTC), (end + _MARGIN).astimezone(UTC)
    near = _EVENT.sub(
        lambda m: (
            m[0] if _near(m[0], f"{first:%Y%m%d}".encode(), f"{last:%Y%m%d}".encode()) else b""
        ),
        text,
    )
    if not _EVENT.search(near):
        return [], 0 if _EVENT.search(text) or b"VCALENDAR" in text else 1
    try:
        components = Component.from_ical(near, multiple=True)
    except (ValueError, IndexError, KeyError, TypeError):
        return [], 1
    events, unread = [], 0
    for component in (c for whole in components for c in whole.walk("VEVENT")):
        try:
            events.append(_event(component))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
            unread += 1
    return events, unread


def _near(block: bytes, first: bytes, last: bytes) -> bool:
    if _REPEATS.search(block):
        return True
    days = [day for _, day in _DAY.findall(block)]
    return not days or (min(days) <= last and max(days) >= first)


# ------------------------------------------------------------------ one event


def _event(raw: Any) -> CalendarEvent:
    if raw.get("DTSTART") is None:
        raise ValueError("an event without a start")
    start, zone, all_day = _wall(raw.decoded("DTSTART"))
    free = (
        str(raw.get("TRANSP", "OPAQUE")).upper() == "TRANSPARENT"
        or str(raw.get("STATUS", "")).upper() == "CANCELLED"
    )
    rule, count, until = _rule(raw.get("RRULE"), zone)
    instead = raw.get("RECURRENCE-ID")
    return CalendarEvent(
        uid=str(raw.get("UID", "")),
        title=str(raw.get("SUMMARY", ""))[:MAX_TITLE],
        start=start,
        zone=zone,
        length=_length(raw, start, zone, all_day=all_day),
        all_day=all_day,
        busy=not free,
        rule=rule,
        count=count,
        until=until,
        also=tuple(_wall_in(moment, zone) for moment in _listed(raw.get("RDATE"))),
        never=frozenset(
            _excluded(moment, zone, all_day=all_day) for moment in _listed(raw.get("EXDATE"))
        ),
        instead_of=None if instead is None else _moment(*_wall(instead.dt)[:2]),
    )


def _wall(value: Any) -> tuple[datetime, tzinfo | None, bool]:
    """Return (wall clock, zone, whether it is a whole day). Raises ValueError."""
    if isinstance(value, datetime):
        found = value.replace(tzinfo=None), value.tzinfo, False
    elif isinstance(value, date):
        found = datetime.combine(value, time()), None, True
    else:
        raise ValueError("not a time")
    if found[0].year < _EARLIEST:
        raise ValueError("too long ago")
    return found


def _length(raw: Any, start: datetime, zone: tzinfo | None, *, all_day: bool) -> timedelta:
    if raw.get("DTEND") is not None:
        ends, its_zone, _ = _wall(raw.decoded("DTEND"))
        return ends - start if all_day else _moment(ends, its_zone) - _moment(start, zone)
    if raw.get("DURATION") is not None:
        length: timedelta = raw["DURATION"].dt
        return length
    return timedelta(days=1) if all_day else timedelta()


def _rule(raw: Any, zone: tzinfo | None) -> tuple[str, int | None, datetime | None]:
    """Return (the rule without its end, its count, its last wall clock). Raises ValueError for an
    invalid rule, or one that repeats too often.
    """
    if raw is None:
        return "", None, None
    if isinstance(raw, list):
        raise ValueError("more than one rule")
    parts = dict(raw)
    if str(parts["FREQ"][0]).upper() not in _RARE or int(parts.get("INTERVAL", [1])[0]) < 1:
        raise ValueError("a rule that is not followed")
    until, count = parts.pop("UNTIL", [None])[0], parts.pop("COUNT", [None])[0]
    bare = type(raw)(parts).to_ical().decode()
    last = None
    if until is not None:
        wall, its_zone, whole = _wall(until)
        last = (
            wall + timedelta(days=1, seconds=-1)
            if whole
            else _wall_in(_moment(wall, its_zone or zone), zone)
        )
    return bare, None if count is None else int(count), last


def _listed(raw: Any) -> Iterator[Any]:
    for one in raw if isinstance(raw, list) else [] if raw is None else [raw]:
        for value in one.dts:
            yield value.dt[0] if isinstance(value.dt, tuple) else value.dt


def _excluded(value: Any, zone: tzinfo | None, *, all_day: bool) -> datetime | date:
    """Return what an exception excludes: a day all that begins on it, a moment what begins then."""
    if not isinstance(value, datetime):
        return value  # type: ignore[no-any-return]
    return value.date() if all_day else _moment(value.replace(tzinfo=None), value.tzinfo or zone)


def _wall_in(value: Any, zone: tzinfo | None) -> datetime:
    """Return a time as the wall clock of a zone."""
    wall, its_zone, _ = _wall(value)
    if its_zone is None:
        return wall
    return value.astimezone(zone).replace(tzinfo=None)  # type: ignore[no-any-return]


def _moment(wall: datetime, zone: tzinfo | None) -> datetime:
    return (wall.replace(tzinfo=zone) if zone else wall).astimezone(UTC)


# ------------------------------------------------------------------ repetitions


def _times(event: CalendarEvent, end: datetime) -> list[datetime]:
    """Return the wall clocks at which it begins, up to the window's end. Raises ValueError if there
    are too many.
    """
    walls = [event.start] if not event.rule else _repeated(event, end)
    walls = sorted({*walls, *event.also})
    return [w for w in walls if w.date() not in event.never and event.at(w) not in event.never]


def _repeated(event: CalendarEvent, end: datetime) -> list[datetime]:
    from dateutil.rrule import rrulestr  # noqa: PLC0415 - comes with icalendar

    last = _wall_in(end, event.zone) + timedelta(days=1)
    last = min(last, event.until) if event.until else last
    rule: Any = rrulestr(f"{event.rule};UNTIL={last:%Y%m%dT%H%M%S}", dtstart=event.start)
    walls = list(islice(rule, min(MAX_STEPS + 1, event.count or MAX_STEPS + 1)))
    if len(walls) > MAX_STEPS:
        raise ValueError("too many repetitions")
    return walls
