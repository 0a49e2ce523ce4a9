"""The worker's calls on disk: written before a call is acknowledged, checked before one is run.

Any number of workers, in one process or several, may share it: each call has one owner, and what a
dead one left is taken over by the first that checks.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from edge.core.idempotency import as_replay
from edge.devcloud.database import open_shared
from edge.devcloud.worker import keys
from edge.devcloud.worker.job import (
    BUSY,
    DONE,
    ELSEWHERE,
    PENDING,
    SENT,
    TAKEN,
    WAITS,
    Job,
    TakenJob,
    UnfinishedJob,
    response_of,
    response_text,
)
from edge.storage.sqlite.database import Connection, Row, SqliteDatabase
from tools_cache.api.tool import ErrorCode, Json, ToolResponse

KEEP_S: Final = 600.0
"""Seconds an answer is kept after its call's deadline, for late duplicates."""
PRUNE_EVERY: Final = 100
MAX_HELD: Final = 1000
"""Maximum calls that wait without running, for another call's answer or a submitted one."""
_TO_DO: Final = "told = 0 AND request IS NOT NULL AND state NOT IN ('waits', 'pending')"


@dataclass(frozen=True, slots=True)
class Ended:
    """Result of storing an answer: `stands` unless there was one before; other calls that get it;
    the call that must run after all.
    """

    stands: bool
    followers: tuple[UnfinishedJob, ...] = ()
    heir: Job | None = None


