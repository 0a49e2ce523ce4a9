"""Every tool call this daemon took on, and its one answer: the table behind exactly-once.

Knows no state's meaning: which steps a call may take is handed in as `check`.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from edge.clock import Clock
from edge.ports import Admission
from edge.store.db import Connection, Database, Row, StoreError, StoreFull
from edge.store.stamps import Stamp, Stamper
from tools_cache.tool import CallOrigin, Json, Mode, ToolCall, ToolResponse

KEY_TTL_S: Final = 24 * 3600.0
"""How long an idempotency key replays its answer."""
KEEP_ROWS: Final = 2000
KEEP_BYTES: Final = 16 * 1024 * 1024
"""What is kept of the answered past: days of a busy wearer."""
OPEN_ROWS: Final = 1000
"""Calls without an answer; more is a fault somewhere, not a wearer."""
_TRIM_EVERY: Final = 32


class UnknownCall(StoreError):
    """No call has this id."""


class CallStore:
    """`CallStorePort`. `check(state, to)` raises when a step is not listed."""

    def __init__(
        self, db: Database, clock: Clock, check: Callable[[str, str], None], *, first_state: str = "ADMITTED",
        stamper: Stamper | None = None, keep_rows: int = KEEP_ROWS, keep_bytes: int = KEEP_BYTES,
    ) -> None:  # fmt: skip
        self._db = db
        self._check = check
        self._first_state = first_state
        self._stamper = stamper or Stamper(clock)
        self._keep_rows = keep_rows
        self._keep_bytes = keep_bytes
        self._finished = 0

    async def admit(self, call: ToolCall, route: str) -> Admission:
        """Commit a call before it runs; looking up and inserting are one transaction, so of two only one is fresh."""
        return await self._db.write(lambda c: self._admit(c, call, route))

    async def known(self, call: ToolCall) -> Admission | None:
        return await self._db.read(lambda c: _admission(self._find(c, call)))

    async def advance(self, call_id: str, state: str) -> None:
        """Move a call along. Raises UnknownCall, and whatever `check` raises."""

        def work(connection: Connection) -> None:
            self._check(_row(connection, call_id)["state"], state)
            connection.execute("UPDATE calls SET state = ? WHERE call_id = ?", (state, call_id))

        await self._db.write(work, grows=False)

    async def finish(self, call_id: str, state: str, response: ToolResponse) -> bool:
        """Store the one answer; False when there is one already."""
        text = json.dumps(response.to_json(), separators=(",", ":"))
        done = await self._db.write(lambda c: self._finish(c, call_id, state, text), grows=False)
        self._finished += done
        if done and self._finished % _TRIM_EVERY == 0:
            await self._db.write(self._trim, grows=False)
        return done

    async def unfinished(self) -> list[tuple[ToolCall, str, str]]:
        """(call, state, route), oldest first; `ttl_s` of each is what is left of its life, 0 when it is over."""

        def work(connection: Connection) -> list[tuple[ToolCall, str, str]]:
            rows = connection.execute("SELECT * FROM calls WHERE response IS NULL ORDER BY seq").fetchall()
            return [(_call(row, self._stamper.left_s(Stamp.of_row(row), row["ttl_s"])), row["state"], row["route"]) for row in rows]

        return await self._db.read(work)

    async def get(self, call_id: str) -> Mapping[str, Json] | None:
        """One call's whole story as JSON; None when it is not known (any more)."""

        def work(connection: Connection) -> Mapping[str, Json] | None:
            row = connection.execute("SELECT * FROM calls WHERE call_id = ?", (call_id,)).fetchone()
            if row is None:
                return None
            response = json.loads(row["response"]) if row["response"] else None
            return {**self._summary(row), "request": json.loads(row["request"]), "response": response}

        return await self._db.read(work)

    async def recent(self, limit: int, *, pending: bool) -> list[Mapping[str, Json]]:
        """Newest first; `pending` leaves only those without an answer."""
        which = "WHERE response IS NULL" if pending else ""
        sql = f"SELECT * FROM calls {which} ORDER BY seq DESC LIMIT ?"  # noqa: S608 - one of two constants
        return await self._db.read(lambda c: [self._summary(row) for row in c.execute(sql, (limit,))])

    # -------------------------------------------------------------- in the store's thread

    def _admit(self, connection: Connection, call: ToolCall, route: str) -> Admission:
        found = self._find(connection, call)
        if found is not None:
            return Admission(fresh=False, response=_response(found))
        if connection.execute("SELECT count(*) FROM calls WHERE response IS NULL").fetchone()[0] >= OPEN_ROWS:
            raise StoreFull(f"{OPEN_ROWS} calls wait for an answer; no more are taken until some are done")
        if call.idempotency_key is not None:  # a key whose day is over may be used anew
            sql = "UPDATE calls SET idempotency_key = NULL WHERE user_id = ? AND idempotency_key = ?"
            connection.execute(sql, (call.user_id, call.idempotency_key))
        request = json.dumps(_request(call), separators=(",", ":"))
        stamp = self._stamper.now()
        connection.execute(
            "INSERT INTO calls(call_id, user_id, idempotency_key, tool, route, state, request, ttl_s, boot_id, boot_at,"
            " wall_at, synced, size) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
            (
                call.call_id, call.user_id, call.idempotency_key, call.tool, route, self._first_state, request,
                call.ttl_s, stamp.boot_id, stamp.boot_at, stamp.wall_at, stamp.synced, len(request),
            ),
        )  # fmt: skip
        return Admission(fresh=True)

    def _find(self, connection: Connection, call: ToolCall) -> Row | None:
        row: Row | None = connection.execute("SELECT * FROM calls WHERE call_id = ?", (call.call_id,)).fetchone()
        if row is not None or call.idempotency_key is None:
            return row
        sql = "SELECT * FROM calls WHERE user_id = ? AND idempotency_key = ?"
        row = connection.execute(sql, (call.user_id, call.idempotency_key)).fetchone()
        if row is not None and row["response"] and self._stamper.age_s(Stamp.of_row(row)) > KEY_TTL_S:
            return None
        return row

    def _finish(self, connection: Connection, call_id: str, state: str, text: str) -> bool:
        row = _row(connection, call_id)
        if row["response"] is not None:
            return False
        self._check(row["state"], state)
        connection.execute(
            "UPDATE calls SET state = ?, response = ?, answered_wall = ?, size = size + ? WHERE call_id = ?",
            (state, text, self._stamper.now().wall_at, len(text), call_id),
        )
        return True

    def _trim(self, connection: Connection) -> None:
        """Forget the oldest answered calls beyond the bounds."""
        connection.execute(
            "DELETE FROM calls WHERE seq IN (SELECT seq FROM (SELECT seq, row_number() OVER w AS place, sum(size) OVER w AS bytes"
            " FROM calls WHERE response IS NOT NULL WINDOW w AS (ORDER BY seq DESC)) WHERE place > ? OR bytes > ?)",
            (self._keep_rows, self._keep_bytes),
        )

    def _summary(self, row: Row) -> dict[str, Json]:
        response = _response(row)
        return {
            "call_id": row["call_id"], "tool": row["tool"], "state": row["state"], "route": row["route"],
            "user_id": row["user_id"], "created_wall": row["wall_at"], "answered_wall": row["answered_wall"],
            "age_s": round(self._stamper.age_s(Stamp.of_row(row)), 3),
            "ok": None if response is None else response.ok,
            "code": response.error.code.value if response is not None and response.error is not None else None,
            "delivery": None if response is None else response.meta.get("delivery"),
        }  # fmt: skip


