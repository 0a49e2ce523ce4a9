"""When are two calls one? Keys, and which stored answers may be given again.

Refuses to store anything and to guess: MCP request ids are no keys (C-06), and distinct call ids are distinct calls (C-48).
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Final

from tools_cache.tool import ErrorType, Json, ToolResponse

_NEVER_REPLAYED: Final = frozenset({
    ErrorType.VALIDATION, ErrorType.BUDGET_EXCEEDED, ErrorType.MODE_RESTRICTED, ErrorType.CONFIRMATION_REQUIRED,
    ErrorType.CONFIRMATION_EXPIRED, ErrorType.TRANSIENT, ErrorType.RATE_LIMIT,
})  # fmt: skip
_MIN_PROVIDER_ID: Final = 9
"""A provider's id of 8 characters or fewer is a counter, not an identity (S2-102)."""


def provider_key(provider_id: str) -> str | None:
    """Key from an id that a model provider promises to keep over its retries; None when it looks temporary."""
    if len(provider_id) < _MIN_PROVIDER_ID or "temp" in provider_id:
        return None
    return f"provider:{provider_id}"


def hash_key(session: str, turn_id: str, tool: str, args: Mapping[str, Json]) -> str:
    """Key for callers without stable ids: the same question in the same turn (C-06). `turn_id` survives reconnects."""
    canonical = json.dumps(
        {"tool": tool, "args": args, "turn": turn_id}, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return f"hash:{session}:{turn_id}:{hashlib.sha256(canonical.encode()).hexdigest()[:16]}"


def args_digest(args: Mapping[str, Json]) -> str:
    """Sixteen hex characters that name arguments in an audit line without showing them."""
    canonical = json.dumps(args, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.sha256(canonical.encode(errors="replace")).hexdigest()[:16]


def replayable(response: ToolResponse) -> bool:
    """True when this answer may be given to a later call with the same key (C-15): good ones and final failures."""
    error = response.error
    return error is None or not (error.retryable or error.type in _NEVER_REPLAYED)


def is_same_call(call_id: str, stored: ToolResponse) -> bool:
    """True when the stored answer belongs to this very id, so it is the answer, whatever it says."""
    return stored.meta.get("callId") == call_id


def as_replay(stored: ToolResponse) -> ToolResponse:
    """Mark a stored answer as given again (S2-104): the wearer got nothing new by it."""
    return stored.with_meta(_idempotent_cache_hit=True)
