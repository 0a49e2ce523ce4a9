"""What the cloud has not acknowledged: calls until their result, the rest until its PUBACK.

Three lanes, each with its own bound and policy; the uplink ends a message whose `left_s` is over.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeVar

from msgspec import Struct

from edge.runtime.clock import Clock
from edge.storage.size_bounds import Bounds
from edge.storage.sqlite.database import (
    Connection,
    DiskUnavailable,
    Row,
    SqliteDatabase,
    StoreFull,
    Work,
)
from edge.storage.sqlite.errors import UplinkBusy
from edge.storage.sqlite.totals import Totals
from edge.storage.timestamps import Stamper, Timestamp
from tools_cache.api.tool import Json

T = TypeVar("T")
MAX_BYTES: Final = 8 * 1024 * 1024
CALLS: Final = Bounds(2000, MAX_BYTES)
ANSWERS: Final = Bounds(1000, MAX_BYTES)
TELLS: Final = Bounds(1000, MAX_BYTES)
_WAITING: Final = Totals(
    "outbox", counts="1", size="{row}.size", part="{row}.lane", changes="lane, size"
)


class OutboxLane(StrEnum):
    CALL = "call"
    """calls until their result"""
    ANSWER = "answer"
    """results of invocations until their PUBACK"""
    TELL = "tell"
    """small facts until their PUBACK"""


class OutboxPolicy(StrEnum):
    """What happens to a lane that is full."""

    REFUSE = "refuse"
    """`put` raises, so the caller knows at once"""
    HOLD = "hold"
    """nothing is dropped; `Inbox.take` takes no new invocations until there is room"""
    DROP_OLDEST = "drop oldest"
    """the newest says more"""


POLICIES: Final[Mapping[OutboxLane, OutboxPolicy]] = MappingProxyType(
    {
        OutboxLane.CALL: OutboxPolicy.REFUSE,
        OutboxLane.ANSWER: OutboxPolicy.HOLD,
        OutboxLane.TELL: OutboxPolicy.DROP_OLDEST,
    }
)


class OutRow(Struct, frozen=True):
    """One row without its body. `left_s` and `age_s` are of the moment it was read."""

    seq: int
    lane: str
    kind: str
    id: str
    topic: str
    as_json: bool
    accepted: bool
    left_s: float
    age_s: float


class Put(Struct, frozen=True):
    """A stored row's number, and the numbers of those that were dropped for it."""

    seq: int
    dropped: tuple[int, ...] = ()


