"""What it costs to take one more call while many are open, and one more message while many wait for
the cloud: the real stores on a real file, their bounds raised.
"""

import asyncio
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Self

from benchmarks.durable import new_call
from benchmarks.table import Lines, Row
from edge.core import call_state, idempotency
from edge.runtime.clock import Clock
from edge.runtime.ids import new_call_id
from edge.storage.calls import CallStore
from edge.storage.migrations import MIGRATIONS
from edge.storage.outbox import Outbox
from edge.storage.size_bounds import Bounds
from edge.storage.sqlite.database import SqliteDatabase
from tools_cache.api.tool import ToolCall

SIZES = (0, 1_000, 10_000, 100_000)
ALONE, TOGETHER = 100, 400
ENOUGH = Bounds(rows=10**6, bytes=10**10, open=10**6)
MAX_BYTES = 1 << 31

One = Callable[[], Awaitable[object]]


def measure() -> Lines:
    """Yield each size beside the empty store of the same run."""
    found = [asyncio.run(_with_open(size)) for size in SIZES]
    for what in found[0]:
        for size, measured in zip(SIZES, found, strict=True):
            unit = "/s" if "at once" in what else "ms"
            base = found[0][what]
            yield Row(f"{what}, {size} there", measured[what], unit, "0 there", base)


async def _with_open(size: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        path, clock = Path(name) / "glassd.db", Clock.system()
        async with _Stores(path, clock) as stores:
            await stores.admit()
            await stores.put()
        _multiply(path, "calls", "call_id", size)
        _multiply(path, "outbox", "id", size)
        async with _Stores(path, clock) as stores:
            began = time.perf_counter()
            await stores.outbox.load()
            load_ms = (time.perf_counter() - began) * 1e3
            return {
                "admit, alone": await _alone(stores.admit),
                f"admit, {TOGETHER} at once": await _together(stores.admit),
                "outbox.put, alone": await _alone(stores.put),
                f"outbox.put, {TOGETHER} at once": await _together(stores.put),
                "outbox.load": load_ms,
            }


class _Stores:
    """The calls and the outbox of one database."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock

    async def __aenter__(self) -> Self:
        self._db = await SqliteDatabase.open(self._path, MIGRATIONS, max_bytes=MAX_BYTES)
        replayable = idempotency.replayable
        self.calls = CallStore(
            self._db, self._clock, call_state.check, replayable=replayable, bounds=ENOUGH
        )
        self.outbox = Outbox(self._db, self._clock, calls=ENOUGH)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._db.close()

    async def admit(self) -> None:
        made: ToolCall = new_call(self._clock)
        keys = idempotency.keys_of(made, "epoch")
        assert (await self.calls.admit(made, "local", keys=keys)).fresh

    async def put(self) -> None:
        made = new_call(self._clock)
        body = {"tool": made.tool, "args": dict(made.args), "turn_id": made.turn_id}
        await self.outbox.put(
            "call", "call", made.call_id, topic="call/tools", body=body, ttl_s=40.0
        )


def _multiply(path: Path, table: str, name: str, size: int) -> None:
    """Make `size` rows of the only one, each with a name of its own."""
    connection, clock = sqlite3.connect(path), Clock.system()
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    others = ", ".join(column for column in columns if column not in {"seq", name})
    sql = f"INSERT INTO {table}({name}, {others}) SELECT ?, {others} FROM {table} LIMIT 1"
    if size:
        connection.executemany(sql, ((new_call_id(clock.wall()),) for _ in range(size - 1)))
    else:
        connection.execute(f"DELETE FROM {table}")
    connection.commit()
    connection.close()


async def _alone(one: One) -> float:
    """Return the median ms of one after the other."""
    taken = []
    for _ in range(ALONE):
        began = time.perf_counter()
        await one()
        taken.append((time.perf_counter() - began) * 1e3)
    return statistics.median(taken)


async def _together(one: One) -> float:
    """Return how many a second when all are asked for at once."""
    began = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(TOGETHER)))
    return TOGETHER / (time.perf_counter() - began)
