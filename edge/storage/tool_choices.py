"""Which tools users switched on and off, and how often they called each.

A copy of what is off stands in a small file beside the database, for listings without a daemon
(`edge/tools/offline_listing.py`).
"""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from edge.runtime.clock import Clock
from edge.runtime.files import write_atomic
from edge.storage.sqlite.database import Connection, SqliteDatabase, StoreFull

SWITCH_ROWS: Final = 5000
"""Of all users together; a row is some 60 bytes."""
USAGE_ROWS: Final = 5000
"""Of all users together; those used longest ago go first."""


COPY: Final = "tools_off.json"
_log: Final = logging.getLogger(__name__)


class Used(Struct, frozen=True):
    """How often a user's calls of a tool ran, and how often they failed."""

    tool: str
    calls: int = 0
    failed: int = 0
    last_wall: float = 0.0


class ToolChoices:
    """The switches of all users, and how often each tool was called."""

    def __init__(
        self,
        db: SqliteDatabase,
        clock: Clock,
        *,
        switch_rows: int = SWITCH_ROWS,
        usage_rows: int = USAGE_ROWS,
    ) -> None:
        self._db = db
        self._clock = clock
        self._switch_rows = switch_rows
        self._usage_rows = usage_rows
        self._copying = asyncio.Lock()

    async def switches(self) -> Mapping[str, Mapping[str, bool]]:
        """Return what users switched: user → tool → on."""
        sql = "SELECT user_id, tool, enabled FROM tool_switches"
        rows = await self._db.read(lambda c: c.execute(sql).fetchall())
        found: dict[str, dict[str, bool]] = {}
        for row in rows:
            found.setdefault(row["user_id"], {})[row["tool"]] = bool(row["enabled"])
        return found

    async def switch(self, user_id: str, changes: Mapping[str, bool]) -> None:
        """Keep these in one transaction. Raise StoreFull."""
        wall = self._clock.wall()

        def work(connection: Connection) -> None:
            connection.executemany(
                "INSERT INTO tool_switches VALUES (?, ?, ?, ?) ON CONFLICT(user_id, tool)"
                " DO UPDATE SET enabled = excluded.enabled, wall_at = excluded.wall_at",
                [(user_id, tool, on, wall) for tool, on in changes.items()],
            )
            (count,) = connection.execute("SELECT count(*) FROM tool_switches").fetchone()
            if count > self._switch_rows:
                raise StoreFull(f"{self._switch_rows} switched tools are kept; no more can be")

        # Switching off is a person's no: it must be taken on a full store too.
        await self._db.write(work, grows=any(changes.values()))
        async with self._copying:  # of two at once the older could be the last
            await asyncio.to_thread(_copy, self._db.path.with_name(COPY), await self.switches())

    async def usage(self, user_id: str) -> Sequence[Used]:
        sql = "SELECT * FROM tool_usage WHERE user_id = ? ORDER BY calls DESC, tool"
        rows = await self._db.read(lambda c: c.execute(sql, (user_id,)).fetchall())
        return [Used(row["tool"], row["calls"], row["failed"], row["last_wall"]) for row in rows]

    async def add_usage(self, user_id: str, counts: Sequence[Used]) -> None:
        """Add to what is kept; raises StoreFull only for tools that have no row yet."""

        def work(connection: Connection) -> None:
            connection.executemany(
                "INSERT INTO tool_usage VALUES (?, ?, ?, ?, ?) ON CONFLICT(user_id, tool) DO UPDATE"
                " SET calls = calls + excluded.calls, failed = failed + excluded.failed,"
                " last_wall = excluded.last_wall",
                [(user_id, used.tool, used.calls, used.failed, used.last_wall) for used in counts],
            )
            connection.execute(
                "DELETE FROM tool_usage WHERE (user_id, tool) IN (SELECT user_id, tool"
                " FROM tool_usage ORDER BY last_wall DESC, tool LIMIT -1 OFFSET ?)",
                (self._usage_rows,),
            )

        await self._db.write(work)


def _copy(path: Path, switches: Mapping[str, Mapping[str, bool]]) -> None:
    """Write the copy, blocking. If that fails, only a listing without a daemon is wrong."""
    off = {
        user: sorted(tool for tool, on in tools.items() if not on)
        for user, tools in switches.items()
        if not all(tools.values())
    }
    try:
        write_atomic(path, json.dumps(off).encode(), 0o666)
    except OSError as e:
        _log.warning("%s cannot be written: %s", path, e.strerror)
