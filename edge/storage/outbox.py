"""What the cloud has not acknowledged: calls until their result, the rest until its PUBACK.

Three lanes, each with its own bound and policy; the uplink ends a message whose `left_s` is over.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from edge.runtime.clock import Clock
from edge.storage.sqlite.database import Connection, DiskUnavailable, SqliteDatabase, StoreFull
from edge.storage.sqlite.errors import UplinkBusy
from edge.storage.timestamps import Stamper, Timestamp
from tools_cache.api.tool import Json

MAX_CALLS: Final = 2000
MAX_ANSWERS: Final = 1000
MAX_TELLS: Final = 1000
MAX_BYTES: Final = 8 * 1024 * 1024
"""Bounds of the lanes: rows of each, and bytes of any."""


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
    """`put` raises: whoever calls is told now"""
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


@dataclass(frozen=True, slots=True)
class OutRow:
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


@dataclass(frozen=True, slots=True)
class Put:
    """A stored row's number, and the numbers of those that had to go for it."""

    seq: int
    dropped: tuple[int, ...] = ()


class Outbox:
    """Each method returns after its change is on disk."""

    def __init__(
        self,
        db: SqliteDatabase,
        clock: Clock,
        *,
        max_rows: int = MAX_CALLS,
        max_tells: int = MAX_TELLS,
        max_bytes: int = MAX_BYTES,
        stamper: Stamper | None = None,
    ) -> None:
        """`max_rows` bounds the calls; how many answers may wait is the inbox's to know."""
        self._db = db
        self._max_rows = max_rows
        self._max_tells = max_tells
        self._max_bytes = max_bytes
        self._stamper = stamper or Stamper(clock)

    async def load(self) -> list[OutRow]:
        """Everything in it, oldest first."""

        def work(connection: Connection) -> list[OutRow]:
            rows = connection.execute("SELECT * FROM outbox ORDER BY seq").fetchall()
            return [
                OutRow(
                    seq=row["seq"],
                    lane=row["lane"],
                    kind=row["kind"],
                    id=row["id"],
                    topic=row["topic"],
                    as_json=bool(row["as_json"]),
                    accepted=bool(row["accepted"]),
                    left_s=self._stamper.left_s(Timestamp.of_row(row), row["ttl_s"]),
                    age_s=self._stamper.age_s(Timestamp.of_row(row)),
                )
                for row in rows
            ]

        return await self._db.read(work)

    async def body(self, seq: int) -> dict[str, Json] | None:
        """Return the body as it was put; None when the row is gone."""
        row = await self._db.read(
            lambda c: c.execute("SELECT body FROM outbox WHERE seq = ?", (seq,)).fetchone()
        )
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
        text = json.dumps(dict(body), separators=(",", ":"))
        stamp = self._stamper.now(age_s=age_s)

        def work(connection: Connection) -> Put:
            dropped = self._make_room(connection, OutboxLane(lane), len(text))
            if lane == OutboxLane.ANSWER:
                sql = (
                    "UPDATE inbox SET answer = ?, size = size + ? WHERE kind = "
                    "'call' AND id = ? AND answer IS NULL"
                )
                connection.execute(sql, (text, len(text), call_id))
            (seq,) = connection.execute(
                "INSERT INTO outbox(lane, kind, id, topic, body, as_json, ttl_s, "
                "boot_id, boot_at, wall_at, synced, size)"
                " VALUES (?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(id) WHERE lane = "
                "'call' DO UPDATE SET id = id RETURNING seq",
                (
                    lane,
                    kind,
                    call_id,
                    topic,
                    text,
                    as_json,
                    ttl_s,
                    stamp.boot_id,
                    stamp.boot_at,
                    stamp.wall_at,
                    stamp.synced,
                    len(text),
                ),
            ).fetchone()
            return Put(seq, dropped)

        try:
            return await self._db.write(work, grows=lane == OutboxLane.CALL)
        except DiskUnavailable:
            raise
        except StoreFull as error:
            raise UplinkBusy(str(error)) from error

    async def remove(self, seq: int) -> None:
        """Forget one row; an unknown number is fine."""
        await self._db.write(
            lambda c: c.execute("DELETE FROM outbox WHERE seq = ?", (seq,)).rowcount, grows=False
        )

    async def count(self) -> int:
        found = await self._db.read(
            lambda c: c.execute("SELECT count(*) FROM outbox").fetchone()[0]
        )
        return int(found)

    def _make_room(self, connection: Connection, lane: OutboxLane, size: int) -> tuple[int, ...]:
        policy, most = (
            POLICIES[lane],
            self._max_rows if lane is OutboxLane.CALL else self._max_tells,
        )
        if policy is OutboxPolicy.HOLD:
            return ()
        rows, used = waiting(connection, lane)
        if rows < most and used + size <= self._max_bytes:
            return ()
        if policy is OutboxPolicy.REFUSE:
            raise UplinkBusy(
                f"{rows} calls wait for the cloud; no more are taken until some are delivered"
            )
        dropped: list[int] = []
        for row in connection.execute(
            "SELECT seq, size FROM outbox WHERE lane = ? ORDER BY seq", (lane,)
        ).fetchall():
            if rows < most and used + size <= self._max_bytes:
                break
            dropped.append(row["seq"])
            rows, used = rows - 1, used - row["size"]
        connection.executemany("DELETE FROM outbox WHERE seq = ?", [(seq,) for seq in dropped])
        return tuple(dropped)


def waiting(connection: Connection, lane: OutboxLane) -> tuple[int, int]:
    """Count rows and bytes of a lane."""
    rows, used = connection.execute(
        "SELECT count(*), total(size) FROM outbox WHERE lane = ?", (lane,)
    ).fetchone()
    return rows, int(used)
