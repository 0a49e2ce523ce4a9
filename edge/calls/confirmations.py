"""Confirmations: a call that needs a yes waits here, is asked about where the wearer is, and is
decided exactly once.

Tools never see a token; the disk holds only its hash, and using it up is one transaction with the
call's step, so that of a tap, a token and a time-out only the first counts.
"""

import asyncio
import copy
import logging
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from edge.calls.call import Call, Cancelled, CannotAsk, Decided, Ending, Outcome, Refused, failed
from edge.calls.dependencies import CallPorts, CallRules
from edge.calls.faults import Attempt
from edge.core import call_summary, confirmation, policy, results, routing, visibility
from edge.core.call_state import CallState
from edge.core.call_summary import hide, secret_names
from edge.core.grants import Asked, Consumed, Consumption, Grant, Granted
from edge.ports import NobodyToAsk, Question
from edge.runtime.events import ConfirmationAsked, ConfirmationDecided
from edge.runtime.first_completed import Tasks
from firmware_bridge.messages import Answer
from tools_cache.api.tool import (
    CallOrigin,
    Delivery,
    ErrorCode,
    Json,
    Named,
    ToolCall,
    ToolDefinition,
    ToolError,
    ToolFailure,
    ToolResponse,
)

_log: Final = logging.getLogger(__name__)
MAX_REASON: Final = 200
"""Characters of a caller's reason for cancelling that are repeated."""
ACCEPTED: Final = "Yes, working…"
"""On the lens from the wearer's yes until the result."""
_GRACE_S: Final = 1.0
"""How long after the question's own time-out its call still waits for that event."""


class _OpenQuestion(Struct, frozen=True):
    """A question that is not decided yet. `tool` is what the wearer is asked about, in `lines`."""

    call: Call
    tool: ToolDefinition
    lines: tuple[str, ...]
    task: asyncio.Task[None]
    end_at: float


