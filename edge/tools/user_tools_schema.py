"""The JSON Schema of a file in `tools.d`."""

from collections.abc import Mapping
from typing import Any, Final

from tools_cache.api.tool import (
    MAX_CACHE_TTL_S,
    MAX_PENDING_TTL_S,
    MAX_RATE_CALLS,
    MAX_RATE_WINDOW_S,
)

NAME: Final = r"^[a-z0-9][a-z0-9._-]{0,79}:[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
MAX_TOOLS: Final = 100
"""Tools of one file."""
_HEADERS: Final[dict[str, Any]] = {
    "type": "object",
    "maxProperties": 32,
    "propertyNames": {"pattern": "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$"},
    "additionalProperties": {"type": "string", "maxLength": 4000, "pattern": r"^[\x20-\x7e]*$"},
}
_URL: Final[dict[str, Any]] = {
    "type": "string",
    "minLength": 1,
    "maxLength": 2000,
    "pattern": r"^\S+$",
}


def _about(schema: Mapping[str, Any], description: str = "") -> dict[str, Any]:
    return {**schema, "description": description} if description else dict(schema)


def _text(longest: int, description: str = "") -> dict[str, Any]:
    return _about({"type": "string", "minLength": 1, "maxLength": longest}, description)


def _flag(description: str = "") -> dict[str, Any]:
    return _about({"type": "boolean"}, description)


def _number(least: float, most: float, description: str = "") -> dict[str, Any]:
    return _about({"type": "number", "minimum": least, "maximum": most}, description)


def _above_zero(most: float, description: str = "") -> dict[str, Any]:
    return _about({"type": "number", "exclusiveMinimum": 0, "maximum": most}, description)


def _one_of(*values: Any, description: str = "") -> dict[str, Any]:
    return _about({"enum": list(values)}, description)


def _object(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, **more, "properties": properties}


EXECUTION: Final[dict[str, Any]] = {
    "type": "object",
    "description": (
        "How the tool is asked. Texts may hold {{input.NAME}}, "
        "{{call.id}}, {{call.tool}} and ${env.NAME}."
    ),
    "additionalProperties": False,
    "properties": {
        "url": _about(
            _URL, "Who is asked; a call's values may stand behind the host, never in it."
        ),
        "webhookUrl": _about(_URL, "The older name of url; url comes first."),
        "method": _one_of(*METHODS, description="POST when absent."),
        "headers": _about(_HEADERS, "Header lines; a call's values have no place in them."),
        "query": {
            "type": "object",
            "maxProperties": 64,
            "description": "Parameters of the address; a list is sent as several.",
        },
        "body": {"description": "JSON, as a table or as text; absent: the call's arguments."},
        "timeout": _above_zero(600_000, "Milliseconds, 30000 when absent."),
        "answer": {
            "enum": ["now", "later"],
            "description": (
                "later: who is asked only takes the call; its result is handed in afterwards."
            ),
        },
        "agentConfig": {"type": "object", "description": "A sub-agent; only a cloud runs one."},
        "includeContext": _flag("Of a sub-agent."),
        "imageConfig": {"type": "object", "description": "An image model; only a cloud runs one."},
        **{
            key: {"type": "string", "description": "Of an image model."}
            for key in ("provider", "model", "size", "quality")
        },
    },
}

