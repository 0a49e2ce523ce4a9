"""What the worker has taken on, on disk: written before a call is acknowledged, asked before one is run.

Refuses to know MQTT. Any number of workers of one process may share it; after a restart it says what was left undone.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from edge.store.db import Connection, Database, Row
from tools_cache.tool import CallOrigin, Json, Mode, ToolCall, ToolResponse

KEEP_S: Final = 600.0
"""How long an answer outlives its call, for duplicates that come late."""
PRUNE_EVERY: Final = 100

TAKEN, SENT, DONE = "taken", "sent", "done"

_MIGRATIONS: Final = (
    """
    CREATE TABLE calls (
        edge TEXT NOT NULL,
        id TEXT NOT NULL,
        tool TEXT NOT NULL,
        state TEXT NOT NULL,
        runs INTEGER NOT NULL DEFAULT 0,
        request TEXT,
        response TEXT,
        told INTEGER NOT NULL DEFAULT 0,
        ends_wall REAL NOT NULL,
        taken_wall REAL NOT NULL,
        PRIMARY KEY (edge, id)
    ) WITHOUT ROWID;
    CREATE INDEX calls_open ON calls (taken_wall) WHERE told = 0;
    CREATE INDEX calls_end ON calls (ends_wall);
    """,
)
# The key holds the edge: no edge can ask for another one's answer by its id.


@dataclass(frozen=True, slots=True)
class Job:
    """One call as a worker sees it: whose, what, and how to answer. `ends_wall` is its deadline."""

    edge: str
    call: ToolCall
    reply_to: str
    as_json: bool
    ends_wall: float

    @property
    def key(self) -> tuple[str, str]:
        return self.edge, self.call.call_id

    def refreshed(self, now: float) -> "Job":
        """The same with what is left of its life now."""
        return replace(self, call=replace(self.call, ttl_s=max(0.0, self.ends_wall - now)))


@dataclass(frozen=True, slots=True)
class Taken:
    """What is known of a call: `fresh`, or how far it got and, when it is over, its answer."""

    fresh: bool
    state: str = TAKEN
    response: ToolResponse | None = None


@dataclass(frozen=True, slots=True)
class Left:
    """A call from before: still to be done (`response` None) or still to be told."""

    job: Job
    state: str
    response: ToolResponse | None = field(default=None)


class Journal:
    """Every method returns after its change is on disk. Store errors pass through to the caller."""

    def __init__(self, db: Database, *, wall: Callable[[], float] = time.time) -> None:
        self._db = db
        self._wall = wall
        self._since_prune = 0

    @classmethod
    async def open(cls, path: Path, *, wall: Callable[[], float] = time.time) -> "Journal":
        return cls(await Database.open(path, _MIGRATIONS), wall=wall)

    async def close(self) -> None:
        # Shielded: a cancelled shutdown must not leave the writer thread behind.
        await asyncio.shield(self._db.close())

    async def take(self, job: Job) -> Taken:
        """Store a call that was never seen; else say what is known of it."""
        now = self._wall()
        self._since_prune += 1
        prune = self._since_prune % PRUNE_EVERY == 0
        row = (job.edge, job.call.call_id, job.call.tool, TAKEN, _job_text(job), job.ends_wall, now)

        def work(db: Connection) -> Taken:
            if prune:
                db.execute("DELETE FROM calls WHERE ends_wall < ?", (now - KEEP_S,))
            known = _known(db, job)
            if not known.fresh:
                return known
            db.execute(
                "INSERT INTO calls (edge, id, tool, state, request, ends_wall, taken_wall) VALUES (?,?,?,?,?,?,?)", row
            )
            return known

        return await self._db.write(work)

    async def look(self, job: Job) -> Taken:
        """What `take` would say, without storing anything."""
        return await self._db.read(lambda db: _known(db, job))

    async def sending(self, job: Job) -> None:
        """The app is about to be asked: from here on it may have happened."""
        sql = "UPDATE calls SET state = ?, runs = runs + 1 WHERE edge = ? AND id = ?"
        await self._db.write(lambda db: db.execute(sql, (SENT, *job.key)).rowcount, grows=False)

    async def finish(self, job: Job, response: ToolResponse) -> None:
        """Store the one answer; the request is forgotten but for whom to tell."""
        sql = "UPDATE calls SET state = ?, response = ?, request = ? WHERE edge = ? AND id = ? AND state <> ?"
        values = (DONE, json.dumps(response.to_json(), ensure_ascii=False), _job_text(job, with_args=False), *job.key, DONE)
        await self._db.write(lambda db: db.execute(sql, values).rowcount, grows=False)

    async def told(self, job: Job) -> None:
        """The broker has the answer."""
        sql = "UPDATE calls SET told = 1, request = NULL WHERE edge = ? AND id = ?"
        await self._db.write(lambda db: db.execute(sql, job.key).rowcount, grows=False)

    async def left(self) -> list[Left]:
        """Calls not yet answered or not yet told, oldest first."""
        sql = "SELECT * FROM calls WHERE told = 0 AND request IS NOT NULL ORDER BY taken_wall LIMIT 1000"
        rows = await self._db.read(lambda db: db.execute(sql).fetchall())
        now = self._wall()
        return [Left(_job(row).refreshed(now), row["state"], _response(row["response"])) for row in rows]

    async def recent(self, limit: int) -> list[dict[str, Json]]:
        """For people: newest first, with how often each was really run."""
        sql = "SELECT edge, id, tool, state, runs, told, taken_wall FROM calls ORDER BY taken_wall DESC LIMIT ?"
        rows = await self._db.read(lambda db: db.execute(sql, (limit,)).fetchall())
        now = self._wall()
        return [
            {"id": r["id"], "edge": r["edge"], "tool": r["tool"], "state": r["state"], "runs": r["runs"],
             "told": bool(r["told"]), "ageS": round(now - r["taken_wall"], 1)} for r in rows
        ]  # fmt: skip

    async def totals(self) -> dict[str, int]:
        """Calls kept, and how often apps were really asked for them."""
        sql = "SELECT count(*) AS calls, coalesce(sum(runs), 0) AS runs FROM calls"
        row = await self._db.read(lambda db: db.execute(sql).fetchone())
        return {"calls": row["calls"], "runs": row["runs"]}


def _known(db: Connection, job: Job) -> Taken:
    row = db.execute("SELECT state, response FROM calls WHERE edge = ? AND id = ?", job.key).fetchone()
    return Taken(True) if row is None else Taken(False, row["state"], _response(row["response"]))


def _job_text(job: Job, *, with_args: bool = True) -> str:
    call = job.call
    return json.dumps({
        "args": dict(call.args) if with_args else {}, "origin": call.origin.value, "mode": call.mode.value,
        "turn_id": call.turn_id, "user_id": call.user_id, "idempotency_key": call.idempotency_key,
        "reply_to": job.reply_to, "as_json": job.as_json,
    }, ensure_ascii=False)  # fmt: skip


def _job(row: Row) -> Job:
    said: Mapping[str, Any] = json.loads(row["request"])
    call = ToolCall(
        call_id=row["id"], tool=row["tool"], args=said["args"], origin=CallOrigin(said["origin"]),
        mode=Mode(said["mode"]), turn_id=said["turn_id"], user_id=said["user_id"], ttl_s=0.0,
        idempotency_key=said["idempotency_key"],
    )  # fmt: skip
    return Job(row["edge"], call, said["reply_to"], said["as_json"], row["ends_wall"])


def _response(text: str | None) -> ToolResponse | None:
    return None if text is None else ToolResponse.from_json(json.loads(text))
