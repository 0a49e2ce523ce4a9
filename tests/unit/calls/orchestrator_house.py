"""An orchestrator with the real store, the real stage and real validation; below: fake glasses,
uplink and tools.
"""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from edge.calls import voice_session
from edge.calls.dependencies import CallLimits, CallPorts, CallStores
from edge.calls.orchestrator import Orchestrator
from edge.core.call_state import check
from edge.core.idempotency import replayable
from edge.core.routing import HERE, RouteKind
from edge.core.session import SessionController
from edge.core.tools.snapshot import Entry
from edge.display.presenter import Presenter
from edge.ports import (
    Alongside,
    Chosen,
    Invoked,
    NameArguments,
    NobodyToAsk,
    Progress,
    Question,
    RunTool,
    TakeLateAnswer,
    UplinkMessage,
    UplinkStatus,
    UplinkTooLarge,
)
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.ids import new_call_id
from edge.storage.calls import CallStore
from edge.storage.confirmations import Confirmations
from edge.storage.migrations import MIGRATIONS
from edge.storage.notes import Notes
from edge.storage.pending import PendingCalls
from edge.storage.results import ResultCache
from edge.storage.sessions import Sessions
from edge.storage.sqlite.database import SqliteDatabase
from firmware_bridge.messages import Answer
from tests.unit.display.fakes import DISPLAY, FakeGlasses
from tools_cache.api.tool import (
    CallOrigin,
    DeliveryReport,
    ExecutionType,
    Mode,
    RateLimit,
    SideEffects,
    Source,
    ToolCall,
    ToolDefinition,
    ToolError,
    ToolResponse,
)

CLOCK = Clock.system()
QUICK = CallLimits(
    accept_s=0.1, run_s=0.4, working_s=0.05, voice_inline_s=0.15, retry_pause_s=0.0, life_s=0.6
)
SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "top_k": {"type": "integer", "default": 5}},
}


def tool(name: str, source: Source = Source.LOCAL, **more: Any) -> ToolDefinition:
    more.setdefault("version", "1.2.3")
    return ToolDefinition(
        name=name, description="d", input_schema=more.pop("schema", SCHEMA), source=source, **more
    )


TOOLS = (
    tool(
        "notes:add",
        activation_phrases=("take a note",),
        open_to_cloud=True,
        schema={**SCHEMA, "required": ["text"]},
    ),
    tool(
        "notes:list",
        side_effects=SideEffects.READ_ONLY,
        idempotent=True,
        activation_phrases=("my notes",),
    ),
    tool("find:one", category="retrieval", side_effects=SideEffects.READ_ONLY),
    tool("danger:erase", requires_confirmation="always", open_to_cloud=True),
    tool("diary:read", requires_confirmation="always"),
    tool("desk:type", allowed_modes=frozenset({Mode.TEXT})),
    tool("glasses:show_text", Source.GLASSES),
    tool("glasses:show_card", Source.GLASSES, idempotent=True),
    tool("glasses:status", Source.GLASSES, side_effects=SideEffects.READ_ONLY),
    tool("shop:buy", Source.CLOUD),
    tool("shop:look", Source.CLOUD, side_effects=SideEffects.READ_ONLY),
    tool("mail:send", Source.CLOUD, queueable=True, queue_ttl_s=30.0),
    tool(
        "sky:now",
        Source.CLOUD,
        side_effects=SideEffects.READ_ONLY,
        idempotent=True,
        cache_ttl_s=3600.0,
    ),
    tool(
        "ask:wearer",
        Source.GLASSES,
        execution_type=ExecutionType.SPACE,
        pending_ttl_s=60.0,
        schema={"type": "object"},
    ),
    tool("job:local", execution_type=ExecutionType.EXTERNAL, pending_ttl_s=60.0),
    tool("job:cloud", Source.CLOUD, execution_type=ExecutionType.EXTERNAL, pending_ttl_s=60.0),
    tool("files:read", Source.UPSTREAM, side_effects=SideEffects.READ_ONLY, idempotent=True),
    tool("slow:down", rate_limit=RateLimit(1, 60.0), side_effects=SideEffects.READ_ONLY),
)


