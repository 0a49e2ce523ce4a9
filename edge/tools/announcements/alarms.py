"""Alarms: stored on disk, and correct after restarts and clock jumps.

Within one boot an alarm runs on CLOCK_BOOTTIME. After a reboot it is placed by the wall clock,
bounded by its own length: a wrong clock may delay an alarm, but never makes it early or loses it.

An alarm with a key is set once: its row stays, without its text, after it was announced. A daemon
that is killed after an alarm was shown and before that is stored shows it once more: twice is
better than never.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from edge.runtime.clock import Clock
from firmware_bridge.deadlines import timeout
from tools_cache.api.handed import ToolStorage
from tools_cache.api.tool import ErrorCode, Json, ToolFailure

MAX_ALARMS: Final = 100
MAX_TEXT: Final = 500
"""Characters: a message of a pager with its sender and a warning."""
MAX_AFTER_S: Final = 7 * 86_400.0
EARLIEST_TRUE_WALL: Final = 1_767_225_600.0
"""2026-01-01: an earlier wall clock was never set (no RTC) and does not measure time off."""
LOOK_S: Final = 30.0
"""Seconds between looks at the boot clock: asyncio's clock stops while the machine sleeps."""
MAX_KEYS: Final = 200
"""Keys of announced alarms that are remembered: who sets an alarm again does it at its next run."""

_CREATE: Final = (
    "CREATE TABLE IF NOT EXISTS alarms (id INTEGER PRIMARY KEY "
    "AUTOINCREMENT, text TEXT NOT NULL, after_s REAL NOT NULL,"
    " boot_id TEXT NOT NULL, due_boot REAL NOT NULL, due_wall REAL NOT NULL,"
    " key TEXT)"
)
_HAS_KEY: Final = "SELECT 1 FROM sqlite_master WHERE name = 'alarms' AND sql LIKE '%, key TEXT%'"
_ADD_KEY: Final = "ALTER TABLE alarms ADD COLUMN key TEXT"
_THERE: Final = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'alarms'"
_INSERT: Final = (
    "INSERT INTO alarms (text, after_s, boot_id, due_boot, due_wall) VALUES (?, ?, ?, ?, ?)"
)
_INSERT_KEYED: Final = (
    "INSERT INTO alarms (text, after_s, boot_id, due_boot, due_wall, key) VALUES (?, ?, ?, ?, ?, ?)"
)
_OF_KEY: Final = "SELECT id FROM alarms WHERE key = ?"
_ANCHOR: Final = "UPDATE alarms SET boot_id = ?, due_boot = ?, due_wall = ? WHERE id = ?"
_DELETE: Final = "DELETE FROM alarms WHERE id = ?"
_KEEP_KEY: Final = "UPDATE alarms SET text = '' WHERE id = ?"
_FORGET_KEYS: Final = (
    "DELETE FROM alarms WHERE text = '' AND key IS NOT NULL AND id <= "
    "(SELECT id FROM alarms WHERE text = '' AND key IS NOT NULL ORDER BY id DESC LIMIT 1 OFFSET ?)"
)
_ALL: Final = "SELECT * FROM alarms"
"""A table that no alarm with a key was ever in has no such column."""

logger = logging.getLogger(__name__)


class Alarm(Struct, frozen=True):
    """One alarm. `due_boot`: a moment on this boot's clock; `late_s`: how late it is announced."""

    id: int
    text: str
    after_s: float
    due_boot: float
    late_s: float = 0.0
    key: str = ""

    @property
    def scene(self) -> str:
        return f"alarm-{self.id}"


