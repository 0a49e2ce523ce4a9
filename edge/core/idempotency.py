"""When two calls are the same: keys, and which stored answers may be returned again.

MCP request ids are not keys, and distinct stable ids are distinct calls.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Final

import rfc8785

from tools_cache.api.tool import ErrorType, Json, ToolCall, ToolResponse

_NEVER_REPLAYED: Final = frozenset(
    {
        ErrorType.VALIDATION,
        ErrorType.BUDGET_EXCEEDED,
        ErrorType.MODE_RESTRICTED,
        ErrorType.CONFIRMATION_REQUIRED,
        ErrorType.CONFIRMATION_EXPIRED,
        ErrorType.TRANSIENT,
        ErrorType.RATE_LIMIT,
    }
)
_MIN_PROVIDER_ID: Final = 9
"""A provider's id of 8 characters or fewer is a counter, not an identity."""
_WIRE_CHARS: Final = 255
REPEATS: Final = 100
"""Intended repetitions of one question in one turn; a session stores no more keys than this."""


def canonical(value: Json) -> bytes:
    """Return the RFC 8785 form. Numbers beyond ±2^53 and invalid text have none and are written as
    Python's JSON does: equal values still give equal bytes.
    """
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeError, RecursionError):
        return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str).encode()


def digest(value: Json) -> str:
    """Return the SHA-256 of the canonical form, in hex."""
    return hashlib.sha256(canonical(value)).hexdigest()


def args_digest(args: Mapping[str, Json]) -> str:
    """Return 16 hex characters that identify arguments in an audit line without showing them."""
    return digest(dict(args))[:16]


# ------------------------------------------------------------------ keys


def provider_key(provider_id: str) -> str | None:
    """Return a key from a provider's id that is stable over retries; None if it looks temporary."""
    if len(provider_id) < _MIN_PROVIDER_ID or "temp" in provider_id:
        return None
    return f"provider:{provider_id}"


def hash_key(
    epoch: str, turn_id: str, tool: str, args: Mapping[str, Json], ordinal: int | None = None
) -> str:
    """Return a key for callers without stable ids: the same question in the same turn; `turn_id`
    survives reconnects. `ordinal` separates two intended, equal calls of one message.
    """
    asked: dict[str, Json] = {"tool": tool, "args": dict(args), "turn": turn_id}
    if ordinal is not None:
        asked["ordinal"] = ordinal
    return f"hash:{epoch}:{turn_id}:{digest(asked)[:16]}"


def keys_of(call: ToolCall, epoch: str) -> tuple[str, ...]:
    """Return all keys of a call, the deciding one first: the caller's own, the provider's stable
    id, the hash within its turn. All are stored, to recognise a later replay in another form.
    """
    found = [f"key:{call.idempotency_key}"] if call.idempotency_key else []
    if call.provider_call_id and (stable := provider_key(call.provider_call_id)):
        found.append(stable)
    if call.turn_id:
        found.append(hash_key(epoch, call.turn_id, call.tool, call.args, call.ordinal))
    if call.answers:  # the same call with answers to its tool is another call
        found = [f"{key}+{digest(call.answers)[:16]}" for key in found]
    return tuple(found)


def may_repeat(call: ToolCall, key: str) -> bool:
    """Return whether an equal, finished call under this key may have been another, intended one:
    only for a hash without an ordinal, in a stream that is not a replay.
    """
    return key.startswith("hash:") and call.ordinal is None and not call.replayed


def repetition(key: str, number: int) -> str:
    """Return the key of the `number`-th intended repetition of a question (0: the key itself)."""
    return key if number == 0 else f"{key}#{number}"


def on_the_wire(key: str) -> str:
    """Return the key in a short, printable form for MQTT: itself or its digest."""
    if len(key) <= _WIRE_CHARS and key.isprintable():
        return key
    return f"sha256:{hashlib.sha256(key.encode(errors='replace')).hexdigest()}"


# ------------------------------------------------------------------ answers given again


def replayable(response: ToolResponse) -> bool:
    """Return whether this answer may be returned to a later call with the same key: successes,
    final failures, and writes that must not be repeated (`idempotencyRequired`).
    """
    error = response.error
    return (
        error is None
        or error.idempotency_required
        or not (error.retryable or error.type in _NEVER_REPLAYED)
    )


def as_replay(stored: ToolResponse, original_turn: str = "") -> ToolResponse:
    """Mark a stored answer as returned again."""
    return stored.with_meta(_idempotent_cache_hit=True, _original_turn=original_turn or None)
