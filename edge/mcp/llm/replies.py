"""Whether a message is a reply of this provider: errors, blocked prompts, empty replies and replies
of other providers are named, because an app would take them for a model that has finished.
"""

from collections.abc import Mapping
from typing import Any, Final

from edge.mcp.llm.models import BadMessage
from tools_cache.api.tool import Json

MAX_REASON: Final = 500
"""Characters of a provider's own message."""


class ProviderError(BadMessage):
    """The provider answered with an error, or without anything to read; the text is its own."""


def check_error(message: Json) -> None:
    """Raise `ProviderError` if the message, or its first element, is the body of an error."""
    first = message[0] if isinstance(message, list) and message else message
    error = first.get("error") if isinstance(first, dict) else None
    if error and isinstance(error, str | dict):
        raise ProviderError(f"the provider answered with an error: {_reason(error)}")


def _reason(error: Json) -> str:
    if not isinstance(error, Mapping):
        return str(error)[:MAX_REASON]
    kind = next((error[key] for key in ("type", "status", "code") if error.get(key)), "")
    said = str(error.get("message") or "no reason given")[:MAX_REASON]
    return f"{said} ({kind})" if kind else said


def empty(reason: Any, finished: tuple[str, ...] = (), *, more: Any = "") -> None:
    """Raise `ProviderError` for a reply with nothing in it, unless its `reason` says that the model
    has finished.
    """
    if reason in finished:
        return
    said = ": ".join(str(part)[:MAX_REASON] for part in (reason, more) if part)
    raise ProviderError(
        f"the provider's reply is empty{f', and ended with {said}' if said else ''}"
    )


def foreign(message: Json, wanted: str) -> BadMessage:
    """Return the error for a message that is no reply of the provider `wanted`."""
    owner = _owner(message)
    fix = f"name that provider: glassd llm answer {owner}" if owner else "hand it in as it came"
    found = f"it looks like one of {owner}" if owner else "it is empty or something else"
    return BadMessage(f"this is no reply of {wanted}, {found}; {fix}")


def _owner(message: Json) -> str:
    """Return the provider whose reply this looks like, or ""."""
    found = message[0] if isinstance(message, list) and message else message
    if not isinstance(found, dict):
        return ""
    marks = {
        "openai": found.get("choices") or found.get("tool_calls"),
        "openai-responses": found.get("object") == "response" or "call_id" in found,
        "gemini": any(key in found for key in ("candidates", "parts", "promptFeedback")),
        "anthropic": found.get("type") in ("message", "tool_use") and "id" in found,
    }
    return next((owner for owner, mark in marks.items() if mark), "")
