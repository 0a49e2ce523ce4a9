"""Where calls run: each route's backend runs a call and waits with it for its answer.

`Here` runs it in this process; `Later` has its answer handed in, by the wearer or by a caller;
`Cloud` sends it to the workers.
"""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from edge.calls.admission import overrun
from edge.calls.call import Call, Cancelled, Ending, Finished, Outcome, Started, failed
from edge.calls.dependencies import CallPorts, CallRules
from edge.calls.faults import Attempt
from edge.calls.user_prompts import UserPrompts, patience_s
from edge.core import idempotency, results, routing, visibility
from edge.core.call_state import CallState
from edge.core.routing import HERE, Circumstances, Route, RouteKind
from edge.ports import (
    Alongside,
    CallAccepted,
    CallProgress,
    CallResult,
    RunTool,
    UplinkTooLarge,
)
from edge.runtime.events import CallProgressed
from edge.runtime.first_completed import Tasks
from edge.storage.pending import PendingCalls
from edge.storage.sqlite.errors import StorageUnavailable, StoreError, UplinkBusy
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

MAX_PROGRESS: Final = 200
"""Characters of one progress text."""
_UPLINK_FIRST_S: Final = 1.0
"""Seconds to wait beyond a call's life: at its end the uplink answers by itself, and knows whether
a worker had the call.
"""

_HELD_UP_S: Final = 0.1
"""A wait that ends so much too late shows that this process was held up: the machine slept, or was
busy. What arrived meanwhile is not read yet.
"""


class Router:
    """Chooses the way a call goes now."""

    def __init__(self, ports: CallPorts) -> None:
        self._registry = ports.registry
        self._uplink = ports.uplink
        self._glasses = ports.glasses

    def choose(self, call: Call) -> Route:
        """Give the call its route, and its tool as it is now, because that is what runs: a turn may
        have begun with an older definition.
        """
        assert call.tool is not None
        entry = self._registry.snapshot().find(call.tool.name)
        if entry is not None:
            call.tool = entry.definition
        uplink, glasses = self._uplink.status(), self._glasses.status()
        now = Circumstances(
            call.request.origin,
            glasses.ready,
            uplink.configured,
            uplink.up,
            uplink.reason,
            call.request.ttl_s,
            glasses_known=glasses.capabilities is not None,
            worn=glasses.worn,
        )
        route = routing.choose(call.tool, now)
        if entry is None and route.kind in HERE:
            text = "it is not registered any more"
            route = Route(RouteKind.FALLBACK, text, ErrorCode.TOOL_NOT_FOUND)
        call.route, call.reason = route, route.reason
        return route


# ------------------------------------------------------------------ waiting for the answer


class Timing(Struct, frozen=True):
    """How long a call is waited for, in seconds. `end_s`: for its answer; each message of a worker
    starts it again, within `life_s` altogether. `accept_s`: for a worker to take it. `patience_s`:
    how long its caller waits for the wearer. `remote`: no task of this process runs it.
    """

    end_s: float
    life_s: float = 0.0
    accept_s: float | None = None
    patience_s: float = 0.0
    remote: bool = False


