"""The relay of pagers: the built-in app `com.glassd.pager`, run within the worker.

It stores each message and calls `pager:deliver` at the recipient's edge until that took or refused
it, or the message expired; also after a restart. A message that was not delivered becomes a report
of that, which goes to its sender in the same way. docs/pager.md is its contract.
"""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from edge.devcloud.agent import Invoked
from edge.devcloud.registry import InstalledApp
from edge.devcloud.sdk import create_tool, params
from edge.devcloud.worker.job import Job
from edge.storage.sqlite.database import Connection, Row, SqliteDatabase, StoreError
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import ErrorCode, ErrorType, Json, ToolResponse

log = logging.getLogger(__name__)

PACKAGE: Final = "com.glassd.pager"
DELIVER: Final = "pager:deliver"
WAIT_S: Final = 7 * 86_400.0
"""Seconds that a call of these tools may wait on its edge; by what is left a message's age is
known.
"""
MAX_PAGERS: Final = 100_000
MAX_OF_EDGE: Final = 1000
MAX_WAITING: Final = 1000
"""Messages that wait for one pager."""
AT_ONCE: Final = 50
"""Edges that are called at the same time."""
LOOK_S: Final = 1.0
INVOKE_S: Final = 20.0
FIRST_PAUSE_S: Final = 1.0
MOST_PAUSE_S: Final = 30.0
_REFUSED: Final = "DENIED"
"""The code by which an edge refuses a message for good; errors of validation do so too."""

TABLES: Final = """
    CREATE TABLE pagers (
        pager TEXT PRIMARY KEY,
        edge TEXT NOT NULL,
        user TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX pagers_by_edge ON pagers (edge);
    CREATE TABLE pages (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        sender TEXT NOT NULL,
        id TEXT NOT NULL,
        recipient TEXT NOT NULL,
        body TEXT NOT NULL,
        sent_wall REAL NOT NULL,
        ends_wall REAL NOT NULL,
        state TEXT NOT NULL DEFAULT 'waits',
        UNIQUE (sender, id)
    );
    CREATE INDEX pages_waiting ON pages (recipient, number) WHERE state = 'waits';
    CREATE INDEX pages_end ON pages (ends_wall);
"""
"""Migration 4. A message's body is removed once its edge took or refused it; its id stays until it
would have expired, so that a repetition is the same message.
"""

_REPORT: Final = """
    UPDATE pages SET recipient = sender, state = 'waits', sent_wall = :now, ends_wall = :ends,
        body = json_object('undelivered', json_object('id', id, 'to', recipient, 'reason', :reason))
    WHERE state = 'waits' AND body NOT LIKE '{"undelivered"%'
"""
"""The row stays that of the message, so a repetition of it is still known."""

_PAGER: Final[Mapping[str, Json]] = {"type": "string", "pattern": "^PAGER-[A-Z0-9]{4}$"}
_MESSAGE: Final[Mapping[str, Json]] = {
    "type": "object",
    "description": "The message as it was signed; what is not listed here is passed on.",
    "properties": {
        "id": {"type": "string", "pattern": "^MSG-[A-Z0-9]{8}$"},
        "from": _PAGER,
        "to": _PAGER,
        "text": {"type": "string", "maxLength": 300},
        "original": {"type": "string", "maxLength": 4000},
        "life_s": {"type": "integer", "minimum": 3600, "maximum": 604_800},
    },
    "required": ["id", "from", "to", "text", "original", "life_s"],
    "maxProperties": 20,
}


def pager_app() -> InstalledApp:
    """Return the app as the registry has it: without a program and an address."""
    programs = {"forPrograms": True}
    tools = []
    for name, description, schema in (
        (
            "register",
            "Remember at which edge a pager is; the first edge that asks has it.",
            params(["pager"], pager=_PAGER),
        ),
        (
            "relay",
            "Take a message and deliver it at the edge of its recipient.",
            params(
                ["message", "signature"],
                message=_MESSAGE,
                signature={"type": "string", "minLength": 1, "maxLength": 200},
            ),
        ),
    ):
        made = create_tool(
            name,
            description,
            schema,
            lambda _args, _context: None,
            category="communication",
            idempotent=True,
            queueable=True,
            queue_ttl_s=WAIT_S,
        ).definition()
        tools.append({**made, "mentraExtensions": {"category": "communication", **programs}})
    return InstalledApp(PACKAGE, "Pager", tuple(tools))


# ------------------------------------------------------------------ what edges ask for