@dataclass(frozen=True)
class FakeSnapshot:
    tools: dict[str, Entry]
    version: str = "1.0.0abc123"

    def find(self, name: str) -> Entry | None:
        return self.tools.get(name)

    def entries(self) -> tuple[Entry, ...]:
        return tuple(self.tools.values())


class FakeRegistry:
    """Tools by hand, arguments by the real rules in miniature: required, string, integer."""

    def __init__(self) -> None:
        self.entries = {t.name: Entry(t, "app") for t in TOOLS}
        self.checked: list[dict[str, Any]] = []
        self.version = "1.0.0abc123"
        self.announced: dict[str, Entry] = {}

    def hide(self, name: str, reason: str, missing: tuple[str, ...] = ()) -> None:
        self.entries[name] = replace(self.entries[name], hidden=reason, missing=missing)

    def snapshot(self) -> FakeSnapshot:
        return FakeSnapshot(dict(self.entries), self.version)

    async def catch_up(self) -> None:
        self.entries.update(self.announced)

    def check_args(
        self, definition: ToolDefinition, args: Any
    ) -> tuple[dict[str, Any], list[dict[str, str]]]:
        properties = definition.input_schema.get("properties", {})
        filled = {**{k: s["default"] for k, s in properties.items() if "default" in s}, **args}
        self.checked.append(filled)
        kinds = {"string": str, "integer": int}
        bad = [
            {"path": "", "problem": f'"{k}" is required'}
            for k in definition.input_schema.get("required", ())
            if k not in filled
        ]
        bad += [
            {"path": f"/{k}", "problem": f"must be {properties[k]['type']}"}
            for k, v in filled.items()
            if k in properties and not isinstance(v, kinds[properties[k]["type"]])
        ]
        return filled, bad


Handler = Callable[[ToolCall, Progress], Awaitable[ToolResponse]]


class FakeTools:
    """Every backend: counts runs; `handler` decides. What is answered later is handed over."""

    def __init__(self) -> None:
        self.runs: list[ToolCall] = []
        self.ran: list[tuple[RouteKind, str]] = []
        """By which backend, and in which version of the tool."""
        self.handler: Handler = self.echo
        self.handed: list[ToolCall] = []
        self.not_taken: ToolError | None = None

    def backends(self) -> dict[RouteKind, RunTool]:
        here: dict[RouteKind, RunTool] = {kind: partial(self._run, kind) for kind in HERE}
        return {**here, RouteKind.LATER: self.hand_over}

    async def _run(
        self, kind: RouteKind, call: ToolCall, tool: ToolDefinition, progress: Progress
    ) -> ToolResponse:
        self.runs.append(call)
        self.ran.append((kind, tool.version))
        return await self.handler(call, progress)

    async def hand_over(self, call: ToolCall, *_tool_and_progress: Any) -> ToolResponse:
        self.handed.append(call)
        return ToolResponse(error=self.not_taken)

    @staticmethod
    async def echo(call: ToolCall, _: Progress) -> ToolResponse:
        return ToolResponse(data={"text": f"did {call.tool}"})


