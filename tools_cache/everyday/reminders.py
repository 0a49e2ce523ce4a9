"""A user's reminders, as the tools read, find and name them."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from tools_cache.api.handed import Json
from tools_cache.api.notes import folded
from tools_cache.api.services import Reminders
from tools_cache.api.shortening import shortened
from tools_cache.api.tool import ToolContext
from tools_cache.errors import ErrorCode, ToolFailure
from tools_cache.everyday.dates import recurrence, spoken_dates
from tools_cache.everyday.dates.spoken_dates import When
from tools_cache.everyday.naming import written

MOST_NAMED: Final = 10
FEW: Final = 3
"""Reminders that a sentence for the wearer names, and characters of each."""
BRIEF: Final = 36
FURTHEST: Final = timedelta(days=3650)
FURTHEST_S: Final = FURTHEST.total_seconds()
USER: Final = "user"
INTERNAL: Final = "internal"
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reminder:
    """One reminder. `due`: on the wearer's clock, None without a moment."""

    row: Mapping[str, Json]
    due: datetime | None
    told: bool
    """The wearer was told of it, and it is not due again."""

    @property
    def id(self) -> int:
        return int(self.row["id"])

    @property
    def text(self) -> str:
        return str(self.row["text"])

    @property
    def done(self) -> bool:
        return bool(self.row["completed"])

    def to_json(self, book: "ReminderBook") -> dict[str, Json]:
        """Return it for programs: moments in ISO 8601 with their offset."""
        row = self.row
        return {
            "id": self.id,
            "text": self.text,
            "due": book.iso(row["due"]),
            "repeat": row["repeat"] or None,
            "category": row["category"],
            "contact": row["contact"] or None,
            "completed": self.done,
            "completed_at": book.iso(row["completed_at"]),
        }

    @property
    def words(self) -> str:
        """It in words that are the same on every day: "call Anna, Sat 28 Nov 2026, 09:00"."""
        repeat = recurrence.describe(self.row["repeat"]) if self.row["repeat"] else ""
        due = written(self.due) if self.due else ""
        return ", ".join(filter(None, (self.text, due, repeat)))

    def line(self, now: datetime) -> str:
        """Return it as a line of the lens: "Tomorrow 09:00: call Anna"."""
        when = spoken(self.due, now) if self.due else ""
        repeat = f" ({recurrence.describe(self.row['repeat'])})" if self.row["repeat"] else ""
        done = "done: " if self.done else ""
        return f"{when}: {done}{self.text}{repeat}" if when else f"{done}{self.text}"


