"""The end of a call: intents, memory, wearer, caller, cloud, audit; in this order, whatever the
answer is.

Refuses to know how an answer came about.
"""

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from edge.calls.admission import CallLimits, CallRefused
from edge.calls.call import PendingCall
from edge.calls.voice_session import VoiceSession
from edge.core import idempotency, latency, results, visibility
from edge.core.call_state import CallState
from edge.core.routing import RouteKind
from edge.core.session import FAREWELL, NoEffect
from edge.ports import (
    GlassesPort,
    GlassesStatus,
    RegistryPort,
    RenderPort,
    UplinkMessage,
    UplinkPort,
)
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import CallAnswered, CallCompleted
from edge.runtime.first_completed import Tasks
from edge.storage.calls import CallStore
from edge.storage.pending import PendingCalls
from edge.storage.results import ResultCache
from edge.storage.sessions import Sessions
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import (
    Delivery,
    DeliveryReport,
    ErrorCode,
    Json,
    Mode,
    ToolCall,
    ToolError,
    ToolResponse,
)
from tools_cache.names import flaw

_log: Final = logging.getLogger(__name__)
_audit_log: Final = logging.getLogger("edge.observability.audit")
Audit = Callable[[Mapping[str, Json]], None]
"""Takes one audit record (S2-101); must not wait."""

_RECENT: Final = 256
"""Calls whose delivery is still reported when it changes."""
_DISK_AGAIN_S: Final = 1.0
_INTENTS: Final = 16
"""Changes of the session that one answer may make; there are four kinds."""
_INSISTING: Final = 256
"""Answers that wait for room on the disk; those beyond it are settled by the next daemon, as
their calls were left.
"""


@dataclass(frozen=True, slots=True)
class CallStores:
    """The tables a call's life is kept in."""

    calls: CallStore
    pending: PendingCalls
    results: ResultCache


