"""Checks of a call: pure functions that return an error, or None.

The order: exists, stored answer, mode, total budget, retrieval budget, arguments, confirmation.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from edge.core import call_summary
from edge.core.session import Spent
from tools_cache.api.tool import ErrorCode, Json, Mode, ToolDefinition, ToolError
from tools_cache.errors import BadToolName
from tools_cache.names import parse
from tools_cache.nearest import did_you_mean

RETRIEVAL: Final = "retrieval"
"""The category whose calls have their own budget."""
SHOWN_PROBLEMS: Final = 8
"""Problems listed in a message; its details have all of them."""


class VoiceBudget(NamedTuple):
    """Limits of one spoken turn. Text mode has none."""

    calls: int = 3
    retrievals: int = 2
    top_k: int = 3


def name_problem(name: object) -> ToolError | None:
    """Check that a call names a tool, as `package:tool`."""
    if not isinstance(name, str) or not name.strip():
        return ToolError.of(ErrorCode.INVALID_REQUEST, "Missing or invalid tool name")
    try:
        parse(name)
    except BadToolName as e:
        return ToolError.of(ErrorCode.INVALID_TOOL_NAME, str(e))
    return None


def switched_off() -> ToolError:
    """Return the error for tools that the owner switched off altogether."""
    return ToolError.of(
        ErrorCode.DENIED,
        "Tools are switched off on this device",
        suggestion="Set policy.tools_enabled = true",
    )


def quiet(left_s: float) -> ToolError:
    """Return the error for a quiet time; nothing is shown on the lens, on purpose."""
    return ToolError.of(
        ErrorCode.SESSION_INACTIVE,
        f"Quiet for another {max(1, math.ceil(left_s))} s",
        suggestion="glassd call voice:start",
    )


def rate_problem(tool: ToolDefinition, wait_s: float) -> ToolError | None:
    """Return the error for a tool that was called too often just now."""
    if wait_s <= 0:
        return None
    wait_ms = max(1, math.ceil(wait_s * 1000))
    return ToolError.of(
        ErrorCode.RATE_LIMIT,
        f"{tool.name} is called too often",
        retry_after_ms=wait_ms,
        suggestion=f"Try again in {max(1, math.ceil(wait_s))} s",
    )


def out_of_scope(name: str) -> ToolError:
    """Return the error for a tool that the caller's scope leaves out."""
    return ToolError.of(
        ErrorCode.DENIED,
        f"Tool {name} is not in this caller's scope",
        suggestion="Mention its server, or allow it: scope.allowedMcpServers",
    )


def unknown(name: str, known: Iterable[str] = ()) -> ToolError:
    """Return the error for an unknown tool. `known`: the tools that this caller may be shown."""
    near = did_you_mean(name, known)
    suggestion = f"{near} (all of them: glassd tools --all)" if near else "glassd tools --all"
    return ToolError.of(ErrorCode.TOOL_NOT_FOUND, f"Tool {name} not found", suggestion=suggestion)


def hidden(name: str, reason: str, missing: Sequence[str], *, stale: bool) -> ToolError | None:
    """Return the error for a hidden tool, with the reason; missing hardware is named."""
    if missing:
        rest = " (as last known; the glasses are away)" if stale else ""
        return ToolError.of(
            ErrorCode.HARDWARE_MISSING,
            f"{name} {reason or 'needs ' + ', '.join(missing)}{rest}",
            details={"missing": list(missing)},
            suggestion="Connect glasses that have it",
        )
    if not reason:
        return None
    code = ErrorCode.USER_DISABLED if "disabled" in reason.lower() else ErrorCode.TOOL_UNAVAILABLE
    return ToolError.of(code, f"Tool {name} is not active: {reason}", details={"reason": reason})


