"""Waiting with a call: for a yes, for its answer, for its time to be over; and what is said
meanwhile.

Refuses to run anything and to end a call: whoever carries the call does, with what comes out of
here.
"""

import logging
from contextlib import suppress
from dataclasses import replace
from typing import Final

from edge.calls.admission import CallLimits, CallRefused
from edge.calls.call import Cancelled, Decided, PendingCall, Turn, Unasked, Word
from edge.calls.confirmations import ConfirmationFlow
from edge.calls.delivery import CallDelivery
from edge.calls.user_prompts import patience_s
from edge.core import confirmation, results, visibility
from edge.core.call_state import CallState
from edge.core.routing import Route, RouteKind
from edge.ports import CallAccepted, CallProgress, CallResult, RenderPort, UplinkPort
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import CallProgressed
from edge.runtime.first_completed import Tasks
from firmware_bridge.deadlines import timeout
from tools_cache.api.tool import (
    CallOrigin,
    Delivery,
    ErrorCode,
    Mode,
    ToolDefinition,
    ToolError,
    ToolResponse,
)

_log: Final = logging.getLogger(__name__)
MAX_PROGRESS: Final = 200
"""Characters of one progress word."""
_SLICE_S: Final = 30.0
"""Longest sleep at once: timers stand still while the machine sleeps, CLOCK_BOOTTIME does not."""
_SPENT_S: Final = 1.0
"""A question's own time-out comes first; this much later the call stops waiting for it."""


