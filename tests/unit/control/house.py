"""A real control server on a real socket, with its dependencies in memory."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

from edge.control.dependencies import ControlDependencies
from edge.control.http import HttpLimits
from edge.control.server import ControlServer
from edge.core import call_summary
from edge.core.call_state import Submission
from edge.core.grants import Grant, Granted
from edge.core.tools.snapshot import Entry
from edge.ports import Wait
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import CallAnswered
from edge.runtime.paths import owner_beside
from tools_cache.api.tool import ErrorCode, Source, ToolDefinition, ToolResponse

DEADLINE_S = 40.0
BOOM = "boom:boom"


def definition(name, *, category="utility", description="Does it. And more.", **more):
    return ToolDefinition(
        name=name,
        description=description,
        input_schema={"type": "object"},
        source=Source.LOCAL,
        category=category,
        **more,
    )


ASKED = ToolResponse.failure(
    ErrorCode.CONFIRMATION_REQUIRED,
    "Create calendar event with 2 attendees?",
    confirmation_request={
        "token": "tok-1",
        "expires": 4_000_000_000_000,
        "tool": "cal:add",
        "args": {},
        "preview": "Create calendar event with 2 attendees",
    },
)
"""What a tool that needs a yes is answered while the wearer is asked."""


def question(call):
    return {
        "call_id": call.call_id,
        "tool": call.tool,
        "origin": "this device",
        "asked_by": call.origin.value,
        "preview": "Create calendar event with 2 attendees",
        "args": dict(call.args),
        "left_s": 290.0,
    }


@dataclass
class Calls:
    """A `CallsPort` that answers at once, unless `gate` is closed. `asked`: what `begin`
    returns for which tool.
    """

    seen: list = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    answers: dict = field(default_factory=dict)
    begun: list = field(default_factory=list)
    new_ids: list = field(default_factory=list)
    """Of each call that was made, whether its id was made for it."""
    reports: list = field(default_factory=list)
    """Texts of progress of every call whose client wants them."""
    asked: dict = field(default_factory=dict)
    decided: list = field(default_factory=list)
    open: list = field(default_factory=list)
    """The questions that are open, as `questions` tells them."""
    running: dict = field(default_factory=dict)
    submitted: list = field(default_factory=list)
    submission: Submission = Submission.TAKEN

    async def call(self, call, *, progress=None, wait=Wait.ANSWER, live=False, new_id=False):
        self.seen.append((call, wait))
        self.new_ids.append(new_id)
        if call.tool == BOOM:
            raise RuntimeError("a bug of ours")
        for text in self.reports if progress is not None else ():
            await progress(text)
        await self.gate.wait()
        found = self.answers.get(call.tool)
        if found is None:
            return ToolResponse.failure(ErrorCode.TOOL_NOT_FOUND, f"no {call.tool}")
        return found.with_meta(
            tool=call.tool, callId=call.call_id, route="local", duration=3, delivery="shown"
        )

    async def begin(self, call, *, progress=None):
        self.begun.append(call)
        for text in self.reports if progress is not None else ():
            await progress(text)
        await self.gate.wait()
        asked = self.asked.get(call.tool)
        if asked is not None and asked.error and asked.error.confirmation_request:
            self.open = [*self.open, question(call)]
        return None if asked is None else asked.with_meta(tool=call.tool, callId=call.call_id)

    async def confirm(self, token, *, allow, grant=Grant.ONCE, call=None):
        self.decided.append((token, allow, grant, call))
        if token != "tok-1":
            return ToolResponse.failure(ErrorCode.EXPIRED, "There is no such question (any more)")
        if len(self.decided) > 1:
            return ToolResponse.failure(ErrorCode.USED, "This token was used before")
        if not allow:
            return ToolResponse.failure(ErrorCode.DENIED, "You said no")
        return ToolResponse(
            data={"event": 1}, meta={"route": "local", "duration": 3, "delivery": "shown"}
        )

    async def decide(self, call_id, *, allow, grant=Grant.ONCE):
        self.decided.append((call_id, allow, grant, None))
        waiting = {question["call_id"] for question in self.open}
        if call_id not in waiting:
            return ToolResponse.failure(
                ErrorCode.USED if len(self.decided) > 1 else ErrorCode.EXPIRED,
                "This confirmation was used already",
            )
        self.open = [question for question in self.open if question["call_id"] != call_id]
        if not allow:
            return ToolResponse.failure(ErrorCode.DENIED, "You said no")
        return ToolResponse(
            data={"event": 1}, meta={"route": "local", "duration": 3, "delivery": "shown"}
        )

    def questions(self):
        return [
            {"particulars": call_summary.lines(definition(each["tool"]), each["args"]), **each}
            for each in self.open
        ]

    async def cancel(self, call_id, reason):
        if call_id not in self.running:
            return False
        self.running[call_id] = reason
        return True

    async def submit(self, call_id, response, *, user_id, session):
        self.submitted.append((call_id, response, user_id, session))
        return self.submission


class Registry:
    def __init__(self):
        self.list = (
            Entry(definition("notes:add"), "Notes"),
            Entry(
                definition("cam:shot", category="media"),
                "Camera",
                hidden="needs a camera",
                missing=("CAMERA",),
            ),
        )
        self.more = {
            "cal:add": Entry(definition("cal:add", requires_confirmation="always"), "Calendar"),
            "cam:pay": Entry(definition("cam:pay", requires_confirmation="policy"), "Camera"),
        }

    def snapshot(self):
        found = {**{e.definition.name: e for e in self.list}, **self.more}
        return SimpleNamespace(
            version="7",
            entries=lambda: self.list,
            find=found.get,
            names=[e.definition.name for e in self.list],
            active=[e.definition.name for e in self.list if not e.hidden],
        )


def row(call_id="c1", **more):
    """Return a call as the store returns it."""
    return {
        "call_id": call_id,
        "tool": "notes:add",
        "state": "DELIVERED",
        "route": "local",
        "age_s": 90.0,
        "ok": True,
        "code": None,
        "delivery": "shown",
        **more,
    }


class Store:
    def __init__(self):
        self.rows = {"c1": row()}
        self.reads = 0
        """How often somebody asked for one call."""

    async def recent(self, limit, *, pending):
        return [r for r in self.rows.values() if not pending or r["ok"] is None][:limit]

    async def get(self, call_id):
        self.reads += 1
        return self.rows.get(call_id)


class Confirmations:
    def __init__(self):
        self.kept = {}
        self.broken = None

    async def grant(self, user_id, tool, granted):
        if self.broken:
            raise self.broken
        self.kept.pop((user_id, tool), None)
        if granted.grant is not Grant.ONCE:
            self.kept[user_id, tool] = granted

    async def granted(self, user_id, tool):
        return self.kept.get((user_id, tool), Granted())

    async def grants(self, user_id):
        return [
            {
                "tool": tool,
                "grant": kept.grant.value,
                "since_wall": 1_700_000_000.0,
                "definition": kept.definition,
                "origin": kept.origin,
            }
            for (user, tool), kept in sorted(self.kept.items(), key=lambda item: item[0])
            if user == user_id
        ]


class Sessions:
    def __init__(self):
        self.modes = {}
        self.moves = [
            {
                "at_wall": 2.0,
                "cause": "call",
                "call_id": "c1",
                "before": {"voice": False},
                "after": {"voice": True},
            }
        ]

    async def open(self, user_id, session, mode):
        return self.modes.setdefault((user_id, session), mode), "epoch"

    async def transitions(self, limit):
        return self.moves[:limit]


class Full(Exception):
    """What this store raises when it takes nothing new."""


@dataclass
class House:
    path: Path
    bus: Bus
    calls: Calls
    said: list
    status: dict
    server: ControlServer
    lens: dict
    drawn: dict
    store: Store
    confirmations: Confirmations
    sessions: Sessions
    registry: Registry

    def end(
        self, call_id, response: ToolResponse, *, state="ANSWERED", delivery="shown", told=True
    ):
        """Give a call its final answer: in the store, then (with `told`) on the bus."""
        error = response.error.code.value if response.error else None
        self.store.rows[call_id] = row(
            call_id,
            state=state,
            ok=response.ok,
            code=error,
            delivery=None,
            response=response.to_json(),
        )
        if told:
            self.bus.publish(
                CallAnswered(call_id, "notes:add", response.ok, "local", delivery, error or "")
            )
            self.store.rows[call_id]["delivery"] = delivery

    @property
    def owners(self) -> Path:
        """The owner's socket."""
        return owner_beside(self.path)

    async def exchange(self, raw: bytes, *, eof: bool = True, path: Path | None = None) -> bytes:
        """Send bytes as they are and read until the server hangs up."""
        reader, writer = await asyncio.open_unix_connection(str(path or self.path))
        try:
            writer.write(raw)
            if eof:
                writer.write_eof()
            async with asyncio.timeout(DEADLINE_S):
                return await reader.read()
        finally:
            writer.close()

    async def ask(
        self, method: str, path: str, body=None, headers: str = "", *, at: Path | None = None
    ):
        """One request on its own connection: (status, JSON)."""
        payload = (
            b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        )
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: "
            f"close\r\nContent-Length: {len(payload)}\r\n{headers}\r\n"
        )
        return parsed(await self.exchange(head.encode() + payload, path=at))

    async def ask_as_owner(self, method: str, path: str, body=None):
        """The same on the owner's socket."""
        return await self.ask(method, path, body, at=self.owners)


