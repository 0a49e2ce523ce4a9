"""One call's life: checks in the order of C-13, a yes where one is needed, route, disk, run, and on
to its end.

Refuses to know where calls come from and how many there are; the orchestrator does. It sees rules
and ports only.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from edge.calls.admission import AdmissionCheck, AlreadyAnswered, CallLimits, CallRefused, overrun
from edge.calls.call import PendingCall
from edge.calls.confirmations import ConfirmationFlow
from edge.calls.delivery import CallDelivery, CallStores
from edge.calls.waiting import ResultWaiter
from edge.core import confirmation, idempotency, results, routing
from edge.core.call_state import RECOVERY, CallState, Left, Recovery
from edge.core.grants import Grant
from edge.core.routing import ELSEWHERE, HERE, Circumstances, Route, RouteKind
from edge.ports import (
    CallProgress,
    CallResult,
    GlassesPort,
    RegistryPort,
    RunTool,
    UplinkPort,
    UplinkTooLarge,
)
from edge.runtime.clock import Clock
from edge.runtime.first_completed import Tasks
from edge.storage.calls import Unfinished
from edge.storage.sqlite.errors import StorageUnavailable, UplinkBusy
from tools_cache.api.tool import (
    CallOrigin,
    Delivery,
    ErrorCode,
    ErrorType,
    Mode,
    ToolCall,
    ToolDefinition,
    ToolError,
    ToolResponse,
)

_log: Final = logging.getLogger(__name__)
_UPLINK_FIRST_S: Final = 1.0


class Execution:
    """Carries tickets from question to answer."""

    def __init__(
        self,
        *,
        gate: AdmissionCheck,
        registry: RegistryPort,
        backends: Mapping[RouteKind, RunTool],
        shelves: CallStores,
        uplink: UplinkPort,
        glasses: GlassesPort,
        clock: Clock,
        confirmer: ConfirmationFlow,
        attendance: ResultWaiter,
        ending: CallDelivery,
        limits: CallLimits,
        tasks: Tasks,
    ) -> None:
        self._gate = gate
        self._registry = registry
        self._backends = backends
        self._shelves = shelves
        self._uplink = uplink
        self._glasses = glasses
        self._clock = clock
        self._confirmer = confirmer
        self._attendance = attendance
        self._ending = ending
        self._limits = limits
        self._tasks = tasks

    async def live(self, ticket: PendingCall) -> None:
        """From question to answer; whatever goes wrong in here becomes an answer too."""
        call = ticket.call
        try:
            await self._gate.check(ticket)
            ticket.stages.append("configured")
            await self._serve(ticket)
        except CallRefused as e:
            await self._ending.refuse(ticket, e)
        except AlreadyAnswered as e:
            stored = (
                e.response
                if "callId" in e.response.meta
                else self._ending.stamp(ticket, e.response)
            )
            replay = idempotency.as_replay(stored, e.turn_id).with_meta(
                delivery=Delivery.NONE.value
            )
            self._ending.answer(ticket, replay, "replay")
        except Exception as e:  # noqa: BLE001 - S2-45: it becomes an answer, its cause stays in the log
            if isinstance(e, StorageUnavailable) and not ticket.admitted:
                await self._ending.refuse(
                    ticket, CallRefused(results.storage_unavailable(e), "store")
                )
                return
            _log.exception("call %s failed inside the daemon", call.call_id)
            await self._ending.end(ticket, results.internal(call.tool))

    async def _serve(self, ticket: PendingCall) -> None:
        """A yes where one is needed, route, admit, run, end."""
        tool, route = self._route(ticket)
        if (
            route.code is None
            and (refusal := await self._unless_allowed(ticket, tool, route)) is not None
        ):
            await self._ending.end(ticket, ToolResponse(error=refusal))
            return
        # Glasses and network may have come or gone while the wearer was asked: this route counts.
        tool, route = self._route(ticket)
        life_s = ticket.call.ttl_s
        ticket.call = replace(ticket.call, ttl_s=routing.life_s(ticket.call, tool, route))
        if not ticket.admitted:
            await self._admit(ticket, tool, route)
        ticket.stages.append("built")
        response = await self._served(ticket, tool, route, life_s)
        ticket.stages += ["executed"] * (route.code is None)
        await self._ending.end(ticket, response)

    async def _served(
        self, ticket: PendingCall, tool: ToolDefinition, route: Route, life_s: float
    ) -> ToolResponse:
        if route.code is not None:
            return await self._or_kept(
                ticket, tool, results.fallback(route.code, tool, route.reason)
            )
        if route.kind in (RouteKind.WEARER, RouteKind.LATER):
            return await self._later(ticket, tool)
        if route.kind in (RouteKind.CLOUD, RouteKind.QUEUE):
            return await self._or_kept(
                ticket, tool, await self._in_the_cloud(ticket, tool, route, life_s)
            )
        return await self.here(ticket, tool)

    def _route(self, ticket: PendingCall) -> tuple[ToolDefinition, Route]:
        """Choose the way this call goes now, by its tool as it is now, because that is what runs:
        a turn may have begun with an older definition.
        """
        assert ticket.tool is not None
        entry = self._registry.snapshot().find(ticket.tool.name)
        tool = ticket.tool if entry is None else entry.definition
        route = routing.choose(tool, self._circumstances(ticket.call))
        if entry is None and route.kind in HERE:
            route = Route(
                RouteKind.FALLBACK, "it is not registered any more", ErrorCode.TOOL_NOT_FOUND
            )
        ticket.tool, ticket.route, ticket.reason = tool, route, route.reason
        return tool, route

    def _circumstances(self, call: ToolCall) -> Circumstances:
        uplink, glasses = self._uplink.status(), self._glasses.status()
        return Circumstances(
            call.origin,
            glasses.ready,
            uplink.configured,
            uplink.up,
            uplink.reason,
            call.ttl_s,
            glasses_known=glasses.capabilities is not None,
            worn=glasses.worn,
        )

    # ------------------------------------------------------------------ a yes

    async def _unless_allowed(
        self, ticket: PendingCall, tool: ToolDefinition, route: Route
    ) -> ToolError | None:
        """None when the call may run. It waits for the yes on disk: a restart asks again, and
        nothing runs unasked.
        """
        standing = await self._confirmer.standing(ticket.call, tool)
        if standing is Grant.NEVER:
            raise CallRefused(confirmation.never_allowed(tool), "never allowed")
        if standing is not None:
            return None
        tool = self._confirmer.freeze(ticket, tool)
        ours = ticket.call.origin is not CallOrigin.CLOUD
        patience_s = (
            ticket.call.ttl_s if ticket.waited_for and self._glasses.status().ready else 0.0
        )
        life_s = self._limits.confirm_s if ours else min(self._limits.confirm_s, ticket.call.ttl_s)
        await self._admit(ticket, tool, route, state=CallState.AWAITING_CONFIRMATION)
        if not ticket.admitted:
            raise CallRefused(results.storage_unavailable("the disk takes nothing"), "store")
        try:
            required = await self._confirmer.open(ticket, tool, life_s)
        except Exception as e:  # noqa: BLE001 - a full disk, or too many questions: nobody was asked and nothing runs
            _log.warning("call %s cannot be asked about: %s", ticket.call.call_id, e)
            return results.storage_unavailable(e)
        interim = self._ending.stamp(ticket, ToolResponse(error=required)).with_meta(
            delivery=Delivery.NONE.value
        )
        ticket.tell_first(interim)
        # The cloud gets one result and brings no token: it waits for the end, which comes within
        # its time.
        began = self._clock.boot()
        decided = await self._attendance.decision(
            ticket, left_s=life_s, patience_s=patience_s, interim=interim if ours else None
        )
        ticket.asked_s = self._clock.boot() - began
        ticket.reason, ticket.begun = f"decided by {decided.by}", decided.refusal is None
        return decided.refusal or await self._confirmer.changed(ticket)

    # ------------------------------------------------------------------ onto the disk

    async def _admit(
        self,
        ticket: PendingCall,
        tool: ToolDefinition,
        route: Route,
        *,
        state: CallState = CallState.ADMITTED,
    ) -> None:
        """Onto the disk before it runs. A disk that takes nothing more stops only what would
        change something.
        """
        kept = ticket.call
        if state is CallState.AWAITING_CONFIRMATION:
            kept = replace(kept, ttl_s=self._limits.confirm_s + routing.life_s(kept, tool, route))
        safe, runs = results.repeatable(tool), route.code is None and route.kind in HERE
        ticket.running = (
            safe and runs and state is CallState.ADMITTED
        )  # one write; where a second run does harm the disk tells them apart
        try:
            admission = await self._shelves.calls.admit(
                kept,
                route.kind.value,
                keys=ticket.keys,
                repeatable=safe,
                state=state.value,
                running=ticket.running,
            )
        except Exception as e:
            _log.warning("call %s is not on disk: %s", ticket.call.call_id, e)
            if not (tool.read_only and route.kind in HERE) and route.code is None:
                raise CallRefused(results.storage_unavailable(e), "store") from e
            return
        if not admission.fresh:
            raise AlreadyAnswered(
                admission.response or results.pending(ticket.call), admission.turn_id
            )
        ticket.admitted = True
        if state is CallState.ADMITTED:
            ticket.begun = True
            ticket.tell_first(None)

    async def here(self, ticket: PendingCall, tool: ToolDefinition) -> ToolResponse:
        if (
            not ticket.running
            and not await self._ending.step(ticket, CallState.RUNNING)
            and not results.repeatable(tool)
        ):
            return ToolResponse(error=results.storage_unavailable("the disk takes nothing"))
        return await self._run(ticket, tool, end_s=self._time_limit(ticket.call, tool))

    async def _run(
        self, ticket: PendingCall, tool: ToolDefinition, *, end_s: float
    ) -> ToolResponse:
        """Run the call in its backend, as a task that ends with the call, whatever ends it."""
        ticket.runner = self._tasks.create_task(
            self._answer(ticket, tool), name=f"tool.{ticket.call.call_id}"
        )
        try:
            return await self._attendance.attend(ticket, tool, end_s=end_s)
        finally:
            ticket.runner.cancel()

    async def _answer(self, ticket: PendingCall, tool: ToolDefinition) -> None:
        """Hand the backend's answer to the ticket; what is answered later has none here."""

        async def progress(text: str) -> None:
            ticket.put(CallProgress(ticket.call.call_id, text))

        assert ticket.route is not None
        kind = ticket.route.kind
        run = partial(self._backends[kind], ticket.call, tool, progress)
        if kind in HERE:
            ticket.accepted = True
            ticket.attempts += 1
        try:
            response = await run()
            if kind is RouteKind.LATER and response.ok:
                ticket.heard = True
                return
            if _once_more(response, tool, ticket.call, kind):
                await asyncio.sleep(self._limits.retry_pause_s)
                ticket.attempts += 1
                response = await run()
        except Exception:  # noqa: BLE001 - else it would end the calls beside it too
            _log.exception("the backend of %s failed (call %s)", tool.name, ticket.call.call_id)
            response = results.internal(tool.name)
        ticket.put(CallResult(ticket.call.call_id, response))

    def _time_limit(self, call: ToolCall, tool: ToolDefinition) -> float:
        return max(0.0, min(tool.timeout_s, self._limits.run_s, call.ttl_s))

    async def _in_the_cloud(
        self, ticket: PendingCall, tool: ToolDefinition, route: Route, life_s: float
    ) -> ToolResponse:
        if (failed := await self._submit(ticket)) is not None:
            return failed
        ticket.attempts += 1
        if tool.asynchronous or route.kind is RouteKind.QUEUE:
            await self._attendance.postpone(ticket)
            return await self._attendance.attend(ticket, tool, end_s=ticket.call.ttl_s)
        await self._ending.step(ticket, CallState.RUNNING)
        end_s = min(self._time_limit(ticket.call, tool), life_s)
        return await self._attendance.attend(
            ticket, tool, end_s=end_s, life_s=life_s, accept_s=self._limits.accept_s
        )

    async def _submit(self, ticket: PendingCall) -> ToolResponse | None:
        """Hand a call to the outbox, its deciding key with it, so that the workers know it too;
        else why not.
        """
        key = idempotency.on_the_wire(ticket.keys[0]) if ticket.keys else None
        if (
            ticket.tool is not None
            and ticket.tool.asynchronous
            and (full := await self._promised(ticket)) is not None
        ):
            return full
        try:
            await self._uplink.submit(replace(ticket.call, idempotency_key=key))
        except UplinkBusy as e:
            return ToolResponse(error=overrun(self._limits, str(e)))
        except StorageUnavailable as e:
            return ToolResponse(error=results.storage_unavailable(e))
        except UplinkTooLarge as e:
            return ToolResponse(error=results.too_large(e.size, e.limit))
        except Exception as e:  # noqa: BLE001 - nothing was sent
            return ToolResponse.failure(
                ErrorCode.TOOL_UNAVAILABLE, f"This call cannot be sent: {e}"
            )
        return None

    # ------------------------------------------------------------------ results that come later

    async def _later(self, ticket: PendingCall, tool: ToolDefinition) -> ToolResponse:
        """Answered `pending` at once (S3-22); the result is the wearer's, or whoever hands it
        in.
        """
        if (full := await self._promised(ticket)) is not None:
            return full
        ticket.free_place()
        if not self._attendance.waits_for_wearer(ticket):
            await self._attendance.postpone(ticket)
        return await self._awaited(ticket, tool, first=True)

    async def _promised(self, ticket: PendingCall) -> ToolResponse | None:
        """From now on its result may be handed in; else why not. Before anything leaves, so
        that a full table costs nothing.
        """
        try:
            await self._shelves.pending.put(ticket.call, ttl_s=ticket.call.ttl_s)
        except Exception as e:  # noqa: BLE001 - said, with nothing sent and nobody asked
            return ToolResponse(error=results.storage_unavailable(e))
        return None

    async def _awaited(
        self, ticket: PendingCall, tool: ToolDefinition, *, first: bool = False
    ) -> ToolResponse:
        kind = ticket.route.kind if ticket.route is not None else None
        hand_over = kind is RouteKind.LATER and (first or await self._may_go_again(ticket, tool))
        if kind is RouteKind.WEARER or hand_over:
            return await self._run(ticket, tool, end_s=ticket.call.ttl_s)
        return await self._attendance.attend(ticket, tool, end_s=ticket.call.ttl_s)

    async def _may_go_again(self, ticket: PendingCall, tool: ToolDefinition) -> bool:
        """Whether a call that may have been handed over before a restart can be handed over again:
        not if doing it twice matters, nor to a tool that is not the one agreed to.
        """
        return results.repeatable(tool) and await self._confirmer.changed(ticket) is None

    async def _or_kept(
        self, ticket: PendingCall, tool: ToolDefinition, response: ToolResponse
    ) -> ToolResponse:
        """The last good result of a tool that only reads, when its route is away; it says how
        old it is.
        """
        error = response.error
        if (
            error is None
            or error.code not in _AWAY
            or tool.cache_ttl_s is None
            or not tool.read_only
            or ticket.expired
        ):
            return response
        kept = None
        with suppress(Exception):  # a kept copy is a comfort: without it the failure is the answer
            kept = await self._shelves.results.last(
                ticket.call.user_id, tool.name, idempotency.digest(dict(ticket.call.args))
            )
        if kept is None:
            return response
        ticket.route = Route(RouteKind.CACHE, f"the last good result: {ticket.reason}")
        ticket.reason = ticket.route.reason
        return replace(kept.response, intents=()).with_meta(stale=True, ageS=round(kept.age_s))

    # ------------------------------------------------------------------ after a restart

    async def take_up(self, ticket: PendingCall, left: Unfinished) -> None:
        """Bring a call of the last daemon to its one answer; nothing unsafe runs twice."""
        ticket.begun = left.state != CallState.AWAITING_CONFIRMATION
        ticket.stages += ["configured", "built"]
        try:
            response = await self._taken_up(ticket, CallState(left.state))
        except Exception:  # noqa: BLE001 - as in `live`: it becomes an answer
            _log.exception("call %s could not be resumed", ticket.call.call_id)
            response = results.internal(ticket.call.tool)
        await self._ending.end(ticket, response)

    async def _taken_up(self, ticket: PendingCall, state: CallState) -> ToolResponse:
        assert ticket.route is not None
        tool, kind = ticket.tool, ticket.route.kind
        rule = RECOVERY[
            Left(state, kind in ELSEWHERE, tool is not None and results.repeatable(tool))
        ]
        if (
            kind in ELSEWHERE
            and (handed_in := await self._shelves.pending.result(ticket.call.call_id)) is not None
        ):
            return handed_in
        began = rule not in (Recovery.RUN, Recovery.ASK)
        if tool is None and kind not in (RouteKind.CLOUD, RouteKind.QUEUE):
            return results.interrupted(None, started=began)
        unbegun = rule is Recovery.ASK or (
            rule in (Recovery.RUN, Recovery.AGAIN) and kind in {*HERE, RouteKind.LATER}
        )
        if unbegun and (refusal := await self._confirmer.changed(ticket)) is not None:
            return ToolResponse(error=refusal)
        match rule:
            case Recovery.ASK if tool is not None:
                return await self._asked_again(ticket, tool)
            # What was to be answered without being run was never asked about, so it must not run
            # now either.
            case Recovery.RUN if (
                tool is not None and ticket.call.ttl_s > 0 and kind is not RouteKind.FALLBACK
            ):
                return await self._begun(ticket, tool, asked=False)
            # Once more, unless its tool runs elsewhere since then.
            case Recovery.AGAIN if (
                tool is not None and ticket.call.ttl_s > 0 and routing.kind_of(tool) is kind
            ):
                return await self.here(ticket, tool)
            case Recovery.WAIT:
                return await self._waited_for(ticket, tool, state)
        # What was bound for the cloud may have been sent before its step was on disk.
        sent = rule is Recovery.RUN and kind in (RouteKind.CLOUD, RouteKind.QUEUE)
        return results.interrupted(tool, started=began or sent)

    async def _asked_again(self, ticket: PendingCall, tool: ToolDefinition) -> ToolResponse:
        """The question had no answer when the last daemon ended: it is put again, with what is
        left of its time.
        """
        left_s = await self._confirmer.left_s(ticket.call.call_id)
        if left_s is None:
            return await self._decided_before(ticket, tool)
        self._confirmer.ask_wearer(ticket, tool, left_s)
        decided = await self._attendance.decision(
            ticket, left_s=left_s, patience_s=0.0, interim=None
        )
        ticket.begun = decided.refusal is None
        if (refusal := decided.refusal or await self._confirmer.changed(ticket)) is not None:
            return ToolResponse(error=refusal)
        return await self._begun(ticket, tool, asked=True)

    async def _decided_before(self, ticket: PendingCall, tool: ToolDefinition) -> ToolResponse:
        """Its question is not open any more: allowed while we started, refused just before the
        last daemon ended, or late.
        """
        story = await self._shelves.calls.get(ticket.call.call_id)
        if story is not None and story["state"] == CallState.ADMITTED:
            ticket.begun = True
            return await self._begun(ticket, tool, asked=True)
        if await self._confirmer.refused(ticket.call.call_id):
            return ToolResponse(error=confirmation.denied(tool, "Somebody"))
        return ToolResponse(error=confirmation.expired(tool))

    async def _begun(
        self, ticket: PendingCall, tool: ToolDefinition, *, asked: bool
    ) -> ToolResponse:
        """Run what was accepted and never began. What was bound for the cloud may be in the outbox,
        so it stays bound for it, whatever the uplink is now; what was only `asked` about goes by
        the route that is there now.
        """
        assert ticket.route is not None
        bound = ticket.route.kind in (RouteKind.CLOUD, RouteKind.QUEUE) and not asked
        route, life_s = ticket.route, ticket.call.ttl_s
        if not bound:
            tool, route = self._route(ticket)
        if route.code is None and route.kind in (RouteKind.CLOUD, RouteKind.QUEUE):
            if (failed := await self._submit(ticket)) is not None:
                return failed
            ticket.attempts += 1
            await self._ending.step(ticket, CallState.PENDING)
            return await self._waited_for(ticket, tool, CallState.PENDING)
        return await self._served(ticket, tool, route, life_s)

    async def _waited_for(
        self, ticket: PendingCall, tool: ToolDefinition | None, state: CallState
    ) -> ToolResponse:
        assert ticket.route is not None
        ticket.accepted = True
        if tool is not None and tool.asynchronous:
            return await self._awaited(ticket, tool)
        if ticket.call.ttl_s <= 0 and ticket.route.kind is RouteKind.CLOUD:
            await self._uplink.withdraw(ticket.call.call_id, "its time is over")
            return results.interrupted(tool, started=state is not CallState.ADMITTED)
        # The uplink's own word comes at the end of its life, and knows whether a worker had it.
        return await self._attendance.attend(
            ticket, tool, end_s=ticket.call.ttl_s + _UPLINK_FIRST_S
        )


_AWAY: Final = frozenset(
    {ErrorCode.OFFLINE, ErrorCode.NOT_ACCEPTED, ErrorCode.TIMEOUT, ErrorCode.NETWORK_ERROR}
)
"""Failures of the way to a tool, not of the tool: its last good result still says something."""


def _once_more(
    response: ToolResponse, tool: ToolDefinition, call: ToolCall, kind: RouteKind
) -> bool:
    """Is this failure worth another try? A voice has no time for it; the client of another server
    has tried twice by itself.
    """
    error = response.error
    return (
        error is not None
        and error.type is ErrorType.TRANSIENT
        and error.retryable
        and tool.idempotent
        and call.mode is Mode.TEXT
        and kind in HERE - {RouteKind.UPSTREAM}
    )
