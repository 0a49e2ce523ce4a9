"""One call in, exactly one answer out: every tool call of this daemon goes through here.

Refuses to know glasses, brokers, files and tools' insides: it sees rules (`core/`) and ports. What
happens to a call once it is in stands in `execution.py`.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from edge.calls.admission import ANOTHER_TOOLS_CALL, AdmissionCheck, CallLimits, CallPolicy, overrun
from edge.calls.call import Cancelled, PendingCall
from edge.calls.cloud_calls import CloudCalls, Taken
from edge.calls.confirmations import ConfirmationFlow
from edge.calls.delivery import Audit, CallDelivery, CallStores, interruption
from edge.calls.execution import Execution
from edge.calls.run_queue import RunQueue
from edge.calls.turns import OpenTurns, VoiceTurns
from edge.calls.user_prompts import UserPrompts
from edge.calls.voice_session import VoiceSession
from edge.calls.waiting import ResultWaiter
from edge.core import confirmation, idempotency, phrases, policy, results
from edge.core.call_state import Submission
from edge.core.grants import Consumed, Consumption, Grant
from edge.core.routing import Route, RouteKind
from edge.core.session import SessionController
from edge.ports import (
    AskPort,
    CallResult,
    GlassesPort,
    Progress,
    RegistryNotice,
    RegistryPort,
    RenderPort,
    RunTool,
    UplinkPort,
    Wait,
)
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import (
    CallOff,
    CallReceived,
    DeliveryChanged,
    GlassesReady,
    GlassesSaid,
    PendingResolved,
)
from edge.runtime.first_completed import Tasks
from edge.runtime.ids import new_call_id
from edge.storage.confirmations import Confirmations
from edge.storage.notes import Notes
from edge.storage.sessions import Sessions
from firmware_bridge.deadlines import timeout
from firmware_bridge.messages import Transcript
from tools_cache.api.tool import (
    CallOrigin,
    Delivery,
    ErrorCode,
    Mode,
    ToolCall,
    ToolDefinition,
    ToolError,
    ToolResponse,
)

__all__ = ["CallLimits", "CallPolicy", "CallPorts", "CallStores", "Orchestrator"]
_log: Final = logging.getLogger(__name__)
_STARTING_S: Final = 5.0
"""How long a call waits for a daemon that is just starting."""


def _random_token() -> str:
    return secrets.token_hex(confirmation.TOKEN_BYTES)


@dataclass(frozen=True, slots=True)
class CallPorts:
    """What calls need of the rest of the daemon."""

    registry: RegistryPort
    backends: Mapping[RouteKind, RunTool]
    """What runs the calls of each of `core.routing.HERE`, and of `LATER`."""
    shelves: CallStores
    confirmations: Confirmations
    sessions: Sessions
    notes: Notes
    uplink: UplinkPort
    glasses: GlassesPort
    stage: RenderPort
    ask: AskPort
    bus: Bus
    clock: Clock
    on_registry: Callable[[RegistryNotice], Awaitable[None]]
    """Called with every registry notice of the cloud."""
    audit: Audit | None = None
    session: SessionController = field(default_factory=SessionController)
    """The voice session, which tools' intents steer."""