class AlarmClock:
    """Implements `tools_cache.api.tool.Alarms`. `storage` belongs to it alone."""

    def __init__(self, storage: ToolStorage, clock: Clock, *, look_s: float = LOOK_S) -> None:
        self._storage = storage
        self._clock = clock
        self._look_s = look_s
        self._alarms: dict[int, Alarm] = {}
        self._announced: set[int] = set()
        self._loaded = False
        self._loading = asyncio.Lock()
        self._changed = asyncio.Event()
        self._setting = asyncio.Lock()

    async def set(self, after_s: float, text: str, *, key: str = "") -> int:
        """Set an alarm; return its number once it is on disk. One that was set with this key
        before, even if it was announced since, is not set again. Raises `ToolFailure`.
        """
        if not key:
            return await self._set(after_s, text, None)
        if not text:
            raise ToolFailure.of(
                ErrorCode.INVALID_ARGUMENTS,
                "Invalid parameters: text is empty",
                suggestion="Give a text to announce",
            )
        async with self._setting:
            if await self._storage.fetch(_HAS_KEY):
                if found := await self._storage.fetch(_OF_KEY, key):
                    return int(found[0]["id"])
            elif await self._storage.fetch(_THERE):
                await self._storage.execute(_ADD_KEY)
            return await self._set(after_s, text, key)

    async def _set(self, after_s: float, text: str, key: str | None) -> int:
        await self._load()
        if not 0 < after_s <= MAX_AFTER_S:
            raise ToolFailure.of(
                ErrorCode.INVALID_ARGUMENTS,
                f"Invalid parameters: {after_s} s is not between 0 and {MAX_AFTER_S:.0f}",
            )
        if len(self._alarms) >= MAX_ALARMS:
            raise ToolFailure.of(
                ErrorCode.CONFLICT,
                f"{MAX_ALARMS} timers are running already",
                suggestion="Cancel one first",
            )
        due = self._clock.boot() + after_s
        text = text[:MAX_TEXT]
        number = await self._insert(text, after_s, due, key)
        self._alarms[number] = Alarm(number, text, after_s, due, key=key or "")
        self._changed.set()
        return number

    async def _insert(self, text: str, after_s: float, due: float, key: str | None) -> int:
        """Store it. If interrupted it may still reach the disk, so the alarms are read again."""
        try:
            await self._storage.execute(_CREATE)
            row = (text, after_s, self._clock.boot_id, due, self._clock.wall() + after_s)
            if key is None:
                return await self._storage.execute(_INSERT, *row)
            return await self._storage.execute(_INSERT_KEYED, *row, key)
        except BaseException:
            self._loaded = False
            self._changed.set()
            raise

    async def pending(self) -> list[dict[str, Json]]:
        await self._load()
        now = self._clock.boot()
        return [
            {"id": a.id, "text": a.text, "remaining_s": round(a.due_boot - now, 3)}
            for a in self._soonest_first()
            if a.due_boot > now
        ]

    async def cancel(self, alarm: int) -> bool:
        await self._load()
        found = self._alarms.get(alarm)
        if found is None or found.due_boot <= self._clock.boot():
            return False  # it is being announced
        gone = await self._storage.execute(_DELETE, alarm)
        self._alarms.pop(alarm, None)
        self._changed.set()
        return gone > 0

    async def is_due(self, _alarm: int) -> bool:
        """Return whether an alarm that fired is still to be announced: it cannot be cancelled."""
        return True

    async def fired(self) -> AsyncIterator[Alarm]:
        """Yield alarms as they fall due; one consumer. An alarm is removed from disk when the next
        one is requested, so an interrupted announcement is repeated after a restart.
        """
        while True:
            alarm = await self._next_due()
            yield alarm
            await self._forget(alarm)

    async def _next_due(self) -> Alarm:
        while True:
            self._changed.clear()
            await self._load()
            first = next(iter(self._soonest_first()), None)
            left = self._look_s if first is None else first.due_boot - self._clock.boot()
            if first is not None and left <= 0:
                return replace(first, late_s=round(-left, 3))
            with contextlib.suppress(TimeoutError):
                async with timeout(min(left, self._look_s)):
                    await self._changed.wait()

    async def _forget(self, alarm: Alarm) -> None:
        """Remove an announced alarm, all but its key. If that fails, this process still announces
        it only once.
        """
        number = alarm.id
        self._alarms.pop(number, None)
        self._announced.add(number)
        try:
            await self._storage.execute(_KEEP_KEY if alarm.key else _DELETE, number)
            self._announced.discard(number)
            if alarm.key:
                await self._storage.execute(_FORGET_KEYS, MAX_KEYS)
        except Exception as e:  # noqa: BLE001 - the storage's errors are its own; telling the next alarm matters more
            logger.warning(
                "alarm %d was announced but cannot be removed (%s): "
                "it may be announced again after a restart",
                number,
                e,
            )

    def _soonest_first(self) -> list[Alarm]:
        return sorted(self._alarms.values(), key=lambda a: (a.due_boot, a.id))

    # -------------------------------------------------------------- from disk

    async def _load(self) -> None:
        async with self._loading:
            if self._loaded:
                return
            rows = await self._storage.fetch(_ALL) if await self._storage.fetch(_THERE) else []
            for row in rows:
                known = row["id"] in self._alarms or row["id"] in self._announced
                key = row.get("key") or ""
                if known or (key and not row["text"]):
                    continue  # without a text: it was announced
                after_s, due = float(row["after_s"]), float(row["due_boot"])
                same_boot = self._clock.boot_id and row["boot_id"] == self._clock.boot_id
                if not same_boot:
                    due = self._clock.boot() + self._left_by_wall(after_s, float(row["due_wall"]))
                alarm = Alarm(int(row["id"]), str(row["text"]), after_s, due, key=key)
                if not same_boot:
                    await self._anchor(alarm)
                self._alarms[alarm.id] = alarm
            self._loaded = True

    def _left_by_wall(self, after_s: float, due_wall: float) -> float:
        """Return the seconds left after a reboot; all of them if either clock was never set."""
        now = self._clock.wall()
        if now < EARLIEST_TRUE_WALL or due_wall - after_s < EARLIEST_TRUE_WALL:
            return after_s
        return min(after_s, due_wall - now)

    async def _anchor(self, alarm: Alarm) -> None:
        """Store the place on this boot's clock, so that later jumps of the wall clock do not
        matter.
        """
        left = alarm.due_boot - self._clock.boot()
        try:
            await self._storage.execute(
                _ANCHOR, self._clock.boot_id, alarm.due_boot, self._clock.wall() + left, alarm.id
            )
        except Exception as e:  # noqa: BLE001 - the storage's errors are its own; it is right in memory
            logger.warning("alarm %d cannot be re-anchored on disk: %s", alarm.id, e)
