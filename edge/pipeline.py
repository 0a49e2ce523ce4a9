"""One call's life: checks in the order of C-13, route, disk, run, intents, memory, wearer, caller, cloud, audit.

Refuses to know where calls come from and how many there are; the orchestrator does. It sees rules and ports only.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from typing import Final

from edge.clock import Clock
from edge.core import idempotency, results, routing
from edge.core.call_state import CallState
from edge.core.routing import Circumstances, Route, RouteKind
from edge.ending import Ending
from edge.events import CallProgressed, CallReceived
from edge.gate import ConfirmPort, Gate, Known, Limits, Refused, overrun
from edge.ports import (
    BusPort,
    CallAccepted,
    CallProgress,
    CallResult,
    CallStorePort,
    GlassesPort,
    LocalToolsPort,
    RegistryPort,
    RenderPort,
    UplinkBusy,
    UplinkPort,
)
from edge.ticket import Cancelled, Ticket, Word
from tools_cache.tool import (
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
MAX_PROGRESS: Final = 200
"""Characters of one progress word."""
_SLICE_S: Final = 30.0
"""Longest sleep at once: timers stand still while the machine sleeps, CLOCK_BOOTTIME does not."""
_STARTING_S: Final = 5.0


class Pipeline:
    """Carries tickets from question to answer. `tasks` is the group its tools and words run in, while there is one."""

    def __init__(
        self, *, registry: RegistryPort, local: LocalToolsPort, store: CallStorePort, uplink: UplinkPort,
        glasses: GlassesPort, stage: RenderPort, bus: BusPort, clock: Clock, confirm: ConfirmPort, ending: Ending,
        limits: Limits,
    ) -> None:  # fmt: skip
        self._local = local
        self._store = store
        self._uplink = uplink
        self._glasses = glasses
        self._stage = stage
        self._bus = bus
        self._clock = clock
        self._ending = ending
        self._gate = Gate(registry=registry, store=store, confirm=confirm, limits=limits)
        self._limits = limits
        self.tasks: asyncio.TaskGroup | None = None

    async def live(self, ticket: Ticket) -> None:
        """From question to answer; whatever goes wrong in here becomes an answer too."""
        call = ticket.call
        self._bus.publish(CallReceived(call.call_id, call.tool[:255], call.origin.value))
        try:
            await self._gate.check(ticket)
            await self._serve(ticket)
        except Refused as e:
            await self._ending.refuse(ticket, e)
        except Known as e:
            stored = e.response if "callId" in e.response.meta else self._ending.stamp(ticket, e.response)
            self._ending.answer(ticket, idempotency.as_replay(stored).with_meta(delivery=Delivery.NONE.value), "replay")
        except Exception:  # noqa: BLE001 - S2-45: it becomes an answer, its cause stays in the log
            _log.exception("call %s failed inside the daemon", call.call_id)
            await self._ending.end(ticket, _internal(call.tool))

    async def _serve(self, ticket: Ticket) -> None:
        """Route, admit, run, end."""
        tool = ticket.tool
        assert tool is not None
        route = ticket.route = routing.choose(tool, self._circumstances(ticket.call))
        ticket.reason = route.reason
        life_s = ticket.call.ttl_s
        if tool.queueable and route.kind in (RouteKind.CLOUD, RouteKind.QUEUE):
            ticket.call = replace(ticket.call, ttl_s=tool.queue_ttl_s)
        await self._admit(ticket, tool, route)
        if route.code is not None:
            response = results.fallback(route.code, tool, route.reason)
        elif route.kind in (RouteKind.CLOUD, RouteKind.QUEUE):
            response = await self._in_the_cloud(ticket, tool, route, life_s)
        else:
            response = await self.here(ticket, tool)
        await self._ending.end(ticket, response)

    def _circumstances(self, call: ToolCall) -> Circumstances:
        uplink = self._uplink.status()
        return Circumstances(
            call.origin, self._glasses.status().ready, uplink.configured, uplink.up, uplink.reason, call.ttl_s
        )

    async def _admit(self, ticket: Ticket, tool: ToolDefinition, route: Route) -> None:
        """Onto the disk before it runs. A disk that takes nothing more stops only what would change something."""
        try:
            admission = await self._store.admit(ticket.call, route.kind.value)
        except Exception as e:
            _log.warning("call %s is not on disk: %s", ticket.call.call_id, e)
            if not (tool.read_only and route.kind in (RouteKind.LOCAL, RouteKind.GLASSES)) and route.code is None:
                text = f"No new work is taken now: {e}"
                raise Refused(ToolError.of(ErrorCode.TOOL_UNAVAILABLE, text), "store") from e
            return
        if not admission.fresh:
            raise Known(admission.response or results.pending(ticket.call))
        ticket.admitted = True

    # ------------------------------------------------------------------ running

    async def here(self, ticket: Ticket, tool: ToolDefinition) -> ToolResponse:
        if not await self._ending.step(ticket, CallState.RUNNING) and not results.repeatable(tool):
            return ToolResponse.failure(ErrorCode.TOOL_UNAVAILABLE, "No new work is taken now: the disk does not take it")
        assert self.tasks is not None
        ticket.runner = self.tasks.create_task(self._run_local(ticket, tool), name=f"tool.{ticket.call.call_id}")
        try:
            return await self.attend(ticket, tool, end_s=self._time_limit(ticket.call, tool))
        finally:
            ticket.runner.cancel()

    async def _run_local(self, ticket: Ticket, tool: ToolDefinition) -> None:
        async def progress(text: str) -> None:
            ticket.put(CallProgress(ticket.call.call_id, text))

        ticket.accepted = True
        response = await self._local.run(ticket.call, progress)
        error = response.error
        again = error is not None and error.type is ErrorType.TRANSIENT and error.retryable and tool.idempotent
        if again and ticket.call.mode is Mode.TEXT:  # once more (S2-108); a voice has no time for it (S2-107)
            await asyncio.sleep(self._limits.retry_pause_s)
            response = await self._local.run(ticket.call, progress)
        ticket.put(CallResult(ticket.call.call_id, response))

    async def _in_the_cloud(
        self, ticket: Ticket, tool: ToolDefinition, route: Route, life_s: float
    ) -> ToolResponse:
        try:
            await self._uplink.submit(ticket.call)
        except UplinkBusy as e:
            return ToolResponse(error=overrun(self._limits, str(e)))
        except Exception as e:  # noqa: BLE001 - too large for the wire, or a full disk: said, with nothing sent
            return ToolResponse.failure(ErrorCode.TOOL_UNAVAILABLE, f"This call cannot be sent: {e}")
        if route.kind is RouteKind.QUEUE:
            await self._postpone(ticket)
            return await self.attend(ticket, tool, end_s=ticket.call.ttl_s)
        await self._ending.step(ticket, CallState.RUNNING)
        end_s = min(self._time_limit(ticket.call, tool), life_s)
        return await self.attend(ticket, tool, end_s=end_s, life_s=life_s, accept_s=self._limits.accept_s)

    def _time_limit(self, call: ToolCall, tool: ToolDefinition) -> float:
        return max(0.0, min(tool.timeout_s, self._limits.run_s, call.ttl_s))

    async def attend(
        self, ticket: Ticket, tool: ToolDefinition | None, *, end_s: float, life_s: float = 0.0,
        accept_s: float | None = None,
    ) -> ToolResponse:  # fmt: skip
        """Listen to whoever runs the call until there is an answer, it is called off, or its time is over.

        The run time counts from the last word of a worker (an app may have to be started first, C-40), never beyond
        the life of the call.
        """
        now = self._clock.boot()
        over_at = now + min(life_s, self._limits.life_s)
        due = {"end": now + end_s}
        if not ticket.early:
            due["working"] = now + self._limits.working_s
            if accept_s is not None:
                due["accept"] = now + accept_s
            if ticket.call.mode is Mode.VOICE:
                due["inline"] = now + self._limits.voice_inline_s
        while True:
            word = await self._word(ticket, min(due.values()))
            now = self._clock.boot()
            match word:
                case CallResult():
                    ticket.message = word if ticket.runner is None else None
                    return word.response
                case Cancelled():
                    await self._withdraw(ticket, word.reason)
                    return ToolResponse.failure(ErrorCode.CANCELLED, f"Cancelled: {word.reason}"[:MAX_PROGRESS])
                case CallAccepted() | CallProgress():
                    ticket.accepted = True
                    due.pop("accept", None)
                    if ticket.runner is None and not ticket.early:
                        due["end"] = max(due["end"], min(now + end_s, over_at))
                    if isinstance(word, CallProgress):
                        await self._progressed(ticket, word.text)
                case None:
                    ended = await self._overdue(ticket, tool, due, now, end_s)
                    if ended is not None:
                        return ended

    async def _word(self, ticket: Ticket, until: float) -> Word | None:
        """The next word, or None when the moment has come."""
        while not ticket.words:
            left = until - self._clock.boot()
            if left <= 0:
                return None
            ticket.wake.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, _SLICE_S)):
                    await ticket.wake.wait()
        return ticket.words.pop(0)

    async def _overdue(
        self, ticket: Ticket, tool: ToolDefinition | None, due: dict[str, float], now: float, end_s: float
    ) -> ToolResponse | None:
        """Something did not happen in time: say so, postpone, or end the call."""
        for name in [name for name, at in due.items() if at <= now and name != "end"]:
            del due[name]
            if name == "working":
                self._mark(ticket, "Working…")
            elif name == "accept" and tool is not None and not tool.queueable:
                await self._withdraw(ticket, "nobody accepted it in time")
                ticket.route = Route(RouteKind.FALLBACK, "nobody accepted it in time", ErrorCode.NOT_ACCEPTED)
                return results.fallback(ErrorCode.NOT_ACCEPTED, tool, "nobody accepted it in time")
            elif name == "accept" and tool is not None:
                due["end"] = now + tool.queue_ttl_s
                await self._postpone(ticket)
            elif name == "inline" and not ticket.early:
                await self._postpone(ticket)
        if due["end"] > now:
            return None
        return await self._too_late(ticket, tool, end_s)

    async def _too_late(self, ticket: Ticket, tool: ToolDefinition | None, end_s: float) -> ToolResponse:
        await self._withdraw(ticket, "its time is over")
        if ticket.route is not None and ticket.route.kind is RouteKind.QUEUE:
            ticket.expired = True
            return ToolResponse.failure(ErrorCode.DEADLINE_EXPIRED, "Nobody answered while this call could wait")
        if tool is None:
            return results.interrupted(None, started=True)
        return results.timed_out(end_s, tool=tool, started=ticket.accepted)

    async def _withdraw(self, ticket: Ticket, reason: str) -> None:
        if ticket.runner is None:
            await self._uplink.withdraw(ticket.call.call_id, reason)

    async def _postpone(self, ticket: Ticket) -> None:
        """Answer `pending` now; the call ends later (its end is a `CallCompleted`)."""
        await self._ending.step(ticket, CallState.PENDING)
        ticket.early = True
        if ticket.route is not None and ticket.route.kind is RouteKind.CLOUD and not ticket.accepted:
            ticket.route = Route(RouteKind.QUEUE, "nobody accepted it yet")
        name = ticket.call.tool.partition(":")[2].replace("_", " ")
        working = ticket.accepted
        self._mark(ticket, f"{name}: working…" if working else f"Saved for later: {name}", brief=working)
        pending = self._ending.stamp(ticket, results.pending(ticket.call)).with_meta(delivery=Delivery.QUEUED.value)
        self._ending.answer(ticket, pending, "pending", final=False)

    def _mark(self, ticket: Ticket, text: str, *, brief: bool = True) -> None:
        """Put a word on the lens beside the call, without waiting for it."""
        if self.tasks is not None:
            scene = f"{ticket.call.call_id}/word"
            self.tasks.create_task(self._stage.tell(text, scene=scene, brief=brief), name="call.word")

    async def _progressed(self, ticket: Ticket, text: str) -> None:
        shown = "".join(ch if ch.isprintable() else " " for ch in text[:MAX_PROGRESS]).strip()
        if not shown:
            return
        self._bus.publish(CallProgressed(ticket.call.call_id, ticket.call.tool, shown))
        self._mark(ticket, shown)
        if ticket.progress is not None:
            try:
                await ticket.progress(shown)
            except Exception as e:  # noqa: BLE001 - a listener that is gone must not cost the call its answer
                _log.debug("progress of %s reached nobody: %s", ticket.call.call_id, e)
                ticket.progress = None

    # ------------------------------------------------------------------ after a restart

    async def take_up(self, ticket: Ticket, state: CallState) -> None:
        """Bring a call of the last daemon to its one answer; nothing unsafe runs twice."""
        try:
            response = await self._taken_up(ticket, state)
        except Exception:  # noqa: BLE001 - as in `live`: it becomes an answer
            _log.exception("call %s could not be taken up", ticket.call.call_id)
            response = _internal(ticket.call.tool)
        await self._ending.end(ticket, response)

    async def _taken_up(self, ticket: Ticket, state: CallState) -> ToolResponse:
        assert ticket.route is not None
        tool, started = ticket.tool, state in (CallState.RUNNING, CallState.PENDING)
        if ticket.route.kind in (RouteKind.CLOUD, RouteKind.QUEUE):
            if state is CallState.ADMITTED and tool is not None and ticket.call.ttl_s > 0:
                await self._uplink.submit(ticket.call)  # the crash was between our disk and the outbox
            if state is CallState.ADMITTED:
                await self._ending.step(ticket, CallState.PENDING)
            ticket.accepted = True
            if ticket.call.ttl_s <= 0 and ticket.route.kind is RouteKind.CLOUD:
                await self._withdraw(ticket, "its time is over")
                return results.interrupted(tool, started=True)
            return await self.attend(ticket, tool, end_s=ticket.call.ttl_s)
        runnable = tool is not None and ticket.call.ttl_s > 0 and ticket.route.code is None
        safe = state is CallState.ADMITTED or (state is CallState.RUNNING and tool is not None and results.repeatable(tool))
        if tool is not None and runnable and safe and ticket.route.kind is not RouteKind.FALLBACK:
            if state is CallState.RUNNING:
                return await self._again(ticket, tool)
            return await self.here(ticket, tool)
        return results.interrupted(tool, started=started)

    async def _again(self, ticket: Ticket, tool: ToolDefinition) -> ToolResponse:
        """Run once more what was running when the last daemon ended, and may be run twice."""
        admitted, ticket.admitted = ticket.admitted, False  # it is RUNNING on disk already
        try:
            return await self.here(ticket, tool)
        finally:
            ticket.admitted = admitted


# ------------------------------------------------------------------ words of ours


def _internal(tool: str) -> ToolResponse:
    """S2-45: the cause is in the log, never in the answer."""
    return ToolResponse.failure(ErrorCode.INTERNAL, f"Internal error executing {tool}", partial_side_effects=True)
