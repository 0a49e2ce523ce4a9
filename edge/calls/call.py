"""One tool call, from its acceptance to its one answer: what is known of it, its state on disk, its
caller, and the events it waits for. `execution.py` carries it.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from edge.calls.faults import Attempt
from edge.core import results, visibility
from edge.core.call_state import CallState
from edge.core.call_summary import secret_names
from edge.core.routing import HERE, Route, RouteKind
from edge.ports import (
    Alongside,
    CallAccepted,
    CallProgress,
    CallResult,
    Invoked,
    Progress,
    RegistryPort,
    Wait,
)
from edge.runtime.clock import Clock
from edge.runtime.mailbox import Mailbox
from edge.storage.calls import Admission as StoredCall, CallStore, Unfinished
from firmware_bridge.messages import Transcript
from tools_cache.api.tool import (
    Delivery,
    ErrorCode,
    Json,
    ToolCall,
    ToolDefinition,
    ToolError,
    ToolResponse,
)
from tools_cache.names import flaw

_log: Final = logging.getLogger(__name__)
BY_WEARER: Final = "decided by the wearer"
"""Why a call ran, or did not, whose question the wearer answered on the glasses."""
EVENTS: Final = 64
"""Events of one kind that may wait; further progress is dropped, an answer never is."""


# ------------------------------------------------------------------ what a call hears


class MayRun(Struct, frozen=True):
    """It is the call's turn."""


class Cancelled(Struct, frozen=True):
    """The call was cancelled."""

    reason: str


class Decided(Struct, frozen=True):
    """The call was allowed (`refusal` None), or was not and why. It is on disk already."""

    by: str
    refusal: ToolError | None = None


class CannotAsk(Struct, frozen=True):
    """No glasses can ask the wearer; a token still can decide. As `NobodyToAsk`."""

    reason: str
    for_wearer: str = ""


class Finished(Struct, frozen=True):
    """The answer came from this process: a backend has run, or the result was submitted."""

    response: ToolResponse


Event = (
    MayRun | Cancelled | Decided | CannotAsk | Finished | CallAccepted | CallProgress | CallResult
)


# ------------------------------------------------------------------ how a call ends


class Outcome(Struct, frozen=True):
    """The answer of a call that was taken on. `message`: the cloud's message it came in. `expired`:
    nobody answered while the call could wait. `settled`: ended by the one that ran the call, so it
    holds even when it cannot be stored.
    """

    response: ToolResponse
    message: CallResult | None = None
    expired: bool = False
    settled: bool = False


class Refused(Struct, frozen=True):
    """The call does not run and leaves no answer on disk; `reason` is for the audit line."""

    error: ToolError
    reason: str


class Known(Struct, frozen=True):
    """The call was answered before (or is being answered: then the response is `pending`)."""

    response: ToolResponse
    turn_id: str = ""

    @classmethod
    def of(cls, call: ToolCall, stored: StoredCall) -> "Known":
        """Return what the call on disk says to the same call now."""
        if stored.response is not None:
            return cls(stored.response, stored.turn_id)
        return cls(results.pending(replace(call, call_id=stored.call_id or call.call_id)))


Ending = Outcome | Refused | Known


def failed(error: ToolError) -> Outcome:
    """Return the outcome that is this error."""
    return Outcome(ToolResponse(error=error))


# ------------------------------------------------------------------ the call


class Recognition(Struct, frozen=True):
    """How well the words of a call by voice were understood.

    `unsure`: the wearer is asked whether this was said before anything is changed; `guessed`:
    before anything is done. `remark`: what the wearer reads above that question. `private`: its
    arguments are in no event. `correct` takes words said to its question; True if they correct the
    call.
    """

    confidence: float | None = None
    unsure: bool = False
    guessed: bool = False
    remark: str = ""
    private: bool = False
    correct: Callable[[Transcript], bool] | None = None


class Caller(Struct, frozen=True):
    """Who waits for a call; with `to_the_end` False only until it has begun.

    `live`: on a connection that breaks if this process is killed; then it sees the call as failed,
    and may ask again. `undoes`: the call that this one takes back; `agreed_to`: the digest of the
    tool that the wearer tapped for, which needs no other yes. `heard`: of recognised words.
    `invoked`: the cloud's message that it came in, whose result is sent with its end. `new_id`: its
    id was made for it, so that no earlier call has it.
    """

    wait: Wait = Wait.ANSWER
    progress: Progress | None = None
    to_the_end: bool = True
    undoes: str = ""
    agreed_to: str = ""
    heard: Recognition | None = None
    invoked: Invoked | None = None
    live: bool = False
    new_id: bool = False


class Started(Enum):
    """Has anybody begun to do what the call says?"""

    NO = 0
    PERHAPS = 1
    """here, or before a restart: nobody has said so since"""
    YES = 2
    """a worker has said so"""


Report = Callable[["Call", ToolResponse, str], None]
"""Publishes and audits an answer: (call, answer, outcome)."""