class Waiter:
    """Waits with a call until there is an answer, it is cancelled, or its time is over."""

    def __init__(self, ports: CallPorts, rules: CallRules, tasks: Tasks) -> None:
        self._uplink = ports.uplink
        self._stage = ports.stage
        self._bus = ports.bus
        self._clock = ports.clock
        self._rules = rules
        self._tasks = tasks

    async def run(self, call: Call, work: Coroutine[Any, Any, None], timing: Timing) -> Outcome:
        """Wait while `work` runs in a task that ends with the call, whatever ends it."""
        task = self._tasks.create_task(work, name=f"tool.{call.request.call_id}")
        try:
            return await self.wait(call, timing)
        finally:
            task.cancel()

    async def wait(self, call: Call, timing: Timing) -> Outcome:
        """Return the outcome. A caller with patience waits so long for the wearer, then gets
        `pending`; so does a voice after a few seconds.
        """
        began = self._clock.boot()
        over_at = began + min(timing.life_s, self._rules.limits.life_s)
        due = self._due(call, timing, began)
        while True:
            event = await call.events.get(min(due.values()))
            now = self._clock.boot()
            match event:
                case Finished(response):
                    return Outcome(response, settled=True)
                case CallResult():
                    return Outcome(event.response, event, settled=True)
                case Cancelled() if any(
                    isinstance(e, CallResult | Finished) for e in call.events.waiting
                ):
                    pass  # it is done: what was done is the truth
                case Cancelled():
                    await self._withdraw(call, timing, event.reason)
                    started = call.started is not Started.NO
                    text = f"Cancelled: {event.reason}"[:MAX_PROGRESS]
                    response = results.cancelled(text, tool=call.tool, started=started)
                    return Outcome(response, settled=not timing.remote)
                case CallAccepted() | CallProgress():
                    call.started = Started.YES
                    due.pop("accept", None)
                    if timing.remote and call.interim is None:
                        due["end"] = max(due["end"], min(now + timing.end_s, over_at))
                    if isinstance(event, CallProgress):
                        seen = due.get("working", now) <= now
                        await self._progressed(call, event.text, seen=seen)
                case None:
                    outcome = await self._overdue(call, timing, due, now)
                    if outcome is not None:
                        return outcome
                case _:
                    pass  # an event of a question that is over

    def _due(self, call: Call, timing: Timing, now: float) -> dict[str, float]:
        """Return what is to be done if there is no answer yet, and when each (boot clock)."""
        limits, due = self._rules.limits, {"end": now + timing.end_s}
        if call.interim is not None:
            return due
        if timing.patience_s:  # the question itself is what the wearer sees of it
            return {**due, "inline": now + timing.patience_s}
        due["working"] = now + limits.working_s
        if timing.accept_s is not None:
            due["accept"] = now + timing.accept_s
        if call.request.mode is Mode.VOICE:
            due["inline"] = now + limits.voice_inline_s
        return due

    async def _overdue(
        self, call: Call, timing: Timing, due: dict[str, float], now: float
    ) -> Outcome | None:
        """Something did not happen in time: say so, postpone, or end the call."""
        tool = call.tool
        held_up = due.get("accept", now) < now - _HELD_UP_S
        if held_up and timing.accept_s is not None and not call.held_up:
            call.held_up = True  # once: a machine that is always late must not wait again and again
            due["accept"] = now + timing.accept_s
        for name in [name for name, at in due.items() if at <= now and name != "end"]:
            del due[name]
            if name == "working":
                self._mark(call, call.progress or visibility.working(tool), mark=not call.progress)
            elif name == "accept" and tool is not None and not tool.queueable:
                text = "nobody accepted it in time"
                await self._withdraw(call, timing, text)
                call.route = Route(RouteKind.FALLBACK, text, ErrorCode.NOT_ACCEPTED)
                return Outcome(results.fallback(ErrorCode.NOT_ACCEPTED, tool, text))
            elif name == "accept" and tool is not None:
                due["end"] = now + tool.queue_ttl_s
                await self.postpone(call)
            elif name == "inline" and call.interim is None:
                await self.postpone(call)
        return await self._too_late(call, timing) if due["end"] <= now else None

    async def _too_late(self, call: Call, timing: Timing) -> Outcome:
        await self._withdraw(call, timing, "its time is over")
        tool, settled = call.tool, not timing.remote
        queued = call.route is not None and call.route.kind is RouteKind.QUEUE
        if queued or (tool is not None and tool.asynchronous):
            unsafe = call.started is Started.YES and not call.repeatable
            text = "Nobody answered while this call could wait"
            response = ToolResponse.failure(
                ErrorCode.DEADLINE_EXPIRED, text, partial_side_effects=unsafe
            )
            return Outcome(response, expired=True, settled=settled)
        if tool is None:
            return Outcome(results.interrupted(None, started=True), settled=settled)
        started = call.started is not Started.NO
        response = results.timed_out(timing.end_s, tool=tool, started=started)
        return Outcome(response, settled=settled)

    async def _withdraw(self, call: Call, timing: Timing, reason: str) -> None:
        """Tell the workers, if it is theirs, that this call is over."""
        call_id = call.request.call_id
        if timing.remote:
            with Attempt("call %s is not withdrawn from the cloud", call_id):
                await self._uplink.withdraw(call_id, reason)

    async def postpone(self, call: Call) -> None:
        """Answer `pending` now; the call ends later. What asks the wearer needs no text beside."""
        call.free_place()
        if call.state is not CallState.PENDING:
            await call.advance(CallState.PENDING)
        if call.interim is not None or call.request.origin is CallOrigin.CLOUD:
            return  # the cloud gets `accepted`, progress and one result: it waits itself
        working = call.started is not Started.NO
        assert call.route is not None
        if call.route.kind is RouteKind.CLOUD and not working:
            call.route = Route(RouteKind.QUEUE, "nobody accepted it yet")
        if call.route.kind is not RouteKind.WEARER:
            what = visibility.busy if working else visibility.saved
            text = what(call.tool, call.request.args)
            if not (working and call.progress):
                self._mark(call, text, brief=working)
        call.answer_early(call.stamp(results.pending(call.request), Delivery.QUEUED), "pending")

    # -------------------------------------------------------------- what is shown meanwhile

    def _mark(self, call: Call, text: str, *, brief: bool = True, mark: bool = False) -> None:
        """Put a text about the call on the lens, without waiting for it; nothing for a call that is
        not shown.
        """
        if self._tasks.open and visibility.shows_call(call.request, call.tool):
            said = self._tell(call, text, brief=brief, mark=mark)
            self._tasks.create_task(said, name="call.progress")

    async def _tell(self, call: Call, text: str, *, brief: bool, mark: bool) -> None:
        with Attempt("a progress text of a call could not be shown", bug=True):
            call_id = call.request.call_id
            await self._stage.tell(text, call_id=call_id, brief=brief, mark=mark)

    async def _progressed(self, call: Call, text: str, *, seen: bool) -> None:
        """Pass progress on; `seen`: the call is so slow that the wearer sees it."""
        shown = "".join(ch if ch.isprintable() else " " for ch in text[:MAX_PROGRESS]).strip()
        if not shown:
            return
        call.progress = shown
        self._bus.publish(CallProgressed(call.request.call_id, call.request.tool, shown))
        if seen:
            self._mark(call, shown)
        if call.caller.progress is not None:
            problem = "progress of %s could not be reported"
            with Attempt(problem, call.request.call_id, level=logging.DEBUG):
                await call.caller.progress(shown)


