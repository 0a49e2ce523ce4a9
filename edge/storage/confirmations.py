"""Questions that wait for a yes, the hashes of their tokens, and what was decided for good.

Used tokens are remembered for a day, so that a replay is not taken for a wrong token.
"""

from collections.abc import Mapping
from typing import Final

from edge.core.grants import Asked, Consumed, Consumption, Grant, Granted
from edge.runtime.clock import Clock
from edge.storage.size_bounds import Bounds, keep_newest
from edge.storage.sqlite.database import Connection, Row, SqliteDatabase, StoreFull
from edge.storage.steps import Check, Steps
from edge.storage.timestamps import Stamper, Timestamp
from tools_cache.api.tool import Json

BOUNDS: Final = Bounds(open=200, rows=2000)
"""Open questions, of which a wearer answers one at a time, and used tokens."""
USED_S: Final = 24 * 3600.0
"""How long a used token is known as used."""
GRANT_ROWS: Final = 2000
_OPEN: Final = "open"
_ALLOWED_STEP: Final = "ADMITTED"
_NEWEST: Final = "SELECT * FROM confirmations WHERE call_id = ? ORDER BY seq DESC LIMIT 1"


class Confirmations:
    """Open questions and grants. A question is over when a reboot made its age uncertain."""

    def __init__(
        self,
        db: SqliteDatabase,
        clock: Clock,
        check: Check,
        *,
        bounds: Bounds = BOUNDS,
    ) -> None:
        self._db = db
        self._stamper = Stamper(clock)
        self._steps = Steps(check, self._stamper)
        self._bounds = bounds
        self._grant_changes = 0
        self._granted: dict[tuple[str, str], Granted] | None = None
        """Cache of all grants: only this process writes the table, and every call reads it."""

    async def ask(self, asked: Asked) -> None:
        """Store an open question, in place of an older one for its call.

        `left_s` is its life. Raise StoreFull, also when too many are open.
        """

        def work(connection: Connection) -> None:
            self._forget(connection, asked.call_id)
            sql = "SELECT count(*) FROM confirmations WHERE status = 'open'"
            (count,) = connection.execute(sql).fetchone()
            if count >= self._bounds.open:
                raise StoreFull(
                    f"{count} questions wait for a yes; no more are asked until some are decided"
                )
            about = (asked.call_id, asked.tool, asked.token_hash, asked.args_hash)
            who = (asked.user_id, asked.session)
            connection.execute(
                "INSERT INTO confirmations(call_id, tool, token_hash, args_hash, user_id, session,"
                " status, life_s, boot_id, boot_at, wall_at, synced)"
                " VALUES (?,?,?,?,?,?,'open',?,?,?,?,?)",
                (*about, *who, asked.left_s, *self._stamper.now()),
            )

        await self._db.write(work)

    async def consume(
        self,
        token_hash: str,
        *,
        allow: bool,
        tool: str | None = None,
        args_hash: str | None = None,
        user_id: str,
        session: str | None = None,
    ) -> Consumed:
        """Use a token up and admit its call in one transaction: of two consumers one is TAKEN.

        The other is USED. The token must fit what is not None.
        """
        asked_for = {"tool": tool, "args_hash": args_hash, "user_id": user_id, "session": session}

        def work(connection: Connection) -> Consumed:
            sql = "SELECT * FROM confirmations WHERE token_hash = ?"
            row = connection.execute(sql, (token_hash,)).fetchone()
            if row is not None and row["user_id"] != user_id:
                return Consumed(Consumption.MISMATCH)  # a stranger learns nothing more
            matches = row is not None and all(
                value is None or row[name] == value for name, value in asked_for.items()
            )
            return self._consume(connection, row, allow=allow, matches=matches)

        return await self._db.write(work, grows=False)

    async def consume_call(self, call_id: str, *, allow: bool) -> Consumed:
        """Take the wearer's own answer to the newest question about this call."""

        def work(connection: Connection) -> Consumed:
            row = connection.execute(_NEWEST, (call_id,)).fetchone()
            return self._consume(connection, row, allow=allow, matches=True)

        return await self._db.write(work, grows=False)

    async def subject(self, call_id: str) -> str:
        """Return `args_hash` of the newest question about this call; "" if there was none."""
        row = await self._db.read(lambda c: c.execute(_NEWEST, (call_id,)).fetchone())
        return "" if row is None else str(row["args_hash"])

    async def open(self) -> list[Asked]:
        """Open questions with time left whose call still waits, oldest first."""
        sql = (
            "SELECT q.* FROM confirmations q JOIN calls c ON c.call_id = q.call_id"
            " AND c.response IS NULL WHERE q.status = 'open' ORDER BY q.seq"
        )
        rows = await self._db.read(lambda c: c.execute(sql).fetchall())
        return [asked for row in rows if (asked := self._question_of(row)).left_s > 0]

    # -------------------------------------------------------------- decided for good

    async def grant(self, user_id: str, tool: str, granted: Granted) -> None:
        """Store ALWAYS or NEVER; ONCE deletes. Raise StoreFull."""

        def work(connection: Connection) -> None:
            connection.execute("DELETE FROM grants WHERE user_id = ? AND tool = ?", (user_id, tool))
            if granted.grant is Grant.ONCE:
                return
            if connection.execute("SELECT count(*) FROM grants").fetchone()[0] >= GRANT_ROWS:
                raise StoreFull(f"{GRANT_ROWS} grants are kept; revoke some: glassd grants")
            since = self._stamper.now().wall_at
            connection.execute(
                "INSERT INTO grants(user_id, tool, worth, wall_at, definition, origin)"
                " VALUES (?,?,?,?,?,?)",
                (user_id, tool, granted.grant.value, since, granted.definition, granted.origin),
            )

        # A NEVER must be taken on a full store too: it is a person's no.
        try:
            await self._db.write(work, grows=granted.grant is Grant.ALWAYS)
        finally:
            self._granted = None  # also when nobody knows whether it was written
            self._grant_changes += 1

    async def granted(self, user_id: str, tool: str) -> Granted:
        known, changes = self._granted, self._grant_changes
        if known is None:
            rows = await self._db.read(lambda c: c.execute("SELECT * FROM grants").fetchall())
            known = {
                (row["user_id"], row["tool"]): Granted(
                    Grant(row["worth"]), row["definition"], row["origin"]
                )
                for row in rows
            }
            self._granted = known if changes == self._grant_changes else None
        return known.get((user_id, tool), Granted())

    async def grants(self, user_id: str) -> list[Mapping[str, Json]]:
        """`[{tool, grant, since_wall, definition, origin}]` by tool."""
        sql = (
            "SELECT tool, worth AS grant, wall_at AS since_wall, definition, origin FROM grants"
            " WHERE user_id = ? ORDER BY tool"
        )
        return await self._db.read(lambda c: [dict(row) for row in c.execute(sql, (user_id,))])

    # -------------------------------------------------------------- in the store's thread

    def _consume(
        self, connection: Connection, row: Row | None, *, allow: bool, matches: bool
    ) -> Consumed:
        if row is None:
            return Consumed(Consumption.EXPIRED)
        if row["status"] != _OPEN:
            return Consumed(Consumption.USED, row["call_id"])
        sql = "SELECT * FROM calls WHERE call_id = ?"
        call = connection.execute(sql, (row["call_id"],)).fetchone()
        waits = (
            call is not None
            and call["response"] is None
            and self._steps.listed(call["state"], _ALLOWED_STEP)
        )
        if not waits or self._left_s(row) <= 0:
            return Consumed(Consumption.EXPIRED, row["call_id"])
        if not matches:
            return Consumed(Consumption.MISMATCH, row["call_id"])
        connection.execute(
            "UPDATE confirmations SET status = ?, boot_id = ?, boot_at = ?, wall_at = ?,"
            " synced = ?, life_s = ? WHERE seq = ?",
            ("allowed" if allow else "denied", *self._stamper.now(), USED_S, row["seq"]),
        )
        if allow:
            self._steps.take(connection, call, _ALLOWED_STEP, "confirmed")
        return Consumed(Consumption.TAKEN, row["call_id"])

    def _left_s(self, row: Row) -> float:
        stamp = Timestamp.of_row(row)
        return self._stamper.left_s(stamp, row["life_s"]) if self._stamper.sure(stamp) else 0.0

    def _question_of(self, row: Row) -> Asked:
        names = ("call_id", "token_hash", "tool", "args_hash", "user_id", "session")
        return Asked(**{name: row[name] for name in names}, left_s=self._left_s(row))

    def _forget(self, connection: Connection, call_id: str) -> None:
        """Make room: what is late, void, or was used long ago."""
        connection.execute(
            "DELETE FROM confirmations WHERE status = 'open' AND (call_id = ?"
            " OR call_id IN (SELECT call_id FROM calls WHERE response IS NOT NULL))",
            (call_id,),
        )
        rows = connection.execute("SELECT * FROM confirmations").fetchall()
        late = [(row["seq"],) for row in rows if self._is_late(row)]
        connection.executemany("DELETE FROM confirmations WHERE seq = ?", late)
        keep_newest(connection, "confirmations", "seq", self._bounds, among="status <> 'open'")

    def _is_late(self, row: Row) -> bool:
        if row["status"] == _OPEN:
            return self._left_s(row) <= 0
        return self._stamper.age_s(Timestamp.of_row(row)) > USED_S
