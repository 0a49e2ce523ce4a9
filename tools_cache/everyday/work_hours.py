"""Working times: what an entry is, how its time is divided among days, how it is described.

Moments are whole seconds since 1970, so they are in UTC; a day is one of the wearer's time zone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from tools_cache.api.handed import Json
from tools_cache.api.notes import folded
from tools_cache.errors import ErrorCode, ToolFailure

FORGOTTEN_S: Final = 16 * 3600
"""An entry that is longer was probably never stopped."""
YEARS: Final = range(2000, 2101)
"""Years of the moments and days that are read."""
NO_PROJECT: Final = "no project"
FIX: Final = "punchclock:correct"
MOST_TOLD: Final = 5
"""Projects, and forgotten entries, that a text names."""
_MINUTE_S: Final = 60
_WEEK_DAYS: Final = 7


@dataclass(frozen=True, slots=True)
class WorkEntry:
    """Work without a break. `end` is None while it goes on; `paused`: it ended with a pause."""

    id: int
    project: str
    start: int
    end: int | None = None
    paused: bool = False

    def until(self, now: int) -> int:
        """Return its end, or `now` while it goes on; never before its start."""
        return max(self.start, now if self.end is None else self.end)

    def length(self, now: int) -> int:
        return self.until(now) - self.start

    def within(self, begin: int, end: int, now: int) -> int:
        """Return the seconds of it between two moments."""
        return max(0, min(self.until(now), end) - max(self.start, begin))


@dataclass(frozen=True, slots=True)
class WorkCalendar:
    """The days of one time zone; None is the machine's own."""

    zone: tzinfo | None

    def local(self, moment: int) -> datetime:
        return datetime.fromtimestamp(moment, UTC).astimezone(self.zone)

    def day(self, moment: int) -> date:
        return self.local(moment).date()

    def begin(self, day: date) -> int:
        """Return the moment at which a day begins."""
        return int(datetime(day.year, day.month, day.day, tzinfo=self.zone).timestamp())

    def iso(self, moment: int) -> str:
        return self.local(moment).isoformat(timespec="seconds")

    def clock(self, moment: int, now: int) -> str:
        """Return "09:02" of today, "Fri 20 Nov, 09:02" of this year, else that with its year."""
        local = self.local(moment)
        if local.date() == self.day(now):
            return f"{local:%H:%M}"
        year = "" if local.year == self.day(now).year else f" {local.year}"
        return f"{local:%a} {local.day} {local:%b}{year}, {local:%H:%M}"

    def read(self, text: str, field: str) -> int:
        """Return the moment of "2026-11-21T17:30", in this zone or with an offset. Raises
        `ToolFailure`, also for a time that the day does not have, or has twice.
        """
        try:
            read = datetime.fromisoformat(text.upper())
        except ValueError:
            raise _invalid(field, f"{text!r} is not a moment", _LIKE) from None
        if read.year not in YEARS:
            raise _invalid(field, f"must be in {YEARS[0]} to {YEARS[-1]}", _LIKE)
        if read.tzinfo is not None:
            return int(read.timestamp())
        first = read.replace(tzinfo=self.zone, fold=0).timestamp()
        if first == read.replace(tzinfo=self.zone, fold=1).timestamp():
            return int(first)
        if datetime.fromtimestamp(first, self.zone).replace(tzinfo=None, fold=0) != read:
            raise _invalid(
                field,
                f"{text} does not exist: the clocks were put forward then",
                "Give a time before or after that hour",
            )
        raise _invalid(
            field,
            f"{text} exists twice: the clocks were put back then",
            f"Give it with its offset from UTC, such as {text}+01:00",
        )


_LIKE: Final = "Give it like 2026-11-21T17:30"


def calendar_of(zone: str) -> WorkCalendar:
    """Return the days of a zone by its name, which its setting has checked; "": the machine's."""
    return WorkCalendar(ZoneInfo(zone) if zone else None)


