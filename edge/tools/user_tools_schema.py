"""The JSON Schema of a file in `tools.d`."""

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
_TEXT: Final[dict[str, Any]] = {"type": "string", "minLength": 1}
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

EXECUTION: Final[dict[str, Any]] = {
    "type": "object",
    "description": (
        "How the tool is asked. Texts may hold {{input.NAME}}, "
        "{{call.id}}, {{call.tool}} and ${env.NAME}."
    ),
    "additionalProperties": False,
    "properties": {
        "url": {
            **_URL,
            "description": "Who is asked; a call's values may stand behind the host, never in it.",
        },
        "webhookUrl": {**_URL, "description": "The older name of url; url comes first."},
        "method": {"enum": list(METHODS), "description": "POST when absent."},
        "headers": {
            **_HEADERS,
            "description": "Header lines; a call's values have no place in them.",
        },
        "query": {
            "type": "object",
            "maxProperties": 64,
            "description": "Parameters of the address; a list is sent as several.",
        },
        "body": {"description": "JSON, as a table or as text; absent: the call's arguments."},
        "timeout": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 600_000,
            "description": "Milliseconds, 30000 when absent.",
        },
        "answer": {
            "enum": ["now", "later"],
            "description": (
                "later: who is asked only takes the call; its result is handed in afterwards."
            ),
        },
        "agentConfig": {"type": "object", "description": "A sub-agent; only a cloud runs one."},
        "includeContext": {"type": "boolean", "description": "Of a sub-agent."},
        "imageConfig": {"type": "object", "description": "An image model; only a cloud runs one."},
        **{
            key: {"type": "string", "description": "Of an image model."}
            for key in ("provider", "model", "size", "quality")
        },
    },
}

TOOL: Final[dict[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "description"],
    "properties": {
        "name": {
            "type": "string",
            "pattern": NAME,
            "description": "package:tool, for example my:weather.",
        },
        "description": {
            **_TEXT,
            "maxLength": 4000,
            "description": "What it does, for a model that may call it.",
        },
        "title": {
            **_TEXT,
            "maxLength": 60,
            "description": "What the wearer reads above its result; the name's words when absent.",
        },
        "inputSchema": {
            "type": "object",
            "description": "JSON Schema of its arguments; none when absent.",
        },
        "executionType": {
            "enum": ["gateway", "external", "space", "internal"],
            "description": "gateway when absent.",
        },
        "visible": {
            "type": "boolean",
            "description": "Shown on the glasses; false for internal, else true when absent.",
        },
        "display": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "customUI": {
                    **_TEXT,
                    "maxLength": 80,
                    "description": "How its result is shown; an unknown one is text.",
                }
            },
        },
        "execution": EXECUTION,
        "version": {**_TEXT, "maxLength": 64},
        "category": {**_TEXT, "maxLength": 40},
        "sideEffects": {
            "enum": ["none", "read_only", "writes"],
            "description": "read_only for GET, else writes when absent.",
        },
        "idempotent": {"type": "boolean", "description": "true for GET, else false when absent."},
        "requiresConfirmation": {"enum": ["never", "policy", "always", True, False]},
        "allowedModes": {"type": "array", "minItems": 1, "items": {"enum": ["text", "voice"]}},
        "latencyBudgetMs": {"type": "number", "exclusiveMinimum": 0},
        "openToCloud": {
            "type": "boolean",
            "description": (
                "true: a cloud may call it, it touches nothing private; false when absent."
            ),
        },
        "pendingTtlS": {"type": "number", "minimum": 1, "maximum": MAX_PENDING_TTL_S},
        "cacheTtlS": {"type": "number", "minimum": 1, "maximum": MAX_CACHE_TTL_S},
        "rateLimit": {
            "type": "object",
            "additionalProperties": False,
            "required": ["calls", "window"],
            "properties": {
                "calls": {"type": "integer", "minimum": 1, "maximum": MAX_RATE_CALLS},
                "window": {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_RATE_WINDOW_S},
            },
        },
        "availableWhen": {
            "type": "object",
            "propertyNames": {"enum": ["glasses", "uplink", "worn"]},
            "additionalProperties": {"type": "boolean"},
        },
        "activationPhrases": {
            "type": "array",
            "maxItems": 32,
            "items": {**_TEXT, "maxLength": 200},
            "description": "What a wearer says to call it.",
        },
    },
}

SERVER: Final[dict[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name"],
    "oneOf": [{"required": ["url"]}, {"required": ["command"]}],
    "properties": {
        "name": {
            "type": "string",
            "pattern": r"^[a-z0-9][a-z0-9._-]{0,62}$",
            "description": "The package its tools are in.",
        },
        "title": {
            **_TEXT,
            "maxLength": 80,
            "description": "What people read; the name when absent.",
        },
        "url": _URL,
        "transport": {"enum": ["http", "streamable-http", "sse"]},
        "headers": _HEADERS,
        "command": {
            **_TEXT,
            "maxLength": 1000,
            "description": "A program that speaks MCP on its standard input and output.",
        },
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
            "items": {**_TEXT, "maxLength": 255},
            "description": "Only these; none when absent; * is all.",
        },
        "enabled": {"type": "boolean"},
        "idle": {
            "type": "number",
            "minimum": 1,
            "maximum": 2_592_000,
            "description": "Seconds without a call after which it is left, 1800 when absent.",
        },
        "timeout": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 600_000,
            "description": "Milliseconds of one call, 30000 when absent.",
        },
        "prompt": {
            **_TEXT,
            "maxLength": 2000,
            "description": "Goes before the description of each of its tools.",
        },
        "toolPrompts": {
            "type": "object",
            "maxProperties": 1000,
            "additionalProperties": {**_TEXT, "maxLength": 4000},
            "description": "By tool: stands in place of its description.",
        },
        "visible": {
            "type": "boolean",
            "description": "Results are shown on the glasses unasked; false when absent.",
        },
        "requiresConfirmation": {"enum": ["never", "policy", "always"]},
        "trusted": {
            "type": "boolean",
            "description": "What it says of its tools' effects is believed.",
        },
    },
}

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
