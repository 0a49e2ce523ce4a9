"""Admission: may this call run, checked in one fixed order; and was it answered before?"""

import logging
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from edge.calls.call import Known, Refused
from edge.calls.dependencies import CallLimits, CallRules
from edge.core import idempotency, permissions, policy
from edge.core.rate_limit import RateLimits
from edge.core.session import TurnLedger
from edge.core.tools.snapshot import Entry, Snapshot
from edge.ports import RegistryPort
from edge.runtime.clock import Clock
from edge.storage.calls import Admission as StoredCall, CallStore
from tools_cache.api.tool import (
    CallOrigin,
    ErrorCode,
    Json,
    ToolCall,
    ToolDefinition,
    ToolError,
    Turn,
)
from tools_cache.defaults import newly_filled

_log: Final = logging.getLogger(__name__)
_PINNED: Final = 64
"""Turns whose snapshot is kept; a turn has ended long before that many others began."""
ANOTHER_TOOLS_CALL: Final = "an id or key of another tool's call"


class Verdict(Struct, frozen=True):
    """What admission found out. The call may run when `end` is None, else that is its end.

    `call` has its arguments filled in, `keys` are those it goes by, `tool` is that of its turn's
    registry; None while it is not known. `looked_up`: the disk has no such call, because it was
    asked or because nobody can have made one.
    """

    call: ToolCall
    keys: tuple[str, ...]
    tool: ToolDefinition | None = None
    registry_version: str = ""
    clamped: Mapping[str, Json] = field(default_factory=dict)
    defaulted: tuple[str, ...] = ()
    end: Refused | Known | None = None
    looked_up: bool = False


class Arguments(Struct, frozen=True):
    """Arguments with defaults and clamps, and why they cannot be used."""

    values: dict[str, Json]
    clamped: Mapping[str, Json] = field(default_factory=dict)
    defaulted: tuple[str, ...] = ()
    problem: ToolError | None = None


def overrun(limits: CallLimits, text: str = "Too many calls at once") -> ToolError:
    """Return the error that says to come again in a moment."""
    wait_ms = round(limits.retry_after_s * 1000)
    return ToolError.of(
        ErrorCode.RATE_LIMIT, text, retry_after_ms=wait_ms, suggestion="Try again in a moment"
    )


def fill_arguments(
    registry: RegistryPort, limits: CallLimits, call: ToolCall, tool: ToolDefinition
) -> Arguments:
    """Fill defaults, then clamp, then validate."""
    values, problems = registry.check_args(tool, call.args)
    if problems:
        return Arguments(values, problem=policy.arguments_problem(problems))
    defaulted = tuple(newly_filled(call.args, values))
    values, clamped = policy.clamp(values, call.mode, limits.voice)
    if clamped:
        values, problems = registry.check_args(tool, values)
    return Arguments(values, dict(clamped), defaulted, policy.arguments_problem(problems))


