"""The end of a call: intents, disk, wearer, cloud, caller; always in this order."""

import asyncio
import itertools
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from edge.calls.call import BY_WEARER, Call, Ending, Known, Outcome, Refused, Started
from edge.calls.cloud_reports import CloudReports
from edge.calls.dependencies import CallPorts, CallRules
from edge.calls.faults import Attempt
from edge.calls.undo import Undos, explained
from edge.calls.voice_session import VoiceSession
from edge.core import idempotency, results, visibility
from edge.core.call_state import CallState
from edge.core.routing import RouteKind
from edge.core.session import FAREWELL, NoEffect
from edge.ports import Alongside, GlassesStatus
from edge.runtime.first_completed import Tasks
from edge.storage.sqlite.errors import StorageUnavailable
from firmware_bridge.capabilities import Hardware
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import (
    Delivery,
    DeliveryReport,
    ErrorCode,
    Json,
    ToolCall,
    ToolError,
    ToolResponse,
)

_log: Final = logging.getLogger(__name__)
_DISK_AGAIN_S: Final = 1.0
_INTENTS: Final = 16
"""Changes of the session that one answer may make; there are four kinds."""
_CLOUD: Final = frozenset({RouteKind.CLOUD, RouteKind.QUEUE})
_NOT_SHOWN: Final = "the answer of %s could not be shown"
_FAULT: Final = DeliveryReport(Delivery.DROPPED, "it could not be shown")
_WAITING_FOR_DISK: Final = 256
"""Answers that wait for room on the disk; those beyond it are settled by the next daemon, as
their calls were left.
"""


class _Stored(Struct, frozen=True):
    """The answer that stands, and whether it is on disk. `report`: the wearer does not get it, as
    is on disk with it; None if the wearer is still to get it.
    """

    outcome: Outcome
    on_disk: bool = True
    report: DeliveryReport | None = None


