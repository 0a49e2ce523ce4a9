"""Every accepted tool call, its steps and its one answer: the table behind exactly-once.

Which steps a call may take, and which stored answers may be repeated, is passed in.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from edge.runtime.clock import Clock
from edge.storage.keys import KEY_BYTES, SESSION_CALLS, Keys, Replayable, row_response
from edge.storage.sqlite.database import Connection, Row, SqliteDatabase, StoreError, StoreFull
from edge.storage.steps import Check, Steps
from edge.storage.timestamps import Stamper, Timestamp
from tools_cache.api.tool import (
    CallOrigin,
    Delivery,
    DeliveryReport,
    Json,
    Mode,
    ToolCall,
    ToolResponse,
)

KEEP_ROWS: Final = 2000
KEEP_BYTES: Final = 16 * 1024 * 1024
"""What is kept of the answered past: days of a busy wearer."""
OPEN_ROWS: Final = 5000
"""Calls without an answer: what may queue while the cloud is away, and as much again."""
_TRIM_EVERY: Final = 32
_BEFORE: Final = "RECEIVED"
"""Where a call is before it is stored."""
_RUNNING: Final = "RUNNING"
_DELIVERED: Final = "DELIVERED"
_REACHED: Final = frozenset({Delivery.SHOWN, Delivery.SPOKEN})
_NOWHERE: Final = frozenset({Delivery.NONE, Delivery.DROPPED})

_log: Final = logging.getLogger(__name__)


class UnknownCall(StoreError):
    """No call has this id."""


@dataclass(frozen=True, slots=True)
class Admission:
    """Whether a call is new.

    `fresh`: neither its id nor its first key was seen before. Else `response` is the stored answer,
    or None while the earlier call (`call_id` of `tool`, in `turn_id`, from `origin`) still runs.
    """

    fresh: bool
    response: ToolResponse | None = None
    call_id: str = ""
    turn_id: str = ""
    tool: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A call accepted and not answered, as read back; `call.ttl_s` is the time it has left."""

    call: ToolCall
    state: str
    route: str
    keys: tuple[str, ...] = ()
    attempts: int = 0