class PagerRelay:
    """Stores pagers and messages; `tools()` are for the executor. Errors of the store are raised:
    the edge asks again.
    """

    def __init__(self, db: SqliteDatabase, *, wall: Callable[[], float] = time.time) -> None:
        self.db = db
        self._wall = wall
        self.stored = asyncio.Event()
        """Set when there is a new message, for `PagerDelivery`."""

    def tools(self) -> Mapping[str, Callable[[Job], Awaitable[ToolResponse]]]:
        return {f"{PACKAGE}:register": self.register, f"{PACKAGE}:relay": self.relay}

    async def register(self, job: Job) -> ToolResponse:
        """Note that a pager is at the edge of this call, which the topic of the call says."""
        pager = str(job.call.args["pager"])
        refused = await self.db.write(lambda db: _register(db, pager, job))
        return refused or ToolResponse(data={"pager": pager, "status": "registered"})

    async def relay(self, job: Job) -> ToolResponse:
        """Store a message; the same one again changes nothing."""
        message, now = job.call.args["message"], self._wall()
        body = json.dumps(
            {"message": message, "signature": job.call.args["signature"]}, ensure_ascii=False
        )
        sent = now - max(0.0, WAIT_S - job.call.ttl_s)

        def work(db: Connection) -> ToolResponse:
            known = "SELECT 1 FROM pages WHERE sender = ? AND id = ?"
            if refused := _register(db, message["from"], job):
                return refused
            if not db.execute(known, (message["from"], message["id"])).fetchone():
                if refused := _no_place(db, message["to"]):
                    return refused
                if sent + message["life_s"] <= now:
                    return ToolResponse.failure(
                        ErrorCode.DEADLINE_EXPIRED, "The time of this message is over"
                    )
                db.execute(
                    "INSERT INTO pages (sender, id, recipient, body, sent_wall, ends_wall)"
                    " VALUES (?,?,?,?,?,?)",
                    (
                        message["from"],
                        message["id"],
                        message["to"],
                        body,
                        sent,
                        sent + message["life_s"],
                    ),
                )
            return ToolResponse(data={"id": message["id"], "status": "taken"})

        answer = await self.db.write(work)
        self.stored.set()
        return answer


def _register(db: Connection, pager: str, job: Job) -> ToolResponse | None:
    """Store whose pager it is; return why it cannot be this edge's, None if it is."""
    found = db.execute("SELECT edge, user FROM pagers WHERE pager = ?", (pager,)).fetchone()
    if found is not None:
        if (found["edge"], found["user"]) == (job.edge, job.call.user_id):
            return None
        message = f"{pager} belongs to somebody else"
        return ToolResponse.failure(ErrorCode.CONFLICT, message, suggestion="Create another")
    count = "SELECT count(*) FROM pagers"
    if db.execute(f"{count} WHERE edge = ?", (job.edge,)).fetchone()[0] >= MAX_OF_EDGE:
        return ToolResponse.failure(ErrorCode.RATE_LIMIT, f"This edge has {MAX_OF_EDGE} pagers")
    if db.execute(count).fetchone()[0] >= MAX_PAGERS:
        return ToolResponse.failure(ErrorCode.RATE_LIMIT, f"There are {MAX_PAGERS} pagers")
    db.execute("INSERT INTO pagers VALUES (?,?,?)", (pager, job.edge, job.call.user_id))
    return None


def _no_place(db: Connection, recipient: str) -> ToolResponse | None:
    """Return why no message can be taken for this pager, None if one can."""
    if not db.execute("SELECT 1 FROM pagers WHERE pager = ?", (recipient,)).fetchone():
        return ToolResponse.failure(
            ErrorCode.INVALID_ARGUMENTS, f"/message/to there is no pager {recipient}"
        )
    waiting = "SELECT count(*) FROM pages WHERE recipient = ? AND state = 'waits'"
    if db.execute(waiting, (recipient,)).fetchone()[0] >= MAX_WAITING:
        return ToolResponse.failure(
            ErrorCode.RATE_LIMIT,
            f"{MAX_WAITING} messages wait for {recipient} already",
            retry_after_ms=60_000,
        )
    return None


# ------------------------------------------------------------------ delivery