class CallDelivery:
    """One per daemon."""

    def __init__(
        self,
        ports: CallPorts,
        rules: CallRules,
        tasks: Tasks,
        *,
        voice: VoiceSession,
        cloud: CloudReports,
        undos: Undos,
    ) -> None:
        self._registry = ports.registry
        self._take_late_answer = ports.take_late_answer
        self._store = ports.stores.calls
        self._pending = ports.stores.pending
        self._results = ports.stores.results
        self._sessions = ports.sessions
        self._session = ports.session
        self._glasses = ports.glasses
        self._stage = ports.stage
        self._uplink = ports.uplink
        self._clock = ports.clock
        self._rules = rules
        self._tasks = tasks
        self._voice = voice
        self._cloud = cloud
        self._undos = undos
        self._waiting_for_disk = 0
        self._began = ports.clock.boot()
        self._unseen = False

    async def finish(self, call: Call, ending: Ending) -> None:
        """Bring an answer to everybody it is for."""
        await self._answer(call, ending)
        self._stage.ended(call.request.call_id)

    async def _answer(self, call: Call, ending: Ending) -> None:
        match ending:
            case Outcome():
                response = call.stamp(_guard(call, ending))
                await self._finish(call, replace(ending, response=response))
            case Refused(error, reason):
                call.reason = reason
                response = call.stamp(ToolResponse(error=error))
                report = await self._present(call, response, expired=False)
                call.end(response.with_meta(delivery=report.to_json()), "refused")
            case Known(stored, turn_id):
                response = stored if "callId" in stored.meta else call.stamp(stored)
                replay = idempotency.as_replay(response, turn_id)
                call.end(replay.with_meta(delivery=Delivery.NONE.value), "replay")

    def stop(self, call: Call) -> None:
        """The daemon ends under a call: the caller hears so; the next daemon ends it on disk."""
        if call.answer.done():
            return
        unsafe = (call.started is not Started.NO or call.attempts > 0) and not call.repeatable
        error = replace(interruption("The daemon is stopping"), partial_side_effects=unsafe)
        response = _guard(call, Outcome(ToolResponse(error=error)))
        call.resolve(call.stamp(response, Delivery.NONE))

    async def delivered(
        self, call_id: str, report: DeliveryReport, *, also: Alongside | None = None
    ) -> None:
        """Store how far an answer got."""
        with Attempt("the delivery of %s is not on disk", call_id):
            await self._store.tell_delivery(call_id, report, also=also)

    async def _finish(self, call: Call, outcome: Outcome) -> None:
        """Bring a stamped answer to everybody."""
        intents = outcome.response.intents[:_INTENTS]
        if len(outcome.response.intents) > _INTENTS:
            _log.warning(
                "%s wants %d changes of the session at once; %d are made",
                call.request.tool,
                len(outcome.response.intents),
                _INTENTS,
            )
        started = await self._apply(call, [i for i in intents if i.get("after") != FAREWELL])
        if call.interim is not None:
            await self._hand_back(call, outcome.response)
        stored = await self._remember(call, outcome)
        response, report = stored.outcome.response, stored.report
        if report is None:
            report = await self._present(call, response, expired=stored.outcome.expired)
        # Said, or nothing more to be done about it.
        started |= await self._apply(call, [i for i in intents if i.get("after") == FAREWELL])
        if stored.report is None:
            also = self._for_cloud(call, response, report, stands=stored.on_disk)
            await self.delivered(call.request.call_id, report, also=also)
        final = response.with_meta(delivery=report.to_json())
        call.end(final, "answered" if call.interim is None else "completed")
        if started:
            self._voice.started()

    # -------------------------------------------------------------- intents

    async def _apply(self, call: Call, intents: Sequence[Mapping[str, Json]]) -> bool:
        """Carry intents out, of good answers and of failures; each change of the session is stored
        with its cause. True when one started a session.
        """
        started, tool = False, call.request.tool
        for intent in intents:
            before = self._session.described(self._clock.boot())
            try:
                self._session.apply(intent, tool=tool, now=self._clock.boot())
            except NoEffect as e:
                _log.warning("%s", e)
                continue
            started |= intent.get("type") == "START_VOICE_SESSION"
            after = self._session.described(self._clock.boot())
            with Attempt("a change of the session by %s is not on disk", tool):
                await self._sessions.note(
                    cause=tool, call_id=call.request.call_id, before=before, after=after
                )
        await self._voice.keep()
        return started

    async def _hand_back(self, call: Call, response: ToolResponse) -> None:
        """Give a late answer to the tool that made this call: it got `pending`, and only it
        knows what to say to the wearer. The answer is stored after that, so a kill in between
        repeats it.
        """
        request = call.request
        entry = self._registry.snapshot().find(request.through) if request.depth else None
        if entry is None:
            return
        problem = "the late answer of %s was not taken by %s"
        for number in itertools.count():
            level = logging.DEBUG if number else logging.WARNING
            with Attempt(problem, request.tool, request.through, level=level) as taking:
                await self._take_late_answer(entry.definition, request, response)
            if not isinstance(taking.error, StorageUnavailable):
                return
            await asyncio.sleep(_DISK_AGAIN_S)

    # -------------------------------------------------------------- disk

    async def _remember(self, call: Call, outcome: Outcome) -> _Stored:
        """Store the one answer; if there is one already, that one stands. If the disk takes
        nothing, the caller gets an answer all the same, but never “not done” while the next daemon
        may still do it.
        """
        await self._keep_result(call, outcome.response)
        if _left_out(call):
            return _Stored(outcome)
        problem = "the answer of %s is not on disk"
        with Attempt(problem, call.request.call_id, level=logging.ERROR):
            return await self._store_answer(call, outcome)
        if _left_out(call):  # it ran before it was on disk, and never came there
            return _Stored(outcome)
        if _undecided(call, outcome):
            outcome = replace(outcome, response=call.stamp(results.undecided()))
        if self._tasks.open and self._waiting_for_disk < _WAITING_FOR_DISK:
            self._waiting_for_disk += 1
            self._tasks.create_task(self._store_later(call, outcome), name="call.keep")
        return _Stored(outcome, on_disk=False)

    async def _store_answer(self, call: Call, outcome: Outcome, *, given: bool = False) -> _Stored:
        """Return the answer that stands. In one transaction with it: that the wearer does not get
        it, the result for the cloud that invoked the call, and that the cloud's message is dealt
        with. `given`: its caller has it already.
        """
        state, call_id = _end_state(outcome), call.request.call_id
        if call.tool is not None and call.tool.asynchronous:
            await self._close_pending(call, state, outcome.response)
            submitted = await self._pending.result(call_id)
            if submitted is not None and state in (CallState.CANCELLED, CallState.EXPIRED):
                # It was taken before the call was cancelled, or late, and its caller knows that.
                outcome = replace(outcome, response=call.stamp(submitted), expired=False)
                state = _end_state(outcome)
        response, message, report = outcome.response, outcome.message, None
        if not given:
            report = self._hidden(call, response, expired=outcome.expired)
        also = Alongside.all_of(
            None if message is None else self._uplink.handling(message),
            None if report is None else self._for_cloud(call, response, report),
        )
        # What is shown next is on disk with its delivery.
        first = call.answered_first or (call.shown_first and report is None and not given)
        if first and call.interim is None and also is None:
            await self._store.finish_behind(
                call_id, state.value, response, delivery=report, failed=partial(_not_kept, call)
            )
            return _Stored(outcome, report=report)
        if await self._store.finish(call_id, state.value, response, delivery=report, also=also):
            return _Stored(outcome, report=report)
        if message is not None:
            await self._cloud.handled(message)
        found = await self._store.known(call.request)
        if found is None or found.response is None:
            return _Stored(outcome)
        return _Stored(replace(outcome, response=found.response))

    def _for_cloud(
        self, call: Call, response: ToolResponse, report: DeliveryReport, *, stands: bool = True
    ) -> Alongside | None:
        """Return what the cloud hears of an answer, stored with its delivery: the answer, if it
        invoked the call; of a result of its own, how far that got. `stands` False: the next daemon
        may still give another answer.
        """
        reply = self._reply(call, response, report)
        if call.route is None or call.route.kind not in _CLOUD or not stands:
            return reply
        call_id, age_s = call.request.call_id, max(0.0, self._clock.boot() - call.began)
        self._cloud.follow(call_id)
        return Alongside.all_of(reply, self._cloud.telling(call_id, report, age_s=age_s))

    def _reply(
        self, call: Call, response: ToolResponse, report: DeliveryReport
    ) -> Alongside | None:
        """Return how the result goes to the cloud that invoked the call and got no other."""
        invoked = call.caller.invoked
        if invoked is None or call.interim is not None:
            return None
        self._cloud.follow(call.request.call_id)
        result = self._uplink.result(invoked, response.with_meta(delivery=report.to_json()))

        def stored(what: Any) -> None:
            result.stored(what)
            call.replied = True

        return Alongside(result.work, stored)

    async def _store_later(self, call: Call, outcome: Outcome) -> None:
        """Bring an answer that was given to the disk as soon as there is room."""
        problem = "the answer of %s is still not on disk"
        try:
            while True:
                await asyncio.sleep(_DISK_AGAIN_S)
                with Attempt(problem, call.request.call_id, level=logging.DEBUG):
                    await self._store_answer(call, outcome, given=True)
                    break
        finally:
            self._waiting_for_disk -= 1

    async def _close_pending(self, call: Call, state: CallState, response: ToolResponse) -> None:
        request = call.request
        if state in (CallState.CANCELLED, CallState.EXPIRED):
            await self._pending.close(request.call_id, state.value.lower())
        else:
            await self._pending.resolve(
                request.call_id, response, user_id=request.user_id, session=request.session
            )

    async def _keep_result(self, call: Call, response: ToolResponse) -> None:
        """Keep the last good result of a tool that only reads, for times when its route is away. An
        old result must not become young by being kept again.
        """
        tool = call.tool
        if tool is None or tool.cache_ttl_s is None or not tool.read_only or not response.ok:
            return
        cached = call.route is not None and call.route.kind is RouteKind.CACHE
        if cached or response.meta.get("stale") is True:
            return
        args = idempotency.digest(dict(call.request.args))
        with Attempt("the result of %s is not kept", tool.name):
            await self._results.keep(
                call.request.user_id, tool.name, args, response, ttl_s=tool.cache_ttl_s
            )

    # -------------------------------------------------------------- wearer

    async def _present(
        self, call: Call, response: ToolResponse, *, expired: bool
    ) -> DeliveryReport:
        if (hidden := self._hidden(call, response, expired=expired)) is not None:
            return hidden
        # The answer stands and is on disk: a fault of the stage must not become another one.
        with Attempt(_NOT_SHOWN, call.request.call_id, bug=True):
            return await self._show(call, response)
        return _FAULT

    def _hidden(
        self, call: Call, response: ToolResponse, *, expired: bool
    ) -> DeliveryReport | None:
        """Return why the wearer does not get this answer; None if it is to be shown."""
        with Attempt(_NOT_SHOWN, call.request.call_id, bug=True):
            return self._not_shown(call, response, expired=expired)
        return _FAULT

    def _not_shown(
        self, call: Call, response: ToolResponse, *, expired: bool
    ) -> DeliveryReport | None:
        if expired:
            return DeliveryReport(Delivery.EXPIRED)
        asked = call.route is not None and call.route.kind is RouteKind.WEARER
        if asked and _seen_already(response):
            return DeliveryReport(Delivery.NONE)
        if not visibility.shows_answer(call.request, call.tool, response, confirmed=call.confirmed):
            return DeliveryReport(Delivery.NONE)
        if _is_own_no(call, response, self._glasses.status()):
            return DeliveryReport(Delivery.NONE)
        glasses, early = self._glasses.status(), call.interim is not None
        if early and glasses.worn is False:
            return DeliveryReport(Delivery.DROPPED, "the glasses are not worn")
        known = glasses.capabilities is not None
        if response.error is not None and not early and known and not glasses.ready:
            # Kept for their return it would be old news, and push away what the wearer was reading.
            return DeliveryReport(Delivery.DROPPED, "glasses away")
        if not self._surface(glasses, call.request):
            return DeliveryReport(Delivery.DROPPED, "glasses away" if known else "no glasses")
        return None

    async def _show(self, call: Call, response: ToolResponse) -> DeliveryReport:
        awaited = call.confirmed or visibility.wearer_asked(call.request)
        response = visibility.dressed(response, call.tool, awaited=awaited)
        call.stages.append("posted")
        if self._session.silent(self._clock.boot()):
            silent: dict[str, Json] = {**(response.render or {}), "suppressVoiceResponse": True}
            response = replace(response, render=silent)
        call_id, name = call.request.call_id, call.wearer_name
        offer, response = self._undos.offer(call, response), explained(call, response)
        if call.route is None or call.route.code is None:
            return await self._stage.present(
                call_id, response, wait=call.caller.wait, offer=offer, name=name
            )
        try:  # a fallback is an answer within a second, whatever the lens does
            async with timeout(self._rules.limits.fallback_s):
                return await self._stage.present(call_id, response, name=name)
        except TimeoutError:
            return DeliveryReport(Delivery.SENT, "the glasses have not confirmed it yet")

    def _surface(self, glasses: GlassesStatus, call: ToolCall) -> bool:
        """Is there anything to show it on? That there is not is logged once, until there is
        again.
        """
        there = visibility.surface(
            ready=glasses.ready,
            known=glasses.capabilities is not None,
            gone_at=glasses.gone_at,
            began=self._began,
            now=self._clock.boot(),
        )
        if not there:
            level = logging.DEBUG if self._unseen else logging.WARNING
            _log.log(
                level,
                "no glasses are connected to show results; "
                "they go to their callers only, the first is of %s",
                call.tool,
            )
        self._unseen = not there
        return there


