"""One call in, exactly one answer out: every tool call of this daemon goes through here.

Each gets a `Call`, waits for its turn and is carried by `execution.py`; the next daemon takes up
what this one leaves.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from edge.calls.admission import ANOTHER_TOOLS_CALL, Admission, overrun
from edge.calls.backends import MAX_PROGRESS, Router, backends
from edge.calls.call import Call, Caller, CallTools, Cancelled, Finished, MayRun, Refused
from edge.calls.cloud_calls import CloudCalls, InFlight
from edge.calls.cloud_reports import CloudReports
from edge.calls.confirmations import Confirmations
from edge.calls.delivery import CallDelivery, interruption
from edge.calls.dependencies import CallLimits, CallPolicy, CallPorts, CallRules
from edge.calls.execution import Execution
from edge.calls.faults import Attempt
from edge.calls.reports import Reports
from edge.calls.run_queue import RunQueue
from edge.calls.turns import OpenTurns
from edge.calls.undo import Undos
from edge.calls.voice_session import VoiceSession
from edge.core import confirmation, idempotency, policy, results
from edge.core.call_state import Submission
from edge.core.grants import Consumed, Consumption, Grant
from edge.core.routing import Route, RouteKind
from edge.ports import CallResult, Progress, Wait
from edge.runtime.events import (
    CallOff,
    CallReceived,
    DaemonEvent,
    DeliveryChanged,
    GlassesReady,
    GlassesSaid,
    OfferTaken,
    PendingResolved,
)
from edge.runtime.first_completed import Tasks
from firmware_bridge.deadlines import timeout
from firmware_bridge.messages import Transcript
from tools_cache.api.tool import (
    CallOrigin,
    Delivery,
    DeliveryReport,
    ErrorCode,
    Mode,
    ToolCall,
    ToolError,
    ToolResponse,
)

if TYPE_CHECKING:
    from edge.calls.spoken import SpokenCalls

_STARTING_S: Final = 5.0
"""How long a call waits for a daemon that is just starting."""


def _random_token() -> str:
    return secrets.token_hex(confirmation.TOKEN_BYTES)


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
        self._ports = ports
        self._store = ports.stores.calls
        self._bus = ports.bus
        self._clock = ports.clock
        self._rules = CallRules(limits or CallLimits(), policy_ or CallPolicy())
        self._turns = turns or OpenTurns()
        self.session = ports.session
        self._tasks = Tasks()
        self._cloud_reports = CloudReports(ports.uplink, ports.clock)
        self._admission = Admission(ports.registry, self._store, ports.clock, self._rules)
        self._confirmations = Confirmations(ports, self._rules, self._tasks, new_token)
        self.questions = self._confirmations.questions
        self.voice = VoiceSession(ports, self._tasks)
        self._undos = Undos(ports.registry, ports.clock)
        self._delivery = CallDelivery(
            ports,
            self._rules,
            self._tasks,
            voice=self.voice,
            cloud=self._cloud_reports,
            undos=self._undos,
        )
        self._execution = Execution(
            self._admission,
            self._confirmations,
            Router(ports),
            backends(ports, self._rules, self._tasks),
            self._delivery,
            ports.stores.pending,
            ports.stores.results,
        )
        report = Reports(ports, self._rules).report
        self._new_call = partial(
            Call, tools=CallTools(self._store, ports.registry, ports.clock, report)
        )
        self._queue = RunQueue(self._rules)
        self._calls: dict[str, Call] = {}
        self._entering: dict[str, Call] = {}
        """Calls that are not begun yet, so that cancelling one works then too."""
        self._open = asyncio.Event()
        self._cloud = CloudCalls(
            ports,
            self._tasks,
            self._cloud_reports,
            calls=self._calls,
            start=self._start,
            cancel=self.cancel,
        )
        self._spoken: SpokenCalls | None = None

    def adopt(self, limits: CallLimits, policy_: CallPolicy) -> None:
        """Use what the owner changed from the next call on."""
        self._rules.adopt(limits, policy_)

    @property
    def spoken(self) -> "SpokenCalls":
        """Return what understands the wearer's words."""
        if self._spoken is None:
            from edge.calls.last_spoken import CallEntry  # noqa: PLC0415 - at the first utterance
            from edge.calls.spoken import SpokenCalls  # noqa: PLC0415

            entry = CallEntry(self._start, self.cancel, self._refuse, self._tasks)
            self._spoken = SpokenCalls(self._ports, self._rules, self.voice, self._undos, entry)
        return self._spoken

    @property
    def running(self) -> int:
        """Calls in flight, those waiting for the network included."""
        return len(self._calls)

    @property
    def waiting(self) -> int:
        """Calls in flight whose caller has an interim answer: queued, pending, waiting for a
        yes.
        """
        return sum(call.interim is not None for call in self._calls.values())

    # ------------------------------------------------------------------ doors

    async def call(
        self,
        call: ToolCall,
        *,
        progress: Progress | None = None,
        wait: Wait = Wait.ANSWER,
        live: bool = False,
        new_id: bool = False,
    ) -> ToolResponse:
        """See `CallsPort`."""
        started = await self._start(call, Caller(wait, progress, live=live, new_id=new_id))
        return started if isinstance(started, ToolResponse) else await started.response()

    async def begin(
        self, call: ToolCall, *, progress: Progress | None = None
    ) -> ToolResponse | None:
        """See `CallsPort`."""
        started = await self._start(call, Caller(progress=progress, to_the_end=False))
        if isinstance(started, ToolResponse):
            return started
        if started.joined:
            return _still_open(started.call)
        await asyncio.wait({started.call.first})
        return started.call.first.result()

    async def confirm(
        self, token: str, *, allow: bool, grant: Grant = Grant.ONCE, call: ToolCall | None = None
    ) -> ToolResponse:
        """See `CallsPort`."""
        about = call or self._unnamed_call("")
        use = partial(
            self._confirmations.use_token,
            token,
            allow=allow,
            grant=grant,
            user_id=about.user_id,
            tool=call.tool if call else None,
            args_hash=await self._subject(call) if call else None,
            session=call.session if call else None,
        )
        return await self._decide(use, about, allow=allow)

    async def _subject(self, call: ToolCall) -> str:
        """Return the hash of what would be asked about this call; "" when it would be refused."""
        asked = self._admission.as_asked(call)
        return "" if asked is None else await self._confirmations.subject(*asked)

    async def decide(self, call_id: str, *, allow: bool, grant: Grant = Grant.ONCE) -> ToolResponse:
        """See `CallsPort`."""
        about = self._unnamed_call(call_id)
        use = partial(
            self._confirmations.use_call,
            call_id,
            allow=allow,
            grant=grant,
            user_id=about.user_id,
        )
        return await self._decide(use, about, allow=allow)

    async def submit(
        self, call_id: str, response: ToolResponse, *, user_id: str, session: str
    ) -> Submission:
        """See `CallsPort`. Raises what the store raises."""
        outcome = await self._ports.stores.pending.resolve(
            call_id, response, user_id=user_id, session=session
        )
        call = self._calls.get(call_id)
        if outcome is Submission.TAKEN and call is not None:
            self._bus.publish(PendingResolved(call_id, call.request.tool))
            call.events.put(Finished(response))
            # A disk that takes nothing: the result stands, only the workers do not hear of it.
            with Attempt("call %s is not withdrawn from the cloud", call_id):
                await self._ports.uplink.withdraw(call_id, "its result was handed in on the edge")
        return outcome

    async def heard(self, text: str, mode: Mode = Mode.VOICE) -> ToolResponse:
        """Take a final transcript: the tool whose activation phrase is in it is called."""
        return await self.spoken.take(text, mode)

    async def cancel(self, call_id: str, reason: str) -> bool:
        """Cancel a running call; False when there is none."""
        call = self._calls.get(call_id) or self._entering.get(call_id)
        if call is not None:
            call.events.put(Cancelled(reason))
        return call is not None

    async def run(self) -> None:
        """Serve until cancelled; first take up what the last daemon left open."""
        try:
            async with self._tasks.run():
                with self._bus.listen(calls=False) as events:
                    await self._resume()
                    self._open.set()
                    self._tasks.create_task(self._cloud.run(), name="calls.uplink")
                    async for event in events:
                        self._follow(event)
        finally:
            self._open.clear()
            left = list(self._calls.values())
            self._calls.clear()
            for call in left:
                self._delivery.stop(call)

    # ------------------------------------------------------------------ starting a call

    async def _start(self, request: ToolCall, caller: Caller) -> InFlight | ToolResponse:
        """Let a call in and into the queue; join the same one in flight; else return why not."""
        call = self._new_call(request, caller=caller)
        if (refused := await self._enter(call)) is not None:
            return refused
        if (twin := self._twin(call)) is not None:
            if twin.request.tool != request.tool:
                error = policy.identity_problem(twin.request.tool, same_id=True)
                return call.refuse(error, ANOTHER_TOOLS_CALL)
            if not _same_caller(twin.request, request):
                error = policy.identity_problem("another caller", same_id=True)
                return call.refuse(error, "an id of another caller's call")
            other = twin.request.call_id != request.call_id
            if twin.interim is not None and not twin.answer.done() and other:
                return _still_open(twin)  # the last daemon left it: it may take any time
            return InFlight(twin, joined=True)
        if not self._tasks.open or not self._open.is_set():
            # A call taken on before `_resume` has read the disk would be resumed as well.
            return call.refuse(interruption("The daemon is not ready yet"), "not running")
        if self._queue.full(call):
            return call.refuse(overrun(self._rules.limits), "too many calls wait")
        self._queue.enter(call)
        self._begin(call, self._run_in_turn(call))
        return InFlight(call)

    async def _enter(self, call: Call) -> ToolResponse | None:
        """What every call passes before it is begun: a name, a daemon that runs, a session with
        one mode, its keys.
        """
        request = call.request
        if problem := policy.name_problem(request.tool):
            return call.refuse(problem, "malformed")
        self._entering[request.call_id] = call
        try:
            await self._until_open()
            return await self._into_session(call)
        finally:
            self._entering.pop(request.call_id, None)

    async def _into_session(self, call: Call) -> ToolResponse | None:
        request, epoch = call.request, ""
        if request.session:
            with Attempt("the session of call %s cannot be stored", request.call_id) as disk:
                mode, epoch = await self._ports.sessions.open(
                    request.user_id, request.session, request.mode.value
                )
            if disk.error is not None:
                return call.refuse(results.storage_unavailable(disk.error), "store")
            if mode != request.mode:
                error = policy.session_mode_problem(request.session, mode)
                return call.refuse(error, "session mode")
        call.keys = idempotency.keys_of(request, epoch)
        return None

    async def _until_open(self) -> None:
        if self._open.is_set():
            return  # as nearly always: without a timer
        with suppress(TimeoutError):
            async with timeout(_STARTING_S):
                await self._open.wait()

    def _twin(self, call: Call) -> Call | None:
        """The same call, already in flight: by id, or by idempotency key. A key of another tool's
        call makes no twin; admission looks at what is on disk under it.
        """
        found = self._calls.get(call.request.call_id)
        if found is not None or call.key is None:
            return found
        return next(
            (
                other
                for other in self._calls.values()
                if other.key == call.key and other.request.tool == call.request.tool
            ),
            None,
        )

    def _begin(self, call: Call, life: Coroutine[None, None, None]) -> None:
        self._calls[call.request.call_id] = call
        if call.interim is None:
            self._turns.begin(call.answer)
        self._tasks.create_task(self._carry(call, life), name=f"call.{call.request.call_id}")

    async def _carry(self, call: Call, life: Coroutine[None, None, None]) -> None:
        """A fault of one call must not end the others of this group; a call that is cancelled with
        the daemon stays until `run` ends it.
        """
        call_id = call.request.call_id
        with Attempt("call %s ended with an internal error", call_id, bug=True) as living:
            await life
        if living.error is not None:
            self._delivery.stop(call)
        self._calls.pop(call_id, None)
        for event in call.events.waiting:
            if isinstance(event, CallResult):  # it came while the call was already ending
                await self._cloud.result(event)

    async def _run_in_turn(self, call: Call) -> None:
        """Wait for a place, then run."""
        refused = await self._wait_for_turn(call)
        if refused is None:
            request = call.request
            self._bus.publish(
                CallReceived(request.call_id, request.tool[:255], request.origin.value)
            )
            await self._execution.run(call)
        else:
            self._queue.leave(call)
            await self._delivery.finish(call, refused)

    async def _wait_for_turn(self, call: Call) -> Refused | None:
        """Wait until the call may run; else return why it never will. What is left of its life goes
        on with it.
        """
        ttl_s = call.request.ttl_s
        while True:
            match await call.events.get(call.began + ttl_s):
                case MayRun():
                    call.start_running()
                    return None
                case Cancelled(reason):
                    text = f"Cancelled: {reason}"[:MAX_PROGRESS]
                    error = ToolError.of(ErrorCode.CANCELLED, text)
                    return Refused(error, "called off while it waited")
                case None:
                    text = (
                        f"Too many calls are running: this one waited {ttl_s:g} s and never began"
                    )
                    advice = "Try again in a moment"
                    error = ToolError.of(ErrorCode.DEADLINE_EXPIRED, text, suggestion=advice)
                    return Refused(error, "its time was over before its turn came")

    def _refuse(self, call: ToolCall, error: ToolError, reason: str) -> ToolResponse:
        return self._new_call(call).refuse(error, reason)

    # ------------------------------------------------------------------ deciding a question

    def _unnamed_call(self, call_id: str) -> ToolCall:
        """Stands for a call of which only the id or a token is known."""
        user_id = self._rules.policy.user_id
        return ToolCall(call_id=call_id, tool="", args={}, origin=CallOrigin.CLI, user_id=user_id)

    async def _decide(
        self, use: Callable[[], Awaitable[Consumed]], about: ToolCall, *, allow: bool
    ) -> ToolResponse:
        await self._until_open()
        if not self._tasks.open:
            error = interruption("The daemon is not ready yet; the question stays open")
            return self._refuse(about, error, "not running")
        # A task of its own: a caller that goes away between the decision and its call's hearing of
        # it takes nothing with it.
        using = self._tasks.create_task(self._use(use, about, allow=allow), name="call.confirm")
        await asyncio.wait({using})
        if using.cancelled():
            return self._refuse(about, interruption("The daemon is stopping"), "stopping")
        if isinstance(answer := using.result(), ToolResponse):
            return answer
        await asyncio.wait({answer})
        return answer.result()

    async def _use(
        self, use: Callable[[], Awaitable[Consumed]], about: ToolCall, *, allow: bool
    ) -> "ToolResponse | asyncio.Future[ToolResponse]":
        """Decide a question and tell its call: return why not, or where that call's answer will
        be.
        """
        with Attempt("a confirmation is not on disk") as disk:  # else the question stays open
            used = await use()
        if disk.error is not None:
            error = interruption("The confirmation cannot be kept now")
            return self._refuse(about, error, "store")
        if used.outcome is not Consumption.TAKEN:
            return self._refuse(about, confirmation.rejected(used.outcome), "confirmation")
        call = self._calls.get(used.call_id)
        if call is None:
            error = interruption("The daemon is starting; the call goes on in a moment")
            return self._refuse(about, error, "starting")
        answer = call.wait_again()  # first, so that its end is this caller's answer
        self._confirmations.decide(call, allow=allow, by="the caller")
        return answer

    # ------------------------------------------------------------------ the bus

    def _follow(self, event: DaemonEvent) -> None:
        if not self._tasks.open:
            return
        match event:
            case DeliveryChanged(call_id, report):
                self._tasks.create_task(self._delivered(call_id, report), name="call.delivery")
            case CallOff(call_id, reason):
                self._tasks.create_task(self.cancel(call_id, reason), name="call.off")
            case OfferTaken(call_id):
                self._tasks.create_task(self._take_back(call_id), name="call.undo")
            case GlassesReady():
                if self._spoken is not None:
                    self._spoken.reconnected()
                self.voice.go_on()
            case GlassesSaid(Transcript(final=True) as said):
                self._tasks.create_task(self.spoken.take_safely(said), name="call.heard")

    async def _take_back(self, call_id: str) -> None:
        """Undo a call that the wearer tapped for; one that cannot even be begun says so too."""
        if (undo := self._undos.take(call_id)) is None:
            return
        if isinstance(await self._start(*undo), ToolResponse):
            await self._ports.stage.tell("Not undone. Too much is going on just now.")

    async def _delivered(self, call_id: str, report: DeliveryReport) -> None:
        await self._delivery.delivered(call_id, report)
        await self._cloud_reports.delivery_changed(call_id, report)

    # ------------------------------------------------------------------ after a restart

    async def _resume(self) -> None:
        """Every call the last daemon accepted ends in exactly one answer; nothing unsafe runs
        twice.
        """
        for left in await self._store.unfinished():
            call = self._new_call(left.call, left=left)
            call.route = Route(RouteKind(left.route), "resumed after a restart")
            entry = self._ports.registry.snapshot().find(left.call.tool)
            call.tool = entry.definition if entry else None
            self._begin(call, self._execution.resume(call))


def _same_caller(first: ToolCall, second: ToolCall) -> bool:
    """Return whether the second may have the answer of the first: what the cloud may call is
    checked in admission, which a call that joins does not pass.
    """
    by_key = first.call_id != second.call_id
    origins = (first.origin is CallOrigin.CLOUD, second.origin is CallOrigin.CLOUD)
    return by_key or (first.user_id == second.user_id and origins[0] is origins[1])


def _still_open(twin: Call) -> ToolResponse:
    """The same call has no answer yet; its id says where to look."""
    pending = twin.stamp(results.pending(twin.request), Delivery.NONE)
    return idempotency.as_replay(pending, twin.request.turn_id)
