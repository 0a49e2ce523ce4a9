"""Every accepted tool call, its steps and its one answer: the table behind exactly-once.

Which steps a call may take, and which stored answers may be repeated, is passed in.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct

from edge.ports import Alongside
from edge.runtime.clock import Clock
from edge.storage.emptied_calls import (
    FORGETS,
    HIDDEN_ARGS,
    MEDIA,
    emptied_request,
    has_media,
    without_media,
    without_secrets,
)
from edge.storage.keys import KEY_BYTES, SESSION_CALLS, Keys, Replayable, row_response
from edge.storage.size_bounds import Bounds
from edge.storage.sqlite.database import (
    Connection,
    Job,
    Row,
    SqliteDatabase,
    StoreError,
    StoreFull,
)
from edge.storage.sqlite.totals import Totals
from edge.storage.steps import ROW_BYTES as STEP_BYTES, Check, Steps
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

BOUNDS: Final = Bounds(rows=2000, bytes=16 * 1024 * 1024, open=5000)
"""Answered calls: days of a busy wearer. Open ones: a full outbox, and as many again."""
_TRIM_EVERY: Final = 32
_BEFORE: Final = "RECEIVED"
"""Where a call is before it is stored."""
_ADMITTED: Final = "ADMITTED"
_RUNNING: Final = "RUNNING"
_DELIVERED: Final = "DELIVERED"
_REACHED: Final = frozenset({Delivery.SHOWN, Delivery.SPOKEN})
_NOWHERE: Final = frozenset({Delivery.NONE, Delivery.DROPPED})

_FIELDS: Final = tuple(name for name in ToolCall.__struct_fields__ if name != "ttl_s")
_LEFT_OUT: Final[Mapping[str, Json]] = {
    "input": None,
    "scope": None,
    "depth": 0,
    "present": None,
}
"""Fields that a stored request does not have where they are this."""
MOST_MEDIA: Final = 4
"""Answers that keep their pictures and sounds, the newest: each has up to 180 kB."""
_OPEN: Final = Totals("calls", counts="{row}.response IS NULL", changes="response")
_log: Final = logging.getLogger(__name__)


class UnknownCall(StoreError):
    """No call has this id."""


class Admission(Struct, frozen=True):
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


class Unfinished(Struct, frozen=True):
    """A call accepted and not answered, as read back; `call.ttl_s` is the time it has left."""

    call: ToolCall
    state: str
    route: str
    keys: tuple[str, ...] = ()
    attempts: int = 0


class _Answer(Struct, frozen=True):
    """How a call ended: in this state, with this text as its answer, at this moment."""

    state: str
    text: str
    at: Timestamp
    delivery: DeliveryReport | None = None

    @property
    def report(self) -> str | None:
        """How far it got, as it is stored."""
        return None if self.delivery is None else _delivery_text(self.delivery)

    @property
    def size(self) -> int:
        return len(self.text) + len(self.report or "")


class _Begun(Struct, frozen=True):
    """A call that runs and is not on disk yet. `work` stores it, with its answer if it has one."""

    work: Callable[[Connection, _Answer | None], None]
    job: Job[None]


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
        bounds: Bounds = BOUNDS,
        session_calls: int = SESSION_CALLS,
    ) -> None:
        self._db = db
        self._check = check
        self._stamper = Stamper(clock)
        self._steps = Steps(check, self._stamper)
        self._keys = Keys(replayable, self._stamper, session_calls=session_calls)
        self._bounds = bounds
        self._begun: dict[str, _Begun] = {}
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
        state: str = _ADMITTED,
        then: str = "",
        secret: Sequence[str] = (),
        also: Alongside | None = None,
    ) -> Admission:
        """Commit a call before it runs, in `state`, and what goes `also` on disk with it; `then` is
        a step that it takes at once. Arguments named in `secret` stay no longer than it runs.

        Looking up and inserting are one transaction, so of two equal calls one is fresh. A key
        whose answer may not be repeated passes to this call. Raise StoreFull, also when too many
        calls are open, or what `also` raises.
        """

        def work(connection: Connection) -> tuple[Admission, Any]:
            found = self._find(connection, call, keys)
            if found is not None:
                if keys:
                    self._keys.renew(connection, found)
                return _admission(found), None
            now = self._stamper.now()
            steps = [(step, now) for step in (state, then) if step]
            self._insert(
                connection,
                call,
                route,
                tuple(keys),
                repeatable=repeatable,
                steps=steps,
                secret=secret,
            )
            stored = None if also is None else also.work(connection)
            return Admission(fresh=True, call_id=call.call_id, turn_id=call.turn_id), stored

        admission, stored = await self._db.write(work)
        if admission.fresh and also is not None:
            also.stored(stored)
        return admission

    async def admit_behind(
        self,
        call: ToolCall,
        route: str,
        *,
        keys: Sequence[str],
        failed: Callable[[BaseException], None],
        secret: Sequence[str] = (),
    ) -> None:
        """Queue a call that runs at once, and may run twice: it is on disk with what is stored
        next. `failed` gets the reason if it never is. Raise StoreClosed.
        """
        now = self._stamper.now()

        def work(connection: Connection, answer: _Answer | None) -> None:
            if self._find(connection, call, keys) is not None:
                raise StoreError("a call with this id or key is on disk already")
            steps = [(_ADMITTED, now), (_RUNNING, now)]
            self._insert(
                connection,
                call,
                route,
                tuple(keys),
                repeatable=True,
                steps=steps,
                answer=answer,
                secret=secret,
            )

        def not_stored(error: BaseException) -> None:
            self._begun.pop(call.call_id, None)
            failed(error)

        job = await self._db.behind(lambda c: work(c, None), failed=not_stored, grows=True)
        self._begun[call.call_id] = _Begun(work, job)

    async def known(self, call: ToolCall, *, keys: Sequence[str] = ()) -> Admission | None:
        """Return the call of this id or first key, None if `admit` would be fresh. A hit renews the
        key's life.
        """
        found = await self._db.read(lambda c: self._find(c, call, keys))
        if found is not None and keys:
            row = found  # a hit is rare, a miss costs no write
            await self._db.behind(  # a hit that cannot be noted is a hit
                lambda c: self._keys.renew(c, row), failed=lambda _error: None
            )
        return None if found is None else _admission(found)

    async def advance(self, call_id: str, state: str, *, note: str = "") -> None:
        """Take one step. RUNNING counts an attempt. Raise UnknownCall, or what `check` raises."""
        await self._db.write(lambda c: self._advance(c, call_id, state, note), grows=False)

    async def finish(
        self,
        call_id: str,
        state: str,
        response: ToolResponse,
        *,
        delivery: DeliveryReport | None = None,
        also: Alongside | None = None,
    ) -> bool:
        """Store the one answer, how far it got if that is known, and what goes `also` on disk with
        it; False, and nothing is stored, if there is an answer. Raise UnknownCall, or `check`'s
        error, or what `also` raises.
        """
        answer = self._answer(state, response, delivery)
        self._begun.pop(call_id, None)

        def work(connection: Connection) -> tuple[bool | None, Any]:
            emptied = self._finish(connection, call_id, answer)
            return emptied, None if also is None or emptied is None else also.work(connection)

        emptied, stored = await self._db.write(work, grows=False)
        done = emptied is not None
        if done and also is not None:
            also.stored(stored)
        if emptied:
            with suppress(StoreError):  # the answer is stored, which is what was asked for here
                await self._db.compact()
        if done:
            await self._trim_now_and_then()
        return done

    async def finish_behind(
        self,
        call_id: str,
        state: str,
        response: ToolResponse,
        *,
        delivery: DeliveryReport | None,
        failed: Callable[[BaseException], None],
    ) -> None:
        """Queue the one answer of a call that changed nothing: it is on disk with what is stored
        next, or in a moment, and in one piece with a call that is not there yet. The reason if it
        never is gets `failed`, or that of `admit_behind`. Raise StoreClosed.
        """
        answer = self._answer(state, response, delivery)
        begun = self._begun.pop(call_id, None)
        if begun is None or not self._db.replace(begun.job, lambda c: begun.work(c, answer)):
            await self._db.behind(lambda c: self._finish(c, call_id, answer), failed=failed)
        await self._trim_now_and_then()

    async def _trim_now_and_then(self) -> None:
        self._finished += 1
        if self._finished == 1 or self._finished % _TRIM_EVERY == 0:  # 1: short runs add up
            await self._db.behind(
                self._trim, failed=lambda e: _log.warning("old calls stay on disk: %s", e)
            )

    async def tell_delivery(
        self, call_id: str, report: DeliveryReport, *, also: Alongside | None = None
    ) -> None:
        """Store how far the result got, and what goes `also` on disk with it; an unknown id is
        fine.

        SHOWN and SPOKEN move the call to DELIVERED if `check` allows. If it reached nobody, this
        may return before the commit; whatever is asked or written later comes after it.
        """

        def work(connection: Connection) -> Any:
            self._note_delivery(connection, call_id, report)
            return None if also is None else also.work(connection)

        if report.state in _NOWHERE and also is None:
            await self._db.behind(
                work,
                failed=lambda e: _log.warning("the delivery of %s is not on disk: %s", call_id, e),
            )
            return
        stored = await self._db.write(work, grows=False)
        if also is not None:
            also.stored(stored)

    async def unfinished(self) -> list[Unfinished]:
        """Return all open calls, oldest first; `call.ttl_s` is what is left, 0 when it is over."""
        sql = "SELECT * FROM calls WHERE response IS NULL ORDER BY seq"
        return await self._db.read(lambda c: [self._unfinished(row) for row in c.execute(sql)])

    async def get(self, call_id: str) -> Mapping[str, Json] | None:
        """Return one call whole, or None: its summary and `{request, response, keys, steps}`.

        A step is `{state, at_wall, after_s, note}`; `after_s` counts from the first one.
        """

        def work(connection: Connection) -> Mapping[str, Json] | None:
            row = _find_id(connection, call_id)
            if row is None:
                return None
            request = json.loads(without_secrets(row["request"]))
            request.pop(HIDDEN_ARGS, None)
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

    def _insert(
        self,
        connection: Connection,
        call: ToolCall,
        route: str,
        keys: tuple[str, ...],
        *,
        repeatable: bool,
        steps: Sequence[tuple[str, Timestamp]],
        answer: _Answer | None = None,
        secret: Sequence[str] = (),
    ) -> None:
        """Store a call that has taken these steps, and the last one to its answer if it has any."""
        steps = [*steps, (answer.state, answer.at)] if answer is not None else steps
        states = [state for state, _ in steps]
        for before, after in pairwise((_BEFORE, *states)):
            self._check(before, after)
        most = self._bounds.open
        if answer is None and _OPEN.of(connection)[0] >= most:
            raise StoreFull(
                f"{most} calls wait for an answer; no more are taken until some are done"
            )
        made = _request(call, keys) | ({HIDDEN_ARGS: list(secret)} if secret else {})
        request = json.dumps(made, separators=(",", ":"), default=dict)
        request = request if answer is None else without_secrets(request)
        size = len(request) + sum(KEY_BYTES + len(k) for k in keys) + len(steps) * STEP_BYTES
        values = {
            "call_id": call.call_id,
            "user_id": call.user_id,
            "session": call.session,
            "tool": call.tool,
            "route": route,
            "state": states[-1],
            "request": request,
            "repeatable": repeatable,
            "attempts": states.count(_RUNNING),
            "ttl_s": call.ttl_s,
            **steps[0][1]._asdict(),
            "size": size if answer is None else size + answer.size,
            **({} if answer is None else self._ending(connection, answer)),
        }
        sql = f"INSERT INTO calls({', '.join(values)}) VALUES ({', '.join('?' * len(values))})"  # noqa: S608 - our columns
        seq = connection.execute(sql, tuple(values.values())).lastrowid or 0
        self._steps.begin(connection, seq, steps)
        if keys:
            self._keys.remember(connection, call, seq, keys, steps[0][1], repeatable=repeatable)
            if answer is not None:
                self._keys.answered(connection, _row(connection, call.call_id))

    def _advance(self, connection: Connection, call_id: str, state: str, note: str = "") -> None:
        row = _row(connection, call_id)
        self._steps.take(connection, row, state, note)
        if state == _RUNNING:
            sql = "UPDATE calls SET attempts = attempts + 1 WHERE seq = ?"
            connection.execute(sql, (row["seq"],))

    def _find(self, connection: Connection, call: ToolCall, keys: Sequence[str]) -> Row | None:
        row = _find_id(connection, call.call_id)
        if row is not None and row["user_id"] == call.user_id:
            return row
        return self._keys.find(connection, call, keys[0]) if keys else None

    def _finish(self, connection: Connection, call_id: str, answer: _Answer) -> bool | None:
        """Return whether arguments were emptied; None if there is an answer already."""
        row = _row(connection, call_id)
        if row["response"] is not None:
            return None
        grown = self._steps.note(connection, row, answer.state, at=answer.at) + answer.size
        grown -= len(row["delivery"] or "") if answer.delivery is not None else 0
        values = {"state": answer.state, **self._ending(connection, answer)}
        columns = ", ".join(f"{name} = ?" for name in values)
        connection.execute(
            f"UPDATE calls SET {columns}, size = size + ? WHERE seq = ?",  # noqa: S608 - our columns
            (*values.values(), grown, row["seq"]),
        )
        kept = emptied_request if row["tool"] in FORGETS else without_secrets
        emptied = bool((request := kept(row["request"])) != row["request"])
        if emptied:
            sql = "UPDATE calls SET request = ? WHERE seq = ?"
            connection.execute(sql, (request, row["seq"]))
        self._keys.answered(connection, row)
        if answer.delivery is not None and answer.delivery.state in _REACHED:
            self._note_delivery(connection, call_id, answer.delivery)
        return emptied

    def _ending(self, connection: Connection, answer: _Answer) -> dict[str, Any]:
        """Return the columns of a call that say how it ended."""
        if self._ended is None:
            newest = "SELECT coalesce(max(ended), 0) FROM calls"
            self._ended = connection.execute(newest).fetchone()[0]
        self._ended += 1
        if has_media(answer.text):
            self._drop_media(connection)
        return {
            "response": answer.text,
            "answered_wall": answer.at.wall_at,
            "ended": self._ended,
            **({} if answer.report is None else {"delivery": answer.report}),
        }

    def _drop_media(self, connection: Connection) -> None:
        """Take pictures and sounds out of all but the newest answers, before one is stored."""
        rows = connection.execute(
            "SELECT seq, response FROM calls WHERE response LIKE ? OR response LIKE ?"
            " ORDER BY ended DESC, seq DESC LIMIT -1 OFFSET ?",
            (*(f"%{each}%" for each in MEDIA), MOST_MEDIA - 1),
        ).fetchall()
        for row in rows:
            text = without_media(row["response"])
            sql = "UPDATE calls SET response = ?, size = size + ? WHERE seq = ?"
            connection.execute(sql, (text, len(text) - len(row["response"]), row["seq"]))

    def _answer(
        self, state: str, response: ToolResponse, delivery: DeliveryReport | None
    ) -> _Answer:
        text = json.dumps(response.to_json(), separators=(",", ":"))
        return _Answer(state, text, self._stamper.now(), delivery)

    def _note_delivery(self, connection: Connection, call_id: str, report: DeliveryReport) -> None:
        row = _find_id(connection, call_id)
        if row is None:
            return
        text = _delivery_text(report)
        sql = "UPDATE calls SET delivery = ?, size = size + ? WHERE seq = ?"
        connection.execute(sql, (text, len(text) - len(row["delivery"] or ""), row["seq"]))
        if report.state in _REACHED and self._steps.listed(row["state"], _DELIVERED):
            self._steps.take(connection, row, _DELIVERED, report.state.value)

    def _trim(self, connection: Connection) -> None:
        """Delete calls beyond the bounds, with steps and keys: those answered first.

        Not those asked first: a call that waited long has just got its answer, which nobody has
        read.
        """
        connection.execute(
            "DELETE FROM calls WHERE seq IN (SELECT seq FROM (SELECT seq,"
            " row_number() OVER w AS place, sum(size) OVER w AS bytes"
            " FROM calls WHERE response IS NOT NULL"
            " WINDOW w AS (ORDER BY coalesce(ended, 0) DESC, seq DESC))"
            " WHERE place > ? OR bytes > ?)",
            (self._bounds.rows, self._bounds.bytes),
        )

    def _unfinished(self, row: Row) -> Unfinished:
        call = _call(row, self._stamper.left_s(Timestamp.of_row(row), row["ttl_s"]))
        keys = tuple(json.loads(row["request"]).get("keys", ()))
        return Unfinished(call, row["state"], row["route"], keys, row["attempts"])

    def _summary(self, row: Row) -> dict[str, Json]:
        response = row_response(row)
        error = None if response is None else response.error
        delivery = None if response is None else response.meta.get("delivery")
        names = ("call_id", "tool", "state", "route", "user_id", "session", "attempts")
        return {
            **{name: row[name] for name in names},
            "created_wall": row["wall_at"],
            "answered_wall": row["answered_wall"],
            "age_s": round(self._stamper.age_s(Timestamp.of_row(row)), 3),
            "ok": None if response is None else response.ok,
            "code": None if error is None else error.code.value,
            "delivery": json.loads(row["delivery"]) if row["delivery"] else delivery,
        }


def _delivery_text(report: DeliveryReport) -> str:
    return json.dumps(report.to_json(), separators=(",", ":"))


def _find_id(connection: Connection, call_id: str) -> Row | None:
    sql = "SELECT * FROM calls WHERE call_id = ?"
    row: Row | None = connection.execute(sql, (call_id,)).fetchone()
    return row


def _row(connection: Connection, call_id: str) -> Row:
    row = _find_id(connection, call_id)
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
    values = {name: getattr(call, name) for name in _FIELDS}
    there = {n: v for n, v in values.items() if n not in _LEFT_OUT or v != _LEFT_OUT[n]}
    return there | {"keys": list(keys)}


def _call(row: Row, ttl_s: float) -> ToolCall:
    request = json.loads(row["request"])
    values = {name: request[name] for name in _FIELDS if name in request}
    values |= {"origin": CallOrigin(request["origin"]), "mode": Mode(request["mode"])}
    return ToolCall(**values, ttl_s=ttl_s)