class CallDelivery:
    """One per daemon. `session` is what tools' intents steer."""

    def __init__(
        self,
        *,
        registry: RegistryPort,
        shelves: CallStores,
        sessions: Sessions,
        uplink: UplinkPort,
        glasses: GlassesPort,
        stage: RenderPort,
        bus: Bus,
        clock: Clock,
        audit: Audit | None,
        limits: CallLimits,
        voice: VoiceSession,
        tasks: Tasks,
    ) -> None:
        self._registry = registry
        self._shelves = shelves
        self._store = shelves.calls
        self._sessions = sessions
        self._uplink = uplink
        self._glasses = glasses
        self._stage = stage
        self._bus = bus
        self._clock = clock
        self._audit = audit or _log_audit
        self._limits = limits
        self._recent: OrderedDict[str, float] = OrderedDict()
        self._latency = latency.LatencyLedger()
        self._slow_tools: set[str] = set()
        self._insisting = 0
        self._began = clock.boot()
        self._unseen = False
        self._tasks = tasks
        self.voice = voice
        self.session = voice.controller

    async def end(self, ticket: PendingCall, response: ToolResponse) -> None:
        """Intents, memory, wearer, caller, cloud, audit: in this order, whatever the answer is."""
        response = self.stamp(ticket, _guarded(ticket, response))
        intents = response.intents[:_INTENTS]
        if len(response.intents) > _INTENTS:
            _log.warning(
                "%s wants %d changes of the session at once; %d are made",
                ticket.call.tool,
                len(response.intents),
                _INTENTS,
            )
        started = await self._apply(ticket, [i for i in intents if i.get("after") != FAREWELL])
        response = await self._remember(ticket, response)
        if ticket.message is not None and ticket.kept:
            await self.handled(ticket.message)
        report = await self._presented(ticket, response)
        started |= await self._apply(
            ticket, [i for i in intents if i.get("after") == FAREWELL]
        )  # said, or nothing more to be done about it
        await self.delivered(ticket.call.call_id, report)
        final = response.with_meta(delivery=report.to_json())
        await self._tell_cloud(ticket, report)
        if ticket.early:
            call = ticket.call
            self._bus.publish(CallCompleted(call.call_id, call.tool, final.ok, report.to_json()))
            self._record(ticket, final, "completed")
            ticket.resolve(final)
        else:
            self.answer(ticket, final, "answered")
        if started:
            self.voice.started()

    async def _apply(self, ticket: PendingCall, intents: Sequence[Mapping[str, Json]]) -> bool:
        """Carry intents out, of good answers and of failures; each change of the session is kept
        with its cause. True when one started a session.
        """
        started = False
        for intent in intents:
            before = self.session.described(self._clock.boot())
            try:
                self.session.apply(intent, tool=ticket.call.tool, now=self._clock.boot())
            except NoEffect as e:
                _log.warning("%s", e)
                continue
            started |= intent.get("type") == "START_VOICE_SESSION"
            try:
                await self._sessions.note(
                    cause=ticket.call.tool,
                    call_id=ticket.call.call_id,
                    before=before,
                    after=self.session.described(self._clock.boot()),
                )
            except Exception as e:  # noqa: BLE001 - the state has changed; only its trail is short of a line
                _log.warning(
                    "a change of the session by %s is not on disk: %s", ticket.call.tool, e
                )
        await self.voice.keep()
        return started

    async def _remember(self, ticket: PendingCall, response: ToolResponse) -> ToolResponse:
        """Store the one answer; if there is one already, that one stands. A disk that takes nothing
        must not cost the caller an answer; but then it is not one that the next daemon could make a
        lie.
        """
        await self._keep(ticket, response)
        if not ticket.admitted:
            return response
        try:
            return await self._store_answer(ticket, response)
        except Exception as e:  # noqa: BLE001 - a disk's fault
            _log.error("the answer of %s is not on disk: %s", ticket.call.call_id, e)
        ticket.kept = False
        if _undecided(ticket, response):
            response = self.stamp(ticket, results.undecided())
        if self._tasks.open and self._insisting < _INSISTING:
            self._insisting += 1
            self._tasks.create_task(self._insist(ticket, response), name="call.keep")
        return response

    async def _store_answer(self, ticket: PendingCall, response: ToolResponse) -> ToolResponse:
        state = _end_state(response, expired=ticket.expired)
        if ticket.tool is not None and ticket.tool.asynchronous:
            await self._close_pending(ticket, state, response)
            handed_in = await self._shelves.pending.result(ticket.call.call_id)
            if handed_in is not None and state in (CallState.CANCELLED, CallState.EXPIRED):
                # It was taken before the call was called off, or late: whoever handed it in was
                # told so.
                ticket.expired, response = False, self.stamp(ticket, handed_in)
                state = _end_state(response, expired=False)
        if await self._store.finish(ticket.call.call_id, state.value, response):
            return response
        found = await self._store.known(ticket.call)
        return found.response if found is not None and found.response is not None else response

    async def _insist(self, ticket: PendingCall, response: ToolResponse) -> None:
        """Bring an answer that was told to the disk as soon as there is room."""
        try:
            while not ticket.kept:
                await asyncio.sleep(_DISK_AGAIN_S)
                with suppress(Exception):  # said already; somebody has to make room
                    await self._store_answer(ticket, response)
                    ticket.kept = True
            if ticket.message is not None:
                await self.handled(ticket.message)
        finally:
            self._insisting -= 1

    async def _close_pending(
        self, ticket: PendingCall, state: CallState, response: ToolResponse
    ) -> None:
        call = ticket.call
        if state in (CallState.CANCELLED, CallState.EXPIRED):
            await self._shelves.pending.close(call.call_id, state.value.lower())
        else:
            await self._shelves.pending.resolve(
                call.call_id, response, user_id=call.user_id, session=call.session
            )

    async def _keep(self, ticket: PendingCall, response: ToolResponse) -> None:
        """Keep the last good result of a tool that only reads, for times when its route is away."""
        tool, route = ticket.tool, ticket.route
        if tool is None or tool.cache_ttl_s is None or not tool.read_only or not response.ok:
            return
        if (route is not None and route.kind is RouteKind.CACHE) or response.meta.get(
            "stale"
        ) is True:
            return  # an old one must not become young by being kept again
        try:
            await self._shelves.results.keep(
                ticket.call.user_id,
                tool.name,
                idempotency.digest(dict(ticket.call.args)),
                response,
                ttl_s=tool.cache_ttl_s,
            )
        except Exception as e:  # noqa: BLE001 - a kept copy is a comfort, the answer is what counts
            _log.warning("the result of %s is not kept: %s", tool.name, e)

    async def delivered(self, call_id: str, report: DeliveryReport) -> None:
        """Keep how far an answer got; a disk that takes nothing costs that word, not the answer."""
        try:
            await self._store.tell_delivery(call_id, report)
        except Exception as e:  # noqa: BLE001 - as above
            _log.warning("the delivery of %s is not on disk: %s", call_id, e)

    async def _presented(self, ticket: PendingCall, response: ToolResponse) -> DeliveryReport:
        try:
            return await self._present(ticket, response)
        except Exception:  # noqa: BLE001 - the answer stands and is on disk: a fault of the stage must not become another one
            _log.exception("the answer of %s could not be shown", ticket.call.call_id)
            return DeliveryReport(Delivery.DROPPED, "it could not be shown")

    async def _present(self, ticket: PendingCall, response: ToolResponse) -> DeliveryReport:
        if ticket.expired:
            return DeliveryReport(Delivery.EXPIRED)
        if (
            ticket.route is not None
            and ticket.route.kind is RouteKind.WEARER
            and _seen_already(response)
        ):
            return DeliveryReport(Delivery.NONE)
        if not visibility.told(ticket.call, ticket.tool, response):
            return DeliveryReport(Delivery.NONE)
        if ticket.early and self._glasses.status().worn is False:
            return DeliveryReport(Delivery.DROPPED, "the glasses are not worn")
        glasses = self._glasses.status()
        if (
            response.error is not None
            and not ticket.early
            and glasses.capabilities is not None
            and not glasses.ready
        ):
            # Kept for their return it would be old news, and push away what the wearer was reading.
            return DeliveryReport(Delivery.DROPPED, "glasses away")
        if not self._surface(glasses, ticket.call):
            return DeliveryReport(
                Delivery.DROPPED, "no glasses" if glasses.capabilities is None else "glasses away"
            )
        response = visibility.dressed(response, ticket.tool)
        ticket.stages.append("posted")
        if self.session.silent(self._clock.boot()):
            response = replace(
                response, render={**(response.render or {}), "suppressVoiceResponse": True}
            )
        if ticket.route is None or ticket.route.code is None:
            return await self._stage.present(ticket.call.call_id, response, wait=ticket.wait)
        try:  # a fallback is an answer within a second, whatever the lens does
            async with timeout(self._limits.fallback_s):
                return await self._stage.present(ticket.call.call_id, response)
        except TimeoutError:
            return DeliveryReport(Delivery.SENT, "the glasses have not confirmed it yet")

    def _surface(self, glasses: GlassesStatus, call: ToolCall) -> bool:
        """Is there anything to show it on? That there is not is said once, until there is again
        (S3-10).
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

    async def refuse(self, ticket: PendingCall, refused: CallRefused) -> None:
        ticket.reason = refused.reason
        response = self.stamp(ticket, ToolResponse(error=refused.error))
        report = await self._presented(ticket, response)
        self.answer(ticket, response.with_meta(delivery=report.to_json()), "refused")

    def refusal(self, ticket: PendingCall, error: ToolError, reason: str) -> ToolResponse:
        """Refuse at the door, before there is a life."""
        ticket.reason = reason
        if error.code is ErrorCode.INVALID_TOOL_NAME:
            _log.warning(
                "Invalid tool name format - %s: %.80r",
                flaw(str(ticket.call.tool)),
                ticket.call.tool,
            )
        response = self.stamp(ticket, ToolResponse(error=error)).with_meta(
            delivery=Delivery.NONE.value
        )
        self.answer(ticket, response, "refused")
        return response

    def answer(
        self, ticket: PendingCall, response: ToolResponse, outcome: str, *, final: bool = True
    ) -> None:
        call, error = ticket.call, response.error
        self._bus.publish(
            CallAnswered(
                call.call_id,
                str(call.tool)[:255],
                response.ok,
                str(response.meta.get("route", "")),
                response.meta.get("delivery"),
                error.code.value if error else "",
                final,
            )
        )
        self._record(ticket, response, outcome)
        ticket.resolve(response)

    def stopped(self, ticket: PendingCall) -> None:
        """The daemon ends under a call: the caller hears so; the next daemon ends it in the
        store.
        """
        if not ticket.answer.done():
            unsafe = (ticket.accepted or ticket.attempts > 0) and not (
                ticket.tool is not None and results.repeatable(ticket.tool)
            )
            error = replace(interruption("The daemon is stopping"), partial_side_effects=unsafe)
            ticket.resolve(
                self.stamp(ticket, _guarded(ticket, ToolResponse(error=error))).with_meta(
                    delivery=Delivery.NONE.value
                )
            )

    def stamp(self, ticket: PendingCall, response: ToolResponse) -> ToolResponse:
        registry = ticket.snapshot.version if ticket.snapshot else self._registry.snapshot().version
        moment = datetime.fromtimestamp(self._clock.wall(), UTC).isoformat(timespec="milliseconds")
        return results.stamped(
            response,
            ticket.call,
            tool=ticket.tool,
            registry=registry,
            duration_s=self._clock.boot() - ticket.began - ticket.queued_s - ticket.asked_s,
            timestamp=moment.replace("+00:00", "Z"),
            route=ticket.route.kind if ticket.route else None,
            clamped=ticket.clamped,
        )

    async def step(self, ticket: PendingCall, state: CallState) -> bool:
        """Move a call along; False when that is not on disk."""
        if not ticket.admitted:
            return True
        try:
            await self._store.advance(ticket.call.call_id, state.value)
        except Exception as e:  # noqa: BLE001 - the answer matters more than its place in the table
            _log.warning("call %s is not marked %s: %s", ticket.call.call_id, state, e)
            return False
        return True

    def _record(self, ticket: PendingCall, response: ToolResponse, outcome: str) -> None:
        """One audit line per answer (S2-101); whether its arguments are written down is the
        log's business.
        """
        call, tool, error = ticket.call, ticket.tool, response.error
        duration = response.meta.get("duration", 0)
        over_tool, over_turn = self._slow(ticket, duration)
        self._audit(
            {
                "toolId": str(call.tool)[:255],
                "version": tool.version if tool else None,
                "registryVersion": response.meta.get("registryVersion"),
                "duration": duration,
                "mode": call.mode.value,
                "turnId": call.turn_id,
                "idempotencyKey": ticket.keys[0] if ticket.keys else call.idempotency_key,
                "callId": call.call_id,
                "userId": call.user_id,
                "origin": call.origin.value,
                "route": response.meta.get("route"),
                "outcome": outcome,
                "ok": response.ok,
                "errorType": error.type.value if error else None,
                "errorCode": error.code.value if error else None,
                "reason": ticket.reason,
                "argsHash": idempotency.args_digest(call.args),
                "args": dict(call.args),
                "category": tool.category if tool else None,
                "delivery": response.meta.get("delivery"),
                "attempts": ticket.attempts,
                "stages": " ".join(ticket.stages),
                "overBudget": over_tool,
                "turnOverBudget": over_turn,
                "defaultsApplied": ", ".join(ticket.defaulted)[:255] or None,
            }
        )

    def _slow(self, ticket: PendingCall, duration_ms: int) -> tuple[bool, bool]:
        """Soft budgets: said, never enforced (S2-91, S2-92, S2-94)."""
        call, total_ms, limit_ms = ticket.call, 0, self._limits.turn_latency_ms
        if ticket.early:
            return (
                False,
                False,
            )  # it waited for a network, a person or a daemon: that is no slowness of its tool
        if call.mode is Mode.VOICE and call.turn is not None:
            total_ms = self._latency.spent(call.turn, duration_ms)
        over, name = latency.over_budget(ticket.tool, duration_ms), str(call.tool)[:255]
        level = logging.DEBUG if name in self._slow_tools else logging.WARNING
        for text in latency.warnings(ticket.tool, duration_ms, total_ms, limit_ms):
            _log.log(level, "%s", text)
        (self._slow_tools.add if over else self._slow_tools.discard)(name)
        return over, latency.turn_over_budget(duration_ms, total_ms, limit_ms)

    async def _tell_cloud(self, ticket: PendingCall, report: DeliveryReport) -> None:
        if ticket.route is not None and ticket.route.kind in (RouteKind.CLOUD, RouteKind.QUEUE):
            self.note_recent(ticket.call.call_id)
            await self.tell(
                ticket.call.call_id, report, age_s=max(0.0, self._clock.boot() - ticket.began)
            )

    async def tell(self, call_id: str, report: DeliveryReport, *, age_s: float) -> None:
        """Tell the cloud how far an answer got; a disk that takes nothing costs that word, not
        the answer.
        """
        try:
            await self._uplink.tell_delivery(call_id, report, age_s=age_s)
        except Exception as e:  # noqa: BLE001 - as above
            _log.warning("the delivery of %s cannot be reported to the cloud: %s", call_id, e)

    async def handled(self, message: UplinkMessage) -> None:
        """Strike a message off; what cannot be struck off comes again after a restart and is
        known then.
        """
        try:
            await self._uplink.handled(message)
        except Exception as e:  # noqa: BLE001 - as above
            _log.warning("a message of the cloud is not marked as handled: %s", e)

    def recent_age_s(self, call_id: str) -> float | None:
        """Seconds since a call of the cloud's was answered; None when nobody asks any more."""
        since = self._recent.get(call_id)
        return None if since is None else self._clock.boot() - since

    def note_recent(self, call_id: str) -> None:
        """From now on the cloud is told when this call's delivery changes."""
        self._recent[call_id] = self._clock.boot()
        while len(self._recent) > _RECENT:
            self._recent.popitem(last=False)


