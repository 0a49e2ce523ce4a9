"""What a confirmation is: which calls need one, what its token is worth, and the words it ends with.

Refuses to ask anybody and to store anything. A token is 128 random bits, bound to tool, canonical arguments, session and
user (C-14); only its SHA-256 is ever kept, and no handler sees either (S2-98).
"""

import hashlib
from collections.abc import Mapping
from typing import Final

from edge.core import policy
from edge.ports import Grant
from edge.store_ports import Consumption
from tools_cache.tool import ErrorCode, Json, ToolCall, ToolDefinition, ToolError

TOKEN_BYTES: Final = 16
LIFE_S: Final = 300.0
"""S2-95: five minutes."""


def token_hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def required(call: ToolCall, tool: ToolDefinition, *, token: str, left_s: float, wall: float) -> ToolError:
    """CONFIRMATION_REQUIRED with its request (C-22): `expires` in epoch milliseconds."""
    preview = policy.preview(tool, call.args)
    request: dict[str, Json] = {
        "token": token, "expires": round((wall + left_s) * 1000), "tool": call.tool, "args": dict(call.args), "preview": preview,
    }  # fmt: skip
    return ToolError.of(
        ErrorCode.CONFIRMATION_REQUIRED, f"{preview}: this needs a confirmation first", confirmation_request=request,
        suggestion="Confirm on the glasses, or with the token",
    )  # fmt: skip


def denied(tool: ToolDefinition, by: str) -> ToolError:
    return ToolError.of(ErrorCode.DENIED, f"{by} said no to {_name(tool)}", suggestion="Ask again if that was a slip")


def never_allowed(tool: ToolDefinition) -> ToolError:
    """The wearer said never; how to take that back is said with it."""
    return ToolError.of(
        ErrorCode.DENIED, f"{_name(tool)} is never allowed: so it was decided earlier",
        suggestion=f"glassd grants --revoke {tool.name}",
    )  # fmt: skip


def expired(tool: ToolDefinition | None) -> ToolError:
    what = _name(tool) if tool is not None else "This call"
    return ToolError.of(ErrorCode.EXPIRED, f"{what}: nobody confirmed it in time", suggestion="Call it again")


_WORDS: Final[Mapping[Consumption, tuple[ErrorCode, str, str]]] = {
    Consumption.USED: (ErrorCode.USED, "This confirmation was used already", "See what became of it: glassd calls"),
    Consumption.EXPIRED: (ErrorCode.EXPIRED, "This confirmation is unknown, or its time is over", "Call the tool again"),
    Consumption.MISMATCH: (
        ErrorCode.MISMATCH, "This confirmation was given for another call",
        "Send the same tool and arguments, or call without the token",
    ),
}  # fmt: skip


def rejected(outcome: Consumption) -> ToolError:
    """Why a token was not taken, each with its own code."""
    code, text, advice = _WORDS[outcome]
    return ToolError.of(code, text, suggestion=advice)


def standing(tool: ToolDefinition, grant: Grant) -> Grant | None:
    """What is decided without asking: ALWAYS, NEVER, or None (ask)."""
    if grant is Grant.NEVER:
        return grant
    if not policy.needs_confirmation(tool):
        return Grant.ALWAYS
    return None if grant is Grant.ONCE else grant


def _name(tool: ToolDefinition) -> str:
    return tool.name.partition(":")[2].replace("_", " ")