# ------------------------------------------------------------------ the backends


class Backend(Protocol):
    """Runs the calls of one kind of route."""

    async def admit(self, call: Call) -> Ending | None:
        """Put a call on disk that is to be run at once; return why it must not run."""

    async def run(self, call: Call) -> Outcome:
        """Run an admitted call and wait for its answer."""

    async def resume(self, call: Call, *, again: bool) -> Outcome:
        """Wait for the answer of a call that a former daemon left; `again`: begin it first, which
        may be for the second time.
        """


class Here:
    """A task of this process runs the call and ends with it, whatever ends it."""

    def __init__(self, run_tool: RunTool, waiter: Waiter, rules: CallRules) -> None:
        self._run_tool = run_tool
        self._waiter = waiter
        self._rules = rules

    async def admit(self, call: Call) -> Ending | None:
        """In one write: it begins as soon as it is on disk."""
        if await call.run_before_stored():
            return None
        return await call.admit(CallState.ADMITTED, then=CallState.RUNNING)

    async def run(self, call: Call) -> Outcome:
        assert call.tool is not None
        stored = call.state is CallState.RUNNING or await call.advance(CallState.RUNNING)
        if not stored and not call.repeatable:
            return failed(results.storage_unavailable("the disk takes nothing"))
        timing = Timing(_time_limit_s(call, call.tool, self._rules))
        return await self._waiter.run(call, self._finish(call, call.tool), timing)

    async def resume(self, call: Call, *, again: bool) -> Outcome:
        """As `run`: nobody else has it."""
        del again
        await call.advance(CallState.RUNNING)
        return await self.run(call)

    async def _finish(self, call: Call, tool: ToolDefinition) -> None:
        """Give the tool's answer to the call; a failure that may pass is tried once more."""
        call.started = Started.PERHAPS
        call.attempts += 1
        response = await _answer(self._run_tool, call, tool)
        if _worth_another_try(response, call, tool):
            await asyncio.sleep(self._rules.limits.retry_pause_s)
            call.attempts += 1
            response = await _answer(self._run_tool, call, tool)
        call.events.put(Finished(response))


