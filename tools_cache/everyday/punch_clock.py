"""A user's working times: encrypted, begun, paused, ended and corrected."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Final

from tools_cache.api.handed import Database, Json
from tools_cache.api.notes import folded
from tools_cache.errors import ErrorCode, ToolFailure
from tools_cache.everyday.naming import written
from tools_cache.everyday.work_hours import (
    FIX,
    WorkCalendar,
    WorkEntry,
    calendar_of,
    duration,
    forgotten,
    report,
    with_forgotten,
)

MAX_ENTRIES: Final = 10_000
CLOCK_FLOOR: Final = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
"""An earlier wall clock was never set: a Raspberry Pi has no battery for it."""
SLACK_S: Final = 60
"""A clock that is set back by no more than this is taken as if it had stood still."""
_TABLE: Final = "entries"
_COLUMN: Final = "encrypted__entry"
_THERE: Final = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'entries'"
_PAGE: Final = "SELECT id FROM entries WHERE id > ? ORDER BY id LIMIT 1000"
_CHANGING: Final = asyncio.Lock()
"""Held from reading the entries until the change is stored."""


@dataclass(frozen=True, slots=True)
class Work:
    """All entries, in the order of their start. The last tells what goes on now."""

    entries: Sequence[WorkEntry]

    @property
    def last(self) -> WorkEntry | None:
        return self.entries[-1] if self.entries else None

    @property
    def running(self) -> WorkEntry | None:
        return self.last if self.last and self.last.end is None else None

    @property
    def paused(self) -> WorkEntry | None:
        return self.last if self.last and self.last.paused else None

    def having(self, *entries: WorkEntry) -> "Work":
        """Return it with these entries, in the place of those of the same number."""
        found = {entry.id: entry for entry in (*self.entries, *entries)}
        # a running entry is the last, also beside one that began in the same second
        return Work(sorted(found.values(), key=lambda e: (e.start, e.end is None, e.id)))

    def find(self, number: int) -> WorkEntry:
        """Return the entry of this number. Raises `ToolFailure`."""
        for entry in self.entries:
            if entry.id == number:
                return entry
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            f"Invalid parameters: /entry there is no entry {number}",
            suggestion="punchclock:report gives the numbers",
            for_wearer=f"There is no entry {number}.",
        )


class PunchClock:
    """The working times of one user at one moment."""

    def __init__(self, db: Database, now: float, zone: str) -> None:
        """Raise `ToolFailure` if the clock was never set: no time is true then."""
        if now < CLOCK_FLOOR:
            raise ToolFailure.of(
                ErrorCode.TOOL_UNAVAILABLE,
                "The clock of this machine is not set, so working times would be wrong",
                suggestion="Connect it to a network, wait until its clock is set, and try again",
                retryable=True,
                for_wearer="The clock is not set yet. Try again later.",
            )
        self._db = db
        self.now = int(now)
        self.calendar: WorkCalendar = calendar_of(zone)

    async def read(self) -> Work:
        """Return all entries. Creates no table, so it works on a full disk."""
        found: list[WorkEntry] = []
        if not await self._db.fetch(_THERE):
            return Work(found)
        numbers = [0]
        while numbers := [row["id"] for row in await self._db.fetch(_PAGE, numbers[-1])]:
            rows = await self._db.select(_TABLE, where={"id": numbers}, limit=len(numbers))
            found += [WorkEntry(id=row["id"], **row[_COLUMN]) for row in rows]
        return Work(()).having(*found)

    # ---------------------------------------------------------------- what is done now

    async def start(self, project: str) -> tuple[Work, bool]:
        """Begin work, end a pause, or switch the project; "" keeps the one there is. Return what
        goes on then, and whether that is new.
        """
        async with _CHANGING:
            work = await self.read()
            running, paused = work.running, work.paused
            if running and folded(project or running.project) == folded(running.project):
                return work, False
            project = project or (paused.project if paused else "")
            _check_room(work)
            latest = max((e.start if e.end is None else e.end for e in work.entries), default=0)
            moment = self._moment(latest)
            if running:
                await self._store(replace(running, end=moment))
            new = WorkEntry(0, project, moment)
            try:
                new = replace(new, id=await self._insert(new))
            except Exception:
                if running:  # the old work goes on
                    await self._store(running)
                raise
            ended = [replace(running, end=moment)] if running else []
            return work.having(*ended, new), True

    async def pause(self) -> Work:
        """Interrupt work. Raises `ToolFailure` if there is none."""
        async with _CHANGING:
            work = await self.read()
            if work.running:
                end = self._moment(work.running.start)
                ended = replace(work.running, end=end, paused=True)
                await self._store(ended)
                return work.having(ended)
            if not work.paused:
                raise ToolFailure.of(
                    ErrorCode.CONFLICT,
                    "There is no work to pause",
                    suggestion="Start it with punchclock:start",
                    for_wearer="You are not working, so there is nothing to pause.",
                )
            return work

    async def stop(self) -> tuple[Work, bool]:
        """End work, also from a pause. Return whether there was any."""
        async with _CHANGING:
            work = await self.read()
            current = work.running or work.paused
            if current is None:
                return work, False
            end = self._moment(current.start) if current.end is None else current.end
            ended = replace(current, end=end, paused=False)
            await self._store(ended)
            return work.having(ended), True

    # ---------------------------------------------------------------- corrections

    async def add(self, project: str, start: int, end: int) -> WorkEntry:
        """Store work of the past. Raises `ToolFailure`."""
        async with _CHANGING:
            work, new = await self.read(), WorkEntry(0, project, start, end)
            _check_room(work)
            self._check(new, work)
            return replace(new, id=await self._insert(new))

    async def change(self, number: int, changes: Mapping[str, Json]) -> WorkEntry:
        """Store changed fields of an entry. Raises `ToolFailure`."""
        async with _CHANGING:
            work = await self.read()
            changed = replace(work.find(number), **changes)
            self._check(changed, work)
            await self._store(changed)
            return changed

    async def remove(self, number: int) -> WorkEntry:
        """Remove an entry. Raises `ToolFailure` if there is none of this number."""
        async with _CHANGING:
            entry = (await self.read()).find(number)
            await self._db.delete(_TABLE, where={"id": number})
            return entry

    def _check(self, entry: WorkEntry, work: Work) -> None:
        """Raise `ToolFailure` if an entry is of the future, ends before it starts, or overlaps
        another: its time would count twice.
        """
        problem = fix = ""
        if max(entry.start, entry.end or 0) > self.now:
            field = "start" if entry.start > self.now else "end"
            problem, fix = f"/{field} is in the future", "Give a moment that has passed"
        elif entry.end is not None and entry.end <= entry.start:
            problem = f"/end must be after the start, {self.calendar.iso(entry.start)}"
            fix = "Give the end after the start"
        if problem:
            raise ToolFailure.of(
                ErrorCode.INVALID_ARGUMENTS, f"Invalid parameters: {problem}", suggestion=fix
            )
        for other in work.entries:
            if other.id != entry.id and other.within(entry.start, entry.until(self.now), self.now):
                raise ToolFailure.of(
                    ErrorCode.CONFLICT,
                    f"It overlaps entry {other.id}, {self.span(other)}",
                    suggestion=f"Change entry {other.id} first, or give other moments",
                    for_wearer=f"It overlaps entry {other.id}, {self.span(other)}.",
                )

    # ---------------------------------------------------------------- what is told

    def span(self, entry: WorkEntry) -> str:
        """Return "Fri 20 Nov 09:02 to 12:00"."""
        begin = self.calendar.clock(entry.start, self.now)
        if entry.end is None:
            return f"since {begin}"
        same_day = self.calendar.day(entry.start) == self.calendar.day(entry.end)
        end = self.calendar.clock(entry.end, entry.end if same_day else self.now)
        return f"{begin} to {end}"

    def words(self, entry: WorkEntry) -> str:
        """Return an entry in words that are the same on every day: "Fri 20 Nov 2026, 09:02 to
        12:00, Alpha".
        """
        begin = self.calendar.local(entry.start)
        span = f"since {written(begin)}"
        if entry.end is not None:
            end = self.calendar.local(entry.end)
            same_day = end.date() == begin.date()
            span = f"{written(begin)} to {f'{end:%H:%M}' if same_day else written(end)}"
        return f"{span}, {entry.project}" if entry.project else span

    def state_text(self, work: Work) -> str:
        """Return "Working on Alpha since 09:02" or what else goes on."""
        if entry := work.running:
            name = f"Working on {entry.project}" if entry.project else "Working"
            return f"{name} since {self.calendar.clock(entry.start, self.now)}"
        if (entry := work.paused) and entry.end is not None:
            since = f"Paused since {self.calendar.clock(entry.end, self.now)}"
            return f"{since}: {entry.project}" if entry.project else since
        return "Not working"

    def today(self, work: Work) -> int:
        """Return the seconds worked today."""
        return report(work.entries, [self.calendar.day(self.now)], self.calendar, self.now).total

    def to_json(self, entry: WorkEntry) -> dict[str, Json]:
        return {
            "entry": entry.id,
            "project": entry.project,
            "start": self.calendar.iso(entry.start),
            "end": None if entry.end is None else self.calendar.iso(entry.end),
            "seconds": entry.length(self.now),
        }

    def answer(self, work: Work, text: str = "", *, day: bool = True) -> dict[str, Json]:
        """Return the data of an answer: the state, the entry, the seconds of today, the text; `day`
        adds the hours of today to it.
        """
        current, today = work.running or work.paused, self.today(work)
        state = "working" if work.running else "paused" if work.paused else "stopped"
        late = forgotten([work.last] if work.last else [], self.now)
        text = text or self.state_text(work)
        if day:
            text = f"{text}\nToday {duration(today)}" if today else text
        return {
            "state": state,
            "current": self.to_json(current) if current else None,
            "today_s": today,
            "forgotten": late,
            "text": with_forgotten(text, late),
        }

    # ---------------------------------------------------------------- storage

    def _moment(self, earliest: int) -> int:
        """Return the present moment. Raises `ToolFailure` if the clock was set back behind
        `earliest`: the entry would end before it starts, or overlap the one before.
        """
        if self.now < earliest - SLACK_S:
            known = self.calendar.clock(earliest, self.now)
            raise ToolFailure.of(
                ErrorCode.CONFLICT,
                f"The clock was set back: it is {self.calendar.clock(self.now, self.now)}, "
                f"and the last entry is of {known}",
                suggestion=f"Check the clock, or correct the last entry with {FIX}",
                for_wearer=f"The clock was set back: the last entry is of {known}.",
            )
        return max(self.now, earliest)

    async def _store(self, entry: WorkEntry) -> None:
        await self._db.update(_TABLE, {_COLUMN: _row(entry)}, where={"id": entry.id})

    async def _insert(self, entry: WorkEntry) -> int:
        await self._db.create_table(_TABLE, {_COLUMN: "TEXT"})
        return await self._db.insert(_TABLE, {_COLUMN: _row(entry)})


def project_name(text: str) -> str:
    """Return a project's name without needless blanks."""
    return " ".join(text.split())


def _row(entry: WorkEntry) -> dict[str, Json]:
    return {field: value for field, value in asdict(entry).items() if field != "id"}


def _check_room(work: Work) -> None:
    if len(work.entries) >= MAX_ENTRIES:
        raise ToolFailure.of(
            ErrorCode.CONFLICT,
            f"{MAX_ENTRIES} entries are stored already",
            suggestion=f"Remove old ones with {FIX}",
            for_wearer=f"{MAX_ENTRIES} entries are stored. Remove old ones first.",
        )