TOOL: Final[dict[str, Any]] = _object(
    {
        "name": {
            "type": "string",
            "pattern": NAME,
            "description": "package:tool, for example my:weather.",
        },
        "description": _text(4000, "What it does, for a model that may call it."),
        "title": _text(60, "What the wearer reads above its result; the name's words when absent."),
        "inputSchema": {
            "type": "object",
            "description": "JSON Schema of its arguments; none when absent.",
        },
        "executionType": _one_of(
            "gateway", "external", "space", "internal", description="gateway when absent."
        ),
        "visible": _flag("Shown on the glasses; false for internal, else true when absent."),
        "display": _object(
            {"customUI": _text(80, "How its result is shown; an unknown one is text.")}
        ),
        "execution": EXECUTION,
        "version": _text(64),
        "category": _text(40),
        "sideEffects": _one_of(
            "none", "read_only", "writes", description="read_only for GET, else writes when absent."
        ),
        "idempotent": _flag("true for GET, else false when absent."),
        "requiresConfirmation": _one_of("never", "policy", "always", True, False),
        "allowedModes": {"type": "array", "minItems": 1, "items": _one_of("text", "voice")},
        "latencyBudgetMs": {"type": "number", "exclusiveMinimum": 0},
        "openToCloud": _flag(
            "true: a cloud may call it, it touches nothing private; false when absent."
        ),
        "pendingTtlS": _number(1, MAX_PENDING_TTL_S),
        "cacheTtlS": _number(1, MAX_CACHE_TTL_S),
        "rateLimit": _object(
            {
                "calls": {"type": "integer", "minimum": 1, "maximum": MAX_RATE_CALLS},
                "window": _above_zero(MAX_RATE_WINDOW_S),
            },
            required=["calls", "window"],
        ),
        "availableWhen": {
            "type": "object",
            "propertyNames": _one_of("glasses", "uplink", "worn"),
            "additionalProperties": _flag(),
        },
        "activationPhrases": {
            "type": "array",
            "maxItems": 32,
            "items": _text(200),
            "description": "What a wearer says to call it.",
        },
    },
    required=["name", "description"],
)

SERVER: Final[dict[str, Any]] = _object(
    {
        "name": {
            "type": "string",
            "pattern": r"^[a-z0-9][a-z0-9._-]{0,62}$",
            "description": "The package its tools are in.",
        },
        "title": _text(80, "What people read; the name when absent."),
        "url": _URL,
        "transport": _one_of("http", "streamable-http", "sse"),
        "headers": _HEADERS,
        "command": _text(1000, "A program that speaks MCP on its standard input and output."),
        "args": {"type": "array", "maxItems": 100, "items": {"type": "string", "maxLength": 4000}},
        "env": {
            "type": "object",
            "maxProperties": 64,
            "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$"},
            "additionalProperties": {"type": "string", "maxLength": 4000},
        },
        "allowedTools": {
            "type": "array",
            "maxItems": 1000,
            "items": _text(255),
            "description": "Only these; none when absent; * is all.",
        },
        "enabled": _flag(),
        "idle": _number(
            1, 2_592_000, "Seconds without a call after which it is left, 1800 when absent."
        ),
        "timeout": _above_zero(600_000, "Milliseconds of one call, 30000 when absent."),
        "prompt": _text(2000, "Goes before the description of each of its tools."),
        "toolPrompts": {
            "type": "object",
            "maxProperties": 1000,
            "additionalProperties": _text(4000),
            "description": "By tool: stands in place of its description.",
        },
        "visible": _flag("Results are shown on the glasses unasked; false when absent."),
        "requiresConfirmation": _one_of("never", "policy", "always"),
        "trusted": _flag("What it says of its tools' effects is believed."),
    },
    required=["name"],
    oneOf=[{"required": ["url"]}, {"required": ["command"]}],
)

FILE: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "glassd: a file in tools.d",
    "anyOf": [
        TOOL,
        {
            "type": "object",
            "additionalProperties": False,
            "minProperties": 1,
            "properties": {
                "tools": {"type": "array", "maxItems": MAX_TOOLS, "items": TOOL},
                "servers": {"type": "array", "maxItems": MAX_TOOLS, "items": SERVER},
            },
        },
    ],
}
"""One tool, or a list of tools and MCP servers.

`python -m edge.tools.user_tools_schema` prints it, for editors that complete by it.
"""

if __name__ == "__main__":
    import json
    import sys

    sys.stdout.write(json.dumps(FILE, indent=2) + "\n")
