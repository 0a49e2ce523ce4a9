"""One turn of a model above a control API that is written down: names, order, what the model
can mend and what it cannot.
"""

import json

import pytest
from pydantic import TypeAdapter

from edge.mcp.llm.providers import TRANSPORTS
from edge.mcp.llm.turn import BadModelRequest, ModelTurn
from tools_cache.api.tool import ToolResponse


def listed(name, *, state="offered", schema=None, **fields):
    schema = schema or {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "additionalProperties": False,
    }
    return {
        "name": name,
        "description": f"Does {name}.",
        "inputSchema": schema,
        "sideEffects": "none",
        "requiresConfirmation": "never",
        "state": state,
        **fields,
    }


class Daemon:
    """Answers as the control API does; remembers what it was asked."""

    def __init__(self, *entries, refuses=None):
        self.entries = entries
        self.refuses = refuses or {}
        self.bodies = []
        self.looks = []

    def __call__(self, method, path, body=None, *, timeout_s=30.0):
        assert timeout_s > 0
        if method == "GET":
            self.looks.append(path)
            return {"tools": [e for e in self.entries if "all=1" in path or e["state"] != "hidden"]}
        self.bodies.append(body)
        if found := self.refuses.get(body["tool"]):
            raise found
        return ToolResponse(data={"did": body["tool"]}).with_meta(tool=body["tool"]).to_json()


def chat(*calls):
    return {
        "role": "assistant",
        "tool_calls": [
            {
                "id": f"call_{n:08}",
                "type": "function",
                "function": {"name": name, "arguments": args},
            }
            for n, (name, args) in enumerate(calls)
        ],
    }


def turn(daemon, provider="openai", **fields):
    return ModelTurn(TRANSPORTS[provider], daemon, ttl_s=40.0, fields=fields)


def envelopes(messages):
    return [json.loads(message["content"]) for message in messages]


def test_calls_run_in_order_by_alias_or_name_with_their_ids():
    daemon = Daemon(listed("notes:add"), listed("com.a.b:do_it"))
    answers = turn(daemon, session="s", turn_id="", mode="voice").answer(
        chat(("com-a-b__do_it", "{}"), ("notes:add", '{"text": "x"}'))
    )
    assert [e["data"] for e in envelopes(answers)] == [
        {"did": "com.a.b:do_it"},
        {"did": "notes:add"},
    ]
    assert daemon.bodies == [
        {
            "tool": "com.a.b:do_it",
            "args": {},
            "ttl_s": 40.0,
            "ordinal": 0,
            "session": "s",
            "mode": "voice",
            "provider_call_id": "call_00000000",
        },
        {
            "tool": "notes:add",
            "args": {"text": "x"},
            "ttl_s": 40.0,
            "ordinal": 1,
            "session": "s",
            "mode": "voice",
            "provider_call_id": "call_00000001",
        },
    ]
    assert daemon.looks == ["/v1/tools?all=0&after="]


def test_a_call_without_an_id_is_sent_without_one():
    daemon = Daemon(listed("clock:now"))
    turn(daemon, "gemini").answer({"parts": [{"functionCall": {"name": "clock__now"}}]})
    assert "provider_call_id" not in daemon.bodies[0]


@pytest.mark.requirement("I6-llm-answered")
def test_unknown_unreadable_and_refused_calls_are_answered_and_the_others_run():
    daemon = Daemon(
        listed("notes:add"), refuses={"notes:add": BadModelRequest("args: are nested too deeply")}
    )
    answers = turn(daemon).answer(chat(("nope", "{}"), ("notes__add", "{"), ("notes__add", "{}")))
    assert [a["tool_call_id"] for a in answers] == [
        "call_00000000",
        "call_00000001",
        "call_00000002",
    ]
    errors = [e["error"] for e in envelopes(answers)]
    assert [(e["type"], e["code"]) for e in errors] == [
        ("NOT_FOUND", "TOOL_NOT_FOUND"),
        ("VALIDATION", "INVALID_ARGUMENTS"),
        ("VALIDATION", "INVALID_REQUEST"),
    ]
    assert "nested too deeply" in errors[2]["message"]
    assert len(daemon.bodies) == 1


def test_a_hidden_tool_is_called_so_that_the_daemon_says_why():
    daemon = Daemon(listed("camera:shoot", state="hidden"))
    turn(daemon).answer(chat(("camera__shoot", "{}")))
    assert daemon.looks == ["/v1/tools?all=0&after=", "/v1/tools?all=1&after="]
    assert daemon.bodies[0]["tool"] == "camera:shoot"


def test_errors_that_the_model_cannot_correct_are_raised():
    with pytest.raises(ConnectionError):
        turn(Daemon(listed("notes:add"), refuses={"notes:add": ConnectionError("gone")})).answer(
            chat(("notes__add", "{}"))
        )


def test_a_message_without_calls_asks_the_daemon_nothing():
    daemon = Daemon()
    assert turn(daemon).answer(chat()) == []
    assert daemon.looks == []


def test_only_a_strict_models_nulls_are_left_out_of_the_call():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": ["string", "null"]}},
        "required": [],
        "additionalProperties": False,
    }
    daemon = Daemon(listed("x:y", schema=schema))
    message = chat(("x__y", '{"a": null, "b": null}'))
    turn(daemon, "openai-strict").answer(message)
    turn(daemon, "openai").answer(message)
    assert [body["args"] for body in daemon.bodies] == [{"b": None}, {"a": None, "b": None}]


def types_of_tools():
    """The providers' own types; imported here, because that takes seconds (see test_forms.py)."""
    import anthropic.types
    import openai.types.chat
    import openai.types.responses
    from google.genai import types as gemini

    return {
        "openai": openai.types.chat.ChatCompletionToolUnionParam,
        "openai-strict": openai.types.chat.ChatCompletionToolUnionParam,
        "openai-responses": openai.types.responses.ToolParam,
        "openai-responses-strict": openai.types.responses.ToolParam,
        "anthropic": anthropic.types.ToolParam,
        "gemini": gemini.Tool,
    }


@pytest.mark.parametrize("provider", TRANSPORTS)
@pytest.mark.requirement("I6-llm-tools", "I6-llm-types")
def test_offered_tools_are_listed_in_the_providers_format(provider):
    odd = {"type": "object", "properties": {}, "anyOf": [{"required": ["a"]}]}
    daemon = Daemon(
        listed("clock:now"),
        listed("a.b:c"),
        listed("more:there", state="available"),
        listed("not:there", state="hidden"),
        listed("odd:one", schema=odd),
    )
    told, withheld = turn(daemon, provider).tools()
    TypeAdapter(list[types_of_tools()[provider]]).validate_python(told)
    text = json.dumps(told)
    assert all(f'"{name}"' in text for name in ("clock__now", "a-b__c"))
    assert "there" not in text
    assert (list(withheld) == ["odd:one"]) is (provider != "gemini")
    if withheld:
        assert "anyOf at the root" in withheld["odd:one"]


@pytest.mark.parametrize("provider", TRANSPORTS)
def test_without_tools_the_list_is_empty(provider):
    assert turn(Daemon(), provider).tools() == ([], {})


def test_the_command_line_offers_every_provider():
    from edge.commands import options

    assert tuple(TRANSPORTS) == options.PROVIDERS
