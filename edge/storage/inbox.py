"""Messages from the cloud not handled yet, on disk before the broker gets its acknowledgement.

A call and a result are remembered by id after that, so that a second copy is seen as one.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from edge.runtime.clock import Clock
from edge.storage.outbox import ANSWERS, OutboxLane, waiting
from edge.storage.size_bounds import Bounds, keep_newest
from edge.storage.sqlite.database import Connection, Row, SqliteDatabase, StoreFull
from edge.storage.sqlite.errors import UplinkBusy
from edge.storage.sqlite.totals import Totals
from edge.storage.timestamps import Stamper, Timestamp
from tools_cache.api.tool import Json

_log: Final = logging.getLogger(__name__)
BOUNDS: Final = Bounds(rows=3000, bytes=8 * 1024 * 1024)
"""Bounds of what is not handled; beyond them nothing more is taken or acknowledged.

Up to 2,000 invocations may wait, so messages about our own calls may use twice as much.
"""
KEEP: Final = Bounds(rows=5000, bytes=8 * 1024 * 1024)
"""Handled messages, with bytes of answers for callers who ask twice."""
KEEP_S: Final = 600.0
"""A handled id is remembered for its life and 10 min: longer than brokers repeat a message."""
_TRIM_EVERY: Final = 64
_REMEMBERED: Final = "('call', 'result', 'expired')"
_INVOCATION: Final = "call"
_UNHANDLED: Final = Totals(
    "inbox", counts="{row}.body IS NOT NULL", size="{row}.size", changes="body, size"
)


class Arrival(Struct, frozen=True):
    """One message to store; `ttl_s` is how long it matters.

    `accepts` and `closes` say what it means for this edge's own call that it is about. Of one that
    `accepts`, only that is stored: a restart does not give it again.
    """

    kind: str
    id: str
    body: Mapping[str, Json]
    ttl_s: float
    reply_to: str = ""
    as_json: bool = False
    accepts: bool = False
    closes: bool = False


class TakenMessage(Struct, frozen=True):
    """A new message's row number, if it has one; for a second copy None, and our `answer` to the
    first, if any.

    `held` says why a message was not taken: nothing is stored, offer it again later.
    """

    seq: int | None = None
    answer: dict[str, Json] | None = None
    held: str = ""


class InRow(Struct, frozen=True):
    """One unhandled row, as it is read back after a restart."""

    seq: int
    kind: str
    id: str
    body: dict[str, Json]
    reply_to: str
    as_json: bool
    left_s: float


class Inbox:
    """Each method returns after its change is on disk, if it does not say otherwise."""

    def __init__(
        self,
        db: SqliteDatabase,
        clock: Clock,
        *,
        bounds: Bounds = BOUNDS,
        answers: Bounds = ANSWERS,
    ) -> None:
        """`answers`: how many may wait in the outbox; beyond it no new invocation is taken."""
        self._db = db
        self._bounds = bounds
        self._answers = answers
        self._stamper = Stamper(clock)
        self._taken = _TRIM_EVERY - 1  # trimmed with the first too: short lives must not add up

    async def take(self, arrivals: Sequence[Arrival]) -> list[TakenMessage]:
        """Store what fits in one commit, in order, with its meaning for our own calls.

        What must wait is marked `held`, and so is what follows about the same call; second copies
        never wait. Raise UplinkBusy when nothing can be taken.
        """
        taken = await self._taken_of(arrivals)
        if arrivals and all(one.held for one in taken):
            raise UplinkBusy(taken[0].held)
        before, self._taken = self._taken, self._taken + len(arrivals)
        if before // _TRIM_EVERY != self._taken // _TRIM_EVERY:
            await self.trim()
        return taken

    async def _taken_of(self, arrivals: Sequence[Arrival]) -> list[TakenMessage]:
        try:
            return await self._db.write(
                lambda c: self._take(c, arrivals), grows=not all(map(_frees, arrivals))
            )
        except StoreFull as error:
            full = str(error)
        try:  # what ends an own call frees more than it needs
            return await self._db.write(lambda c: self._take(c, arrivals, full), grows=False)
        except StoreFull as error:
            raise UplinkBusy(str(error)) from error

    async def accept(
        self, call_id: str, *, stored: Callable[[], None], failed: Callable[[BaseException], None]
    ) -> None:
        """Queue that a worker has an own call: it is on disk with what is stored next, or in a
        moment. Then `stored` is called, or `failed` with the reason. Raise StoreClosed.
        """
        await self._db.behind(lambda c: _accept(c, call_id), stored=stored, failed=failed)

    async def unhandled(self) -> list[InRow]:
        """Everything not handled, in the order it came."""
        sql = "SELECT * FROM inbox WHERE body IS NOT NULL ORDER BY seq"
        return await self._db.read(lambda c: [self._in_row(row) for row in c.execute(sql)])

    def _in_row(self, row: Row) -> InRow:
        return InRow(
            seq=row["seq"],
            kind=row["kind"],
            id=row["id"],
            body=json.loads(row["body"]),
            reply_to=row["reply_to"],
            as_json=bool(row["as_json"]),
            left_s=self._stamper.left_s(Timestamp.of_row(row), row["ttl_s"]),
        )

    async def handled(self, seq: int) -> None:
        """Never give this row again; unknown numbers are fine. Nobody waits for the disk: until
        then a restart gives it once more.
        """
        await self._db.behind(lambda c: handle(c, seq), failed=_not_marked)

    async def trim(self) -> None:
        """Forget handled ids that nobody will repeat any more; nobody waits for the disk."""
        now = self._stamper.now()

        def work(connection: Connection) -> None:
            connection.execute(
                "DELETE FROM inbox WHERE body IS NULL AND ttl_s + :keep < :now"
                " - CASE WHEN boot_id = :boot THEN boot_at ELSE 0 END",
                {"boot": now.boot_id, "now": now.boot_at, "keep": KEEP_S},
            )
            keep_newest(connection, "inbox", "seq", KEEP, among="body IS NULL")

        await self._db.behind(work, failed=_not_marked)

    # -------------------------------------------------------------- in the store's thread

    def _take(
        self, connection: Connection, arrivals: Sequence[Arrival], full: str = ""
    ) -> list[TakenMessage]:
        busy = self._busy(connection) if any(a.kind == _INVOCATION for a in arrivals) else ""
        rows, used = _UNHANDLED.of(connection)
        taken: list[TakenMessage] = []
        held: dict[str, str] = {}
        for arrival in arrivals:
            why = held.get(arrival.id, "")
            more = 2 if _frees(arrival) else 1
            if not why and self._bounds.full(rows / more, used / more):
                why = f"{rows} messages from the cloud wait to be handled"
            if not why and not _frees(arrival):
                why = full or (busy if arrival.kind == _INVOCATION else "")
            if why and not self._known(connection, arrival):
                held[arrival.id] = why
                taken.append(TakenMessage(None, held=why))
            else:
                taken.append(self._take_one(connection, arrival))
                rows += taken[-1].seq is not None
        return taken

    def _busy(self, connection: Connection) -> str:
        """Return why no new invocation is taken: its answer would have no place."""
        answers, size = waiting(connection, OutboxLane.ANSWER)
        if not self._answers.full(answers, size):
            return ""
        return (
            f"{answers} answers wait for the cloud; nothing new is begun until some are delivered"
        )

    def _known(self, connection: Connection, arrival: Arrival) -> bool:
        sql = "SELECT 1 FROM inbox WHERE kind = ? AND id = ? AND kind <> 'progress'"
        return connection.execute(sql, (arrival.kind, arrival.id)).fetchone() is not None

    def _take_one(self, connection: Connection, arrival: Arrival) -> TakenMessage:
        if arrival.closes:
            connection.execute("DELETE FROM outbox WHERE lane = 'call' AND id = ?", (arrival.id,))
        elif arrival.accepts:
            _accept(connection, arrival.id)
            return TakenMessage()
        text = json.dumps(dict(arrival.body), separators=(",", ":"))
        which, how = (arrival.kind, arrival.id), (arrival.reply_to, arrival.as_json, arrival.ttl_s)
        cursor = connection.execute(
            "INSERT INTO inbox(kind, id, body, reply_to, as_json, ttl_s, boot_id, boot_at, wall_at,"
            " synced, size) VALUES (?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING",
            (*which, text, *how, *self._stamper.now(), len(text)),
        )
        if cursor.rowcount == 1:
            return TakenMessage(cursor.lastrowid)
        sql = "SELECT answer FROM inbox WHERE kind = ? AND id = ?"
        row = connection.execute(sql, which).fetchone()
        answer = json.loads(row["answer"]) if row is not None and row["answer"] else None
        return TakenMessage(None, answer)


def handle(connection: Connection, seq: int) -> None:
    """Mark a row as handled, in the caller's transaction: it is not given again."""
    connection.execute(
        "UPDATE inbox SET body = NULL, size = coalesce(length(answer), 0)"  # noqa: S608 - constants
        f" WHERE seq = ? AND kind IN {_REMEMBERED}",
        (seq,),
    )
    forget = f"DELETE FROM inbox WHERE seq = ? AND kind NOT IN {_REMEMBERED}"  # noqa: S608 - constants
    connection.execute(forget, (seq,))


def _accept(connection: Connection, call_id: str) -> None:
    sql = "UPDATE outbox SET accepted = 1 WHERE lane = 'call' AND id = ?"
    connection.execute(sql, (call_id,))


def _not_marked(error: BaseException) -> None:
    _log.warning("a message of the cloud is not marked as handled: %s", error)


def _frees(arrival: Arrival) -> bool:
    return arrival.closes or arrival.accepts