def mode_problem(tool: ToolDefinition, mode: Mode) -> ToolError | None:
    """Return the error for a tool that is not for this mode."""
    if mode in tool.allowed_modes:
        return None
    advice = "Switch to text mode to use this tool" if mode is Mode.VOICE else None
    return ToolError.of(
        ErrorCode.MODE_RESTRICTED,
        f"Tool {tool.name} is not available in {mode} mode",
        suggestion=advice,
    )


def not_offered(tool: ToolDefinition, mode: Mode | None) -> str:
    """Return why a caller of this mode is not offered a tool; "" if it is, or has no mode yet."""
    return "" if mode is None or mode in tool.allowed_modes else f"not for {mode} mode"


def registry_changed() -> ToolError:
    """Return the error for a changed registry; development only, production pins it for a turn."""
    return ToolError.of(ErrorCode.INTERNAL, "Registry version mismatch detected - restart server")


def identity_problem(other: str, *, same_id: bool) -> ToolError:
    """Return the error for a call id (`same_id`) or an idempotency key of another tool's call."""
    name, short = ("call id", "id") if same_id else ("idempotency key", "key")
    return ToolError.of(
        ErrorCode.INVALID_REQUEST,
        f"This {name} belongs to a call of {other}",
        suggestion=f"Use a separate {short} for each call",
    )


def session_mode_problem(session: str, mode: str) -> ToolError:
    """Return the error for a call in another mode than its session's."""
    return ToolError.of(
        ErrorCode.INVALID_REQUEST,
        f"Session {session[:64]} is a {mode} session; its mode never changes",
        suggestion=f"Call in {mode} mode, or use another session",
    )


def budget_problem(
    tool: ToolDefinition, mode: Mode, spent: Spent, budget: VoiceBudget
) -> ToolError | None:
    """Check the limits of one spoken turn: the total first, then retrievals."""
    if mode is not Mode.VOICE:
        return None
    advice = "A new turn has a new budget"
    if spent.calls >= budget.calls:
        text = f"Voice mode tool call budget exceeded (max {budget.calls} per turn)"
        return ToolError.of(ErrorCode.BUDGET_EXCEEDED, text, suggestion=advice)
    if tool.category == RETRIEVAL and spent.retrievals >= budget.retrievals:
        text = f"Voice mode retrieval budget exceeded (max {budget.retrievals} per turn)"
        return ToolError.of(ErrorCode.BUDGET_EXCEEDED, text, suggestion=advice)
    return None


def clamp(
    args: Mapping[str, Json], mode: Mode, budget: VoiceBudget
) -> tuple[dict[str, Json], dict[str, list[int]]]:
    """Limit `top_k` in voice mode, defaults included: (arguments, {name: [asked, given]})."""
    asked = args.get("top_k")
    if (
        mode is not Mode.VOICE
        or not isinstance(asked, int)
        or isinstance(asked, bool)
        or asked <= budget.top_k
    ):
        return dict(args), {}
    return {**args, "top_k": budget.top_k}, {"top_k": [asked, budget.top_k]}


def arguments_problem(problems: Sequence[Mapping[str, str]]) -> ToolError | None:
    """Return one error with everything that is wrong with the arguments, each with its path."""
    if not problems:
        return None
    said = [
        f"{p.get('path') or 'root'} {p.get('problem', 'is wrong')}"
        for p in problems[:SHOWN_PROBLEMS]
    ]
    return ToolError.of(
        ErrorCode.INVALID_ARGUMENTS,
        "Invalid parameters: " + ", ".join(said),
        details=[dict(p) for p in problems],
    )


def needs_confirmation(tool: ToolDefinition) -> bool:
    """Return whether it needs one: `always`, or `policy` for a tool that writes."""
    if tool.requires_confirmation == "policy":
        return not tool.read_only
    return tool.requires_confirmation == "always"


def preview(tool: ToolDefinition, args: Mapping[str, Json]) -> str:
    """Return one line that says what would happen; `call_summary.lines` has everything."""
    return call_summary.preview(tool, args)
