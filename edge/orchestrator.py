"""One call in, exactly one answer out: every tool call of this daemon goes through here.

Refuses to know glasses, brokers, files and tools' insides: it sees rules (`core/`) and ports. What happens to a call once
it is in stands in `pipeline.py`.
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Final

from edge.clock import Clock
from edge.core import idempotency, phrases, policy
from edge.core.call_state import CallState
from edge.core.ids import new_call_id
from edge.core.routing import Route, RouteKind
from edge.core.session import SessionController
from edge.ending import Audit, Ending, interruption
from edge.events import DeliveryChanged, GlassesSaid
from edge.gate import ConfirmPort, Limits, NobodyConfirms, overrun
from edge.pipeline import Pipeline
from edge.ports import (
    BusPort,
    CallAccepted,
    CallProgress,
    CallResult,
    CallStorePort,
    GlassesPort,
    InvokeCancelled,
    Invoked,
    LocalToolsPort,
    Progress,
    RegistryNotice,
    RegistryPort,
    RenderPort,
    UplinkMessage,
    UplinkPort,
    Wait,
)
from edge.ticket import Cancelled, Ticket
from firmware_bridge.messages import Transcript
from tools_cache.tool import (
    CallOrigin,
    Delivery,
    DeliveryReport,
    ErrorCode,
    Mode,
    ToolCall,
    ToolError,
    ToolResponse,
)

__all__ = ["ConfirmPort", "Limits", "NobodyConfirms", "Orchestrator"]
_log: Final = logging.getLogger(__name__)
_STARTING_S: Final = 5.0
"""How long a call waits for a daemon that is just starting."""
_DISK_AGAIN_S: Final = 2.0
"""Between attempts to put a result on a disk that takes nothing; somebody has to make room meanwhile."""
_INVOKED: Final = 64
"""Invocations of the cloud taken up at once; the next ones wait in the uplink's inbox."""