class Confirmations:
    """One per daemon."""

    def __init__(
        self, ports: CallPorts, rules: CallRules, tasks: Tasks, new_token: Callable[[], str]
    ) -> None:
        self._store = ports.confirmations
        self._ask = ports.ask
        self._stage = ports.stage
        self._bus = ports.bus
        self._clock = ports.clock
        self._registry = ports.registry
        self._glasses = ports.glasses
        self._writer = ports.writer
        self._name_arguments = ports.name_arguments
        self._rules = rules
        self._tasks = tasks
        self._new_token = new_token
        self._asking: dict[str, _OpenQuestion] = {}

    # -------------------------------------------------------------- for a call

    async def obtain(self, call: Call) -> Ending | None:
        """Ask for a yes where one is needed and wait for it; return how the call ends without one.

        The call waits on disk: a restart asks again, and nothing runs unasked. Judged by the tool
        as it is now, because that is what runs: a turn may have begun with an older definition.
        """
        assert call.tool is not None
        standing = await self._standing(call.request, call.tool)
        if standing is Grant.NEVER:
            return Refused(confirmation.never_allowed(call.tool), "never allowed")
        agreed = standing is not None or self._is_agreed(call)
        if agreed and not _is_unsure(call):
            return None
        tool = self._freeze(call)
        try:
            lines, names = await self._describe(call, tool)
        except ToolFailure as e:
            return Refused(e.error, "not asked about")
        request, limit_s = call.request, self._rules.limits.confirm_s
        if agreed:  # it is asked only what was said
            limit_s = min(limit_s, self._rules.limits.unsure_s)
        # The cloud gets one result and brings no token: it waits for the end, which comes within
        # its time.
        ours = request.origin is not CallOrigin.CLOUD
        waits = call.caller.to_the_end and self._glasses.status().ready
        life_s = limit_s if ours else min(limit_s, request.ttl_s)
        assert call.route is not None
        kept_s = limit_s + routing.life_s(request, tool, call.route)
        if end := await call.admit(CallState.AWAITING_CONFIRMATION, ttl_s=kept_s):
            return end
        with Attempt("call %s cannot be asked about", request.call_id) as asking:
            required = await self._begin_asking(
                call, tool, lines, confirmation.subject(tool, call.request, names), life_s
            )
        if asking.error is not None:  # nobody was asked and nothing runs
            return failed(results.storage_unavailable(asking.error))
        interim = call.stamp(ToolResponse(error=required), Delivery.NONE)
        call.tell_first(interim)
        began = self._clock.boot()
        decided = await self._decision(
            call,
            left_s=life_s,
            patience_s=request.ttl_s if waits else 0.0,
            interim=interim if ours else None,
        )
        call.waited_s += self._clock.boot() - began
        call.reason = f"decided by {decided.by}"
        return await self._after(call, decided)

    async def obtain_again(self, call: Call) -> Outcome | None:
        """As `obtain`, for a call whose question was open when the last daemon ended: it is asked
        with what is left of its time.
        """
        assert call.tool is not None
        open_ = await self._store.open()
        left_s = next((a.left_s for a in open_ if a.call_id == call.request.call_id), None)
        if left_s is None:
            return await self._decided_before(call, call.tool)
        try:
            lines, _ = await self._describe(call, call.tool)
        except ToolFailure as e:
            return failed(e.error)
        self._ask_wearer(call, call.tool, lines, left_s)
        decided = await self._decision(call, left_s=left_s, patience_s=0.0, interim=None)
        return await self._after(call, decided)

    async def changed(self, call: Call) -> Outcome | None:
        """Return the end of a call that must not run: its tool is not what the question was about,
        or needs a yes now and nobody was asked.
        """
        request = call.request
        asked_about = await self._store.subject(request.call_id)
        now = self._registry.snapshot().find(request.tool)
        if asked_about:
            same = now and await self.subject(now.definition, request) == asked_about
            return None if same else failed(confirmation.changed(request.tool))
        if now is None:
            return None
        standing = await self._standing(request, now.definition)
        if standing is Grant.NEVER:
            return failed(confirmation.never_allowed(now.definition))
        return None if standing is Grant.ALWAYS else failed(confirmation.needed_now(request.tool))

    async def subject(self, tool: ToolDefinition, call: ToolCall) -> str:
        """Return the hash of what a question about this call would be about now; "" when nobody
        would be asked.
        """
        try:
            return confirmation.subject(tool, call, await self._name_arguments(tool, call))
        except ToolFailure:
            return ""

    async def _after(self, call: Call, decided: Decided) -> Outcome | None:
        if decided.refusal is not None:
            return failed(decided.refusal)
        call.state, call.confirmed = CallState.ADMITTED, True  # on disk since the yes was
        return await self.changed(call)

    async def _decided_before(self, call: Call, tool: ToolDefinition) -> Outcome | None:
        """Its question is not open any more: allowed while we started, refused just before the
        last daemon ended, or late.
        """
        call_id = call.request.call_id
        if await call.stored_state() == CallState.ADMITTED:
            call.state, call.confirmed = CallState.ADMITTED, True
            return None
        used = await self._store.consume_call(call_id, allow=False)
        if used.outcome is Consumption.USED:
            return failed(confirmation.denied(tool, "Somebody"))
        return failed(confirmation.expired(tool))

    async def _standing(self, call: ToolCall, tool: ToolDefinition) -> Grant | None:
        """What is decided without asking; None: ask. A “never” holds for any tool, whatever its
        author says of it later.
        """
        granted = await self._store.granted(call.user_id, tool.name)
        return confirmation.standing(self._as_it_is_now(tool), granted)

    def _is_agreed(self, call: Call) -> bool:
        """Return whether the wearer tapped for this call, with its tool as it is now."""
        assert call.tool is not None
        agreed = call.caller.agreed_to
        return agreed == confirmation.definition_digest(self._as_it_is_now(call.tool))

    def _freeze(self, call: Call) -> ToolDefinition:
        """Make the call what is asked about and, after a yes, run: the tool as it is now, and a
        copy of the arguments that no other code holds.
        """
        assert call.tool is not None
        call.tool = self._as_it_is_now(call.tool)
        call.request = replace(
            call.request,
            args=copy.deepcopy(dict(call.request.args)),
            input=copy.deepcopy(call.request.input),
        )
        return call.tool

    def _as_it_is_now(self, tool: ToolDefinition) -> ToolDefinition:
        now = self._registry.snapshot().find(tool.name)
        return now.definition if now is not None else tool

    # -------------------------------------------------------------- the question

    async def _describe(
        self, call: Call, tool: ToolDefinition
    ) -> tuple[tuple[str, ...], Mapping[str, Named]]:
        """Return the question's lines, made once so that everybody reads the same, and what stands
        in them for arguments. Raise `ToolFailure` if it is too long, or the tool would refuse it.
        """
        entry, request = self._registry.snapshot().find(tool.name), call.request
        names = await self._name_arguments(tool, request)
        app = entry.app_name if entry is not None else ""
        only_heard = _is_unsure(call) and not policy.needs_confirmation(tool)
        about, writer = (tool, request.args), self._writer()
        try:
            if only_heard:
                lines = call_summary.understood(*about, app=app, writer=writer)
            else:
                lines = call_summary.lines(
                    *about, request.answers, app=app, writer=writer, names=names
                )
        except call_summary.TooLong:
            raise ToolFailure(confirmation.too_long()) from None
        return lines, names

    async def _begin_asking(
        self,
        call: Call,
        tool: ToolDefinition,
        lines: tuple[str, ...],
        subject: str,
        life_s: float,
    ) -> ToolError:
        """Store the question and put it to the wearer; return CONFIRMATION_REQUIRED with its
        token.
        """
        request, token = call.request, self._new_token()
        await self._store.ask(
            Asked(
                request.call_id,
                confirmation.token_hash(token),
                request.tool,
                subject,
                request.user_id,
                request.session,
                life_s,
            )
        )
        self._ask_wearer(call, tool, lines, life_s)
        wall = self._clock.wall()
        return confirmation.required(request, tool, lines, token=token, left_s=life_s, wall=wall)

    def _ask_wearer(
        self, call: Call, tool: ToolDefinition, lines: tuple[str, ...], left_s: float
    ) -> None:
        """Put the question on the glasses, without waiting for it."""
        request = call.request
        preview, heard = policy.preview(tool, request.args), call.caller.heard
        shown = () if heard is not None and heard.private else lines
        self._bus.publish(
            ConfirmationAsked(request.call_id, tool.name, preview, round(left_s, 1), shown)
        )
        task = self._tasks.create_task(
            self._wait_for_wearer(call, tool, lines, left_s), name=f"ask.{request.call_id}"
        )
        end_at = self._clock.boot() + left_s
        self._asking[request.call_id] = _OpenQuestion(call, tool, lines, task, end_at)

    async def _wait_for_wearer(
        self, call: Call, tool: ToolDefinition, lines: tuple[str, ...], left_s: float
    ) -> None:
        call_id, heard = call.request.call_id, call.caller.heard
        remark = (heard.remark,) if heard is not None and heard.remark else ()
        question = Question(
            f"{call_id}/confirm",
            "\n".join((*remark, *lines)),
            left_s,
            exact=True,
            call_id=call_id,
            accepted=ACCEPTED,
            refused=confirmation.denied(tool, confirmation.WEARER).for_wearer,
            by_voice=self._yes_by_voice(tool),
            correct=heard.correct if heard is not None else None,
        )
        with Attempt("the wearer could not be asked about %s", call_id, bug=True) as asking:
            try:
                answer = await self._ask.ask(question)
            except NobodyToAsk as e:
                call.events.put(CannotAsk(str(e), e.for_wearer))
                return
        if asking.error is not None:  # the token is left, and the time-out
            call.events.put(CannotAsk("the glasses could not ask"))
            return
        if answer is Answer.TIMEOUT:
            return  # the life of the question ends it
        allow = answer is Answer.ALLOW
        denied = None if allow else confirmation.denied(tool, confirmation.WEARER)
        with Attempt("the wearer's answer about %s is not on disk", call_id) as disk:
            used = await self._store.consume_call(call_id, allow=allow)
        if disk.error is not None:  # nothing runs on a yes that is not on disk; a no needs none
            call.events.put(Decided("the wearer", denied or _lost()))
        elif used.outcome is Consumption.TAKEN:  # else a token was quicker
            self._asking.pop(call_id, None)
            self._publish(call, "allowed" if allow else "denied", "the wearer")
            call.events.put(Decided("the wearer", denied))

    def _yes_by_voice(self, tool: ToolDefinition) -> bool:
        """Return whether a spoken yes is enough: the tool needs no consent of its own, so it is
        asked only what was said; or its owner allows it.
        """
        allowed = tool.name in self._rules.policy.yes_by_voice
        return allowed or not policy.needs_confirmation(tool)

    async def _decision(
        self, call: Call, *, left_s: float, patience_s: float, interim: ToolResponse | None
    ) -> Decided:
        """Wait for the decision of an open question. A caller waits `patience_s` for it, then
        gets `interim`.
        """
        call.free_place()
        now = self._clock.boot()
        end_at, patient_until = now + left_s + _GRACE_S, now + patience_s
        cancelled: Decided | None = None
        while True:
            impatient = interim is not None and call.interim is None
            event = await call.events.get(min(end_at, patient_until) if impatient else end_at)
            match event:
                case Decided():
                    self._unask(call.request.call_id)
                    return event if cancelled is None or event.refusal is not None else cancelled
                case Cancelled():
                    text = f"Cancelled: {event.reason}"[:MAX_REASON]
                    cancelled = Decided("the caller", ToolError.of(ErrorCode.CANCELLED, text))
                    if await self._close(call, "cancelled"):
                        return cancelled
                case CannotAsk() if _is_unsure(call):
                    if await self._close(call, "expired"):
                        return Decided("nobody", confirmation.not_understood(event.reason))
                case CannotAsk() if interim is not None:
                    _answer_early(call, confirmation.unasked(interim, event.reason))
                case CannotAsk() if call.request.origin is CallOrigin.CLOUD:  # it brings no token
                    if await self._close(call, "expired"):
                        text = f"The wearer cannot be asked: {event.reason}"
                        words = event.for_wearer
                        away = ErrorCode.SESSION_INACTIVE
                        return Decided("nobody", ToolError.of(away, text, for_wearer=words))
                case None if self._clock.boot() >= end_at:
                    if await self._close(call, "expired"):
                        return Decided("nobody", confirmation.expired(call.tool))
                    end_at += _GRACE_S  # decided this very moment: that event is on the way
                case None if interim is not None:
                    _answer_early(call, interim)

    async def _close(self, call: Call, outcome: str) -> bool:
        """End an open question without a yes (`cancelled`, `expired`); False when it was
        decided just now.
        """
        used = await self._store.consume_call(call.request.call_id, allow=False)
        if used.outcome is Consumption.USED:
            return False
        self._unask(call.request.call_id)
        self._publish(call, outcome, "nobody" if outcome == "expired" else "the caller")
        return True

    def _unask(self, call_id: str) -> None:
        """Take a question off the lens."""
        asked = self._asking.pop(call_id, None)
        if asked is not None:
            asked.task.cancel()

    def _publish(self, call: Call, outcome: str, by: str) -> None:
        request = call.request
        self._bus.publish(ConfirmationDecided(request.call_id, request.tool, outcome, by))

    # -------------------------------------------------------------- for people and programs

    def questions(self) -> list[Mapping[str, Json]]:
        """The calls that wait for a yes, oldest first, with everything that would run."""
        now = self._clock.boot()
        return [
            {
                "call_id": asked.call.request.call_id,
                "tool": asked.tool.name,
                "origin": call_summary.origin(asked.tool),
                "asked_by": asked.call.request.origin.value,
                "preview": policy.preview(asked.tool, asked.call.request.args),
                "args": hide(asked.call.request.args, secret_names(asked.tool)),
                "particulars": list(asked.lines),
                "left_s": round(max(0.0, asked.end_at - now), 1),
            }
            for asked in self._asking.values()
        ]

    async def use_token(
        self,
        token: str,
        *,
        allow: bool,
        grant: Grant,
        user_id: str,
        **bound: str | None,
    ) -> Consumed:
        """Use a token up, if it was given for `bound` (tool, args_hash, session; None matches all).
        When TAKEN the call is decided on disk; pass it to `decide` when its caller waits.
        """
        used = await self._store.consume(
            confirmation.token_hash(token), allow=allow, user_id=user_id, **bound
        )
        await self._grant(used, user_id, grant)
        return used

    async def use_call(self, call_id: str, *, allow: bool, grant: Grant, user_id: str) -> Consumed:
        """The same for a call that is named by its id, as the owner does at a terminal."""
        used = await self._store.consume_call(call_id, allow=allow)
        await self._grant(used, user_id, grant)
        return used

    def decide(self, call: Call, *, allow: bool, by: str) -> None:
        """Tell the waiting call, which may not have asked yet; its question leaves the lens."""
        if call.tool is None:
            return
        denied = None if allow else confirmation.denied(call.tool, by)
        self._publish(call, "allowed" if allow else "denied", by)
        call.events.put(Decided(by, denied))
        if denied is not None and not visibility.wearer_asked(
            call.request
        ):  # else it is the answer
            self._tasks.create_task(
                self._stage.tell(denied.for_wearer, brief=True), name="ask.elsewhere"
            )

    async def _grant(self, used: Consumed, user_id: str, grant: Grant) -> None:
        asked = self._asking.get(used.call_id)
        if used.outcome is not Consumption.TAKEN or grant is Grant.ONCE or asked is None:
            return
        granted = Granted(
            grant, confirmation.definition_digest(asked.tool), call_summary.origin(asked.tool)
        )
        # The question is decided: its call must hear of it, whatever else is lost.
        with Attempt("the grant %s is not on disk", grant.value):
            await self._store.grant(user_id, asked.tool.name, granted)


def _is_unsure(call: Call) -> bool:
    """Return whether the wearer must be asked what was said, because the call changes something or
    its words are guessed.
    """
    heard, tool = call.caller.heard, call.tool
    if heard is None or tool is None:
        return False
    return heard.guessed or (heard.unsure and not tool.read_only)


def _answer_early(call: Call, interim: ToolResponse) -> None:
    """The caller gets CONFIRMATION_REQUIRED; the question stays open."""
    if call.interim is None:
        call.answer_early(interim, "confirmation")


def _lost() -> ToolError:
    return ToolError.of(
        ErrorCode.INTERRUPTED,
        "Your yes could not be kept, so nothing was done",
        suggestion="Try again",
    )
