"""Confirmations: which calls need one, what a token is valid for, and the errors.

A token is 128 random bits, bound to tool, canonical arguments, session and user; only its SHA-256
is stored, and no handler sees either.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from edge.core import call_summary, idempotency, policy
from edge.core.grants import Consumption, Grant, Granted
from tools_cache.api.tool import (
    ErrorCode,
    Json,
    Named,
    ToolCall,
    ToolDefinition,
    ToolError,
    ToolResponse,
)

TOKEN_BYTES: Final = 16
LIFE_S: Final = 300.0
"""A confirmation expires after five minutes."""
HOW: Final = "Confirm on the glasses, or run glassd confirm in a terminal"


def token_hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def subject(tool: ToolDefinition, call: ToolCall, names: Mapping[str, Named] | None = None) -> str:
    """Return the hash of what is confirmed: the tool's definition, the arguments, the answers sent
    with them, and what stood in the question for arguments. A yes is valid only while it stays the
    same.
    """
    about: dict[str, Json] = {"tool": definition_digest(tool), "args": dict(call.args)}
    if call.answers:
        about["input"] = call.answers
    if names:
        about["names"] = {argument: list(named) for argument, named in names.items()}
    return idempotency.digest(about)


def too_long() -> ToolError:
    """Return the error for arguments that are too long to be shown completely."""
    limit = f"{call_summary.MAX_CHARACTERS} characters, {call_summary.MAX_DEPTH} levels"
    return ToolError.of(
        ErrorCode.INVALID_ARGUMENTS,
        "These arguments are too long to be shown to the person who "
        f"must confirm them (at most {limit})",
        suggestion="Split the call into smaller ones",
    )


def changed(name: str) -> ToolError:
    return ToolError.of(
        ErrorCode.MISMATCH,
        f"{name} changed after its confirmation was requested, so nothing was done",
        suggestion="Call it again",
    )


def needed_now(name: str) -> ToolError:
    return ToolError.of(
        ErrorCode.MISMATCH,
        f"{name} needs a confirmation now, which nobody was asked for, so nothing was done",
        suggestion="Call it again",
    )


def required(
    call: ToolCall,
    tool: ToolDefinition,
    lines: tuple[str, ...],
    *,
    token: str,
    left_s: float,
    wall: float,
) -> ToolError:
    """Return CONFIRMATION_REQUIRED with its request: `expires` in epoch milliseconds, `lines` as
    the wearer is asked.
    """
    preview = policy.preview(tool, call.args)
    request: dict[str, Json] = {
        "token": token,
        "expires": round((wall + left_s) * 1000),
        "tool": call.tool,
        "args": dict(call.args),
        "preview": preview,
        "origin": call_summary.origin(tool),
        "particulars": list(lines),
    }
    return ToolError.of(
        ErrorCode.CONFIRMATION_REQUIRED,
        f"{preview}: this needs a confirmation first",
        confirmation_request=request,
        suggestion=HOW,
    )


def unasked(response: ToolResponse, reason: str) -> ToolResponse:
    """Add to CONFIRMATION_REQUIRED why the wearer cannot be asked: no answer from the glasses will
    come.
    """
    if response.error is None:
        return response
    message = f"{response.error.message}; the wearer cannot be asked: {reason}"
    suggestion = "Run glassd confirm in a terminal"
    return replace(response, error=replace(response.error, message=message, suggestion=suggestion))


def without_token(response: ToolResponse) -> ToolResponse:
    """Remove the token for the caller: a caller may not confirm its own call."""
    error = response.error
    if error is None or error.confirmation_request is None:
        return response
    untold = {key: value for key, value in error.confirmation_request.items() if key != "token"}
    return replace(response, error=replace(error, confirmation_request=untold))


WEARER: Final = "The wearer"
"""Who answers on the glasses."""


def denied(tool: ToolDefinition, by: str) -> ToolError:
    who = "You said no." if by == WEARER else "Answered no elsewhere."
    return ToolError.of(
        ErrorCode.DENIED,
        f"{by} said no to {_name(tool)}",
        suggestion="Ask again if that was a mistake",
        for_wearer=f"{who} Nothing was changed.",
    )


def never_allowed(tool: ToolDefinition) -> ToolError:
    """Return the error for a tool the wearer chose “never” for; the suggestion revokes that."""
    return ToolError.of(
        ErrorCode.DENIED,
        f"{_name(tool)} is never allowed: the wearer decided so earlier",
        suggestion=f"glassd grants --revoke {tool.name}",
    )


def not_understood(reason: str) -> ToolError:
    """Return the error for words that were not heard well enough, when the wearer cannot be asked
    what was said.
    """
    return ToolError.of(
        ErrorCode.SESSION_INACTIVE,
        f"The words were not understood well enough, and the wearer cannot be asked: {reason}",
        suggestion="Say it again",
        for_wearer="That was not clear. Please say it again.",
    )


def expired(tool: ToolDefinition | None) -> ToolError:
    what = _name(tool) if tool is not None else "This call"
    return ToolError.of(
        ErrorCode.EXPIRED, f"{what}: nobody confirmed it in time", suggestion="Call it again"
    )


_WORDS: Final[Mapping[Consumption, tuple[ErrorCode, str, str]]] = {
    Consumption.USED: (
        ErrorCode.USED,
        "This confirmation has already been used",
        "Look for the call: glassd calls",
    ),
    Consumption.EXPIRED: (
        ErrorCode.EXPIRED,
        "This confirmation is unknown or has expired",
        "Call the tool again",
    ),
    Consumption.MISMATCH: (
        ErrorCode.MISMATCH,
        "This confirmation was given for another call",
        "Send the same tool and arguments, or call without the token",
    ),
}


def rejected(outcome: Consumption) -> ToolError:
    """Return why a token was refused."""
    code, text, advice = _WORDS[outcome]
    return ToolError.of(code, text, suggestion=advice)


def standing(tool: ToolDefinition, granted: Granted) -> Grant | None:
    """Return what is decided without asking: ALWAYS, NEVER, or None (ask).

    NEVER holds for the name, so that no change of a tool removes it; ALWAYS only for the definition
    it was given for.
    """
    if granted.grant is Grant.NEVER:
        return Grant.NEVER
    if not policy.needs_confirmation(tool):
        return Grant.ALWAYS
    return Grant.ALWAYS if granted.grant is Grant.ALWAYS and not ended(tool, granted) else None


def ended(tool: ToolDefinition, granted: Granted) -> str:
    """Return why an “always” is no longer valid; "" while it is."""
    if not granted.definition:
        return "given before grants were bound to what the tool is"
    return "" if granted.definition == definition_digest(tool) else "the tool has changed since"


def definition_digest(tool: ToolDefinition) -> str:
    """Return the SHA-256 of what the wearer agrees to: definition, how it is run, origin."""
    return idempotency.digest(
        _plain(
            {
                "name": tool.name,
                "description": tool.description,
                "inputSchema": tool.input_schema,
                "origin": call_summary.origin(tool),
                "version": tool.version,
                "executionType": tool.execution_type.value,
                "endpoint": tool.endpoint,
                "sideEffects": tool.side_effects.value,
                "requiresConfirmation": tool.requires_confirmation,
                "raw": tool.raw,
            }
        )
    )


def _plain(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def _name(tool: ToolDefinition) -> str:
    return tool.name.partition(":")[2].replace("_", " ")