class Later:
    """Answered `pending` at once, unless its caller waits for the wearer; the result is the
    wearer's, or is handed in. `run_tool` asks the wearer, or hands the call over.
    """

    def __init__(
        self, run_tool: RunTool, waiter: Waiter, pending: PendingCalls, rules: CallRules
    ) -> None:
        self._run_tool = run_tool
        self._waiter = waiter
        self._pending = pending
        self._rules = rules

    async def admit(self, call: Call) -> Ending | None:
        return await call.admit(CallState.ADMITTED)

    async def run(self, call: Call) -> Outcome:
        # Before anything leaves, so that a full table costs nothing.
        if (full := await _promise(call, self._pending)) is not None:
            return failed(full)
        call.free_place()
        patience = self._patience_s(call)
        if not patience:
            await self._waiter.postpone(call)
        return await self._hand_over(call, Timing(call.request.ttl_s, patience_s=patience))

    async def resume(self, call: Call, *, again: bool) -> Outcome:
        call.started = Started.PERHAPS
        timing = Timing(call.request.ttl_s)
        if again:
            return await self._hand_over(call, timing)
        return await self._waiter.wait(call, replace(timing, remote=True))

    async def _hand_over(self, call: Call, timing: Timing) -> Outcome:
        assert call.tool is not None
        return await self._waiter.run(call, self._finish(call, call.tool), timing)

    async def _finish(self, call: Call, tool: ToolDefinition) -> None:
        response = await _answer(self._run_tool, call, tool)
        if response.ok and not _asks_wearer(call):
            call.started = Started.YES  # handed over: the result comes later
        else:
            call.events.put(Finished(response))

    def _patience_s(self, call: Call) -> float:
        """How long the caller of a question waits for its answer."""
        if not _asks_wearer(call) or not call.caller.to_the_end or call.interim is not None:
            return 0.0
        return patience_s(call.request, voice_s=self._rules.limits.voice_inline_s)


class Cloud:
    """The cloud's workers run the call; what may wait, waits for them in the outbox."""

    def __init__(self, waiter: Waiter, ports: CallPorts, rules: CallRules) -> None:
        self._waiter = waiter
        self._uplink = ports.uplink
        self._pending = ports.stores.pending
        self._rules = rules

    async def admit(self, call: Call) -> Ending | None:
        """In one transaction with its place in the outbox, and as sent: no crash falls between."""
        assert call.tool is not None
        assert call.route is not None
        sending: Alongside | None = None
        if not call.tool.asynchronous:
            with suppress(UplinkTooLarge):  # `run` says so, of a call that is on disk
                sending = self._uplink.submission(self._sent(call))
        if sending is None:
            return await call.admit(CallState.ADMITTED)

        def stored(what: Any) -> None:
            sending.stored(what)
            call.submitted = True
            call.attempts += 1

        queued = call.route.kind is RouteKind.QUEUE
        return await call.admit(
            CallState.ADMITTED,
            then=CallState.PENDING if queued else CallState.RUNNING,
            also=Alongside(sending.work, stored),
            refusal=self._problem,
        )

    async def run(self, call: Call) -> Outcome:
        assert call.tool is not None
        assert call.route is not None
        if not call.submitted and (error := await self._submit(call)) is not None:
            return failed(error)
        if call.tool.asynchronous or call.route.kind is RouteKind.QUEUE:
            await self._waiter.postpone(call)
            return await self._waiter.wait(call, Timing(call.request.ttl_s, remote=True))
        if call.state is not CallState.RUNNING:
            await call.advance(CallState.RUNNING)
        end_s = min(_time_limit_s(call, call.tool, self._rules), call.caller_s)
        accept_s = self._rules.limits.accept_s
        timing = Timing(end_s, life_s=call.caller_s, accept_s=accept_s, remote=True)
        return await self._waiter.wait(call, timing)

    async def resume(self, call: Call, *, again: bool) -> Outcome:
        if again:
            if (error := await self._submit(call)) is not None:
                return failed(error)
            await call.advance(CallState.PENDING)
        began = again or call.state is not CallState.ADMITTED
        call.started = Started.PERHAPS
        request, kind = call.request, call.route.kind if call.route is not None else None
        if call.tool is not None and call.tool.asynchronous:
            return await self._waiter.wait(call, Timing(request.ttl_s, remote=True))
        if request.ttl_s <= 0 and kind is RouteKind.CLOUD:
            await self._uplink.withdraw(request.call_id, "its time is over")
            return Outcome(results.interrupted(call.tool, started=began))
        timing = Timing(request.ttl_s + _UPLINK_FIRST_S, remote=True)
        return await self._waiter.wait(call, timing)

    async def _submit(self, call: Call) -> ToolError | None:
        """Hand a call to the outbox; return why it cannot be sent."""
        if call.tool is not None and call.tool.asynchronous:
            full = await _promise(call, self._pending)
            if full is not None:
                return full
        with Attempt("call %s cannot be sent", call.request.call_id) as sending:
            await self._uplink.submit(self._sent(call))
        if sending.error is not None:
            return self._problem(sending.error)
        call.attempts += 1
        return None

    @staticmethod
    def _sent(call: Call) -> ToolCall:
        """Return the call as it is sent: its deciding key with it, so that the workers know it
        too.
        """
        key = idempotency.on_the_wire(call.keys[0]) if call.keys else None
        return replace(call.request, idempotency_key=key)

    def _problem(self, error: Exception) -> ToolError:
        """Return why a call cannot be sent."""
        match error:
            case UplinkBusy():
                return overrun(self._rules.limits, str(error))
            case StorageUnavailable() | StoreError():
                return results.storage_unavailable(error)
            case UplinkTooLarge():
                return results.too_large(error.size, error.limit)
            case _:
                return ToolError.of(
                    ErrorCode.TOOL_UNAVAILABLE, f"This call cannot be sent: {error}"
                )