class Outbox:
    """Each method returns after its change is on disk, if it does not say otherwise."""

    def __init__(
        self, db: SqliteDatabase, clock: Clock, *, calls: Bounds = CALLS, tells: Bounds = TELLS
    ) -> None:
        self._db = db
        self._bounds = {OutboxLane.CALL: calls, OutboxLane.TELL: tells}
        self._stamper = Stamper(clock)

    async def load(self) -> list[OutRow]:
        """Everything in it, oldest first."""
        sql = "SELECT * FROM outbox ORDER BY seq"
        return await self._db.read(lambda c: [self._out_row(row) for row in c.execute(sql)])

    def _out_row(self, row: Row) -> OutRow:
        stamp = Timestamp.of_row(row)
        return OutRow(
            seq=row["seq"],
            lane=row["lane"],
            kind=row["kind"],
            id=row["id"],
            topic=row["topic"],
            as_json=bool(row["as_json"]),
            accepted=bool(row["accepted"]),
            left_s=self._stamper.left_s(stamp, row["ttl_s"]),
            age_s=self._stamper.age_s(stamp),
        )

    async def body(self, seq: int) -> dict[str, Json] | None:
        """Return the body as it was put; None when the row is gone."""
        sql = "SELECT body FROM outbox WHERE seq = ?"
        row = await self._db.read(lambda c: c.execute(sql, (seq,)).fetchone())
        return None if row is None else json.loads(row["body"])

    async def put(
        self,
        lane: str,
        kind: str,
        call_id: str,
        *,
        topic: str,
        body: Mapping[str, Json],
        ttl_s: float,
        as_json: bool = False,
        age_s: float = 0.0,
    ) -> Put:
        """Store one message; an answer also beside its invocation, for a caller who asks twice.

        Raise UplinkBusy when the call lane is full, DiskUnavailable when the disk takes nothing.
        """
        work = self.putting(
            lane, kind, call_id, topic=topic, body=body, ttl_s=ttl_s, as_json=as_json, age_s=age_s
        )
        return await self.store(work, grows=lane == OutboxLane.CALL)

    async def store(self, work: Work[T], *, grows: bool, soon: bool = False) -> T:
        """Run `putting`, or work that contains it, in a transaction of its own. Raise as `put`."""
        try:
            return await self._db.write(work, grows=grows, soon=soon)
        except DiskUnavailable:
            raise
        except StoreFull as error:
            raise UplinkBusy(str(error)) from error

    def putting(
        self,
        lane: str,
        kind: str,
        call_id: str,
        *,
        topic: str,
        body: Mapping[str, Json],
        ttl_s: float,
        as_json: bool = False,
        age_s: float = 0.0,
    ) -> Work[Put]:
        """Return the work of `put`, for a transaction of the caller's. It raises UplinkBusy."""
        text = json.dumps(dict(body), separators=(",", ":"))
        stamp = self._stamper.now(age_s=age_s)

        def work(connection: Connection) -> Put:
            dropped = self._make_room(connection, OutboxLane(lane), len(text))
            if lane == OutboxLane.ANSWER:
                connection.execute(
                    "UPDATE inbox SET answer = ?, size = size + ?"
                    " WHERE kind = 'call' AND id = ? AND answer IS NULL",
                    (text, len(text), call_id),
                )
            (seq,) = connection.execute(
                "INSERT INTO outbox(lane, kind, id, topic, body, as_json, ttl_s, boot_id, boot_at,"
                " wall_at, synced, size) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"
                " ON CONFLICT(id) WHERE lane = 'call' DO UPDATE SET id = id RETURNING seq",
                (lane, kind, call_id, topic, text, as_json, ttl_s, *stamp, len(text)),
            ).fetchone()
            return Put(seq, dropped)

        return work

    async def remove(self, seqs: Sequence[int], *, failed: Callable[[BaseException], None]) -> None:
        """Forget rows; unknown numbers are fine. Nobody waits for the disk: until then a restart
        sends them once more. `failed` gets the reason if they stay.
        """
        rows = [(seq,) for seq in seqs]
        sql = "DELETE FROM outbox WHERE seq = ?"
        await self._db.behind(lambda c: c.executemany(sql, rows), failed=failed)

    async def count(self) -> int:
        sql = "SELECT count(*) FROM outbox"
        return int(await self._db.read(lambda c: c.execute(sql).fetchone()[0]))

    def _make_room(self, connection: Connection, lane: OutboxLane, size: int) -> tuple[int, ...]:
        policy = POLICIES[lane]
        if policy is OutboxPolicy.HOLD:
            return ()
        rows, used = waiting(connection, lane)
        more = size - 1  # what is stored may just reach the bound
        if not self._bounds[lane].full(rows, used + more):
            return ()
        if policy is OutboxPolicy.REFUSE:
            raise UplinkBusy(
                f"{rows} calls wait for the cloud; no more are taken until some are delivered"
            )
        dropped: list[int] = []
        oldest = "SELECT seq, size FROM outbox WHERE lane = ? ORDER BY seq"
        for row in connection.execute(oldest, (lane,)).fetchall():
            if not self._bounds[lane].full(rows, used + more):
                break
            dropped.append(row["seq"])
            rows, used = rows - 1, used - row["size"]
        connection.executemany("DELETE FROM outbox WHERE seq = ?", [(seq,) for seq in dropped])
        return tuple(dropped)


def waiting(connection: Connection, lane: OutboxLane) -> tuple[int, int]:
    """Return the rows of a lane and their bytes."""
    return _WAITING.of(connection, lane)