def _not_kept(call: Call, error: BaseException) -> None:
    _log.warning("the answer of %s is not on disk: %s", call.request.call_id, error)


def _left_out(call: Call) -> bool:
    """Return whether it is not on disk, and its answer need not be there."""
    return call.state is CallState.RECEIVED


def _undecided(call: Call, outcome: Outcome) -> bool:
    """Return whether this answer, which is not on disk, says “not done” of a call that the next
    daemon may still run: one that was accepted, and not ended by the one that ran it.
    """
    error = outcome.response.error
    if error is None or error.partial_side_effects or not call.may_run or call.repeatable:
        return False
    return not outcome.settled


def _is_own_no(call: Call, response: ToolResponse, glasses: GlassesStatus) -> bool:
    """Return whether the wearer said no to it, which the lens said where the question was."""
    error, known = response.error, glasses.capabilities
    denied = error is not None and error.code is ErrorCode.DENIED
    return denied and call.reason == BY_WEARER and known is not None and known.has(Hardware.DISPLAY)


def _seen_already(response: ToolResponse) -> bool:
    """Return whether a question's outcome is no news to the wearer: their own answer, their
    silence, or that it was cancelled, for then it has left the lens.
    """
    return response.error is None or response.error.code in (
        ErrorCode.CANCELLED,
        ErrorCode.DEADLINE_EXPIRED,
    )