class Journal:
    """Every method returns after its change is on disk. Store errors are raised to the caller."""

    def __init__(
        self,
        db: SqliteDatabase,
        *,
        wall: Callable[[], float] = time.time,
        me: str = "",
        alive: Callable[[str], bool] = bool,
    ) -> None:
        self._db = db
        self._wall = wall
        self._me = me
        self._alive = alive
        self._since_prune = 0
        self._claimed: set[tuple[str, str]] = set()

    @classmethod
    async def open(cls, path: Path, *, wall: Callable[[], float] = time.time) -> "Journal":
        """Open a file for a single worker."""
        return cls(await open_shared(path), wall=wall)

    async def close(self) -> None:
        # Shielded: a cancelled shutdown must not leave the writer thread behind.
        await asyncio.shield(self._db.close())

    # -------------------------------------------------------------- owners within this process

    def claim(self, key: tuple[str, str]) -> bool:
        """Make a call this worker's own; False if another one has it."""
        if key in self._claimed:
            return False
        self._claimed.add(key)
        return True

    def claimed(self, key: tuple[str, str]) -> bool:
        return key in self._claimed

    def release(self, key: tuple[str, str]) -> None:
        self._claimed.discard(key)

    # -------------------------------------------------------------- on disk

    async def take(self, job: Job, *, repeatable: bool = False, room: bool = True) -> TakenJob:
        """Store a new call, or return the state of a known one.

        Its idempotency key is looked up in the same transaction: a known key returns its answer, or
        makes the call wait for it. `repeatable` tools may run twice. Without `room` no new call
        that must run is stored.
        """
        now = self._wall()
        self._since_prune += 1
        prune = self._since_prune % PRUNE_EVERY == 0

        def work(db: Connection) -> TakenJob:
            if prune:
                _prune(db, now)
            known = self._known(db, job)
            if not known.fresh:
                return known
            held = keys.find(db, job.edge, job.call, now)
            taken = held and _by_key(db, job, held, now, owner=self._me)
            if taken:
                return taken
            if not room:
                return TakenJob(True, BUSY)
            _insert(db, job, TAKEN, now, owner=self._me)
            keep_wall = max(job.ends_wall + KEEP_S, 0.0 if repeatable else now + keys.WRITES_KEEP_S)
            keys.keep(db, job.edge, job.call, repeatable=repeatable, keep_wall=keep_wall)
            return known

        return await self._db.write(work)

    def _known(self, db: Connection, job: Job) -> TakenJob:
        row = db.execute(
            "SELECT state, response, owner FROM calls WHERE edge = ? AND id = ?", job.key
        ).fetchone()
        if row is None:
            return TakenJob(True)
        if row["state"] in (TAKEN, SENT) and row["owner"] != self._me:
            if self._alive(row["owner"]):
                return TakenJob(False, ELSEWHERE)
            db.execute("UPDATE calls SET owner = ? WHERE edge = ? AND id = ?", (self._me, *job.key))
        return TakenJob(False, row["state"], response_of(row["response"]))

    async def sending(self, job: Job) -> None:
        """Record that the app is about to be called: from here on it may have executed."""
        sql = "UPDATE calls SET state = ?, runs = runs + 1 WHERE edge = ? AND id = ?"
        await self._db.write(lambda db: db.execute(sql, (SENT, *job.key)).rowcount, grows=False)

    async def hold(self, job: Job, args: Mapping[str, Json]) -> bool:
        """Record that its result will be submitted later, for these arguments; False if too many
        are waiting.
        """
        held = replace(job, call=replace(job.call, args=args))
        sql = "UPDATE calls SET state = ?, request = ? WHERE edge = ? AND id = ? AND state = ?"

        def work(db: Connection) -> bool:
            if _held(db) >= MAX_HELD:
                return False
            return db.execute(sql, (PENDING, held.text(), *job.key, TAKEN)).rowcount == 1

        return await self._db.write(work)

    async def finish(self, job: Job, response: ToolResponse, *, only_held: bool = False) -> Ended:
        """Store the answer and drop the request, except for its recipients. The first answer
        stands.

        `only_held`: only if it is not running now. Calls that waited for it get it too, or the
        oldest must run.
        """
        now = self._wall()

        def work(db: Connection) -> Ended:
            if not _finish(db, job, response, owner=self._me, only_held=only_held):
                return Ended(False)
            return _bequeath(db, job, response, now, owner=self._me)

        return await self._db.write(work, grows=False)

    async def mark_published(self, job: Job) -> None:
        """Record that the broker has the answer."""
        sql = "UPDATE calls SET told = 1, request = NULL WHERE edge = ? AND id = ?"
        await self._db.write(lambda db: db.execute(sql, job.key).rowcount, grows=False)

    async def left(self, *, by_the_dead: bool = False) -> list[UnfinishedJob]:
        """Return this worker's calls to run or publish, oldest first, without those that wait for
        something.

        `by_the_dead`: take over those of dead workers first.
        """
        sql = f"SELECT * FROM calls WHERE {_TO_DO} AND owner = ? ORDER BY taken_wall LIMIT 1000"  # noqa: S608 - our own words

        def work(db: Connection) -> list[Row]:
            if by_the_dead:
                self._inherit(db)
            return db.execute(sql, (self._me,)).fetchall()

        return self._lefts(await self._db.write(work, grows=False))

    async def inherited(self) -> list[UnfinishedJob]:
        """Take over calls of dead workers; return those to run or publish. If several workers ask,
        one gets them.
        """
        return self._lefts(await self._db.write(self._inherit, grows=False))

    def _inherit(self, db: Connection) -> list[Row]:
        owners = db.execute(
            "SELECT DISTINCT owner FROM calls WHERE told = 0 AND owner <> ?", (self._me,)
        ).fetchall()
        found: list[Row] = []
        for (owner,) in owners:
            if not self._alive(owner):
                sql = f"SELECT * FROM calls WHERE {_TO_DO} AND owner = ? ORDER BY taken_wall"  # noqa: S608 - our own words
                found += db.execute(sql, (owner,)).fetchall()
                db.execute(
                    "UPDATE calls SET owner = ? WHERE told = 0 AND owner = ?", (self._me, owner)
                )
        return found

    def _lefts(self, rows: list[Row]) -> list[UnfinishedJob]:
        return [UnfinishedJob.of_row(row, self._wall()) for row in rows]

    async def find(self, key: tuple[str, str]) -> UnfinishedJob | None:
        """Return one call of one edge; None if unknown, or if its answer was already published."""
        sql = "SELECT * FROM calls WHERE edge = ? AND id = ? AND request IS NOT NULL"
        row = await self._db.read(lambda db: db.execute(sql, key).fetchone())
        return None if row is None else UnfinishedJob.of_row(row, self._wall())

    async def is_known(self, key: tuple[str, str]) -> bool:
        """Return whether this edge ever had such a call."""
        sql = "SELECT 1 FROM calls WHERE edge = ? AND id = ?"
        return await self._db.read(lambda db: db.execute(sql, key).fetchone()) is not None

    async def overdue(self) -> tuple[list[UnfinishedJob], float | None]:
        """Return waiting calls past their deadline, and the seconds until the next one."""
        now = self._wall()
        held = "FROM calls WHERE state IN ('waits', 'pending')"
        sql = f"SELECT * {held} AND ends_wall <= ? ORDER BY ends_wall LIMIT 100"
        rows = await self._db.read(lambda db: db.execute(sql, (now,)).fetchall())
        sql = f"SELECT min(ends_wall) {held} AND ends_wall > ?"
        (soonest,) = await self._db.read(lambda db: db.execute(sql, (now,)).fetchone())
        late = [UnfinishedJob.of_row(row, now) for row in rows]
        return late, None if soonest is None else soonest - now

    async def pending(self, limit: int) -> list[dict[str, Json]]:
        """Return calls whose result can be submitted, oldest first: what was asked, and how long it
        is wanted.
        """
        sql = "SELECT * FROM calls WHERE state = 'pending' ORDER BY taken_wall LIMIT ?"
        rows = await self._db.read(lambda db: db.execute(sql, (limit,)).fetchall())
        now = self._wall()
        return [
            {
                "id": r["id"],
                "edge": r["edge"],
                "tool": r["tool"],
                "args": json.loads(r["request"])["args"],
                "ageS": _age(now, r),
                "leftS": round(r["ends_wall"] - now, 1),
            }
            for r in rows
        ]

    async def recent(self, limit: int) -> list[dict[str, Json]]:
        """Return recent calls for display, newest first, with how often each really ran."""
        sql = "SELECT * FROM calls ORDER BY taken_wall DESC LIMIT ?"
        rows = await self._db.read(lambda db: db.execute(sql, (limit,)).fetchall())
        same, now = ("id", "edge", "tool", "state", "runs"), self._wall()
        return [
            {**{key: r[key] for key in same}, "told": bool(r["told"]), "ageS": _age(now, r)}
            for r in rows
        ]

    async def totals(self) -> dict[str, int]:
        """Return the number of stored calls, and how often apps were really called for them."""
        sql = "SELECT count(*) AS calls, coalesce(sum(runs), 0) AS runs FROM calls"
        row = await self._db.read(lambda db: db.execute(sql).fetchone())
        return {"calls": row["calls"], "runs": row["runs"]}