class CallStore:
    """Every accepted call: its state, its steps, its answer. Methods return after the commit.

    `keys` are idempotency keys, the deciding one first: all are stored, only the first is looked
    up. `check(state, to)` raises when a step is not allowed; `replayable(response)` says whether an
    answer may be repeated.
    """

    def __init__(
        self,
        db: SqliteDatabase,
        clock: Clock,
        check: Check,
        *,
        replayable: Replayable,
        stamper: Stamper | None = None,
        keep_rows: int = KEEP_ROWS,
        keep_bytes: int = KEEP_BYTES,
        open_rows: int = OPEN_ROWS,
        session_calls: int = SESSION_CALLS,
    ) -> None:
        self._db = db
        self._check = check
        self._stamper = stamper or Stamper(clock)
        self._steps = Steps(check, self._stamper)
        self._keys = Keys(replayable, self._stamper, session_calls=session_calls)
        self._keep_rows = keep_rows
        self._keep_bytes = keep_bytes
        self._open_rows = open_rows
        self._finished = 0
        self._ended: int | None = None
        """Number of the last answer; None until it was read from the database."""

    async def admit(
        self,
        call: ToolCall,
        route: str,
        *,
        keys: Sequence[str] = (),
        repeatable: bool = False,
        state: str = "ADMITTED",
        running: bool = False,
    ) -> Admission:
        """Commit a call before it runs, in `state`; `running` also takes the step to RUNNING.

        Looking up and inserting are one transaction, so of two equal calls one is fresh. A key
        whose answer may not be repeated passes to this call. Raise StoreFull, also when too many
        calls are open.
        """

        def work(connection: Connection) -> Admission:
            admission = self._admit(
                connection, call, route, tuple(keys), repeatable=repeatable, state=state
            )
            if running and admission.fresh:
                self._advance(connection, call.call_id, _RUNNING)
            return admission

        return await self._db.write(work)

    async def known(self, call: ToolCall, *, keys: Sequence[str] = ()) -> Admission | None:
        """Return the call of this id or first key, None if `admit` would be fresh. A hit renews."""
        found = await self._db.read(lambda c: self._find(c, call, keys))
        if found is not None and keys:
            row = found  # a hit is rare, a miss costs no write
            with suppress(StoreFull):  # a hit that cannot be noted is a hit
                await self._db.write(lambda c: self._keys.renew(c, row), grows=False)
        return None if found is None else _admission(found)

    async def advance(self, call_id: str, state: str, *, note: str = "") -> None:
        """Take one step. RUNNING counts an attempt. Raise UnknownCall, or what `check` raises."""
        await self._db.write(lambda c: self._advance(c, call_id, state, note), grows=False)

    async def finish(self, call_id: str, state: str, response: ToolResponse) -> bool:
        """Store the one answer; False if there is one. Raise UnknownCall, or `check`'s error."""
        text = json.dumps(response.to_json(), separators=(",", ":"))
        done = await self._db.write(lambda c: self._finish(c, call_id, state, text), grows=False)
        self._finished += done
        if done and (
            self._finished == 1 or self._finished % _TRIM_EVERY == 0
        ):  # the first too: short lives must not add up
            await self._db.write(self._trim, grows=False)
        return done

    async def tell_delivery(self, call_id: str, report: DeliveryReport) -> None:
        """Store how far the result got; an unknown id is fine.

        SHOWN and SPOKEN move the call to DELIVERED if `check` allows. That it reached nobody is on
        disk soon, and before whatever is asked or written later.
        """
        text = json.dumps(report.to_json(), separators=(",", ":"))

        def work(connection: Connection) -> None:
            row = connection.execute("SELECT * FROM calls WHERE call_id = ?", (call_id,)).fetchone()
            if row is None:
                return
            sql = "UPDATE calls SET delivery = ?, size = size + ? WHERE seq = ?"
            connection.execute(sql, (text, len(text) - len(row["delivery"] or ""), row["seq"]))
            if report.state in _REACHED and self._steps.listed(row["state"], _DELIVERED):
                self._steps.take(connection, row, _DELIVERED, report.state.value)

        if report.state in _NOWHERE:
            await self._db.behind(
                work,
                failed=lambda e: _log.warning("the delivery of %s is not on disk: %s", call_id, e),
            )
        else:
            await self._db.write(work, grows=False)

    async def unfinished(self) -> list[Unfinished]:
        """Return all open calls, oldest first; `call.ttl_s` is what is left, 0 when it is over."""

        def work(connection: Connection) -> list[Unfinished]:
            rows = connection.execute(
                "SELECT * FROM calls WHERE response IS NULL ORDER BY seq"
            ).fetchall()
            return [
                Unfinished(
                    _call(row, self._stamper.left_s(Timestamp.of_row(row), row["ttl_s"])),
                    row["state"],
                    row["route"],
                    keys=tuple(json.loads(row["request"]).get("keys", ())),
                    attempts=row["attempts"],
                )
                for row in rows
            ]

        return await self._db.read(work)

    async def get(self, call_id: str) -> Mapping[str, Json] | None:
        """Return one call whole, or None: its summary and `{request, response, keys, steps}`.

        A step is `{state, at_wall, after_s, note}`; `after_s` counts from the first one.
        """

        def work(connection: Connection) -> Mapping[str, Json] | None:
            row = connection.execute("SELECT * FROM calls WHERE call_id = ?", (call_id,)).fetchone()
            if row is None:
                return None
            request = json.loads(row["request"])
            return {
                **self._summary(row),
                "keys": request.pop("keys", []),
                "request": request,
                "response": json.loads(row["response"]) if row["response"] else None,
                "steps": self._steps.story(connection, row["seq"]),
            }

        return await self._db.read(work)

    async def recent(self, limit: int, *, pending: bool) -> list[Mapping[str, Json]]:
        """Newest first; `pending` leaves only those without an answer."""
        which = "WHERE response IS NULL" if pending else ""
        sql = f"SELECT * FROM calls {which} ORDER BY seq DESC LIMIT ?"  # noqa: S608 - one of two constants
        return await self._db.read(
            lambda c: [self._summary(row) for row in c.execute(sql, (limit,))]
        )

    # -------------------------------------------------------------- in the store's thread

    def _admit(
        self,
        connection: Connection,
        call: ToolCall,
        route: str,
        keys: tuple[str, ...],
        *,
        repeatable: bool,
        state: str,
    ) -> Admission:
        found = self._find(connection, call, keys)
        if found is not None:
            if keys:
                self._keys.renew(connection, found)
            return _admission(found)
        self._check(_BEFORE, state)
        if (
            connection.execute("SELECT count(*) FROM calls WHERE response IS NULL").fetchone()[0]
            >= self._open_rows
        ):
            raise StoreFull(
                f"{self._open_rows} calls wait for an answer; no more are taken until some are done"
            )
        request, stamp = (
            json.dumps(_request(call, keys), separators=(",", ":")),
            self._stamper.now(),
        )
        (seq,) = connection.execute(
            "INSERT INTO calls(call_id, user_id, session, tool, route, state, "
            "request, repeatable, ttl_s, boot_id, boot_at,"
            " wall_at, synced, size) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?) RETURNING seq",
            (
                call.call_id,
                call.user_id,
                call.session,
                call.tool,
                route,
                state,
                request,
                repeatable,
                call.ttl_s,
                stamp.boot_id,
                stamp.boot_at,
                stamp.wall_at,
                stamp.synced,
                len(request) + sum(KEY_BYTES + len(k) for k in keys),
            ),
        ).fetchone()
        self._steps.keep(connection, seq, state)
        if keys:
            self._keys.remember(connection, call, seq, keys, repeatable=repeatable)
        return Admission(fresh=True, call_id=call.call_id, turn_id=call.turn_id)

    def _advance(self, connection: Connection, call_id: str, state: str, note: str = "") -> None:
        row = _row(connection, call_id)
        self._steps.take(connection, row, state, note)
        if state == _RUNNING:
            connection.execute(
                "UPDATE calls SET attempts = attempts + 1 WHERE seq = ?", (row["seq"],)
            )

    def _find(self, connection: Connection, call: ToolCall, keys: Sequence[str]) -> Row | None:
        row: Row | None = connection.execute(
            "SELECT * FROM calls WHERE call_id = ? AND user_id = ?", (call.call_id, call.user_id)
        ).fetchone()
        return row if row is not None or not keys else self._keys.find(connection, call, keys[0])

    def _finish(self, connection: Connection, call_id: str, state: str, text: str) -> bool:
        row = _row(connection, call_id)
        if row["response"] is not None:
            return False
        self._steps.take(connection, row, state)
        if self._ended is None:
            self._ended = connection.execute(
                "SELECT coalesce(max(ended), 0) FROM calls"
            ).fetchone()[0]
        self._ended += 1
        connection.execute(
            "UPDATE calls SET response = ?, answered_wall = ?, "
            "ended = ?, size = size + ? WHERE seq = ?",
            (text, self._stamper.now().wall_at, self._ended, len(text), row["seq"]),
        )
        self._keys.answered(connection, row)
        return True

    def _trim(self, connection: Connection) -> None:
        """Delete calls beyond the bounds, with steps and keys: those answered first.

        Not those asked first: a call that waited long has just got its answer, which nobody has
        read.
        """
        connection.execute(
            "DELETE FROM calls WHERE seq IN (SELECT seq FROM (SELECT seq, "
            "row_number() OVER w AS place, sum(size) OVER w AS bytes"
            " FROM calls WHERE response IS NOT NULL WINDOW w AS (ORDER BY "
            "coalesce(ended, 0) DESC, seq DESC)) WHERE place > ? OR bytes > ?)",
            (self._keep_rows, self._keep_bytes),
        )

    def _summary(self, row: Row) -> dict[str, Json]:
        response = row_response(row)
        told = None if response is None else response.meta.get("delivery")
        return {
            "call_id": row["call_id"],
            "tool": row["tool"],
            "state": row["state"],
            "route": row["route"],
            "user_id": row["user_id"],
            "session": row["session"],
            "attempts": row["attempts"],
            "created_wall": row["wall_at"],
            "answered_wall": row["answered_wall"],
            "age_s": round(self._stamper.age_s(Timestamp.of_row(row)), 3),
            "ok": None if response is None else response.ok,
            "code": response.error.code.value
            if response is not None and response.error is not None
            else None,
            "delivery": json.loads(row["delivery"]) if row["delivery"] else told,
        }