class Orchestrator:
    """Implements `CallsPort`. Calls that come before `run()` wait a moment for it."""

    def __init__(
        self,
        ports: CallPorts,
        *,
        limits: CallLimits | None = None,
        policy_: CallPolicy | None = None,
        new_token: Callable[[], str] = _random_token,
        turns: OpenTurns | None = None,
    ) -> None:
        self._registry = ports.registry
        self._shelves = ports.shelves
        self._store = ports.shelves.calls
        self._sessions = ports.sessions
        self._stage = ports.stage
        self._bus = ports.bus
        self._clock = ports.clock
        self._limits = (
            replace(limits) if limits is not None else CallLimits()
        )  # our own: `adopt` changes it in place
        self._policy = policy_ or CallPolicy()
        self._voice = VoiceTurns(ports.notes, ports.clock)
        self._turns = turns or OpenTurns()
        self.session = ports.session
        self._gate = AdmissionCheck(
            registry=ports.registry,
            store=self._store,
            clock=ports.clock,
            limits=self._limits,
            policy_=self._policy,
        )
        self._tasks = Tasks()
        self._ending = _ending(ports, self._limits, self._tasks)
        self._confirmer = _confirmer(ports, new_token, self._tasks)
        self.questions = self._confirmer.questions
        self._attendance = _attendance(
            ports, self._limits, self._tasks, ending=self._ending, confirmer=self._confirmer
        )
        self._pipeline = _pipeline(
            ports,
            self._limits,
            self._tasks,
            gate=self._gate,
            confirmer=self._confirmer,
            attendance=self._attendance,
            ending=self._ending,
        )
        self._queue = RunQueue(self._limits)
        self._tickets: dict[str, PendingCall] = {}
        self._entering: dict[str, PendingCall] = {}
        """Calls between their coming and their life, so that calling one off is heard then too."""
        self._open = asyncio.Event()
        self._cloud = CloudCalls(
            uplink=ports.uplink,
            ending=self._ending,
            tickets=self._tickets,
            call=self.call,
            cancel=self.cancel,
            on_registry=ports.on_registry,
        )

    def adopt(self, limits: CallLimits, policy_: CallPolicy) -> None:
        """What the owner changed counts from the next call on."""
        self._limits.take(limits)
        self._policy = replace(
            policy_,
            user_id=self._policy.user_id,
            language=self._policy.language,
            choice=self._policy.choice,
        )
        self._gate.adopt(self._policy)

    @property
    def running(self) -> int:
        """Calls in flight, those waiting for the network included."""
        return len(self._tickets)

    @property
    def waiting(self) -> int:
        """Calls in flight whose caller has an interim answer: queued, pending, waiting for a
        yes.
        """
        return sum(ticket.early for ticket in self._tickets.values())

    # ------------------------------------------------------------------ doors

    async def call(
        self,
        call: ToolCall,
        *,
        progress: Progress | None = None,
        wait: Wait = Wait.ANSWER,
        taken: Taken | None = None,
    ) -> ToolResponse:
        """See `CallsPort`. `taken` is called when the call runs, or waits for its turn."""
        ticket = PendingCall(call, self._clock.boot(), wait, progress)
        refused = await self._enter(ticket)
        if refused is not None:
            return refused
        if (twin := self._twin(ticket)) is not None:
            if twin.call.tool != call.tool:
                return self._of_another_tool(ticket, twin)
            if twin.early and not twin.answer.done() and twin.call.call_id != call.call_id:
                return self._still_open(
                    twin
                )  # the last daemon left it: nobody knows how long it takes
            if taken is not None:
                await taken()
            await asyncio.wait({twin.answer})
            return idempotency.as_replay(twin.answer.result(), twin.call.turn_id)
        if (full := self._queued(ticket)) is not None:
            return full
        self._begin(ticket, self._in_turn(ticket))
        if taken is not None:
            await taken()
        await asyncio.wait({ticket.answer})  # a caller that goes away takes nothing with it
        return ticket.answer.result()

    async def begin(self, call: ToolCall) -> ToolResponse | None:
        """See `CallsPort`."""
        ticket = PendingCall(call, self._clock.boot(), waited_for=False)
        refused = await self._enter(ticket)
        if refused is not None:
            return refused
        if (twin := self._twin(ticket)) is not None:
            if twin.call.tool != call.tool:
                return self._of_another_tool(ticket, twin)
            return self._still_open(twin)
        if (full := self._queued(ticket)) is not None:
            return full
        self._begin(ticket, self._in_turn(ticket))
        await asyncio.wait({ticket.first})
        return ticket.first.result()

    async def confirm(
        self, token: str, *, allow: bool, grant: Grant = Grant.ONCE, call: ToolCall | None = None
    ) -> ToolResponse:
        """See `CallsPort`."""
        about = call or ToolCall(
            call_id="", tool="", args={}, origin=CallOrigin.CLI, user_id=self._policy.user_id
        )
        bound: dict[str, str | None] = {}
        if call is not None:
            bound = {
                "tool": call.tool,
                "args_hash": self._gate.args_hash(PendingCall(call, self._clock.boot())),
                "session": call.session,
            }
        use = partial(
            self._confirmer.by_token,
            token,
            allow=allow,
            grant=grant,
            user_id=about.user_id,
            **bound,
        )
        return await self._decided(use, about, allow=allow)

    async def decide(self, call_id: str, *, allow: bool, grant: Grant = Grant.ONCE) -> ToolResponse:
        """See `CallsPort`."""
        about = ToolCall(
            call_id=call_id, tool="", args={}, origin=CallOrigin.CLI, user_id=self._policy.user_id
        )
        use = partial(
            self._confirmer.by_call, call_id, allow=allow, grant=grant, user_id=about.user_id
        )
        return await self._decided(use, about, allow=allow)

    async def _decided(
        self, use: Callable[[], Awaitable[Consumed]], about: ToolCall, *, allow: bool
    ) -> ToolResponse:
        await self._opened()
        if not self._tasks.open:
            return self._about(
                about,
                interruption("The daemon is not ready yet; the question stays open"),
                "not running",
            )
        # A task of its own: a caller that goes away between the decision and its call's hearing of
        # it takes nothing with it.
        using = self._tasks.create_task(self._use(use, about, allow=allow), name="call.confirm")
        await asyncio.wait({using})
        if using.cancelled():
            return self._about(about, interruption("The daemon is stopping"), "stopping")
        if isinstance(answer := using.result(), ToolResponse):
            return answer
        await asyncio.wait({answer})
        return answer.result()

    async def _use(
        self, use: Callable[[], Awaitable[Consumed]], about: ToolCall, *, allow: bool
    ) -> "ToolResponse | asyncio.Future[ToolResponse]":
        """Decide a question and tell its call: why not, or where that call's answer will be."""
        try:
            used = await use()
        except Exception as e:  # noqa: BLE001 - a disk that takes nothing: the question stays open
            _log.warning("a confirmation is not on disk: %s", e)
            return self._about(about, interruption("The confirmation cannot be kept now"), "store")
        if used.outcome is not Consumption.TAKEN:
            return self._about(about, confirmation.rejected(used.outcome), "confirmation")
        ticket = self._tickets.get(used.call_id)
        if ticket is None:
            return self._about(
                about,
                interruption("The daemon is starting; the call goes on in a moment"),
                "starting",
            )
        answer = (
            ticket.wait_again()
        )  # before the call hears of it, so that its end is this caller's answer
        self._confirmer.decided(ticket, allow=allow, by="the caller")
        return answer

    async def submit(
        self, call_id: str, response: ToolResponse, *, user_id: str, session: str
    ) -> Submission:
        """See `CallsPort`. Raises what the store raises."""
        outcome = await self._shelves.pending.resolve(
            call_id, response, user_id=user_id, session=session
        )
        ticket = self._tickets.get(call_id)
        if outcome is Submission.TAKEN and ticket is not None:
            self._bus.publish(PendingResolved(call_id, ticket.call.tool))
            await self._attendance.withdraw(ticket, "its result was handed in on the edge")
            ticket.put(CallResult(call_id, response, own=True))
        return outcome

    async def _enter(self, ticket: PendingCall) -> ToolResponse | None:
        """What every call passes before it has a life: a name, a daemon that runs, a session
        with one mode, its keys.
        """
        call = ticket.call
        if problem := policy.name_problem(call.tool):
            return self._ending.refusal(ticket, problem, "malformed")
        self._entering[call.call_id] = ticket
        try:
            await self._opened()
            return await self._into_session(ticket)
        finally:
            self._entering.pop(call.call_id, None)

    async def _into_session(self, ticket: PendingCall) -> ToolResponse | None:
        call, epoch = ticket.call, ""
        if call.session:
            try:
                mode, epoch = await self._sessions.open(call.user_id, call.session, call.mode.value)
            except Exception as e:  # noqa: BLE001 - a disk that takes nothing new
                return self._ending.refusal(ticket, results.storage_unavailable(e), "store")
            if mode != call.mode:
                return self._ending.refusal(
                    ticket, policy.session_mode_problem(call.session, mode), "session mode"
                )
        ticket.keys = idempotency.keys_of(call, epoch)
        return None

    async def _opened(self) -> None:
        with suppress(TimeoutError):
            async with timeout(_STARTING_S):
                await self._open.wait()

    def _of_another_tool(self, ticket: PendingCall, twin: PendingCall) -> ToolResponse:
        error = policy.identity_problem(twin.call.tool, same_id=True)
        return self._ending.refusal(ticket, error, ANOTHER_TOOLS_CALL)

    def _still_open(self, twin: PendingCall) -> ToolResponse:
        """The same call has no answer yet; its id says where to look."""
        pending = self._ending.stamp(twin, results.pending(twin.call)).with_meta(
            delivery=Delivery.NONE.value
        )
        return idempotency.as_replay(pending, twin.call.turn_id)

    def _queued(self, ticket: PendingCall) -> ToolResponse | None:
        """Let a call into the queue of those that want to run; else why not."""
        if (
            not self._tasks.open or not self._open.is_set()
        ):  # before that, what is taken on would be taken up once more
            return self._ending.refusal(
                ticket, interruption("The daemon is not ready yet"), "not running"
            )
        if self._queue.full(ticket):
            return self._ending.refusal(ticket, overrun(self._limits), "too many calls wait")
        self._queue.enter(ticket)
        return None

    async def _in_turn(self, ticket: PendingCall) -> None:
        """Wait for a place, then run."""
        if (refused := await self._attendance.turn(ticket)) is None:
            call = ticket.call
            self._bus.publish(CallReceived(call.call_id, call.tool[:255], call.origin.value))
            await self._pipeline.live(ticket)
        else:
            self._queue.leave(ticket)
            await self._ending.refuse(ticket, refused)

    def _about(self, call: ToolCall, error: ToolError, reason: str) -> ToolResponse:
        return self._ending.refusal(PendingCall(call, self._clock.boot()), error, reason)

    async def heard(self, text: str, mode: Mode = Mode.VOICE) -> ToolResponse:
        """Take a final transcript: the tool whose activation phrase is in it is called, or
        NOT_FOUND is said.
        """
        call_id = new_call_id(self._clock.wall())
        began = not self.session.voice_active(self._clock.boot())
        if not self.session.begin_voice(self._clock.boot()):
            unheard = ToolCall(
                call_id=call_id,
                tool="",
                args={},
                origin=CallOrigin.VOICE,
                mode=mode,
                user_id=self._policy.user_id,
            )
            return self._about(
                unheard, policy.quiet(self.session.quiet_s(self._clock.boot())), "quiet"
            )
        answer = await self._understood(call_id, text, mode)
        if began:
            self._ending.voice.started()
        return answer

    async def _understood(self, call_id: str, text: str, mode: Mode) -> ToolResponse:
        turn_id, replayed = await self._voice.turn(text, call_id)
        found = phrases.meant(
            text, self._registry.snapshot().entries(), self._policy.language, self._why_not(turn_id)
        )
        call = ToolCall(
            call_id=call_id,
            tool=found.tool.name if found else "",
            args=found.args if found else {},
            origin=CallOrigin.VOICE,
            mode=mode,
            turn_id=turn_id,
            replayed=replayed,
            user_id=self._policy.user_id,
        )
        if found is not None:
            return await self.call(call)
        said = (
            "that"
            if self.session.snapshot().suppress_transcript
            else f"“{' '.join(text.split())[:60]}”"
        )  # the lens is kept on disk
        error = ToolError.of(
            ErrorCode.TOOL_NOT_FOUND, f"Nothing here answers to {said}", suggestion="glassd tools"
        )
        refusal = self._ending.refusal(
            PendingCall(call, self._clock.boot()), error, "no phrase matches"
        )
        report = await self._stage.present(call_id, refusal)
        return refusal.with_meta(delivery=report.to_json())

    def _why_not(self, turn_id: str) -> Callable[[ToolDefinition], str]:
        if (choice := self._policy.choice) is None:
            return lambda _tool: ""
        choice.turn(turn_id)
        return partial(choice.why_not, self._policy.user_id)

    async def cancel(self, call_id: str, reason: str) -> bool:
        """Call off a running call; False when there is none."""
        ticket = self._tickets.get(call_id) or self._entering.get(call_id)
        if ticket is not None:
            ticket.put(Cancelled(reason))
        return ticket is not None

    async def run(self) -> None:
        """Serve until cancelled; first take up what the last daemon left open."""
        try:
            async with self._tasks.run():
                with self._bus.listen(calls=False) as heard:
                    await self._resume()
                    self._open.set()
                    self._tasks.create_task(self._cloud.run(self._tasks), name="calls.uplink")
                    async for happening in heard:
                        self._follow(happening)
        finally:
            self._open.clear()
            left = list(self._tickets.values())
            self._tickets.clear()
            for ticket in left:
                self._ending.stopped(ticket)

    def _twin(self, ticket: PendingCall) -> PendingCall | None:
        """The same call, already in flight: by id, or by idempotency key."""
        found = self._tickets.get(ticket.call.call_id)
        if found is None and ticket.key is not None:
            # A key of another tool's call makes no twin; what is on disk under it, the gate judges.
            same = (
                t
                for t in self._tickets.values()
                if t.key == ticket.key and t.call.tool == ticket.call.tool
            )
            found = next(same, None)
        return found

    def _begin(self, ticket: PendingCall, life: Coroutine[None, None, None]) -> None:
        self._tickets[ticket.call.call_id] = ticket
        if not ticket.early:
            self._turns.begin(ticket.answer)
        self._tasks.create_task(self._carry(ticket, life), name=f"call.{ticket.call.call_id}")

    async def _carry(self, ticket: PendingCall, life: Coroutine[None, None, None]) -> None:
        """A fault of one call stays its own; a ticket that is cancelled with the daemon stays
        until `run` ends it.
        """
        try:
            await life
        except Exception:  # noqa: BLE001 - the other calls in this group are not to blame
            _log.exception("call %s ended with an internal error", ticket.call.call_id)
            self._ending.stopped(ticket)
        self._tickets.pop(ticket.call.call_id, None)
        for word in ticket.words:
            if isinstance(word, CallResult) and ticket.runner is None:
                await self._cloud.result(
                    word
                )  # it came while its call was already ending without it

    # ------------------------------------------------------------------ the bus

    def _follow(self, happening: object) -> None:
        if not self._tasks.open:
            return
        if isinstance(happening, DeliveryChanged):
            self._tasks.create_task(self._delivered(happening), name="call.delivery")
        elif isinstance(happening, CallOff):
            self._tasks.create_task(self._called_off(happening), name="call.off")
        elif isinstance(happening, GlassesReady):
            self._voice.reconnected()
            self._ending.voice.go_on()
        elif (
            isinstance(happening, GlassesSaid)
            and isinstance(happening.event, Transcript)
            and happening.event.final
        ):
            self._tasks.create_task(self._said(happening.event.text), name="call.heard")

    async def _said(self, text: str) -> None:
        try:
            await self.heard(text)
        except Exception:  # noqa: BLE001 - an utterance that trips us must not end the calls of this group
            _log.exception("an utterance could not be handled")

    async def _called_off(self, happening: CallOff) -> None:
        await self.cancel(happening.call_id, happening.reason)

    async def _delivered(self, change: DeliveryChanged) -> None:
        await self._ending.delivered(change.call_id, change.report)
        age_s = self._ending.recent_age_s(change.call_id)
        if age_s is not None:
            await self._ending.tell(change.call_id, change.report, age_s=age_s)

    # ------------------------------------------------------------------ after a restart

    async def _resume(self) -> None:
        """Every call the last daemon accepted ends in exactly one answer; nothing unsafe runs
        twice.
        """
        for left in await self._store.unfinished():
            ticket = PendingCall(
                left.call,
                self._clock.boot(),
                admitted=True,
                early=True,
                keys=left.keys,
                attempts=left.attempts,
            )
            ticket.route = Route(RouteKind(left.route), "resumed after a restart")
            ticket.snapshot = self._registry.snapshot()
            entry = ticket.snapshot.find(left.call.tool)
            ticket.tool = entry.definition if entry else None
            self._begin(ticket, self._pipeline.take_up(ticket, left))