def _age(now: float, row: Row) -> float:
    return round(now - float(row["taken_wall"]), 1)


# ------------------------------------------------------------------ inside a transaction


def _by_key(
    db: Connection, job: Job, held: keys.HeldKey, now: float, *, owner: str
) -> TakenJob | None:
    """Answer a call whose key belongs to another call; None if that one is forgotten."""
    row = db.execute(
        "SELECT response FROM calls WHERE edge = ? AND id = ?", (job.edge, held.id)
    ).fetchone()
    if row is None:
        return None
    if held.tool != job.call.tool:
        message, fix = "The idempotency key was used for another tool", "Use a key for each request"
        conflict = ToolResponse.failure(ErrorCode.CONFLICT, message, suggestion=fix)
        answer: ToolResponse | None = conflict.with_meta(
            tool=job.call.tool, callId=job.call.call_id
        )
    else:
        first = response_of(row["response"])
        answer = None if first is None else _replay(first, job, held)
    if answer is not None:
        _insert(db, job, DONE, now, owner=owner, response=answer)
        return TakenJob(True, DONE, answer)
    if _held(db) >= MAX_HELD:
        return TakenJob(True, BUSY)
    _insert(db, job, WAITS, now, owner=owner, follows=held.id)
    return TakenJob(True, WAITS)