def parsed(raw: bytes):
    head, _, body = raw.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body) if body else None


@asynccontextmanager
async def open_house(
    tmp_path: Path,
    *,
    name: str = "control.sock",
    limits: HttpLimits | None = None,
    ring: int = 1024,
    **more,
) -> AsyncIterator[House]:
    """Serve until the block ends; what the server raises, the test gets."""
    path = tmp_path / name
    bus, calls, said, status, numbers = (
        Bus(),
        Calls(),
        [],
        {"version": "0.1.0", "next_action": ""},
        iter(range(1, 10**6)),
    )
    calls.gate.set()
    calls.answers["notes:add"] = ToolResponse(data={"id": 1, "text": "milk"})
    lens = {"scene": "s", "page": 1, "pages": 1, "lines": ["Hello"], "at": 1.0}
    drawn = {"lines": [{"row": 0, "text": "Hello", "x": 0}], "tiles": []}

    async def heard(text):
        said.append(text)
        return ToolResponse(data=f"heard {text}")

    store, confirmations, sessions, registry = Store(), Confirmations(), Sessions(), Registry()
    of_the_server = {
        name: more.pop(name) for name in ("group", "owner_path", "owner_group") if name in more
    }
    ports = ControlDependencies(
        **{
            "calls": calls,
            "registry": registry,
            "render": SimpleNamespace(
                lens=lambda *, exact=False: {**lens, "drawn": drawn} if exact else lens
            ),
            "store": store,
            "bus": bus,
            "status": lambda: status,
            "say": heard,
            "new_id": lambda: f"id-{next(numbers)}",
            "confirmations": confirmations,
            "sessions": sessions,
            "session_state": lambda: {"voice": True},
            **more,
        }
    )
    server = ControlServer(
        path, ports, clock=Clock(), full=(Full,), limits=limits, ring=ring, **of_the_server
    )
    server.open()
    running = asyncio.ensure_future(server.run())
    try:
        yield House(
            path,
            bus,
            calls,
            said,
            status,
            server,
            lens,
            drawn,
            store,
            confirmations,
            sessions,
            registry,
        )
        if running.done():
            await running
    finally:
        running.cancel()
        await asyncio.wait([running], timeout=DEADLINE_S)
        server.close()  # a test may end before the service had its first turn