def _row(connection: Connection, call_id: str) -> Row:
    row: Row | None = connection.execute("SELECT * FROM calls WHERE call_id = ?", (call_id,)).fetchone()
    if row is None:
        raise UnknownCall(f"no call {call_id}")
    return row


def _admission(row: Row | None) -> Admission | None:
    return None if row is None else Admission(fresh=False, response=_response(row))


def _response(row: Row) -> ToolResponse | None:
    return ToolResponse.from_json(json.loads(row["response"])) if row["response"] else None


def _request(call: ToolCall) -> dict[str, Any]:
    return {
        "call_id": call.call_id, "tool": call.tool, "args": dict(call.args), "origin": call.origin.value,
        "mode": call.mode.value, "turn_id": call.turn_id, "user_id": call.user_id,
        "idempotency_key": call.idempotency_key,
    }  # fmt: skip


def _call(row: Row, ttl_s: float) -> ToolCall:
    kept = json.loads(row["request"])
    return ToolCall(
        call_id=kept["call_id"], tool=kept["tool"], args=kept["args"], origin=CallOrigin(kept["origin"]),
        mode=Mode(kept["mode"]), turn_id=kept["turn_id"], user_id=kept["user_id"],
        idempotency_key=kept["idempotency_key"], ttl_s=ttl_s,
    )  # fmt: skip