def _ending(ports: CallPorts, limits: CallLimits, tasks: Tasks) -> CallDelivery:
    voice = VoiceSession(
        ports.session,
        notes=ports.notes,
        stage=ports.stage,
        bus=ports.bus,
        clock=ports.clock,
        tasks=tasks,
    )
    return CallDelivery(
        registry=ports.registry,
        shelves=ports.shelves,
        sessions=ports.sessions,
        uplink=ports.uplink,
        glasses=ports.glasses,
        stage=ports.stage,
        bus=ports.bus,
        clock=ports.clock,
        audit=ports.audit,
        limits=limits,
        voice=voice,
        tasks=tasks,
    )


def _confirmer(ports: CallPorts, new_token: Callable[[], str], tasks: Tasks) -> ConfirmationFlow:
    return ConfirmationFlow(
        store=ports.confirmations,
        ask=ports.ask,
        bus=ports.bus,
        clock=ports.clock,
        registry=ports.registry,
        new_token=new_token,
        tasks=tasks,
    )


def _attendance(
    ports: CallPorts,
    limits: CallLimits,
    tasks: Tasks,
    *,
    ending: CallDelivery,
    confirmer: ConfirmationFlow,
) -> ResultWaiter:
    return ResultWaiter(
        uplink=ports.uplink,
        stage=ports.stage,
        bus=ports.bus,
        clock=ports.clock,
        ending=ending,
        confirmer=confirmer,
        limits=limits,
        tasks=tasks,
    )


def _pipeline(
    ports: CallPorts,
    limits: CallLimits,
    tasks: Tasks,
    *,
    gate: AdmissionCheck,
    confirmer: ConfirmationFlow,
    attendance: ResultWaiter,
    ending: CallDelivery,
) -> Execution:
    return Execution(
        gate=gate,
        registry=ports.registry,
        backends={
            **ports.backends,
            RouteKind.WEARER: UserPrompts(ports.ask, ports.clock).answer,
        },
        shelves=ports.shelves,
        uplink=ports.uplink,
        glasses=ports.glasses,
        clock=ports.clock,
        confirmer=confirmer,
        attendance=attendance,
        ending=ending,
        limits=limits,
        tasks=tasks,
    )