class Invoke(Protocol):
    """`Agent.invoke`."""

    def __call__(
        self, edge_id: str, tool: str, args: Mapping[str, Json], *, ttl_s: float, user_id: str
    ) -> Awaitable[Invoked]: ...


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A message and where it goes."""

    number: int
    edge: str
    user: str
    body: Mapping[str, Json]
    sent_wall: float
    ends_wall: float

    @classmethod
    def of_row(cls, row: Row) -> "_Waiting":
        body = json.loads(row["body"])
        words = ("number", "edge", "user", "sent_wall", "ends_wall")
        return cls(body=body, **{word: row[word] for word in words})


class PagerDelivery:
    """`run()` delivers what is stored, in the order of each edge, until cancelled; also what other
    workers of this cloud stored.
    """

    def __init__(
        self,
        relay: PagerRelay,
        invoke: Invoke,
        *,
        look_s: float = LOOK_S,
        first_pause_s: float = FIRST_PAUSE_S,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._relay = relay
        self._invoke = invoke
        self._look_s = look_s
        self._first_pause_s = first_pause_s
        self._wall = wall
        self._busy: set[str] = set()
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._relay.stored.clear()
                for edge in await self._edges():
                    if edge not in self._busy:
                        self._busy.add(edge)
                        tasks.create_task(self._serve(edge), name=f"pages of {edge}")
                with contextlib.suppress(TimeoutError):
                    async with timeout(self._look_s):
                        await self._relay.stored.wait()

    async def _edges(self) -> list[str]:
        """Return the edges for which messages wait. An expired one first
        becomes a report to its sender; an expired report is removed.
        """
        now = self._wall()
        sql = (
            "SELECT DISTINCT edge FROM pages JOIN pagers ON pager = recipient WHERE state = 'waits'"
        )
        try:
            if await self._relay.db.read(lambda db: _expired(db, now)):
                await self._relay.db.write(
                    lambda db: _end_expired(db, now),
                    grows=False,
                )
            rows = await self._relay.db.read(lambda db: db.execute(sql).fetchall())
        except StoreError as e:
            log.debug("messages that wait cannot be read: %s", e)
            return []
        return [row["edge"] for row in rows]

    async def _serve(self, edge: str) -> None:
        """Deliver what waits for one edge, one after the other."""
        pause_s = self._first_pause_s
        try:
            while (waiting := await self._oldest(edge)) is not None:
                async with self._turns:
                    done = await self._deliver(waiting)
                if done:
                    pause_s = self._first_pause_s
                    continue
                await asyncio.sleep(pause_s)
                pause_s = min(MOST_PAUSE_S, pause_s * 2)
        except StoreError as e:
            log.warning("messages for %s cannot be delivered now: %s", edge, e)
        finally:
            self._busy.discard(edge)

    async def _oldest(self, edge: str) -> _Waiting | None:
        sql = (
            "SELECT pages.*, edge, user FROM pages JOIN pagers ON pager = recipient"
            " WHERE edge = ? AND state = 'waits' AND ends_wall > ? ORDER BY number LIMIT 1"
        )
        now = self._wall()
        row = await self._relay.db.read(lambda db: db.execute(sql, (edge, now)).fetchone())
        return None if row is None else _Waiting.of_row(row)

    async def _deliver(self, waiting: _Waiting) -> bool:
        """Call the edge once; return whether this message is done with."""
        now = self._wall()
        answer = await self._invoke(
            waiting.edge,
            DELIVER,
            {**waiting.body, "age_s": round(max(0.0, now - waiting.sent_wall), 3)},
            ttl_s=min(INVOKE_S, max(1.0, waiting.ends_wall - now)),
            user_id=waiting.user,
        )
        error = answer.response.error
        if error is None:
            state = "delivered"
        elif error.code == _REFUSED or error.type is ErrorType.VALIDATION:
            log.info("a message is refused by %s: %s", waiting.edge, error.message)
            state = "refused"
        else:
            log.debug("a message is not delivered to %s yet: %s", waiting.edge, error.message)
            return False
        sql = "UPDATE pages SET state = ?, body = '' WHERE number = ?"

        def work(db: Connection) -> None:
            if state == "refused" and "message" in waiting.body:
                _report(db, state, self._wall(), waiting.number)
            else:
                db.execute(sql, (state, waiting.number))

        await self._relay.db.write(work)
        if state == "refused":
            self._relay.stored.set()
        return True


def _expired(db: Connection, now: float) -> bool:
    return (
        db.execute("SELECT 1 FROM pages WHERE ends_wall <= ? LIMIT 1", (now,)).fetchone()
        is not None
    )


def _end_expired(db: Connection, now: float) -> None:
    _report(db, "expired", now)
    db.execute("DELETE FROM pages WHERE ends_wall <= ?", (now,))


def _report(db: Connection, reason: str, now: float, number: int | None = None) -> None:
    """Make a message (else all whose time is over) the report that it was not delivered. A
    report that is not delivered has no report.
    """
    which = "ends_wall <= :now" if number is None else "number = :number"
    values = {"now": now, "ends": now + WAIT_S, "reason": reason, "number": number}
    db.execute(f"{_REPORT} AND {which}", values)
