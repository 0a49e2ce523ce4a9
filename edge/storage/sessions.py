"""Sessions by name: the mode and random epoch of each, and the changes of the voice session."""

import json
from collections.abc import Callable, Mapping
from typing import Final

from edge.runtime.clock import Clock
from edge.storage.size_bounds import Bounds, keep_newest
from edge.storage.sqlite.database import Connection, Row, SqliteDatabase
from tools_cache.api.tool import Json

SESSIONS: Final = Bounds(rows=1000)
TRANSITIONS: Final = Bounds(rows=1000, bytes=512 * 1024)
LAG: Final = 100
"""A use is written only when this many others lie between: looking costs no write."""


class Sessions:
    """Modes and epochs of sessions, and transitions. `mint()` returns 64 random bits as text."""

    def __init__(
        self,
        db: SqliteDatabase,
        clock: Clock,
        mint: Callable[[], str],
        *,
        sessions: Bounds = SESSIONS,
        transitions: Bounds = TRANSITIONS,
    ) -> None:
        self._db = db
        self._clock = clock
        self._mint = mint
        self._sessions = sessions
        self._transitions = transitions

    async def open(self, user_id: str, session: str, mode: str) -> tuple[str, str]:
        """Return (mode, epoch); a new session gets this mode, a random epoch. Raise StoreFull."""
        row, newest = await self._db.read(lambda c: (_find(c, user_id, session), _newest(c)))
        if row is None:
            epoch = self._mint()
            row = await self._db.write(lambda c: self._make(c, user_id, session, mode, epoch))
        elif newest - row["used"] > LAG:
            await self._db.write(lambda c: _use(c, user_id, session), grows=False)
        return row["mode"], row["epoch"]

    async def note(
        self, *, cause: str, call_id: str, before: Mapping[str, Json], after: Mapping[str, Json]
    ) -> None:
        """Keep one transition; the oldest go, so a full store still takes it."""
        texts = [json.dumps(dict(state), separators=(",", ":")) for state in (before, after)]

        def work(connection: Connection) -> None:
            connection.execute(
                "INSERT INTO transitions(cause, call_id, before, after, wall_at, size)"
                " VALUES (?,?,?,?,?,?)",
                (cause, call_id, *texts, self._clock.wall(), sum(map(len, texts))),
            )
            keep_newest(connection, "transitions", "seq", self._transitions)

        await self._db.write(work, grows=False)

    async def transitions(self, limit: int) -> list[Mapping[str, Json]]:
        """Newest first: `{at_wall, cause, call_id, before, after}`."""
        sql = "SELECT * FROM transitions ORDER BY seq DESC LIMIT ?"
        rows = await self._db.read(lambda c: c.execute(sql, (limit,)).fetchall())
        return [
            {
                "at_wall": row["wall_at"],
                "cause": row["cause"],
                "call_id": row["call_id"],
                "before": json.loads(row["before"]),
                "after": json.loads(row["after"]),
            }
            for row in rows
        ]

    def _make(
        self, connection: Connection, user_id: str, session: str, mode: str, epoch: str
    ) -> Row:
        connection.execute(
            "INSERT INTO sessions VALUES (?,?,?,?,?) ON CONFLICT DO NOTHING",
            (_newest(connection) + 1, user_id, session, mode, epoch),
        )
        keep_newest(connection, "sessions", "used", self._sessions)
        row = _find(connection, user_id, session)
        assert row is not None
        return row


def _find(connection: Connection, user_id: str, session: str) -> Row | None:
    row: Row | None = connection.execute(
        "SELECT * FROM sessions WHERE user_id = ? AND session = ?", (user_id, session)
    ).fetchone()
    return row


def _newest(connection: Connection) -> int:
    used: int = connection.execute("SELECT coalesce(max(used), 0) FROM sessions").fetchone()[0]
    return used


def _use(connection: Connection, user_id: str, session: str) -> None:
    sql = "UPDATE sessions SET used = ? WHERE user_id = ? AND session = ?"
    connection.execute(sql, (_newest(connection) + 1, user_id, session))