class ResultWaiter:
    def __init__(
        self,
        *,
        uplink: UplinkPort,
        stage: RenderPort,
        bus: Bus,
        clock: Clock,
        ending: CallDelivery,
        confirmer: ConfirmationFlow,
        limits: CallLimits,
        tasks: Tasks,
    ) -> None:
        self._uplink = uplink
        self._stage = stage
        self._bus = bus
        self._clock = clock
        self._ending = ending
        self._confirmer = confirmer
        self._limits = limits
        self._tasks = tasks

    # -------------------------------------------------------------- for its turn

    async def turn(self, ticket: PendingCall) -> CallRefused | None:
        """Wait until the call may run; else why it never will. What is left of its life goes on
        with it.
        """
        call, end_at = ticket.call, ticket.began + ticket.call.ttl_s
        while True:
            match await self._word(ticket, end_at):
                case Turn():
                    ticket.queued_s = self._clock.boot() - ticket.began
                    ticket.call = replace(call, ttl_s=max(0.0, call.ttl_s - ticket.queued_s))
                    return None
                case Cancelled(reason):
                    return CallRefused(
                        ToolError.of(ErrorCode.CANCELLED, f"Cancelled: {reason}"[:MAX_PROGRESS]),
                        "called off while it waited",
                    )
                case None:
                    text = (
                        "Too many calls are running: this one waited "
                        f"{call.ttl_s:g} s and never began"
                    )
                    error = ToolError.of(
                        ErrorCode.DEADLINE_EXPIRED, text, suggestion="Try again in a moment"
                    )
                    return CallRefused(error, "its time was over before its turn came")

    # -------------------------------------------------------------- for a yes

    async def decision(
        self, ticket: PendingCall, *, left_s: float, patience_s: float, interim: ToolResponse | None
    ) -> Decided:
        """Wait for the decision of an open question. A caller waits `patience_s` for it, then
        gets `interim`.
        """
        ticket.free_place()
        now = self._clock.boot()
        end_at, patient_until = now + left_s + _SPENT_S, now + patience_s
        called_off: Decided | None = None
        while True:
            impatient = interim is not None and not ticket.early
            word = await self._word(ticket, min(end_at, patient_until) if impatient else end_at)
            match word:
                case Decided():
                    self._confirmer.unask(ticket.call.call_id)
                    return called_off if called_off is not None and word.refusal is None else word
                case Cancelled():
                    text = f"Cancelled: {word.reason}"[:MAX_PROGRESS]
                    called_off = Decided("the caller", ToolError.of(ErrorCode.CANCELLED, text))
                    if await self._confirmer.close(ticket, "cancelled"):
                        return called_off
                case Unasked() if interim is not None:
                    self._let_go(ticket, interim)
                case Unasked() if ticket.call.origin is CallOrigin.CLOUD:  # which brings no token
                    if await self._confirmer.close(ticket, "expired"):
                        text = f"The wearer cannot be asked: {word.reason}"
                        return Decided("nobody", ToolError.of(ErrorCode.SESSION_INACTIVE, text))
                case None if self._clock.boot() >= end_at:
                    if await self._confirmer.close(ticket, "expired"):
                        return Decided("nobody", confirmation.expired(ticket.tool))
                    end_at += _SPENT_S  # decided this very moment: its word is on the way
                case None if interim is not None:
                    self._let_go(ticket, interim)

    def _let_go(self, ticket: PendingCall, interim: ToolResponse) -> None:
        """The caller gets CONFIRMATION_REQUIRED; the question stays open."""
        if not ticket.early:
            ticket.early = True
            self._ending.answer(ticket, interim, "confirmation", final=False)

    # -------------------------------------------------------------- for its answer

    async def attend(
        self,
        ticket: PendingCall,
        tool: ToolDefinition | None,
        *,
        end_s: float,
        life_s: float = 0.0,
        accept_s: float | None = None,
    ) -> ToolResponse:
        """Listen to whoever runs the call until there is an answer, it is called off, or its time
        is over.

        The run time counts from the last word of a worker (an app may have to be started first,
        C-40), never beyond the life of the call. A caller with patience waits so long for the
        wearer, then gets `pending`.
        """
        now = self._clock.boot()
        over_at = now + min(life_s, self._limits.life_s)
        due = {"end": now + end_s}
        if not ticket.early and ticket.patience_s:
            due["inline"] = (
                now + ticket.patience_s
            )  # the question itself is what the wearer sees of it
        elif not ticket.early:
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
                case Cancelled() if any(isinstance(w, CallResult) for w in ticket.words):
                    pass  # it is done: what was done is the truth
                case Cancelled():
                    await self.withdraw(ticket, word.reason)
                    return results.cancelled(
                        f"Cancelled: {word.reason}"[:MAX_PROGRESS],
                        tool=tool,
                        started=ticket.accepted,
                    )
                case CallAccepted() | CallProgress():
                    ticket.accepted = ticket.heard = True
                    due.pop("accept", None)
                    if ticket.runner is None and not ticket.early:
                        due["end"] = max(due["end"], min(now + end_s, over_at))
                    if isinstance(word, CallProgress):
                        await self._progressed(ticket, word.text)
                case Decided() | Unasked():
                    pass  # of a question that is over
                case None:
                    ended = await self._overdue(ticket, tool, due, now, end_s)
                    if ended is not None:
                        return ended

    async def _word(self, ticket: PendingCall, until: float) -> Word | None:
        """The next word, or None when the moment has come."""
        while not ticket.words:
            left = until - self._clock.boot()
            if left <= 0:
                return None
            ticket.wake.clear()
            with suppress(TimeoutError):
                async with timeout(min(left, _SLICE_S)):
                    await ticket.wake.wait()
        return ticket.words.pop(0)

    async def _overdue(
        self,
        ticket: PendingCall,
        tool: ToolDefinition | None,
        due: dict[str, float],
        now: float,
        end_s: float,
    ) -> ToolResponse | None:
        """Something did not happen in time: say so, postpone, or end the call."""
        for name in [name for name, at in due.items() if at <= now and name != "end"]:
            del due[name]
            if name == "working":
                self.mark(ticket, visibility.working(tool))
            elif name == "accept" and tool is not None and not tool.queueable:
                await self.withdraw(ticket, "nobody accepted it in time")
                ticket.route = Route(
                    RouteKind.FALLBACK, "nobody accepted it in time", ErrorCode.NOT_ACCEPTED
                )
                return results.fallback(ErrorCode.NOT_ACCEPTED, tool, "nobody accepted it in time")
            elif name == "accept" and tool is not None:
                due["end"] = now + tool.queue_ttl_s
                await self.postpone(ticket)
            elif name == "inline" and not ticket.early:
                await self.postpone(ticket)
        if due["end"] > now:
            return None
        return await self._too_late(ticket, tool, end_s)

    async def _too_late(
        self, ticket: PendingCall, tool: ToolDefinition | None, end_s: float
    ) -> ToolResponse:
        await self.withdraw(ticket, "its time is over")
        kind = ticket.route.kind if ticket.route is not None else None
        if kind is RouteKind.QUEUE or (tool is not None and tool.asynchronous):
            ticket.expired = True
            unsafe = ticket.heard and not (tool is not None and results.repeatable(tool))
            text = "Nobody answered while this call could wait"
            return ToolResponse.failure(
                ErrorCode.DEADLINE_EXPIRED, text, partial_side_effects=unsafe
            )
        if tool is None:
            return results.interrupted(None, started=True)
        return results.timed_out(end_s, tool=tool, started=ticket.accepted)

    async def withdraw(self, ticket: PendingCall, reason: str) -> None:
        """Tell the workers, if it is theirs, that this call is over."""
        if ticket.runner is None:
            await self._uplink.withdraw(ticket.call.call_id, reason)

    # -------------------------------------------------------------- what is said meanwhile

    def waits_for_wearer(self, ticket: PendingCall) -> bool:
        """Does the caller of a question wait for its answer? From now on for as long as it said."""
        asked = (
            ticket.route is not None
            and ticket.route.kind is RouteKind.WEARER
            and ticket.waited_for
            and not ticket.early
        )
        ticket.patience_s = (
            patience_s(ticket.call, voice_s=self._limits.voice_inline_s) if asked else 0.0
        )
        return ticket.patience_s > 0

    async def postpone(self, ticket: PendingCall) -> None:
        """Answer `pending` now; the call ends later (its end is a `CallCompleted`). What asks
        the wearer needs no word beside.
        """
        ticket.free_place()
        await self._ending.step(ticket, CallState.PENDING)
        if ticket.early or ticket.call.origin is CallOrigin.CLOUD:
            return  # the cloud gets `accepted`, progress and one result: it waits itself
        ticket.early = True
        if (
            ticket.route is not None
            and ticket.route.kind is RouteKind.CLOUD
            and not ticket.accepted
        ):
            ticket.route = Route(RouteKind.QUEUE, "nobody accepted it yet")
        name = ticket.call.tool.partition(":")[2].replace("_", " ")
        working = ticket.accepted
        if ticket.route is None or ticket.route.kind is not RouteKind.WEARER:
            self.mark(
                ticket,
                f"{name}: working…" if working else f"Saved for later: {name}",
                brief=working,
            )
        pending = self._ending.stamp(ticket, results.pending(ticket.call)).with_meta(
            delivery=Delivery.QUEUED.value
        )
        self._ending.answer(ticket, pending, "pending", final=False)

    def mark(self, ticket: PendingCall, text: str, *, brief: bool = True) -> None:
        """Put a word on the lens beside the call, without waiting for it; of a call that is not
        shown there is none.
        """
        if self._tasks.open and visibility.shown(ticket.call, ticket.tool):
            telling = self._tell(text, ticket.call.call_id, brief=brief)
            self._tasks.create_task(telling, name="call.word")

    async def _tell(self, text: str, call_id: str, *, brief: bool) -> None:
        try:
            await self._stage.tell(text, call_id=call_id, brief=brief)
        except Exception:  # noqa: BLE001 - a word that is not shown must not end the calls of this group
            _log.exception("a progress text of a call could not be shown")

    async def _progressed(self, ticket: PendingCall, text: str) -> None:
        shown = "".join(ch if ch.isprintable() else " " for ch in text[:MAX_PROGRESS]).strip()
        if not shown:
            return
        self._bus.publish(CallProgressed(ticket.call.call_id, ticket.call.tool, shown))
        self.mark(ticket, shown)
        if ticket.progress is not None:
            try:
                await ticket.progress(shown)
            except Exception as e:  # noqa: BLE001 - a listener that is gone must not cost the call its answer
                _log.debug("progress of %s could not be reported: %s", ticket.call.call_id, e)
                ticket.progress = None
