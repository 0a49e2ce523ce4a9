"""The words of a mini-app: its tools, what a handler is told, what it may give back.

Refuses to know HTTP, processes and the cloud: `appserver.py` carries these words.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tools_cache.errors import BadDefinition, BadToolName
from tools_cache.names import check_local_name
from tools_cache.tool import Json

CATEGORIES: Final = ("productivity", "media", "communication", "utility", "other")


@dataclass(frozen=True, slots=True)
class CallContext:
    """Who calls, when (ISO 8601), and whether the app was started for this very call."""

    user_id: str = ""
    timestamp: str = ""
    activated_for_tool: bool = False

    @classmethod
    def from_json(cls, value: Json) -> "CallContext":
        """Read the `context` of a tool call; whatever is missing stays empty."""
        found: Mapping[str, Json] = value if isinstance(value, dict) else {}
        return cls(str(found.get("userId", "")), str(found.get("timestamp", "")), found.get("activatedForTool") is True)


@dataclass(frozen=True, slots=True)
class Progress:
    """Yielded by a streaming handler to be told at once; a plain value waits until it is known not to be the last."""

    text: str


Answer = Json | Awaitable[Json] | AsyncIterator[Json]
Handler = Callable[[dict[str, Any], CallContext], Answer]
"""Gives a result, awaits one, or yields progress and at last the result. A plain function runs in a thread."""


@dataclass(frozen=True, slots=True)
class AppTool:
    """One tool of an app: the definition as it is published and the code behind it."""

    name: str
    description: str
    input_schema: Mapping[str, Json]
    handler: Handler
    extras: Mapping[str, Json] = field(default_factory=dict)

    def definition(self) -> dict[str, Json]:
        """The MCP tool definition, local name; our policy metadata stands beside the MCP fields."""
        mcp = {"name": self.name, "description": self.description, "inputSchema": dict(self.input_schema)}
        return {**mcp, **self.extras}


def create_tool(
    name: str, description: str, input_schema: Mapping[str, Json], handler: Handler, *,
    activation_phrases: Sequence[str] = (), category: str = "utility", side_effects: str = "writes",
    idempotent: bool = False, queueable: bool = False, queue_ttl_s: float | None = None,
    timeout_s: float | None = None, version: str = "1.0.0",
) -> AppTool:  # fmt: skip
    """Make a tool. Raises `BadToolName` for a colon in the name, `BadDefinition` for anything else that is wrong."""
    if ":" in name:
        raise BadToolName(f'Tool name "{name}" cannot contain colon character')
    check_local_name(name)
    if input_schema.get("type") != "object":
        raise BadDefinition(f'{name}: inputSchema.type: must be "object", the arguments are always an object')
    if category not in CATEGORIES:
        raise BadDefinition(f"{name}: category: {category!r} is none of {', '.join(CATEGORIES)}")
    extras: dict[str, Json] = {"version": version, "category": category, "sideEffects": side_effects}
    extras |= {"idempotent": idempotent, "queueable": queueable}
    if queue_ttl_s is not None:
        extras["queue_ttl_s"] = queue_ttl_s
    if timeout_s is not None:
        extras["timeoutS"] = timeout_s
    if activation_phrases:
        extras["mentraExtensions"] = {"activationPhrases": list(activation_phrases), "category": category}
    return AppTool(name, description, dict(input_schema), handler, extras)


def params(required: Sequence[str] = (), **properties: Mapping[str, Json]) -> dict[str, Json]:
    """Write an input schema shortly: `params(["text"], text={"type": "string"})`; unknown arguments are refused."""
    schema: dict[str, Json] = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


# ------------------------------------------------------------------ what a handler gives back


def reply(
    data: Json, *, show: str | None = None, title: str | None = None, say: str | None = None,
    silent: bool = False, follow_ups: Sequence[str] = (),
) -> dict[str, Json]:  # fmt: skip
    """A result with its rendering: `show` for the lens (under `title` if given), `say` for the ear."""
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


def failure(code: str, message: str, *, retryable: bool = False) -> dict[str, Json]:
    """The result of a tool that could not do its work, in the wire's own shape."""
    return {"success": False, "error": {"code": code, "message": message, "retryable": retryable}}
