"""The tools that the conformance suite calls, as another MCP server would have them: a table of
name, schema and deed.

It knows nothing of glassd: a deed is given what was answered so far, and gives content, or asks its
caller for more.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

PNG: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg="
    "="
)
WAV: Final = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
PAUSE_S: Final = 0.3
NOTHING: Final = {"type": "object", "additionalProperties": False}
SCHEMA_2020: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        },
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One call as a deed sees it. `tell` says how far it is: (done, of, words)."""

    args: Mapping[str, Any]
    answers: Mapping[str, Mapping[str, Any]]
    state: str
    tell: Callable[[float, float, str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class More:
    """What a deed wants to know before it goes on: requests by name, and what it wants to
    remember.
    """

    requests: Mapping[str, Mapping[str, Any]]
    state: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    text: str


Done = list[dict[str, Any]] | More | Failed
Deed = Callable[[Asked], Awaitable[Done]]


@dataclass(frozen=True, slots=True)
class Fixture:
    description: str
    deed: Deed
    schema: Mapping[str, Any] = field(default_factory=lambda: NOTHING)


# ------------------------------------------------------------------ what is asked


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": words}]


def form(message: str, properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": dict(properties)} | (
        {"required": list(required)} if required else {}
    )
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": message, "requestedSchema": schema},
    }


def sampling(words: str, tokens: int = 100) -> dict[str, Any]:
    message = {"role": "user", "content": {"type": "text", "text": words}}
    return {
        "method": "sampling/createMessage",
        "params": {"messages": [message], "maxTokens": tokens},
    }


ROOTS: Final = {"method": "roots/list", "params": {}}
NAME: Final = {"name": {"type": "string"}}
DEFAULTS: Final = {
    "name": {"type": "string", "description": "User name", "default": "John Doe"},
    "age": {"type": "integer", "description": "User age", "default": 30},
    "score": {"type": "number", "description": "User score", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
ENUMS: Final = {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {
        "type": "string",
        "oneOf": [
            {"const": f"value{n}", "title": f"{word} Option"}
            for n, word in ((1, "First"), (2, "Second"), (3, "Third"))
        ],
    },
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {
        "type": "array",
        "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
    },
    "titledMulti": {
        "type": "array",
        "items": {
            "anyOf": [
                {"const": f"value{n}", "title": f"{word} Choice"}
                for n, word in ((1, "First"), (2, "Second"), (3, "Third"))
            ]
        },
    },
}


# ------------------------------------------------------------------ deeds


def gives(*blocks: dict[str, Any]) -> Deed:
    async def deed(_asked: Asked) -> Done:
        return list(blocks)

    return deed


def asks(state: str = "", **requests: dict[str, Any]) -> Deed:
    """Ask for all of these, again for what is missing, then tell what came; `state` must come
    back as it was given.
    """

    async def deed(asked: Asked) -> Done:
        missing = {name: request for name, request in requests.items() if not answered(asked, name)}
        if missing:
            return More(missing, state)
        if asked.state != state:
            return Failed(f"the state came back as {asked.state!r}")
        said = {name: asked.answers[name] for name in requests}
        return text(f"{state} {json.dumps(said, sort_keys=True)}".strip())

    return deed


def answered(asked: Asked, name: str) -> bool:
    return isinstance(asked.answers.get(name), Mapping)


def asks_with(key: str, make: Callable[[Mapping[str, Any]], dict[str, Any]], words: str) -> Deed:
    """Ask one thing that depends on the arguments."""

    async def deed(asked: Asked) -> Done:
        if not answered(asked, key):
            return More({key: make(asked.args)})
        return text(f"{words}: {json.dumps(asked.answers[key], sort_keys=True)}")

    return deed


async def two_rounds(asked: Asked) -> Done:
    """A name, then a colour; what was learnt first is remembered in the state."""
    if asked.state.startswith("name:") and answered(asked, "step2"):
        return text(f"{asked.state} {json.dumps(asked.answers['step2'].get('content'))}")
    if answered(asked, "step1"):
        name = (asked.answers["step1"].get("content") or {}).get("name", "")
        return More(
            {
                "step2": form(
                    "Step 2: What is your favorite color?", {"color": {"type": "string"}}, "color"
                )
            },
            f"name:{name}",
        )
    return More({"step1": form("Step 1: What is your name?", NAME, "name")}, "began")


def speaks(pause_s: float = PAUSE_S) -> Deed:
    """Say three things, and give each time to be heard: of what comes faster than ten a second
    only the newest is handed on.
    """

    async def deed(asked: Asked) -> Done:
        for done, words in enumerate(
            ("Tool execution started", "Tool processing data", "Tool execution completed")
        ):
            await asked.tell(50.0 * done, 100.0, words)
            await asyncio.sleep(pause_s)
        return text("Tool with progress executed successfully")

    return deed


async def fails(_asked: Asked) -> Done:
    return Failed("This tool intentionally returns an error for testing")


RESOURCE: Final = {
    "type": "resource",
    "resource": {
        "uri": "test://embedded-resource",
        "mimeType": "text/plain",
        "text": "This is an embedded resource content.",
    },
}
MIXED: Final = {
    "type": "resource",
    "resource": {
        "uri": "test://mixed-content-resource",
        "mimeType": "application/json",
        "text": '{"test":"data","value":123}',
    },
}
PERSON: Final = {
    "username": {"type": "string", "description": "User's response"},
    "email": {"type": "string", "description": "User's email address"},
}
OK: Final = {"ok": {"type": "boolean"}}


def one(name: str, why: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": why}},
        "required": [name],
        "additionalProperties": False,
    }


IMAGE: Final = {"type": "image", "data": PNG, "mimeType": "image/png"}
TOOLS: Final[Mapping[str, Fixture]] = {
    "test_simple_text": Fixture(
        "Gives one text.", gives(*text("This is a simple text response for testing."))
    ),
    "test_image_content": Fixture("Gives one picture.", gives(IMAGE)),
    "test_audio_content": Fixture(
        "Gives one sound.", gives({"type": "audio", "data": WAV, "mimeType": "audio/wav"})
    ),
    "test_embedded_resource": Fixture("Gives a resource.", gives(RESOURCE)),
    "test_multiple_content_types": Fixture(
        "Gives text, a picture and a resource.",
        gives(*text("Multiple content types test:"), IMAGE, MIXED),
    ),
    "test_tool_with_logging": Fixture("Says three things while it runs.", speaks()),
    "test_tool_with_progress": Fixture("Tells three times how far it is.", speaks()),
    "test_logging_tool": Fixture("Says things to whoever wants to hear them.", speaks(0.0)),
    "test_error_handling": Fixture("Fails.", fails),
    "json_schema_2020_12_tool": Fixture(
        "Has a schema of many keywords.", gives(*text("It was called.")), SCHEMA_2020
    ),
    "test_sampling": Fixture(
        "Asks the caller's model.",
        asks_with("answer", lambda a: sampling(a["prompt"]), "LLM response"),
        one("prompt", "what to ask"),
    ),
    "test_elicitation": Fixture(
        "Asks the caller's user.",
        asks_with(
            "person", lambda a: form(a["message"], PERSON, "username", "email"), "User response"
        ),
        one("message", "what to ask"),
    ),
    "test_elicitation_sep1034_defaults": Fixture(
        "Asks with defaults.",
        asks(person=form("Please review and update the form fields with defaults", DEFAULTS)),
    ),
    "test_elicitation_sep1330_enums": Fixture(
        "Asks for choices.", asks(choices=form("Please select options from the enum fields", ENUMS))
    ),
    "test_missing_capability": Fixture(
        "Cannot do without the caller's model.", asks(answer=sampling("Say hello"))
    ),
    "test_streaming_elicitation": Fixture(
        "Asks the caller's user, in a stream.",
        asks(person=form("What is your name?", NAME, "name")),
    ),
    "test_input_required_result_elicitation": Fixture(
        "Asks for a name.", asks(user_name=form("What is your name?", NAME, "name"))
    ),
    "test_input_required_result_sampling": Fixture(
        "Asks a model.", asks(capital_question=sampling("What is the capital of France?"))
    ),
    "test_input_required_result_list_roots": Fixture("Asks for roots.", asks(client_roots=ROOTS)),
    "test_input_required_result_request_state": Fixture(
        "Remembers.", asks("state-ok", confirm=form("Please confirm", OK, "ok"))
    ),
    "test_input_required_result_multiple_inputs": Fixture(
        "Asks three things at once.",
        asks(
            "three",
            user_name=form("What is your name?", NAME, "name"),
            greeting=sampling("Generate a greeting", 50),
            client_roots=ROOTS,
        ),
    ),
    "test_input_required_result_multi_round": Fixture("Asks twice.", two_rounds),
    "test_input_required_result_tampered_state": Fixture(
        "Remembers what nobody may change.",
        asks("sealed", confirm=form("Please confirm", OK, "ok")),
    ),
    "test_input_required_result_capabilities": Fixture(
        "Asks user and model.",
        asks(
            user_name=form("What is your name?", NAME, "name"),
            greeting=sampling("Generate a greeting", 50),
        ),
    ),
}
TRIGGER: Final = "test_trigger_tool_change"
"""Makes one tool come or go; `fixture_server.py` does that."""
