"""The gate of the pipeline: may this call run, in the order of C-13; and was it answered before?

Refuses to route, to run and to answer: it lets a ticket pass, or raises why not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from edge.core import idempotency, policy, results
from edge.core.session import TurnLedger
from edge.ports import CallStorePort, RegistryPort
from edge.ticket import ATTEMPT_MARK, Ticket
from tools_cache.tool import ErrorCode, Json, ToolCall, ToolDefinition, ToolError, ToolResponse

_ATTEMPTS: Final = 16
"""Times one idempotency key may be tried again after retryable failures."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how many. Seconds; tests shorten them."""

    running: int = 32
    retry_after_s: float = 1.0
    accept_s: float = 2.0
    fallback_s: float = 0.8
    run_s: float = 30.0
    life_s: float = 40.0
    working_s: float = 0.7
    voice_inline_s: float = 4.0
    retry_pause_s: float = 0.25
    voice: policy.VoiceBudget = field(default_factory=policy.VoiceBudget)


class ConfirmPort(Protocol):
    """Asks whoever may allow a call (the wearer, an MCP client)."""

    async def allowed(self, call: ToolCall, tool: ToolDefinition, args: Mapping[str, Json]) -> ToolError | None:
        """None when it is allowed; else the refusal, CONFIRMATION_REQUIRED carrying its request."""


class NobodyConfirms:
    """The default: what needs a yes is refused, and the refusal says what would have been done."""

    async def allowed(self, call: ToolCall, tool: ToolDefinition, args: Mapping[str, Json]) -> ToolError | None:
        request = {"tool": call.tool, "args": dict(args), "preview": policy.preview(tool, args)}
        return ToolError.of(
            ErrorCode.CONFIRMATION_REQUIRED, f"{policy.preview(tool, args)}: this needs a confirmation first",
            confirmation_request=request,
        )  # fmt: skip


class Refused(Exception):
    """This call does not run; `reason` is for the audit line."""

    def __init__(self, error: ToolError, reason: str) -> None:
        super().__init__(reason)
        self.error = error
        self.reason = reason


class Known(Exception):
    """This call was answered before (or is being answered: then it is `pending`)."""

    def __init__(self, response: ToolResponse) -> None:
        super().__init__("known")
        self.response = response


def overrun(limits: Limits, text: str = "Too many calls at once") -> ToolError:
    """Come again in a moment."""
    wait_ms = round(limits.retry_after_s * 1000)
    return ToolError.of(ErrorCode.RATE_LIMIT, text, retry_after_ms=wait_ms, suggestion="Try again in a moment")


class Gate:
    """One per daemon: it counts what turns have used up."""

    def __init__(self, *, registry: RegistryPort, store: CallStorePort, confirm: ConfirmPort, limits: Limits) -> None:
        self._registry = registry
        self._store = store
        self._confirm = confirm
        self._limits = limits
        self._turns = TurnLedger()

    async def check(self, ticket: Ticket) -> None:
        """The checks, in the order of C-13. Raises `Refused` or `Known`."""
        call = ticket.call
        ticket.snapshot = self._registry.snapshot()
        entry = ticket.snapshot.find(call.tool)
        if entry is None:
            raise Refused(policy.unknown(call.tool), "unknown tool")
        tool = ticket.tool = entry.definition
        if error := policy.hidden(call.tool, entry.hidden, entry.missing, stale=entry.stale):
            raise Refused(error, error.code.value.lower())
        await self._known_before(ticket)
        if error := policy.mode_problem(tool, call.mode):
            raise Refused(error, "mode")
        spent = self._turns.spent(call.user_id, call.turn_id)
        if error := policy.budget_problem(tool, call.mode, spent, self._limits.voice):
            raise Refused(error, "budget")
        self._turns.spend(call.user_id, call.turn_id, retrieval=tool.category == policy.RETRIEVAL)
        args = self._arguments(ticket, tool)
        ticket.call = replace(ticket.call, args=args)
        if policy.needs_confirmation(tool) and (error := await self._confirm.allowed(call, tool, args)):
            raise Refused(error, "confirmation")

    async def _known_before(self, ticket: Ticket) -> None:
        """Give a stored answer again; a key whose answer may not be repeated is used anew, as a numbered attempt."""
        call = ticket.call
        for attempt in range(1, _ATTEMPTS + 1):
            key = call.idempotency_key
            if attempt > 1 and key is not None:
                ticket.call = replace(call, idempotency_key=f"{key}{ATTEMPT_MARK}{attempt}")
            found = await self._store.known(ticket.call)
            if found is None:
                return
            stored = found.response
            if stored is None:
                raise Known(results.pending(call))
            if key is None or idempotency.is_same_call(call.call_id, stored) or idempotency.replayable(stored):
                raise Known(stored)
        raise Refused(overrun(self._limits), "the same key failed too often")

    def _arguments(self, ticket: Ticket, tool: ToolDefinition) -> dict[str, Json]:
        """Defaults, then the clamp, then validation (C-08)."""
        args, problems = self._registry.check_args(tool, ticket.call.args)
        if not problems:
            args, clamped = policy.clamp(args, ticket.call.mode, self._limits.voice)
            if clamped:
                ticket.clamped = dict(clamped)
                args, problems = self._registry.check_args(tool, args)
        if error := policy.arguments_problem(problems):
            raise Refused(error, "arguments")
        return args