def backends(ports: CallPorts, rules: CallRules, tasks: Tasks) -> Mapping[RouteKind, Backend]:
    """Return the backend of every route by which a call can run."""
    waiter, pending = Waiter(ports, rules, tasks), ports.stores.pending
    cloud = Cloud(waiter, ports, rules)
    ask_wearer = UserPrompts(ports.ask, ports.clock).answer
    return {
        **{kind: Here(ports.backends[kind], waiter, rules) for kind in HERE},
        RouteKind.WEARER: Later(ask_wearer, waiter, pending, rules),
        RouteKind.LATER: Later(ports.backends[RouteKind.LATER], waiter, pending, rules),
        RouteKind.CLOUD: cloud,
        RouteKind.QUEUE: cloud,
    }


def _asks_wearer(call: Call) -> bool:
    return call.route is not None and call.route.kind is RouteKind.WEARER


def _time_limit_s(call: Call, tool: ToolDefinition, rules: CallRules) -> float:
    return max(0.0, min(tool.timeout_s, rules.limits.run_s, call.request.ttl_s))


async def _promise(call: Call, pending: PendingCalls) -> ToolError | None:
    """From now on the call's result may be handed in; else return why not."""
    with Attempt("the result of %s cannot be waited for", call.request.call_id) as disk:
        await pending.put(call.request, ttl_s=call.request.ttl_s)
    return None if disk.error is None else results.storage_unavailable(disk.error)


async def _answer(run_tool: RunTool, call: Call, tool: ToolDefinition) -> ToolResponse:
    """Run the tool. A backend never raises; one that does must not end the calls beside it."""
    call_id = call.request.call_id

    async def progress(text: str) -> None:
        call.events.put(CallProgress(call_id, text))

    with Attempt("the backend of %s failed (call %s)", tool.name, call_id, bug=True):
        return await run_tool(call.request, tool, progress)
    return results.internal(tool.name)


def _worth_another_try(response: ToolResponse, call: Call, tool: ToolDefinition) -> bool:
    """Is this failure worth another try? A voice has no time for it; the client of another server
    has tried twice by itself.
    """
    error = response.error
    return (
        error is not None
        and error.type is ErrorType.TRANSIENT
        and error.retryable
        and tool.idempotent
        and call.request.mode is Mode.TEXT
        and call.route is not None
        and call.route.kind is not RouteKind.UPSTREAM
    )