class FakeUplink:
    """`UplinkPort`: what was submitted, told and answered; `say` is the cloud's mouth."""

    def __init__(self) -> None:
        self.up = True
        self.configured = True
        self.problem: Exception | None = None
        """Why nothing can be submitted."""
        self.submitted: list[ToolCall] = []
        self.withdrawn: list[tuple[str, str]] = []
        self.done: list[UplinkMessage] = []
        self.answers: list[tuple[str, Any]] = []
        self.deliveries: list[tuple[str, DeliveryReport]] = []
        self.worker: Callable[[ToolCall], None] = lambda _: None
        self._inbox: asyncio.Queue[UplinkMessage] = asyncio.Queue()
        self._notifying: list[asyncio.Future[None]] = []
        self.changed = asyncio.Condition()

    def status(self) -> UplinkStatus:
        return UplinkStatus(
            configured=self.configured, up=self.up, reason="" if self.up else "broker unreachable"
        )

    def say(self, message: UplinkMessage) -> None:
        self._inbox.put_nowait(message)

    async def submit(self, call: ToolCall) -> None:
        if self.problem is not None:
            raise self.problem
        self.submitted.append(call)
        self.worker(call)
        await self._notify()

    def submission(self, call: ToolCall) -> Alongside:
        if isinstance(self.problem, UplinkTooLarge):
            raise self.problem

        def work(_: Any) -> None:
            if self.problem is not None:
                raise self.problem

        def stored(_: None) -> None:
            self.submitted.append(call)
            self.worker(call)
            self._notifying.append(asyncio.ensure_future(self._notify()))

        return Alongside(work, stored)

    async def withdraw(self, call_id: str, reason: str) -> None:
        self.withdrawn.append((call_id, reason))

    async def messages(self) -> AsyncIterator[UplinkMessage]:
        while True:
            yield await self._inbox.get()

    async def handled(self, message: UplinkMessage) -> None:
        self.done.append(message)
        await self._notify()

    def handling(self, message: UplinkMessage) -> Alongside:
        return self._alongside(lambda: self.done.append(message))

    async def answer(self, invoked: Invoked, answer: ToolResponse | str | None) -> None:
        self.answers.append((invoked.call.call_id, answer))
        if isinstance(answer, ToolResponse):
            self.done.append(invoked)
        await self._notify()

    def result(self, invoked: Invoked, response: ToolResponse) -> Alongside:
        def stored() -> None:
            self.answers.append((invoked.call.call_id, response))
            self.done.append(invoked)

        return self._alongside(stored)

    def _alongside(self, stored: Callable[[], None]) -> Alongside:
        def on_disk(_: None) -> None:
            stored()
            self._notifying.append(asyncio.ensure_future(self._notify()))

        return Alongside(lambda _: None, on_disk)

    def delivery(self, call_id: str, report: DeliveryReport, *, age_s: float) -> Alongside:
        assert age_s >= 0
        return self._alongside(lambda: self.deliveries.append((call_id, report)))

    async def tell_delivery(self, call_id: str, report: DeliveryReport, *, age_s: float) -> None:
        assert age_s >= 0
        self.deliveries.append((call_id, report))
        await self._notify()

    async def announce(self, *, capabilities: Any, glasses: str) -> None: ...

    async def tell_event(self, kind: str, data: Any) -> None: ...

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(40), self.changed:
            await self.changed.wait_for(condition)

    async def _notify(self) -> None:
        async with self.changed:
            self.changed.notify_all()


class FakeAsk:
    """`AskPort`: the wearer. `say` answers the question that is open; `nobody` is glasses that
    cannot ask.
    """

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self.nobody = ""
        self.withdrawn = 0
        self._answers: asyncio.Queue[Answer] = asyncio.Queue()
        self._news = asyncio.Event()

    async def ask(self, question: Question) -> Answer:
        self.asked.append(question)
        self._news.set()
        if self.nobody:
            raise NobodyToAsk(self.nobody)
        try:
            async with asyncio.timeout(question.timeout_s):
                return await self._answers.get()
        except TimeoutError:
            return Answer.TIMEOUT
        except asyncio.CancelledError:
            self.withdrawn += 1
            raise

    async def choose(self, question: Question) -> Answer | Chosen:
        return await self.ask(question)

    def say(self, answer: Answer) -> None:
        self._answers.put_nowait(answer)

    async def question(self, number: int = 1) -> Question:
        """The question of this number, waited for."""
        async with asyncio.timeout(40):
            while len(self.asked) < number:
                self._news.clear()
                await self._news.wait()
        return self.asked[number - 1]


