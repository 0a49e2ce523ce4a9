"""Calls whose result comes later: pending once, then resolved, expired or cancelled."""

import json
from typing import Final

from edge.core.call_state import Submission
from edge.runtime.clock import Clock
from edge.storage.size_bounds import Bounds, keep_newest
from edge.storage.sqlite.database import Connection, Row, SqliteDatabase, StoreFull
from edge.storage.timestamps import Stamper, Timestamp
from tools_cache.api.tool import ToolCall, ToolResponse

BOUNDS: Final = Bounds(open=1000, rows=1000, bytes=4 * 1024 * 1024)
_ENDS: Final = ("expired", "cancelled")
# A result nobody has made an answer of yet is not the past, however old.
_OVER: Final = (
    "status <> 'pending' AND NOT EXISTS"
    " (SELECT 1 FROM calls WHERE calls.call_id = pending.call_id AND calls.response IS NULL)"
)


class PendingCalls:
    """Calls whose result somebody hands in later."""

    def __init__(self, db: SqliteDatabase, clock: Clock, *, bounds: Bounds = BOUNDS) -> None:
        self._db = db
        self._stamper = Stamper(clock)
        self._bounds = bounds

    async def put(self, call: ToolCall, *, ttl_s: float) -> None:
        """Accept a result for `ttl_s`; a known call stays as it is. Raise StoreFull."""

        def work(connection: Connection) -> None:
            keep_newest(connection, "pending", "seq", self._bounds, among=_OVER)
            known = "SELECT 1 FROM pending WHERE call_id = ?"
            if connection.execute(known, (call.call_id,)).fetchone():
                return
            waiting = "SELECT count(*) FROM pending WHERE status = 'pending'"
            (count,) = connection.execute(waiting).fetchone()
            if count >= self._bounds.open:
                raise StoreFull(
                    f"{count} calls wait for a result; no more are taken until some are done"
                )
            connection.execute(
                "INSERT INTO pending(call_id, user_id, session, tool, status, ttl_s, boot_id,"
                " boot_at, wall_at, synced, size) VALUES (?,?,?,?,'pending',?,?,?,?,?,0)",
                (call.call_id, call.user_id, call.session, call.tool, ttl_s, *self._stamper.now()),
            )

        await self._db.write(work)

    async def resolve(
        self, call_id: str, response: ToolResponse, *, user_id: str, session: str
    ) -> Submission:
        """Store the first result in time from the call's own user and session."""
        text = json.dumps(response.to_json(), separators=(",", ":"))

        def work(connection: Connection) -> Submission:
            sql = "SELECT * FROM pending WHERE call_id = ?"
            row = connection.execute(sql, (call_id,)).fetchone()
            if row is None or (row["user_id"], row["session"]) != (user_id, session):
                return Submission.UNKNOWN
            if row["status"] != "pending" or self._left_s(row) <= 0:
                return Submission.OVER
            sql = "UPDATE pending SET status = 'resolved', result = ?, size = ? WHERE seq = ?"
            connection.execute(sql, (text, len(text), row["seq"]))
            return Submission.TAKEN

        return await self._db.write(work, grows=False)

    async def close(self, call_id: str, status: str) -> None:
        """Pending → `expired` or `cancelled`; anything else stays as it is."""
        if status not in _ENDS:
            raise ValueError(
                f"status: {status!r} is no end of a pending call; use one of {', '.join(_ENDS)}"
            )
        sql = "UPDATE pending SET status = ? WHERE call_id = ? AND status = 'pending'"
        await self._db.write(lambda c: c.execute(sql, (status, call_id)).rowcount, grows=False)

    async def open(self) -> list[tuple[str, float]]:
        """Return (call id, seconds left) of all that are pending, the soonest to end first."""
        sql = "SELECT * FROM pending WHERE status = 'pending' ORDER BY seq"
        found = await self._db.read(
            lambda c: [(row["call_id"], self._left_s(row)) for row in c.execute(sql)]
        )
        return sorted(found, key=lambda one: one[1])

    async def result(self, call_id: str) -> ToolResponse | None:
        sql = "SELECT result FROM pending WHERE call_id = ? AND status = 'resolved'"
        row = await self._db.read(lambda c: c.execute(sql, (call_id,)).fetchone())
        return None if row is None else ToolResponse.from_json(json.loads(row["result"]))

    def _left_s(self, row: Row) -> float:
        return self._stamper.left_s(Timestamp.of_row(row), row["ttl_s"])