class ReminderBook:
    """The reminders of the user of one call."""

    def __init__(self, ctx: ToolContext) -> None:
        self._store: Reminders = ctx.reminders
        self._user = ctx.call.user_id
        self._now = ctx.now()
        self.now = self._store.local(self._now)

    async def all(self) -> list[Reminder]:
        """Return all, the next first."""
        return [
            Reminder(
                row,
                None if row["due"] is None else self._store.local(row["due"]),
                row["announced"] is not None and row["announced"] == row["due"],
            )
            for row in await self._store.of(self._user)
        ]

    async def the_one(self, wanted: str) -> Reminder:
        """Return the reminder of this number, else the open one whose text is or contains this.
        Raises `ToolFailure` if there is none, or more than one.
        """
        found = await self.all()
        if wanted.strip().isdigit():
            named = [r for r in found if r.id == int(wanted)]
        else:
            words = folded(" ".join(wanted.split()))
            open_ones = [r for r in found if not r.done]
            named = [r for r in open_ones if folded(r.text) == words]
            named = named or [r for r in open_ones if words in folded(r.text)]
        if not named:
            raise ToolFailure.of(
                ErrorCode.INVALID_ARGUMENTS,
                f"No reminder: {wanted[:80]}",
                suggestion="See reminder:list",
                for_wearer=f"There is no reminder “{shortened(wanted, 80)}”.",
            )
        if len(named) > 1:
            lines = [f"{r.id}: {r.line(self.now)}" for r in named[:MOST_NAMED]]
            raise ToolFailure.of(
                ErrorCode.CONFLICT,
                f"{len(named)} reminders match:\n" + "\n".join(lines),
                suggestion="Give the number of one",
                details={"matches": [r.to_json(self) for r in named[:MOST_NAMED]]},
                for_wearer=f"Which one? {_few(named)}",
            )
        return named[0]

    async def add(self, row: Mapping[str, Json]) -> int:
        return await self._store.add(self._user, row)

    async def change(self, reminder: Reminder, row: Mapping[str, Json]) -> None:
        """Change columns of it. Raises `ToolFailure` if it was removed meanwhile."""
        if not await self._store.change(self._user, reminder.id, row):
            raise ToolFailure.of(ErrorCode.CONFLICT, f"Reminder {reminder.id} was removed")

    async def remove(self, reminder: Reminder) -> bool:
        return await self._store.remove(self._user, reminder.id)

    # -------------------------------------------------------------- moments

    def iso(self, wall: float | None) -> str | None:
        """Return a moment in ISO 8601, on the wearer's clock with its offset."""
        if wall is None:
            return None
        local = self._store.local(wall)
        offset = round((local - datetime(1970, 1, 1)).total_seconds() - wall)  # noqa: DTZ001 - both are local
        sign, minutes = "-" if offset < 0 else "+", abs(offset) // 60
        return f"{local.isoformat(timespec='seconds')}{sign}{minutes // 60:02}:{minutes % 60:02}"

    def moment(self, when: str) -> When:
        """Return the moment of an argument: ISO 8601 or words. Raises `ToolFailure`."""
        found = self._iso(when) if _ISO.fullmatch(when.strip()) else None
        found = found or spoken_dates.read(when, self.now)
        if found is None:
            raise ToolFailure.of(
                ErrorCode.INVALID_ARGUMENTS,
                f"Invalid parameters: /when {when[:80]!r} is not understood, or is over",
                suggestion="Give it like 2026-11-30T09:00, or like tomorrow at nine",
                for_wearer=f"When is that: {when[:80]}?",
            )
        return found

    def _iso(self, text: str) -> When | None:
        try:
            read = datetime.fromisoformat(text.strip().upper())
            after = None if read.tzinfo is None else read.timestamp() - self._now
        except (ValueError, OverflowError, OSError):
            return None
        if after is not None:
            return When(after=timedelta(seconds=after)) if 0 < after < FURTHEST_S else None
        return When(local=read) if self.now < read < self.now + FURTHEST else None

    def due(self, when: When, repeat: str) -> tuple[float, str]:
        """Return when it is first due, and its rule in plain form. Raises `ToolFailure`."""
        if when.local is None:
            assert when.after is not None
            local, due = self._store.local(self._now), self._now + when.after.total_seconds()
        else:
            local, due = when.local, self._store.wall(when.local)
        rule = repeat or when.repeat
        if rule:
            start = local if when.local else self._store.local(due)
            rule, first = recurrence.check(rule, start)
            if first <= self.now:
                following = recurrence.next_after(rule, start, self.now)
                if following is None:
                    raise ToolFailure.of(
                        ErrorCode.INVALID_ARGUMENTS, "Invalid parameters: /repeat is over already"
                    )
                first = following
            due = self._store.wall(first)
        return due, rule

    def following(self, reminder: Reminder) -> float | None:
        """Return when a repeating reminder is due after its present moment."""
        due = reminder.row["due"]
        repeat = reminder.row["repeat"]
        return None if due is None else self._store.following(repeat, due)

    def local(self, wall: float) -> datetime:
        return self._store.local(wall)


def spoken(moment: datetime, now: datetime) -> str:
    """Return a moment as the lens shows it: "Today 18:00", "Mon 30 Nov, 09:00"."""
    days = (moment.date() - now.date()).days
    clock = f"{moment:%H:%M}"
    if days in _NEAR:
        return f"{_NEAR[days]} {clock}"
    year = f" {moment.year}" if moment.year != now.year else ""
    return f"{moment:%a} {moment.day} {moment:%b}{year}, {clock}"


def _few(reminders: Sequence[Reminder]) -> str:
    """Return "“call Anna”, “call the dentist” and 2 more"."""
    named = ", ".join(f"“{shortened(r.text, BRIEF)}”" for r in reminders[:FEW])
    left = len(reminders) - FEW
    return f"{named} and {left} more" if left > 0 else named


_NEAR: Final = {-1: "Yesterday", 0: "Today", 1: "Tomorrow"}


def chosen(
    reminders: Sequence[Reminder], which: str, now: datetime, days: tuple[date, date] | None
) -> list[Reminder]:
    """Return the reminders of a range: one of `RANGES`. `days`: the first and the last day."""
    return [r for r in reminders if _RANGES[which](r, now) and _within(r, days)]


def _within(reminder: Reminder, days: tuple[date, date] | None) -> bool:
    return days is None or (reminder.due is not None and days[0] <= reminder.due.date() <= days[1])


def _on(reminder: Reminder, day: date) -> bool:
    return not reminder.done and reminder.due is not None and reminder.due.date() == day


_RANGES: Final[Mapping[str, Callable[[Reminder, datetime], bool]]] = {
    "today": lambda r, now: _on(r, now.date()),
    "tomorrow": lambda r, now: _on(r, now.date() + timedelta(days=1)),
    "upcoming": lambda r, now: not r.done and (r.due is None or r.due > now),
    "past": lambda r, now: r.due is not None and r.due <= now,
    "overdue": lambda r, now: not r.done and r.due is not None and r.due <= now,
    "all": lambda _r, _now: True,
    "date": lambda r, _now: not r.done,
    "range": lambda r, _now: not r.done,
}
RANGES: Final = tuple(_RANGES)