def _undecided(ticket: PendingCall, response: ToolResponse) -> bool:
    """Say whether the next daemon may still run what this answer says was not done: accepted, not
    run here, no worker's word on it, and only the answer that is not on disk would stop it.
    """
    error, tool = response.error, ticket.tool
    if (
        error is None
        or error.partial_side_effects
        or not ticket.begun
        or (tool is not None and results.repeatable(tool))
    ):
        return False
    return ticket.runner is None and ticket.message is None


def _seen_already(response: ToolResponse) -> bool:
    """The wearer's own answer is no news to the wearer, nor is silence; a question that was called
    off is gone, and what was read before it is there again.
    """
    return response.error is None or response.error.code in (
        ErrorCode.CANCELLED,
        ErrorCode.DEADLINE_EXPIRED,
    )


def _guarded(ticket: PendingCall, response: ToolResponse) -> ToolResponse:
    """A write that may have been done before it failed is not to be repeated under its key."""
    error, tool = response.error, ticket.tool
    if error is None or not error.partial_side_effects or tool is None:
        return response
    if not results.repeatable(tool):
        return replace(response, error=replace(error, idempotency_required=True))
    own = (
        ticket.message is not None and ticket.message.own
    )  # the uplink's word, which knows no tools
    return replace(response, error=replace(error, partial_side_effects=False)) if own else response


def _end_state(response: ToolResponse, *, expired: bool) -> CallState:
    code = response.error.code if response.error else None
    if code is ErrorCode.CANCELLED:
        return CallState.CANCELLED
    if expired or code in (ErrorCode.DEADLINE_EXPIRED, ErrorCode.TIMEOUT, ErrorCode.EXPIRED):
        return CallState.EXPIRED
    return CallState.ANSWERED if response.ok else CallState.FAILED


def interruption(text: str) -> ToolError:
    return ToolError.of(ErrorCode.INTERRUPTED, text, suggestion="Try again in a moment")


def _log_audit(record: Mapping[str, Json]) -> None:
    _audit_log.info("%s", json.dumps(record, separators=(",", ":"), ensure_ascii=True, default=str))
