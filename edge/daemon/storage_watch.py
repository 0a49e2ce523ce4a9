"""Watches whether the daemon's state can be stored, and raises an alarm if not.

It tries again every few seconds, so that the alarm ends by itself.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Final

from edge.runtime.bus import Bus
from edge.runtime.events import Alarmed
from edge.storage.sqlite import disk_space
from edge.storage.sqlite.database import SqliteDatabase, StoreError

log = logging.getLogger(__name__)

ALARM: Final = "storage"
LOOK_S: Final = 5.0
MARK_EVERY: Final = 120
"""Checks between two updates of the database's marker: ten minutes."""


@dataclass(eq=False, repr=False)
class StorageWatch:
    """`run()` is the service. `other_trouble` returns why other files cannot be written, or ""."""

    db: SqliteDatabase
    folder: Path
    _: KW_ONLY
    bus: Bus
    other_trouble: Callable[[], str] = str
    look_s: float = LOOK_S
    _alarm: str = field(default="", init=False)

    def alarms(self) -> dict[str, str]:
        """Return the current alarms, also before `run()` checked again."""
        failed = self.db.trouble or self.other_trouble()
        text = self._alarm or (disk_space.explain(self.folder, failed) if failed else "")
        return {ALARM: text} if text else {}

    async def run(self) -> None:
        """Check every few seconds until cancelled."""
        for number in itertools.count(1):
            await self.look()
            if number % MARK_EVERY == 0:
                with suppress(StoreError):
                    await self.db.mark()
            await asyncio.sleep(self.look_s)

    async def look(self) -> None:
        """Check once; a change is logged and published."""
        if self.db.trouble:
            with suppress(StoreError):
                await self.db.probe()
        failed = self.db.trouble or self.other_trouble()
        text = await asyncio.to_thread(disk_space.explain, self.folder, failed)
        before, self._alarm = self._alarm, text
        if text and not before:
            log.error("%s", text)
        elif before and not text:
            log.info("the disk under %s can be written again", self.folder)
        if text != before:
            self.bus.publish(Alarmed(ALARM, text or "the disk can be written again", over=not text))