class CallTools(Struct, frozen=True):
    """What every call uses; one for all."""

    store: CallStore
    registry: RegistryPort
    clock: Clock
    report: Report


def _future() -> "asyncio.Future[Any]":
    return asyncio.get_running_loop().create_future()


class Call:
    """One per call, used once.

    `state` is where the call is on disk; RECEIVED while it is not there. `tool` and `route` are
    None until they are known. `interim` is the answer that the caller got before the end; None
    while nobody has one. `began` is on the boot clock; `waited_s` is time spent waiting for a place
    and for a yes, no part of the duration. `held_up`: this process was, while it waited for an
    acceptance. `caller_s` is how long the caller's request lives, while the request's own `ttl_s`
    grows for a call that may wait longer.

    `answer` resolves with what the caller gets; `first` as soon as there is anything to say: None
    when the call is on disk, else an interim or final answer; `place` when the call needs its place
    among the running ones no longer.
    """

    def __init__(
        self,
        request: ToolCall,
        tools: CallTools,
        caller: Caller | None = None,
        *,
        left: Unfinished | None = None,
    ) -> None:
        """`left`: how the last daemon left it; its caller knows no more than that it is pending."""
        self._tools = tools
        self.request = request
        self.caller = caller or Caller()
        self.began = tools.clock.boot()
        self.caller_s = request.ttl_s
        self.registry_version = tools.registry.snapshot().version
        self.state = CallState(left.state) if left else CallState.RECEIVED
        self.keys = left.keys if left else ()
        self.attempts = left.attempts if left else 0
        self.held_up = False
        self.interim = results.pending(request) if left else None
        self.tool: ToolDefinition | None = None
        self.route: Route | None = None
        self.started = Started.NO
        self.progress = ""
        """What its tool said last of its progress: nothing less is shown in its place."""
        self.answered_first = False
        """Whether its caller gets the answer before that is on disk."""
        self.shown_first = False
        """Whether the wearer gets the answer before that is on disk; its caller does not."""
        self.submitted = False
        """Whether it is in the outbox, for a worker of the cloud."""
        self.replied = False
        """Whether the result for the cloud that invoked it is in the outbox."""
        self.confirmed = False
        """Whether somebody was asked for it and said yes."""
        self.waited_s = 0.0
        self.clamped: Mapping[str, Json] = {}
        self.defaulted: tuple[str, ...] = ()
        self.reason = ""
        self.stages: list[str] = []
        """How far it came, the same for every kind of tool: configured, built, executed, posted."""
        self.events: Mailbox[Event] = Mailbox(
            tools.clock, most=EVENTS, kept=(CallResult, Finished, Decided)
        )
        self.answer: asyncio.Future[ToolResponse] = _future()
        self.first: asyncio.Future[ToolResponse | None] = _future()
        self.place: asyncio.Future[None] = _future()

    @property
    def key(self) -> tuple[str, str, str] | None:
        """What makes two calls one while the first is in flight."""
        return (self.request.user_id, self.request.session, self.keys[0]) if self.keys else None

    @property
    def may_run(self) -> bool:
        """Is it on disk as a call that may run, or runs?"""
        return self.state not in (CallState.RECEIVED, CallState.AWAITING_CONFIRMATION)

    @property
    def repeatable(self) -> bool:
        """Does running it twice do no more than once? False while its tool is not known."""
        return self.tool is not None and results.repeatable(self.tool)

    @property
    def wearer_name(self) -> str:
        """What the wearer calls its tool: its name in a sentence, the title given to an owner's
        own, else its app's name; "" while it is not known.
        """
        tool, entry = self.tool, self._tools.registry.snapshot().find(self.request.tool)
        if tool is not None and tool.wearer.name:
            return tool.wearer.name
        if tool is not None and tool.own and visibility.given_title(tool):
            return visibility.given_title(tool)
        app = "" if entry is None else entry.app_name
        return app or (visibility.title(tool) if tool is not None and tool.own else "")

    # -------------------------------------------------------------- on disk

    async def admit(
        self,
        state: CallState,
        *,
        then: CallState | None = None,
        ttl_s: float | None = None,
        also: Alongside | None = None,
        refusal: Callable[[Exception], ToolError] = results.storage_unavailable,
    ) -> Ending | None:
        """Put the call on disk in `state` before it runs, and what goes `also` there with it;
        return why it must not run. If the disk takes nothing, only what changes nothing and is done
        here goes on. `then`: the step it takes at once. `ttl_s`: the life to store, if not the
        request's own.
        """
        assert self.tool is not None
        assert self.route is not None
        request, here = self.request, self.route.kind in HERE
        with Attempt("call %s is not on disk", request.call_id) as disk:
            stored = await self._tools.store.admit(
                request if ttl_s is None else replace(request, ttl_s=ttl_s),
                self.route.kind.value,
                keys=self.keys,
                repeatable=self.repeatable,
                state=state.value,
                then="" if then is None else then.value,
                secret=secret_names(self.tool),
                also=also,
            )
        if disk.error is not None:
            harmless = (self.tool.read_only and here) or self.route.code is not None
            if harmless and state is CallState.ADMITTED:
                return None
            return Refused(refusal(disk.error), "store")
        if not stored.fresh:
            return Known.of(request, stored)
        self.state = then or state
        if state is CallState.ADMITTED:
            self.tell_first(None)
        return None

    async def run_before_stored(self) -> bool:
        """Begin a call that changes nothing, or only what the glasses do, before it is on disk, if
        nobody relies on it being there; False if not. It is stored with its answer, or in a moment.

        The cloud's message stands for a call of the cloud: it is on disk, and comes again. A live
        caller learns that its call was lost; the answer of a local tool need not be on disk either.
        Of what the glasses do the answer is on disk before the caller gets it.
        """
        assert self.tool is not None
        assert self.route is not None
        reads, live, kind = self.tool.read_only, self.caller.live, self.route.kind
        answered_first = reads and live and kind is RouteKind.LOCAL
        shown_first = self.repeatable and live and kind is RouteKind.GLASSES
        invoked = reads and self.caller.invoked is not None
        if not (answered_first or shown_first or invoked):
            return False

        def lost(error: BaseException) -> None:
            _log.warning("call %s is not on disk: %s", self.request.call_id, error)
            self.state = CallState.RECEIVED

        self.state = CallState.RUNNING
        self.answered_first, self.shown_first = answered_first, shown_first
        with Attempt("call %s is not on disk", self.request.call_id) as disk:
            await self._tools.store.admit_behind(
                self.request,
                self.route.kind.value,
                keys=self.keys,
                failed=lost,
                secret=secret_names(self.tool),
            )
        if disk.error is not None:
            self.state = CallState.RECEIVED
            self.answered_first = self.shown_first = False
        return disk.error is None

    async def advance(self, state: CallState) -> bool:
        """Move the call along on disk; False when the disk does not take it."""
        if self.state is CallState.RECEIVED:
            return True
        with Attempt("call %s is not marked %s", self.request.call_id, state) as disk:
            await self._tools.store.advance(self.request.call_id, state.value)
            self.state = state
        return disk.error is None

    async def stored_state(self) -> str:
        """Return the state that is on disk, which another caller may have changed; "" if none."""
        row = await self._tools.store.get(self.request.call_id)
        return "" if row is None else str(row["state"])

    # -------------------------------------------------------------- answers

    def start_running(self) -> None:
        """Its turn has come: what is left of its life goes on with it."""
        self.waited_s = self._tools.clock.boot() - self.began
        left_s = max(0.0, self.request.ttl_s - self.waited_s)
        self.request = replace(self.request, ttl_s=left_s)

    def stamp(self, response: ToolResponse, delivery: Delivery | None = None) -> ToolResponse:
        """Return the response with the meta of every answer."""
        clock = self._tools.clock
        moment = datetime.fromtimestamp(clock.wall(), UTC).isoformat(timespec="milliseconds")
        stamped = results.stamped(
            response,
            self.request,
            tool=self.tool,
            registry=self.registry_version,
            duration_s=clock.boot() - self.began - self.waited_s,
            timestamp=moment.replace("+00:00", "Z"),
            route=self.route.kind if self.route else None,
            clamped=self.clamped,
        )
        return stamped if delivery is None else stamped.with_meta(delivery=delivery.value)

    def refuse(self, error: ToolError, reason: str) -> ToolResponse:
        """Refuse the call before it waits for its turn; nothing is shown."""
        self.reason = reason
        if error.code is ErrorCode.INVALID_TOOL_NAME:
            name = self.request.tool
            _log.warning("Invalid tool name format - %s: %.80r", flaw(str(name)), name)
        response = self.stamp(ToolResponse(error=error), Delivery.NONE)
        self.end(response, "refused")
        return response

    def answer_early(self, response: ToolResponse, outcome: str) -> None:
        """Return an interim answer to the caller; the end of the call is then a completion."""
        self.interim = response
        self.end(response, outcome)

    def end(self, response: ToolResponse, outcome: str) -> None:
        """Report an answer and give it to the caller."""
        self._tools.report(self, response, outcome)
        self.resolve(response)

    def resolve(self, response: ToolResponse) -> None:
        """Return the one answer to the caller; later ones are ignored."""
        self.tell_first(response)
        self.free_place()
        if not self.answer.done():
            self.answer.set_result(response)

    def tell_first(self, response: ToolResponse | None) -> None:
        """Tell a caller that waits only for the beginning how the call began."""
        if not self.first.done():
            self.first.set_result(response)

    def free_place(self) -> None:
        """Let another call run: this one is over, or only waits for a person or for the cloud."""
        if not self.place.done():
            self.place.set_result(None)

    def wait_again(self) -> "asyncio.Future[ToolResponse]":
        """Return where the end will be: a caller waits for it again (a token was brought)."""
        if self.answer.done():
            self.answer = _future()
        self.interim = None
        return self.answer
