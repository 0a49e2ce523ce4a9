"""Reminders: kept on disk with the moment they are due, announced by the wall clock.

A moment is stored in UTC, so another time zone leaves it where it is. One that repeats is placed
again on the wearer's clock each time it was announced, so that nine o'clock stays nine o'clock when
summer ends. While the wall clock was never set (a Pi has no battery for it) nothing is due.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime, tzinfo
from typing import Final, NamedTuple

from edge.runtime.clock import Clock
from edge.tools.announcements.alarms import EARLIEST_TRUE_WALL, LOOK_S
from firmware_bridge.deadlines import timeout
from tools_cache.api.handed import Json, ToolStorage
from tools_cache.errors import ErrorCode, ToolFailure

MAX_REMINDERS: Final = 1000
"""Reminders of one user, done ones included: the oldest of those make room."""

_CREATE: Final = (
    "CREATE TABLE IF NOT EXISTS reminders (id INTEGER PRIMARY KEY AUTOINCREMENT, "
    "user_id TEXT NOT NULL, text TEXT NOT NULL, contact TEXT NOT NULL, category TEXT NOT NULL, "
    "due REAL, repeat TEXT NOT NULL, announced REAL, completed INTEGER NOT NULL, "
    "completed_at REAL, created REAL NOT NULL)"
)
_INDEXES: Final = tuple(
    f"CREATE INDEX IF NOT EXISTS reminders_{name} ON reminders ({columns})"
    for name, columns in (
        ("due", "completed, due"),
        ("user", "user_id, due"),
        ("category", "user_id, category"),
        ("contact", "user_id, contact"),
    )
)
_THERE: Final = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'reminders'"
_INSERT: Final = (
    "INSERT INTO reminders (user_id, text, contact, category, due, repeat, completed, created) "
    "VALUES (?, ?, ?, ?, ?, ?, 0, ?)"
)
_OF_USER: Final = (
    "SELECT id, text, contact, category, due, repeat, announced, completed, completed_at, created "
    "FROM reminders WHERE user_id = ? ORDER BY due IS NULL, due, id LIMIT 1000"
)
_NEXT: Final = (
    "SELECT id, text, due, repeat FROM reminders WHERE completed = 0 AND category = 'user' "
    "AND due IS NOT NULL AND (announced IS NULL OR announced < due) ORDER BY due, id LIMIT 20"
)
_ANNOUNCED: Final = "UPDATE reminders SET announced = due, due = ? WHERE id = ? AND due = ?"
_OLDEST_DONE: Final = (
    "DELETE FROM reminders WHERE id = (SELECT id FROM reminders WHERE user_id = ? AND "
    "completed = 1 ORDER BY completed_at, id LIMIT 1)"
)
_CHANGEABLE: Final = frozenset(
    {"text", "contact", "category", "due", "repeat", "announced", "completed", "completed_at"}
)

logger = logging.getLogger(__name__)


class DueReminder(NamedTuple):
    """One reminder to announce. `due`: seconds since 1970; `late_s`: how late it is announced."""

    id: int
    text: str
    due: float
    repeat: str
    late_s: float = 0.0

    @property
    def scene(self) -> str:
        return f"reminder-{self.id}"


@dataclass(eq=False, repr=False)
class Reminders:
    """Implements `tools_cache.api.services.Reminders`; `fired` is for one consumer."""

    storage: ToolStorage
    clock: Clock
    _: KW_ONLY
    zone: Callable[[], tzinfo | None]
    """The wearer's time zone; None: the machine's."""
    look_s: float = LOOK_S
    _announced: set[tuple[int, float]] = field(default_factory=set, init=False)
    """Those whose announcement could not be stored."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _adding: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    # -------------------------------------------------------------- for the tools

    async def add(self, user: str, row: Mapping[str, Json]) -> int:
        """See `Reminders`."""
        async with self._adding:
            await self._prepare()
            there = len(await self.storage.fetch(_OF_USER, user))
            if there >= MAX_REMINDERS and not await self.storage.execute(_OLDEST_DONE, user):
                raise ToolFailure.of(
                    ErrorCode.CONFLICT,
                    f"There are {MAX_REMINDERS} reminders already",
                    suggestion="Remove one first",
                )
            number = await self.storage.execute(
                _INSERT,
                user,
                row["text"],
                row["contact"],
                row["category"],
                row["due"],
                row["repeat"],
                self.clock.wall(),
            )
        self._changed.set()
        return number

    async def of(self, user: str) -> list[dict[str, Json]]:
        """See `Reminders`."""
        if not await self.storage.fetch(_THERE):
            return []
        return await self.storage.fetch(_OF_USER, user)

    async def change(self, user: str, number: int, row: Mapping[str, Json]) -> bool:
        """See `Reminders`."""
        assert row.keys() <= _CHANGEABLE
        columns = ", ".join(f"{column} = ?" for column in row)
        changed = await self.storage.execute(
            f"UPDATE reminders SET {columns} WHERE user_id = ? AND id = ?",  # noqa: S608 - the names are ours
            *row.values(),
            user,
            number,
        )
        self._changed.set()
        return changed > 0

    async def remove(self, user: str, number: int) -> bool:
        """See `Reminders`."""
        sql = "DELETE FROM reminders WHERE user_id = ? AND id = ?"
        gone = await self.storage.execute(sql, user, number)
        self._changed.set()
        return gone > 0

    def local(self, wall: float) -> datetime:
        """See `Reminders`."""
        return datetime.fromtimestamp(wall, self.zone()).replace(tzinfo=None)

    def wall(self, local: datetime) -> float:
        """See `Reminders`."""
        return local.replace(tzinfo=self.zone()).timestamp()

    async def _prepare(self) -> None:
        if not await self.storage.fetch(_THERE):
            await self.storage.execute(_CREATE)
            for index in _INDEXES:
                await self.storage.execute(index)

    # -------------------------------------------------------------- announcing

    async def fired(self) -> AsyncIterator[DueReminder]:
        """Yield reminders as they fall due. One is marked as announced when the next is asked for,
        so an interrupted announcement is repeated after a restart.
        """
        while True:
            reminder = await self._next_due()
            yield reminder
            await self._mark(reminder)

    async def is_due(self, number: int) -> bool:
        """Return whether a reminder that fired is still to be announced: not done, moved or gone
        since.
        """
        rows = await self.storage.fetch(_NEXT)
        now = self.clock.wall()
        return any(row["id"] == number and row["due"] <= now for row in rows)

    async def _next_due(self) -> DueReminder:
        first = await self._first()
        while True:
            now = self.clock.wall()
            left = self.look_s if first is None else first.due - now
            if first is not None and left <= 0 and now >= EARLIEST_TRUE_WALL:
                return DueReminder(
                    first.id, f"Reminder: {first.text}", first.due, first.repeat, round(-left, 3)
                )
            with contextlib.suppress(TimeoutError):
                async with timeout(min(self.look_s, left if left > 0 else self.look_s)):
                    await self._changed.wait()
                first = await self._first()

    async def _first(self) -> DueReminder | None:
        """Return the next to announce from disk; this is asked again only after a change."""
        self._changed.clear()
        if not await self.storage.fetch(_THERE):
            return None
        for row in await self.storage.fetch(_NEXT):
            if (row["id"], row["due"]) not in self._announced:
                return DueReminder(row["id"], row["text"], row["due"], row["repeat"])
        return None

    async def _mark(self, reminder: DueReminder) -> None:
        """Store that it was announced, and when it is due again. If that fails, this process still
        announces it only once.
        """
        following = self.following(reminder.repeat, reminder.due)
        due = reminder.due if following is None else following
        try:
            await self.storage.execute(_ANNOUNCED, due, reminder.id, reminder.due)
        except Exception as e:  # noqa: BLE001 - the storage's errors are its own; telling the next reminder matters more
            self._announced.add((reminder.id, reminder.due))
            logger.warning(
                "reminder %d was announced but this cannot be stored (%s): "
                "it may be announced again after a restart",
                reminder.id,
                e,
            )

    def following(self, repeat: str, due: float) -> float | None:
        """See `Reminders`."""
        if not repeat:
            return None
        from tools_cache.everyday.dates.recurrence import next_after  # noqa: PLC0415 - most repeat nothing

        start = self.local(due)
        after = max(start, self.local(self.clock.wall()))
        moment = next_after(repeat, start, after)
        return None if moment is None else self.wall(moment)
