"""SDK of mini-apps: tools, the context of a call, results. The HTTP side is `appserver.py`."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tools_cache.api.tool import (
    MAX_CACHE_TTL_S,
    MAX_PENDING_TTL_S,
    ExecutionType,
    Json,
    RateLimit,
    SideEffects,
)
from tools_cache.errors import BadDefinition, BadToolName
from tools_cache.names import check_local_name

POLICY_CATEGORIES: Final = ("retrieval", "action", "utility")
"""Used by the edge's policies; calls of `retrieval` tools have a budget per voice turn."""
CATEGORIES: Final = (*POLICY_CATEGORIES, "productivity", "media", "communication", "other")
_WORDS: Final[Mapping[str, Sequence[str]]] = {
    "category": CATEGORIES,
    "sideEffects": tuple(SideEffects),
    "executionType": tuple(ExecutionType),
    "requiresConfirmation": ("never", "always", "policy"),
}
_SECONDS: Final = {"pendingTtlS": MAX_PENDING_TTL_S, "cacheTtlS": MAX_CACHE_TTL_S}


@dataclass(frozen=True, slots=True)
class CallContext:
    """Who calls, when (ISO 8601), and whether the app was started for this call."""

    user_id: str = ""
    timestamp: str = ""
    activated_for_tool: bool = False

    @classmethod
    def from_json(cls, value: Json) -> "CallContext":
        """Read the `context` of a tool call; missing fields stay empty."""
        found: Mapping[str, Json] = value if isinstance(value, dict) else {}
        return cls(
            str(found.get("userId", "")),
            str(found.get("timestamp", "")),
            found.get("activatedForTool") is True,
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """Yielded by a streaming handler to report progress at once; a plain value is held until
    another one follows.
    """

    text: str


Answer = Json | Awaitable[Json] | AsyncIterator[Json]
Handler = Callable[[dict[str, Any], CallContext], Answer]
"""A handler returns a result, awaits one, or yields progress and finally the result. A plain
function runs in a thread.
"""


@dataclass(frozen=True, slots=True)
class AppTool:
    """One tool of an app: its published definition and its code."""

    name: str
    description: str
    input_schema: Mapping[str, Json]
    handler: Handler
    extras: Mapping[str, Json] = field(default_factory=dict)

    def definition(self) -> dict[str, Json]:
        """Return the MCP tool definition with its local name; our policy metadata is next to the
        MCP fields.
        """
        schema = dict(self.input_schema)
        mcp = {"name": self.name, "description": self.description, "inputSchema": schema}
        return {**mcp, **self.extras}


def create_tool(
    name: str,
    description: str,
    input_schema: Mapping[str, Json],
    handler: Handler | None = None,
    *,
    activation_phrases: Sequence[str] = (),
    category: str = "utility",
    side_effects: str = "writes",
    idempotent: bool = False,
    queueable: bool = False,
    queue_ttl_s: float | None = None,
    timeout_s: float | None = None,
    version: str = "1.0.0",
    requires_confirmation: str = "never",
    execution_type: str = ExecutionType.GATEWAY,
    pending_ttl_s: float | None = None,
    cache_ttl_s: float | None = None,
    rate_limit: RateLimit | None = None,
    wearer: Mapping[str, Json] | None = None,
) -> AppTool:
    """Create a tool. Raises `BadToolName` for a colon in the name, `BadDefinition` for any other
    error.

    A tool without `handler` (`execution_type` external or space) is answered later, by submitting
    its result. `wearer`: what the wearer reads of it, `{"name": "the calculator"}` (docs/tools.md).
    """
    if ":" in name:
        raise BadToolName(f'Tool name "{name}" cannot contain colon character')
    check_local_name(name)
    extras: dict[str, Json] = {"version": version, "category": category}
    extras |= {"sideEffects": side_effects, "idempotent": idempotent, "queueable": queueable}
    if requires_confirmation != "never":
        extras["requiresConfirmation"] = requires_confirmation
    if execution_type != ExecutionType.GATEWAY:
        extras["executionType"] = str(execution_type)
    seconds = {
        "queue_ttl_s": queue_ttl_s,
        "timeoutS": timeout_s,
        "pendingTtlS": pending_ttl_s,
        "cacheTtlS": cache_ttl_s,
    }
    extras |= {key: value for key, value in seconds.items() if value is not None}
    if rate_limit is not None:
        extras["rateLimit"] = {"calls": rate_limit.calls, "window": rate_limit.window_s}
    if activation_phrases:
        # MentraOS has neither of the first two
        shown = {} if category in POLICY_CATEGORIES[:2] else {"category": category}
        extras["mentraExtensions"] = {"activationPhrases": list(activation_phrases), **shown}
    if wearer is not None:
        extras["mentraExtensions"] = {**extras.get("mentraExtensions", {}), "wearer": dict(wearer)}
    tool = AppTool(name, description, dict(input_schema), handler or _no_handler, extras)
    if problem := _problem(tool, deferred=handler is None):
        raise BadDefinition(f"{name}: {problem}")
    return tool


def _problem(tool: AppTool, *, deferred: bool) -> str:
    """Return what is wrong with a tool, or "". The cloud validates with pydantic, which would delay
    the start of an app while a caller waits.
    """
    extras = tool.extras
    if tool.input_schema.get("type") != "object":
        return 'inputSchema.type: must be "object", the arguments are always an object'
    for key, allowed in _WORDS.items():
        if key in extras and extras[key] not in allowed:
            return f"{key}: {extras[key]!r} is none of {', '.join(allowed)}"
    for key, most in _SECONDS.items():
        if key in extras and not 1 <= extras[key] <= most:
            return f"{key}: must be 1 to {most:.0f} seconds"
    if "cacheTtlS" in extras and extras["sideEffects"] == SideEffects.WRITES:
        return "cacheTtlS: only a tool that writes nothing may be answered from a cache"
    later = extras.get("executionType") in (ExecutionType.EXTERNAL, ExecutionType.SPACE)
    if deferred and not later:
        return "handler: only a tool of executionType external or space may be without one"
    return ""


def _no_handler(_args: dict[str, Any], _context: CallContext) -> Json:
    message = "This tool is answered later; its result is submitted to the cloud"
    return failure("UNSUPPORTED", message)


def params(required: Sequence[str] = (), **properties: Mapping[str, Json]) -> dict[str, Json]:
    """Return an input schema: `params(["text"], text={"type": "string"})`; unknown arguments are
    refused.
    """
    schema: dict[str, Json] = {"type": "object", "properties": dict(properties)}
    schema["additionalProperties"] = False
    return {**schema, "required": list(required)} if required else schema


def string(description: str, most: int, *, least: int = 1) -> dict[str, Json]:
    """Return the schema of a text of `least` to `most` characters."""
    bounds = {"minLength": least, "maxLength": most}
    return {"type": "string", **bounds, "description": description}


def integer(description: str, least: int, most: int, *, default: int) -> dict[str, Json]:
    """Return the schema of a whole number."""
    bounds = {"minimum": least, "maximum": most, "default": default}
    return {"type": "integer", **bounds, "description": description}


# ------------------------------------------------------------------ results of a handler


def reply(
    data: Json,
    *,
    show: str | None = None,
    title: str | None = None,
    say: str | None = None,
    silent: bool = False,
    follow_ups: Sequence[str] = (),
) -> dict[str, Json]:
    """Return a result with its rendering: `show` for the lens (under `title` if given), `say` for
    speech.
    """
    render: dict[str, Json] = {}
    if show is not None and title is not None:
        render["display"] = {"layout": "reference_card", "title": title, "text": show}
    elif show is not None:
        render["display"] = {"layout": "text_wall", "text": show}
    if say is not None or silent:
        spoken: dict[str, Json] = {} if say is None else {"text": say}
        render["audio"] = {**spoken, "suppressVoiceResponse": True} if silent else spoken
    if follow_ups:
        render["suggestedFollowUps"] = list(follow_ups)
    return {"data": data, "render": render} if render else {"data": data}


def failure(
    code: str,
    message: str,
    *,
    retryable: bool = False,
    partial: bool = False,
    retry_after_ms: int | None = None,
) -> dict[str, Json]:
    """Return the result of a tool that failed, in the wire format. `partial`: something
    was done.
    """
    error: dict[str, Json] = {"code": code, "message": message, "retryable": retryable}
    if partial:
        error["partialSideEffects"] = True
    if retry_after_ms is not None:
        error["retryAfterMs"] = retry_after_ms
    return {"success": False, "error": error}