def read_day(text: str) -> date:
    """Return the day of "2026-11-21". Raises `ToolFailure`."""
    try:
        found = date.fromisoformat(text)
    except ValueError:
        raise _invalid("date", f"{text!r} is not a day", "Give it like 2026-11-21") from None
    if found.year not in YEARS:
        raise _invalid("date", f"must be in {YEARS[0]} to {YEARS[-1]}", "Give it like 2026-11-21")
    return found


def week_of(day: date) -> list[date]:
    """Return the days from Monday to Sunday around a day."""
    monday = day - timedelta(days=day.weekday())
    return [monday + timedelta(days=number) for number in range(_WEEK_DAYS)]


@dataclass(frozen=True, slots=True)
class HoursReport:
    """Seconds of work of some days: `days` of each day, `projects` of each project, most first;
    `entries` are those with a part in these days, each with the seconds of that part.
    """

    days: Mapping[date, int]
    projects: Mapping[str, int]
    entries: Sequence[tuple[WorkEntry, int]]

    @property
    def total(self) -> int:
        return sum(self.days.values())


def report(
    entries: Iterable[WorkEntry], days: Sequence[date], calendar: WorkCalendar, now: int
) -> HoursReport:
    """Return the hours of consecutive days. An entry over midnight counts for both days."""
    bounds = [calendar.begin(day) for day in (*days, days[-1] + timedelta(days=1))]
    each_day = dict.fromkeys(days, 0)
    names: dict[str, str] = {}
    projects: dict[str, int] = {}
    found: list[tuple[WorkEntry, int]] = []
    for entry in sorted(entries, key=lambda entry: (entry.start, entry.id)):
        part = entry.within(bounds[0], bounds[-1], now)
        if not part and not (entry.end is None and bounds[0] <= now < bounds[-1]):
            continue
        found.append((entry, part))
        key = folded(entry.project)
        names[key] = entry.project
        projects[key] = projects.get(key, 0) + part
        for number, day in enumerate(days):
            each_day[day] += entry.within(bounds[number], bounds[number + 1], now)
    order = sorted(projects, key=lambda key: (-projects[key], key))
    return HoursReport(each_day, {names[key]: projects[key] for key in order}, found)


def duration(seconds: int) -> str:
    """Return "3 h 20 min", "2 h" or "5 min"; a minute that has begun is not counted."""
    hours, minutes = divmod(max(0, seconds) // _MINUTE_S, 60)
    parts = ((hours, "h"), (minutes, "min"))
    return " ".join(f"{value} {unit}" for value, unit in parts if value) or "0 min"


def summary(title: str, hours: HoursReport) -> str:
    """Return "Today 3 h 20 min: Alpha 2 h, Beta 1 h 20 min", or "Today: no work"."""
    if not hours.entries:
        return f"{title}: no work"
    comma = "," if title[-1:].isdigit() else ""
    text = f"{title}{comma} {duration(hours.total)}"
    if not any(hours.projects):
        return text
    told = [f"{name or NO_PROJECT} {duration(part)}" for name, part in hours.projects.items()]
    if more := sum([*hours.projects.values()][MOST_TOLD:]):
        told = [*told[:MOST_TOLD], f"others {duration(more)}"]
    return f"{text}: {', '.join(told)}"


def forgotten(entries: Iterable[WorkEntry], now: int) -> list[dict[str, Json]]:
    """Return which entries were probably never stopped, and the tool that corrects them."""
    return [
        {"entry": entry.id, "seconds": entry.length(now), "suggestion": FIX}
        for entry in entries
        if entry.length(now) > FORGOTTEN_S
    ]


def with_forgotten(text: str, entries: Sequence[Mapping[str, Json]]) -> str:
    """Return the text with a line for each entry that was probably never stopped."""
    lines = [
        f"Entry {entry['entry']} has {duration(entry['seconds'])}: its stop was probably forgotten"
        for entry in entries[:MOST_TOLD]
    ]
    return "\n".join([text, *lines])


def _invalid(field: str, problem: str, fix: str) -> ToolFailure:
    return ToolFailure.of(
        ErrorCode.INVALID_ARGUMENTS, f"Invalid parameters: /{field} {problem}", suggestion=fix
    )