class Admission:
    """One per daemon: it counts what turns and tools have used up."""

    def __init__(
        self, registry: RegistryPort, store: CallStore, clock: Clock, rules: CallRules
    ) -> None:
        self._registry = registry
        self._store = store
        self._clock = clock
        self._rules = rules
        self._pinned: OrderedDict[Turn, Snapshot] = OrderedDict()
        self._turns = TurnLedger()
        self._used = RateLimits()

    async def find(
        self, call: ToolCall, keys: tuple[str, ...], *, looked_up: bool = False
    ) -> Verdict:
        """Check in this order: known cloud call, the tool and its owner's choices; then `check`."""
        verdict = Verdict(call, keys, looked_up=looked_up)
        if call.origin is CallOrigin.CLOUD:
            # Whatever became of its tool meanwhile: one call of the cloud, one answer.
            again = await self._store.known(call, keys=keys)
            if (end := _own_answer(call, again)) is not None:
                return replace(verdict, end=end)
            verdict = replace(verdict, looked_up=again is None)
        if not self._rules.policy.enabled:
            return replace(verdict, end=Refused(policy.switched_off(), "switched off"))
        if self._registry.snapshot().find(call.tool) is None:
            await self._registry.catch_up()  # perhaps of an app that was added a moment ago
        return self._find_tool(verdict)

    async def check(self, verdict: Verdict) -> Verdict:
        """Check in this order: answered before, mode, budgets, arguments, rates."""
        if verdict.end is None and not verdict.looked_up:
            verdict = await self._find_known(verdict)
        if verdict.end is None and verdict.tool is not None:
            verdict = self._check_use(verdict, verdict.tool)
        return verdict

    def as_asked(self, call: ToolCall) -> tuple[ToolDefinition, ToolCall] | None:
        """Return the tool, and the call with defaults and clamps, as they would be asked about;
        None when it would be refused.
        """
        entry = self._registry.snapshot().find(call.tool)
        if entry is None:
            return None
        arguments = fill_arguments(self._registry, self._rules.limits, call, entry.definition)
        if arguments.problem is not None:
            return None
        return entry.definition, replace(call, args=arguments.values)

    # ------------------------------------------------------------------ the tool

    def _find_tool(self, verdict: Verdict) -> Verdict:
        """The tool as this turn's registry has it, hidden or not as the glasses are now."""
        call, now = verdict.call, self._registry.snapshot()
        if self._rules.policy.choice is not None and call.turn_id:
            self._rules.policy.choice.turn(call.turn_id)
        snapshot = self._pin(call.turn, now)
        end: Refused | None = None
        if snapshot.version != now.version:
            _log.warning(
                "turn %s continues with registry %s; %s is active now",
                call.turn_id[:64],
                snapshot.version,
                now.version,
            )
            if self._rules.policy.strict_registry:
                end = Refused(policy.registry_changed(), "registry changed within a turn")
        entry = None if end is not None else snapshot.find(call.tool)
        tool = None if entry is None else entry.definition
        if entry is not None:
            end = self._tool_problem(call, entry.definition, now.find(call.tool) or entry)
        elif end is None:
            error = policy.unknown(call.tool, self._open_to(call, snapshot))
            end = Refused(error, "unknown tool")
        return replace(verdict, tool=tool, registry_version=snapshot.version, end=end)

    def _pin(self, turn: Turn | None, now: Snapshot) -> Snapshot:
        """Return the registry that this turn began with."""
        if turn is None:
            return now
        snapshot = self._pinned.setdefault(turn, now)
        self._pinned.move_to_end(turn)
        while len(self._pinned) > _PINNED:
            self._pinned.popitem(last=False)
        return snapshot

    def _tool_problem(self, call: ToolCall, tool: ToolDefinition, now: Entry) -> Refused | None:
        """Return why this tool is not open to this call; `now` says whether it is hidden."""
        rules = self._rules.policy
        if error := policy.hidden(call.tool, now.hidden, now.missing, stale=now.stale):
            return Refused(error, error.code.value.lower())
        if error := permissions.refusal(call, tool, rules.cloud_may):
            return Refused(error, "scope" if call.scope is not None else "not open to the cloud")
        if rules.choice is not None and (off := rules.choice.refusal(call, tool)) is not None:
            return Refused(off, off.code.value.lower())
        return None

    def _open_to(self, call: ToolCall, snapshot: Snapshot) -> Iterator[str]:
        """The tools that this caller may call: no other is named to it."""
        for entry in snapshot.entries():
            tool, rules = entry.definition, self._rules.policy
            off = rules.choice is not None and rules.choice.refusal(call, tool) is not None
            allowed = permissions.refusal(call, tool, rules.cloud_may) is None
            if allowed and not entry.hidden and not off:
                yield tool.name

    # ------------------------------------------------------------------ its use

    def _check_use(self, verdict: Verdict, tool: ToolDefinition) -> Verdict:
        """Mode, budgets, arguments, rates: in this order."""
        call = verdict.call
        if error := policy.mode_problem(tool, call.mode):
            return replace(verdict, end=Refused(error, "mode"))
        if error := self._spend_budget(call, tool):
            return replace(verdict, end=Refused(error, "budget"))
        arguments = fill_arguments(self._registry, self._rules.limits, call, tool)
        end: Refused | None = None
        if arguments.problem is not None:
            end = Refused(arguments.problem, "arguments")
        elif error := self._rate_problem(call, tool):
            end = Refused(error, "rate")
        return replace(
            verdict,
            call=call if arguments.problem is not None else replace(call, args=arguments.values),
            clamped=arguments.clamped,
            defaulted=arguments.defaulted,
            end=end,
        )

    def _spend_budget(self, call: ToolCall, tool: ToolDefinition) -> ToolError | None:
        spent = self._turns.spent(call.turn)
        error = policy.budget_problem(tool, call.mode, spent, self._rules.limits.voice)
        if error is None:
            self._turns.spend(call.turn, retrieval=tool.category == policy.RETRIEVAL)
        return error

    def _rate_problem(self, call: ToolCall, tool: ToolDefinition) -> ToolError | None:
        now, rules = self._clock.boot(), self._rules.policy
        of_user = None if rules.choice is None else rules.choice.rate(call.user_id, tool.name)
        for name, limit in (
            ("own", tool.rate_limit),
            ("owner", rules.rates.get(tool.name)),
            ("user", of_user),
        ):
            if limit is None:
                continue
            wait_s = self._used.take(call.user_id, f"{name} {tool.name}", limit, now)
            if error := policy.rate_problem(tool, wait_s):
                return error
        return None

    # ------------------------------------------------------------------ answered before?

    async def _find_known(self, verdict: Verdict) -> Verdict:
        """Look for a stored answer. A call without a stable id whose like was answered in this
        turn, and that is no replay, is meant as a repetition: its key gets the next number.
        """
        call, keys = verdict.call, verdict.keys
        if not keys or not idempotency.may_repeat(call, keys[0]):
            found = await self._store.known(call, keys=keys)
            return verdict if found is None else replace(verdict, end=_known(call, found))
        for number in range(idempotency.REPEATS):
            numbered = (idempotency.repetition(keys[0], number), *keys[1:])
            verdict = replace(verdict, keys=numbered)
            found = await self._store.known(call, keys=numbered)
            if found is None:
                return verdict
            same = found.response is None or found.call_id == call.call_id
            if same and (end := _known(call, found)) is not None:
                return replace(verdict, end=end)
        error = overrun(self._rules.limits)
        return replace(verdict, end=Refused(error, "the same question too often in one turn"))


def _own_answer(call: ToolCall, again: StoredCall | None) -> Known | Refused | None:
    """Return what is on disk under the id of the same call of the cloud, if it is that call."""
    if again is None or (again.call_id, again.origin) != (call.call_id, CallOrigin.CLOUD):
        return None
    return _known(call, again)


def _known(call: ToolCall, found: StoredCall) -> Known | Refused | None:
    """Return what is on disk under this id or key; None when that answer may not be given to
    another call, which then takes over the key.
    """
    if found.tool not in ("", call.tool):
        same_id = found.call_id == call.call_id
        return Refused(policy.identity_problem(found.tool, same_id=same_id), ANOTHER_TOOLS_CALL)
    if found.response is None or found.call_id == call.call_id:
        return Known.of(call, found)
    return Known.of(call, found) if idempotency.replayable(found.response) else None
