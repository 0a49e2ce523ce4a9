"""Durable admissions per second: the real call store on a real file, beside bare inserts of the
same durability.

Both WAL with synchronous=FULL, on the same file system, with rows of the same size, in the same
run. One caller waits for one fsync a call; many share one (group commit): so the bare loop commits
as many at once as there are callers.
"""

import asyncio
import sqlite3
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.process import run_as_daemon
from benchmarks.usage import commits
from edge.core import call_state, idempotency
from edge.runtime.clock import Clock
from edge.runtime.ids import new_call_id
from edge.storage.calls import CallStore
from edge.storage.migrations import MIGRATIONS
from edge.storage.sqlite.database import SqliteDatabase
from tools_cache.api.tool import CallOrigin, ToolCall

CALLERS = (1, 16, 64)
ROUND = 900
"""Admissions into one fresh store: below its bound of open calls, which is part of what it does."""


@dataclass(frozen=True)
class Rate:
    """Admissions a second, commits an admission, and what the bare loop did in the same number
    of commits a row.
    """

    callers: int
    per_s: float
    commits: float
    bare_per_s: float


def measure(rounds: int = 3, *, where: Path | None = None) -> list[Rate]:
    """Medians over rounds that take turns, so that a slow moment of the disk meets both.
    `where`: the file system.
    """
    found = []
    for callers in CALLERS:
        ours, each, bare = [], [], []
        for _ in range(rounds):
            with tempfile.TemporaryDirectory(dir=where) as name:
                rate, per_call, size = run_as_daemon(_admissions(Path(name), callers))
                ours.append(rate)
                each.append(per_call)
                bare.append(_bare_inserts(Path(name) / "bare.db", size, callers))
        middle = rounds // 2
        found.append(
            Rate(callers, sorted(ours)[middle], sorted(each)[middle], sorted(bare)[middle])
        )
    return found


async def _admissions(folder: Path, callers: int) -> tuple[float, float, int]:
    """(admissions a second, commits an admission, bytes of a row)."""
    clock = Clock.system()
    path = folder / "glassd.db"
    db = await SqliteDatabase.open(path, MIGRATIONS)
    try:
        store = CallStore(db, clock, call_state.check, replayable=idempotency.replayable)
        calls = iter(
            [
                (call, idempotency.keys_of(call, "epoch"))
                for call in (new_call(clock) for _ in range(ROUND))
            ]
        )

        async def caller() -> None:
            for (
                call,
                keys,
            ) in calls:  # one iterator for all: each takes the next as soon as its own is on disk
                assert (await store.admit(call, "local", keys=keys)).fresh

        before, began = commits(path), time.perf_counter()
        await asyncio.gather(*(caller() for _ in range(callers)))
        took = time.perf_counter() - began
        each = (commits(path) - before) / ROUND
        row = await db.read(lambda c: tuple(c.execute("SELECT * FROM calls LIMIT 1").fetchone()))
    finally:
        await db.close()
    return ROUND / took, each, sum(len(str(value)) for value in row if value is not None)


def new_call(clock: Clock) -> ToolCall:
    text = "Buy two litres of milk and call the dentist about Thursday"
    return ToolCall(
        call_id=new_call_id(clock.wall()),
        tool="notes:add",
        args={"text": text},
        origin=CallOrigin.CLI,
        turn_id=new_call_id(clock.wall()),
        idempotency_key=f"key-{new_call_id(clock.wall())}",
    )


def _bare_inserts(path: Path, size: int, batch: int) -> float:
    """Inserts a second of a loop that does nothing else: `batch` rows a commit."""
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=256"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute(
        "CREATE TABLE bare (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, body TEXT NOT NULL)"
    )
    clock = Clock.system()
    rows = [(new_call_id(clock.wall()), "x" * max(1, size - 36)) for _ in range(ROUND)]
    began = time.perf_counter()
    for start in range(0, ROUND, batch):
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO bare(id, body) VALUES (?, ?)", rows[start : start + batch]
        )
        connection.execute("COMMIT")
    took = time.perf_counter() - began
    connection.close()
    return ROUND / took
