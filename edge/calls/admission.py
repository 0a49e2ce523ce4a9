"""The gate of the pipeline: may this call run, in the order of C-13; and was it answered before?

Refuses to route, to run, to ask anybody and to answer: it lets a ticket pass, or raises why not.
"""

import logging
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Final, Protocol

from edge.calls.call import PendingCall
from edge.core import confirmation, idempotency, permissions, policy, results
from edge.core.rate_limit import RateLimits
from edge.core.session import TurnLedger
from edge.core.tools.snapshot import Entry, Snapshot
from edge.ports import RegistryPort
from edge.runtime.clock import Clock
from edge.storage.calls import Admission, CallStore
from tools_cache.api.tool import (
    CallOrigin,
    ErrorCode,
    Json,
    RateLimit,
    ToolCall,
    ToolDefinition,
    ToolError,
    ToolResponse,
    Turn,
)
from tools_cache.defaults import newly_filled

_log: Final = logging.getLogger(__name__)
_PINNED: Final = 64
"""Turns whose snapshot is kept; a turn has ended long before that many others began."""


@dataclass(slots=True)
class CallLimits:
    """How long and how many. Seconds; tests shorten them. The parts of the orchestrator share one:
    what `take` sets counts at their next look.
    """

    running: int = 32
    retry_after_s: float = 1.0
    accept_s: float = 2.0
    fallback_s: float = 0.8
    run_s: float = 30.0
    life_s: float = 40.0
    working_s: float = 0.7
    voice_inline_s: float = 4.0
    retry_pause_s: float = 0.25
    confirm_s: float = 300.0
    turn_latency_ms: int = 1500
    voice: policy.VoiceBudget = field(default_factory=policy.VoiceBudget)

    def take(self, other: "CallLimits") -> None:
        """Be as the other is: the owner changed the configuration."""
        for each in fields(self):
            setattr(self, each.name, getattr(other, each.name))


class GatePort(Protocol):
    """Implemented by `tools/selection.py`: what is asked of the choice of tools at each call."""

    def why_not(self, user_id: str, tool: ToolDefinition) -> str:
        """Why a tool is off for a user, or its gate is shut; empty when neither."""

    def refusal(self, call: ToolCall, tool: ToolDefinition) -> ToolError | None:
        """Why this user may not call this tool now: it is off, or its gate is shut (asked again
        at each call).
        """

    def rate(self, user_id: str, tool: str) -> RateLimit | None:
        """How often this user may call it, beside what the tool and the owner say."""

    def turn(self, turn_id: str) -> None:
        """A call or an utterance of this turn is here; the first one crosses the turn boundary."""


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """What the owner decided beside the limits: the switch for all tools, rates by tool name, what
    the cloud may call, and each user's own choice.
    """

    enabled: bool = True
    rates: Mapping[str, RateLimit] = field(default_factory=dict)
    user_id: str = "local"
    strict_registry: bool = False
    language: str = ""
    cloud_may: tuple[str, ...] = permissions.STOCK
    choice: GatePort | None = None


ANOTHER_TOOLS_CALL: Final = "an id or key of another tool's call"


class CallRefused(Exception):
    """This call does not run; `reason` is for the audit line."""

    def __init__(self, error: ToolError, reason: str) -> None:
        super().__init__(reason)
        self.error = error
        self.reason = reason


class AlreadyAnswered(Exception):
    """This call was answered before (or is being answered: then it is `pending`)."""

    def __init__(self, response: ToolResponse, turn_id: str = "") -> None:
        super().__init__("known")
        self.response = response
        self.turn_id = turn_id


def overrun(limits: CallLimits, text: str = "Too many calls at once") -> ToolError:
    """Come again in a moment."""
    wait_ms = round(limits.retry_after_s * 1000)
    return ToolError.of(
        ErrorCode.RATE_LIMIT, text, retry_after_ms=wait_ms, suggestion="Try again in a moment"
    )