@dataclass
class House:
    orchestrator: Orchestrator
    registry: FakeRegistry
    tools: FakeTools
    uplink: FakeUplink
    glasses: FakeGlasses
    stage: Presenter
    store: CallStore
    bus: Bus
    audit: list[dict[str, Any]]
    notices: list[Any]
    wearer: FakeAsk
    shelves: CallStores
    confirmations: Confirmations
    sessions: Sessions
    heard: list[Any] = field(default_factory=list)

    async def call(
        self, name: Any, args: dict[str, Any] | None = None, **more: Any
    ) -> ToolResponse:
        progress, wait = more.pop("progress", None), more.pop("wait", None)
        extra = {"wait": wait} if wait else {}
        return await self.orchestrator.call(make(name, args, **more), progress=progress, **extra)

    async def happened(self, kind: type, where: Callable[[Any], bool] = lambda _: True) -> Any:
        """The first happening of this kind since the house opened, waited for."""
        async with asyncio.timeout(40):
            for at in itertools.count():
                while at >= len(self.heard):
                    await self._more.wait()
                    self._more.clear()
                if isinstance(self.heard[at], kind) and where(self.heard[at]):
                    return self.heard[at]
        return None

    _more: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self, opened: asyncio.Event) -> None:
        with self.bus.listen() as listener:
            opened.set()
            async for happening in listener:
                self.heard.append(happening)
                self._more.set()


def make(name: Any, args: dict[str, Any] | None = None, **more: Any) -> ToolCall:
    more.setdefault("call_id", new_call_id(CLOCK.wall()))
    more.setdefault("origin", CallOrigin.CLI)
    return ToolCall(tool=name, args=args or {}, **more)


@asynccontextmanager
async def house(
    path: Path,
    *,
    facts: dict[str, Any] | None = None,
    limits: CallLimits = QUICK,
    clock: Clock = CLOCK,
    tools: FakeTools | None = None,
    uplink: FakeUplink | None = None,
    wearer: FakeAsk | None = None,
    registry: FakeRegistry | None = None,
    late: TakeLateAnswer | None = None,
    names: NameArguments | None = None,
    **more: Any,
) -> AsyncIterator[House]:
    """Open a daemon's middle on a state directory; leaving it is a stop, not a crash."""
    bus = Bus()
    glasses = FakeGlasses(bus, DISPLAY if facts is None else facts)
    db = await SqliteDatabase.open(path / "glassd.db", MIGRATIONS, reserve=False)
    store, notices, audit = CallStore(db, clock, check, replayable=replayable), [], []
    shelves = CallStores(store, PendingCalls(db, clock), ResultCache(db, clock))
    confirmations, sessions = Confirmations(db, clock, check), Sessions(db, clock, lambda: "e" * 16)
    wearer = wearer or FakeAsk()
    stage = Presenter(glasses=glasses, bus=bus, clock=clock, notes=Notes(db), min_gap_s=0.0)
    registry, tools, uplink = (
        registry or FakeRegistry(),
        tools or FakeTools(),
        uplink or FakeUplink(),
    )

    async def on_registry(notice: Any) -> None:
        notices.append(notice)

    session = SessionController()
    await voice_session.restore(session, Notes(db))
    ports = CallPorts(
        registry=registry,
        backends=tools.backends(),
        stores=shelves,
        confirmations=confirmations,
        sessions=sessions,
        notes=Notes(db),
        uplink=uplink,
        glasses=glasses,
        stage=stage,
        ask=wearer,
        bus=bus,
        clock=clock,
        on_registry=on_registry,
        audit=audit.append,
        session=session,
    )
    if late is not None:
        ports = replace(ports, take_late_answer=late)
    if names is not None:
        ports = replace(ports, name_arguments=names)
    orchestrator = Orchestrator(ports, limits=limits, **more)
    inside = House(
        orchestrator,
        registry,
        tools,
        uplink,
        glasses,
        stage,
        store,
        bus,
        audit,
        notices,
        wearer,
        shelves,
        confirmations,
        sessions,
    )
    opened = asyncio.Event()
    try:
        async with asyncio.TaskGroup() as services:
            tasks = [services.create_task(inside.listen(opened))]
            await opened.wait()
            tasks += [services.create_task(stage.run()), services.create_task(orchestrator.run())]
            try:
                async with asyncio.timeout(40):
                    await orchestrator._open.wait()
                yield inside
            finally:
                for task in tasks:
                    task.cancel()
    finally:
        with contextlib.suppress(asyncio.CancelledError):
            await db.close()