def _row(connection: Connection, call_id: str) -> Row:
    row: Row | None = connection.execute(
        "SELECT * FROM calls WHERE call_id = ?", (call_id,)
    ).fetchone()
    if row is None:
        raise UnknownCall(f"no call {call_id}")
    return row


def _admission(row: Row) -> Admission:
    request = json.loads(row["request"])
    return Admission(
        fresh=False,
        response=row_response(row),
        call_id=row["call_id"],
        turn_id=request["turn_id"],
        tool=row["tool"],
        origin=request["origin"],
    )


def _request(call: ToolCall, keys: tuple[str, ...]) -> dict[str, Any]:
    return {
        "call_id": call.call_id,
        "tool": call.tool,
        "args": dict(call.args),
        "origin": call.origin.value,
        "mode": call.mode.value,
        "turn_id": call.turn_id,
        "user_id": call.user_id,
        "idempotency_key": call.idempotency_key,
        "session": call.session,
        "provider_call_id": call.provider_call_id,
        "ordinal": call.ordinal,
        "replayed": call.replayed,
        "through": call.through,
        "keys": list(keys),
        **({"input": dict(call.input)} if call.input is not None else {}),
        **({"scope": dict(call.scope)} if call.scope is not None else {}),
        **({"depth": call.depth} if call.depth else {}),
    }


def _call(row: Row, ttl_s: float) -> ToolCall:
    kept = json.loads(row["request"])
    return ToolCall(
        call_id=kept["call_id"],
        tool=kept["tool"],
        args=kept["args"],
        origin=CallOrigin(kept["origin"]),
        mode=Mode(kept["mode"]),
        turn_id=kept["turn_id"],
        user_id=kept["user_id"],
        idempotency_key=kept["idempotency_key"],
        ttl_s=ttl_s,
        session=kept.get("session", ""),
        provider_call_id=kept.get("provider_call_id"),
        ordinal=kept.get("ordinal"),
        replayed=kept.get("replayed", False),
        through=kept.get("through", ""),
        input=kept.get("input"),
        scope=kept.get("scope"),
        depth=kept.get("depth", 0),
    )