class AdmissionCheck:
    """One per daemon: it counts what turns and tools have used up."""

    def __init__(
        self,
        *,
        registry: RegistryPort,
        store: CallStore,
        clock: Clock,
        limits: CallLimits,
        policy_: CallPolicy,
    ) -> None:
        self._registry = registry
        self._store = store
        self._clock = clock
        self._limits = limits
        self._policy = policy_
        self._choice = policy_.choice
        self._pinned: OrderedDict[Turn, Snapshot] = OrderedDict()
        self._turns = TurnLedger()
        self._used = RateLimits()

    def adopt(self, policy_: CallPolicy) -> None:
        """Judge the next call by this."""
        self._policy = policy_

    async def check(self, ticket: PendingCall) -> None:
        """The checks, in the order of C-13. Raises `CallRefused` or `AlreadyAnswered`."""
        call = ticket.call
        again = await self._store.known(call) if call.origin is CallOrigin.CLOUD else None
        if again is not None and again.origin == CallOrigin.CLOUD:
            self._answered(
                ticket, again
            )  # whatever became of its tool meanwhile: one call, one answer
        if not self._policy.enabled:
            raise CallRefused(policy.switched_off(), "switched off")
        if (
            self._registry.snapshot().find(call.tool) is None
        ):  # perhaps of an app that was added a moment ago
            await self._registry.catch_up()
        entry = self._entry(ticket)
        tool = ticket.tool = entry.definition
        if error := policy.hidden(call.tool, entry.hidden, entry.missing, stale=entry.stale):
            raise CallRefused(error, error.code.value.lower())
        if error := permissions.refusal(call, tool, self._policy.cloud_may):
            raise CallRefused(error, "scope" if call.scope is not None else "not open to the cloud")
        if self._choice is not None and (off := self._choice.refusal(call, tool)) is not None:
            raise CallRefused(off, off.code.value.lower())
        await self._known_before(ticket)
        if error := policy.mode_problem(tool, call.mode):
            raise CallRefused(error, "mode")
        self._budget(ticket, tool)
        args = self.arguments(ticket, tool)
        ticket.call = replace(ticket.call, args=args)
        self._rate(ticket, tool)

    def _entry(self, ticket: PendingCall) -> Entry:
        """The tool as this turn's snapshot has it (C-36), hidden or not as the glasses are now.
        Raises `CallRefused`.
        """
        call = ticket.call
        if self._choice is not None and call.turn_id:
            self._choice.turn(call.turn_id)
        now = ticket.snapshot = self._registry.snapshot()
        if call.turn is not None:
            ticket.snapshot = self._pinned.setdefault(call.turn, now)
            self._pinned.move_to_end(call.turn)
            while len(self._pinned) > _PINNED:
                self._pinned.popitem(last=False)
        if ticket.snapshot.version != now.version:
            _log.warning(
                "turn %s continues with registry %s; %s is active now",
                call.turn_id[:64],
                ticket.snapshot.version,
                now.version,
            )
            if self._policy.strict_registry:
                raise CallRefused(policy.registry_changed(), "registry changed within a turn")
        entry, current = ticket.snapshot.find(call.tool), now.find(call.tool)
        if entry is None:
            raise CallRefused(policy.unknown(call.tool, self._open_to(ticket)), "unknown tool")
        return entry if current is None else replace(current, definition=entry.definition)

    def _open_to(self, ticket: PendingCall) -> Iterator[str]:
        """The tools that this ticket's caller may call: no other is named to it."""
        for entry in ticket.snapshot.entries() if ticket.snapshot is not None else ():
            tool = entry.definition
            off = self._choice is not None and self._choice.refusal(ticket.call, tool) is not None
            if (
                not entry.hidden
                and not off
                and permissions.refusal(ticket.call, tool, self._policy.cloud_may) is None
            ):
                yield tool.name

    def _budget(self, ticket: PendingCall, tool: ToolDefinition) -> None:
        call = ticket.call
        spent = self._turns.spent(call.turn)
        if error := policy.budget_problem(tool, call.mode, spent, self._limits.voice):
            raise CallRefused(error, "budget")
        self._turns.spend(call.turn, retrieval=tool.category == policy.RETRIEVAL)

    def _rate(self, ticket: PendingCall, tool: ToolDefinition) -> None:
        now, call = self._clock.boot(), ticket.call
        theirs = self._choice.rate(call.user_id, tool.name) if self._choice is not None else None
        for name, limit in (
            ("own", tool.rate_limit),
            ("owner", self._policy.rates.get(tool.name)),
            ("user", theirs),
        ):
            if limit is None:
                continue
            wait_s = self._used.take(call.user_id, f"{name} {tool.name}", limit, now)
            if error := policy.rate_problem(tool, wait_s):
                raise CallRefused(error, "rate")

    # ------------------------------------------------------------------ answered before?

    async def _known_before(self, ticket: PendingCall) -> None:
        """Give a stored answer again. A question without a stable id that was answered in this
        turn, and is no replay, is an intended repetition (C-48): it gets the next number.
        """
        keys = ticket.keys
        if not keys or not idempotency.may_repeat(ticket.call, keys[0]):
            await self._look_up(ticket)
            return
        for number in range(idempotency.REPEATS):
            ticket.keys = (idempotency.repetition(keys[0], number), *keys[1:])
            found = await self._store.known(ticket.call, keys=ticket.keys)
            if found is None:
                return
            if found.response is None or found.call_id == ticket.call.call_id:
                self._answered(ticket, found)
        raise CallRefused(overrun(self._limits), "the same question too often in one turn")

    async def _look_up(self, ticket: PendingCall) -> None:
        found = await self._store.known(ticket.call, keys=ticket.keys)
        if found is not None:
            self._answered(ticket, found)

    def _answered(self, ticket: PendingCall, found: Admission) -> None:
        """Raise `AlreadyAnswered`, unless this answer may not be given to another call (C-15): then
        the key passes on. Raises `CallRefused` for a key, or an id, of another tool's call.
        """
        if found.tool not in ("", ticket.call.tool):
            same_id = found.call_id == ticket.call.call_id
            raise CallRefused(
                policy.identity_problem(found.tool, same_id=same_id), ANOTHER_TOOLS_CALL
            )
        if found.response is None:
            raise AlreadyAnswered(
                results.pending(replace(ticket.call, call_id=found.call_id or ticket.call.call_id))
            )
        if found.call_id == ticket.call.call_id or idempotency.replayable(found.response):
            raise AlreadyAnswered(found.response, found.turn_id)

    def args_hash(self, ticket: PendingCall) -> str:
        """Hash of the tool and of the arguments, with defaults and clamps, as they would be
        asked about; "" when it would be refused.
        """
        entry = self._registry.snapshot().find(ticket.call.tool)
        if entry is None:
            return ""
        try:
            return confirmation.subject(
                entry.definition,
                replace(ticket.call, args=self.arguments(ticket, entry.definition)),
            )
        except CallRefused:
            return ""

    def arguments(self, ticket: PendingCall, tool: ToolDefinition) -> dict[str, Json]:
        """Defaults, then the clamp, then validation (C-08). Raises `CallRefused`."""
        args, problems = self._registry.check_args(tool, ticket.call.args)
        if not problems:
            ticket.defaulted = tuple(newly_filled(ticket.call.args, args))
            args, clamped = policy.clamp(args, ticket.call.mode, self._limits.voice)
            if clamped:
                ticket.clamped = dict(clamped)
                args, problems = self._registry.check_args(tool, args)
        if error := policy.arguments_problem(problems):
            raise CallRefused(error, "arguments")
        return args