def _guard(call: Call, outcome: Outcome) -> ToolResponse:
    """Return the answer to give. Where the call may have been done before it failed, its key gets
    this answer again instead of a second run, unless that is harmless; and its
    suggestion says how to find out, if there is a way.
    """
    response, error = outcome.response, outcome.response.error
    if error is None or not error.partial_side_effects or call.tool is None:
        return response
    if not call.repeatable:
        advice = call.tool.how_to_check or error.suggestion
        error = replace(error, idempotency_required=True, suggestion=advice)
        return replace(response, error=error)
    own = outcome.message is not None and outcome.message.own  # the uplink, which knows no tools
    return replace(response, error=replace(error, partial_side_effects=False)) if own else response


def _end_state(outcome: Outcome) -> CallState:
    code = outcome.response.error.code if outcome.response.error else None
    if code is ErrorCode.CANCELLED:
        return CallState.CANCELLED
    if outcome.expired or code in (
        ErrorCode.DEADLINE_EXPIRED,
        ErrorCode.TIMEOUT,
        ErrorCode.EXPIRED,
    ):
        return CallState.EXPIRED
    return CallState.ANSWERED if outcome.response.ok else CallState.FAILED


def interruption(text: str) -> ToolError:
    return ToolError.of(ErrorCode.INTERRUPTED, text, suggestion="Try again in a moment")