def _insert(
    db: Connection,
    job: Job,
    state: str,
    now: float,
    *,
    owner: str,
    response: ToolResponse | None = None,
    follows: str | None = None,
) -> None:
    db.execute(
        "INSERT INTO calls (edge, id, tool, state, owner, request, "
        "response, follows, ends_wall, taken_wall)"
        " VALUES (?,?,?,?,?,?,?,?,?,?)",
        (
            *job.key,
            job.call.tool,
            state,
            owner,
            job.text(with_args=response is None),
            None if response is None else response_text(response),
            follows,
            job.ends_wall,
            now,
        ),
    )


def _finish(
    db: Connection, job: Job, response: ToolResponse, *, owner: str, only_held: bool = False
) -> bool:
    states = "state IN ('waits', 'pending')" if only_held else "state <> 'done'"
    sql = (
        "UPDATE calls SET state = ?, owner = ?, response = ?, request = ?, "  # noqa: S608
        f"follows = NULL WHERE edge = ? AND id = ? AND {states}"
    )
    values = (DONE, owner, response_text(response), job.text(with_args=False), *job.key)
    return db.execute(sql, values).rowcount == 1


def _bequeath(db: Connection, job: Job, response: ToolResponse, now: float, *, owner: str) -> Ended:
    """Return waiting duplicates the stored answer; if it may not be reused, the oldest one takes
    over the key and runs.
    """
    edge, call_id = job.key
    held = keys.of_call(db, edge, call_id)
    if held is None:
        return Ended(True)
    of_call = "edge = ? AND follows = ? AND state = 'waits' ORDER BY taken_wall"
    waiting = db.execute(f"SELECT * FROM calls WHERE {of_call}", job.key).fetchall()  # noqa: S608 - our own words
    followers = [UnfinishedJob.of_row(row, now) for row in waiting]
    if keys.keeps(response, repeatable=held.repeatable):
        answers = [_answer(db, left, response, held, owner=owner) for left in followers]
        return Ended(True, tuple(answers))
    if not followers:
        keys.forget(db, edge, call_id)
        return Ended(True)
    heir = followers[0].job
    keys.hand_over(db, edge, call_id, heir=heir.call.call_id, turn=heir.call.turn_id)
    db.execute(
        "UPDATE calls SET state = ?, owner = ?, follows = NULL WHERE edge = ? AND id = ?",
        (TAKEN, owner, *heir.key),
    )
    db.execute(
        "UPDATE calls SET follows = ? WHERE edge = ? AND follows = ?",
        (heir.call.call_id, edge, call_id),
    )
    return Ended(True, heir=heir)


def _answer(
    db: Connection, left: UnfinishedJob, response: ToolResponse, held: keys.HeldKey, *, owner: str
) -> UnfinishedJob:
    answer = _replay(response, left.job, held)
    _finish(db, left.job, answer, owner=owner)
    return replace(left, state=DONE, response=answer)


def _replay(response: ToolResponse, job: Job, held: keys.HeldKey) -> ToolResponse:
    return as_replay(response, held.turn).with_meta(callId=job.call.call_id)


def _held(db: Connection) -> int:
    sql = "SELECT count(*) FROM calls WHERE state IN ('waits', 'pending')"
    return int(db.execute(sql).fetchone()[0])


def _prune(db: Connection, now: float) -> None:
    """Delete expired calls; one whose key is still stored keeps its answer."""
    keys.prune(db, now)
    db.execute(
        "DELETE FROM calls WHERE ends_wall < ? AND NOT EXISTS"
        " (SELECT 1 FROM keys WHERE keys.edge = calls.edge AND keys.id = calls.id)",
        (now - KEEP_S,),
    )