class Orchestrator:
    """Implements `CallsPort`. Calls that come before `run()` wait a moment for it."""

    def __init__(
        self, *, registry: RegistryPort, local: LocalToolsPort, store: CallStorePort, uplink: UplinkPort,
        glasses: GlassesPort, stage: RenderPort, bus: BusPort, clock: Clock,
        on_registry: Callable[[RegistryNotice], Awaitable[None]], confirm: ConfirmPort | None = None,
        audit: Audit | None = None, limits: Limits | None = None,
    ) -> None:  # fmt: skip
        self._registry = registry
        self._store = store
        self._uplink = uplink
        self._stage = stage
        self._bus = bus
        self._clock = clock
        self._on_registry = on_registry
        self._limits = limits or Limits()
        self._ending = Ending(
            registry=registry, store=store, uplink=uplink, glasses=glasses, stage=stage, bus=bus, clock=clock, audit=audit,
            limits=self._limits,
        )  # fmt: skip
        self._pipeline = Pipeline(
            registry=registry, local=local, store=store, uplink=uplink, glasses=glasses, stage=stage, bus=bus,
            clock=clock, confirm=confirm or NobodyConfirms(), ending=self._ending, limits=self._limits,
        )  # fmt: skip
        self._tickets: dict[str, Ticket] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._open = asyncio.Event()
        self._invocations = asyncio.Semaphore(_INVOKED)

    @property
    def session(self) -> SessionController:
        """The voice session that tools' intents steer."""
        return self._ending.session

    @property
    def running(self) -> int:
        """Calls in flight, those waiting for the network included."""
        return len(self._tickets)

    # ------------------------------------------------------------------ doors

    async def call(self, call: ToolCall, *, progress: Progress | None = None, wait: Wait = Wait.ANSWER) -> ToolResponse:
        """See `CallsPort`."""
        ticket = Ticket(call, self._clock.boot(), wait, progress)
        if problem := policy.name_problem(call.tool):
            return self._ending.refusal(ticket, problem, "malformed")
        with suppress(TimeoutError):
            async with asyncio.timeout(_STARTING_S):
                await self._open.wait()
        if (twin := self._twin(ticket)) is not None:
            await asyncio.wait({twin.answer})
            return idempotency.as_replay(twin.answer.result())
        if self._tasks is None:
            return self._ending.refusal(ticket, interruption("The daemon is not ready yet"), "not running")
        if sum(not t.early for t in self._tickets.values()) >= self._limits.running:
            return self._ending.refusal(ticket, overrun(self._limits), "too many calls at once")
        self._begin(ticket, self._pipeline.live(ticket))
        await asyncio.wait({ticket.answer})  # a caller that goes away takes nothing with it
        return ticket.answer.result()

    async def heard(self, text: str, mode: Mode = Mode.VOICE) -> ToolResponse:
        """Take a final transcript: the tool whose activation phrase is in it is called, or NOT_FOUND is said."""
        self.session.begin_voice()
        call_id = new_call_id(self._clock)
        entries = self._registry.snapshot().entries()
        in_force = [e.definition for e in entries if not (e.hidden or e.missing)]
        found = phrases.match(text, in_force) or phrases.match(text, [e.definition for e in entries])
        call = ToolCall(
            call_id=call_id, tool=found.tool.name if found else "", args=found.args if found else {},
            origin=CallOrigin.VOICE, mode=mode, turn_id=call_id,
        )  # fmt: skip
        if found is not None:
            return await self.call(call)
        shown = " ".join(text.split())[:60]
        error = ToolError.of(ErrorCode.TOOL_NOT_FOUND, f"Nothing here answers to “{shown}”", suggestion="glassd tools")
        refusal = self._ending.refusal(Ticket(call, self._clock.boot()), error, "no phrase matches")
        report = await self._stage.present(call_id, refusal)
        return refusal.with_meta(delivery=report.to_json())

    async def cancel(self, call_id: str, reason: str) -> bool:
        """Call off a running call; False when there is none."""
        ticket = self._tickets.get(call_id)
        if ticket is not None:
            ticket.put(Cancelled(reason))
        return ticket is not None

    async def run(self) -> None:
        """Serve until cancelled; first take up what the last daemon left open."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = self._pipeline.tasks = tasks
                with self._bus.listen() as heard:
                    await self._resume()
                    self._open.set()
                    tasks.create_task(self._consume(), name="calls.uplink")
                    async for happening in heard:
                        self._follow(happening)
        finally:
            self._open.clear()
            self._tasks = self._pipeline.tasks = None
            left, self._tickets = self._tickets, {}
            for ticket in left.values():
                self._ending.stopped(ticket)

    def _twin(self, ticket: Ticket) -> Ticket | None:
        """The same call, already in flight: by id, or by idempotency key."""
        found = self._tickets.get(ticket.call.call_id)
        if found is None and ticket.key is not None:
            found = next((t for t in self._tickets.values() if t.key == ticket.key), None)
        return found

    def _begin(self, ticket: Ticket, life: Coroutine[None, None, None]) -> None:
        assert self._tasks is not None
        self._tickets[ticket.call.call_id] = ticket
        self._tasks.create_task(self._carry(ticket, life), name=f"call.{ticket.call.call_id}")

    async def _carry(self, ticket: Ticket, life: Coroutine[None, None, None]) -> None:
        """A fault of one call stays its own; a ticket that is cancelled with the daemon stays until `run` ends it."""
        try:
            await life
        except Exception:  # noqa: BLE001 - the other calls in this group are not to blame
            _log.exception("call %s ended with a fault of ours", ticket.call.call_id)
            self._ending.stopped(ticket)
        self._tickets.pop(ticket.call.call_id, None)
        for word in ticket.words:
            if isinstance(word, CallResult) and ticket.runner is None:
                await self._result(word)  # it came while its call was already ending without it

    # ------------------------------------------------------------------ the cloud

    async def _consume(self) -> None:
        async for message in self._uplink.messages():
            await self._hear(message)

    async def _hear(self, message: UplinkMessage) -> None:
        match message:
            case Invoked():
                assert self._tasks is not None
                await self._invocations.acquire()
                self._tasks.create_task(self._invoked(message), name=f"invoke.{message.call.call_id}")
                return
            case CallResult():
                await self._result(message)
                return
            case CallAccepted() | CallProgress():
                if (ticket := self._tickets.get(message.call_id)) is not None:
                    ticket.put(message)
            case InvokeCancelled():
                await asyncio.sleep(0)  # an invocation of the same batch has no ticket yet
                await self.cancel(message.call_id, message.reason)
            case RegistryNotice():
                await self._on_registry(message)
        await self._ending.handled(message)

    async def _result(self, message: CallResult) -> None:
        """Hand a result to the call that waits for it; one that nobody waits for came too late and is not shown."""
        ticket = self._tickets.get(message.call_id)
        if ticket is not None:
            ticket.put(message)
            return
        if not message.own:  # the uplink's own word for "no answer came" is not a late answer
            _log.info("call %s: a result came after its end; kept, not shown", message.call_id)
            report = DeliveryReport(Delivery.EXPIRED, "the result came after the call had ended")
            await self._ending.tell(message.call_id, report, age_s=0.0)
        await self._ending.handled(message)

    async def _invoked(self, message: Invoked) -> None:
        """The cloud calls us: the same pipeline, the same one answer."""

        async def progress(text: str) -> None:
            await self._uplink.answer(message, text)

        try:
            await self._uplink.answer(message, None)
            response = await self.call(replace(message.call, origin=CallOrigin.CLOUD), progress=progress)
            self._ending.note_recent(message.call.call_id)
            await self._tell_result(message, response)
            await self._ending.handled(message)
        finally:
            self._invocations.release()

    async def _tell_result(self, message: Invoked, response: ToolResponse) -> None:
        """Hand the result to the outbox; a disk that takes nothing now is asked again, for the cloud waits for it."""
        for attempt in itertools.count():
            try:
                await self._uplink.answer(message, response)
            except Exception as e:  # noqa: BLE001 - a disk's fault must not end the other calls
                level = logging.DEBUG if attempt else logging.WARNING
                _log.log(level, "the result of %s is not in the outbox yet: %s", message.call.call_id, e)
                await asyncio.sleep(_DISK_AGAIN_S)
            else:
                return

    # ------------------------------------------------------------------ the bus

    def _follow(self, happening: object) -> None:
        if self._tasks is None:
            return
        if isinstance(happening, DeliveryChanged):
            self._tasks.create_task(self._delivered(happening), name="call.delivery")
        elif isinstance(happening, GlassesSaid) and isinstance(happening.event, Transcript) and happening.event.final:
            self._tasks.create_task(self._said(happening.event.text), name="call.heard")

    async def _said(self, text: str) -> None:
        await self.heard(text)

    async def _delivered(self, change: DeliveryChanged) -> None:
        if change.report.state in (Delivery.SHOWN, Delivery.SPOKEN):
            with suppress(Exception):  # an unlisted step (delivered already) or a full disk: the report goes on
                await self._store.advance(change.call_id, CallState.DELIVERED.value)
        age_s = self._ending.recent_age_s(change.call_id)
        if age_s is not None:
            await self._ending.tell(change.call_id, change.report, age_s=age_s)

    # ------------------------------------------------------------------ after a restart

    async def _resume(self) -> None:
        """Every call the last daemon accepted ends in exactly one answer; nothing unsafe runs twice."""
        for call, state, kind in await self._store.unfinished():
            ticket = Ticket(call, self._clock.boot(), admitted=True, early=True)
            ticket.route = Route(RouteKind(kind), "resumed after a restart")
            ticket.snapshot = self._registry.snapshot()
            entry = ticket.snapshot.find(call.tool)
            ticket.tool = entry.definition if entry else None
            self._begin(ticket, self._pipeline.take_up(ticket, CallState(state)))
