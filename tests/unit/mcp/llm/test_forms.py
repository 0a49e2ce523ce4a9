"""Models' own formats, held against the types that the providers publish themselves.

The providers' libraries take seconds to import, so the functions that need one import it: every
worker collects this file and one of them runs it.
"""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import TypeAdapter

from edge.mcp.llm.models import MAX_CALLS, BadMessage, ModelCall
from edge.mcp.llm.providers import TRANSPORTS
from edge.mcp.llm.replies import ProviderError

GOOD = {"ok": True, "data": {"time": "12:00"}, "meta": {"tool": "clock:now"}}
BAD = {
    "ok": False,
    "error": {
        "type": "TRANSIENT",
        "code": "OFFLINE",
        "message": "no network — later",
        "retryable": True,
    },
    "meta": {"tool": "notes:add"},
}


def openai_chat(*calls):
    import openai.types.chat

    return openai.types.chat.ChatCompletion.model_validate(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "tool_calls",
                    "logprobs": None,
                    "message": {
                        "role": "assistant",
                        "content": None,
                        "refusal": None,
                        "tool_calls": [
                            {"id": i, "type": "function", "function": {"name": n, "arguments": a}}
                            for i, n, a in calls
                        ],
                    },
                }
            ],
        }
    ).model_dump(mode="json")


def openai_responses(*calls):
    import openai.types.responses

    items = [
        {
            "type": "function_call",
            "id": f"fc_{i}",
            "call_id": i,
            "name": n,
            "arguments": a,
            "status": "completed",
        }
        for i, n, a in calls
    ]
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    return openai.types.responses.Response.model_validate(
        {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "model": "m",
            "output": [thought, *items],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
    ).model_dump(mode="json")


def anthropic_message(*calls):
    import anthropic.types

    blocks = [{"type": "tool_use", "id": i, "name": n, "input": json.loads(a)} for i, n, a in calls]
    return anthropic.types.Message.model_validate(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "content": [{"type": "text", "text": "Let me look."}, *blocks],
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    ).model_dump(mode="json")


def _gemini_parts(calls):
    return [
        {"text": "Let me look."},
        *({"functionCall": {"id": i, "name": n, "args": json.loads(a)}} for i, n, a in calls),
    ]


def gemini_answer(*calls):
    from google.genai import types as gemini

    answer = {"candidates": [{"content": {"role": "model", "parts": _gemini_parts(calls)}}]}
    return gemini.GenerateContentResponse.model_validate(answer).model_dump(
        mode="json", by_alias=True
    )


def gemini_in_python(*calls):
    from google.genai import types as gemini

    answer = {"candidates": [{"content": {"role": "model", "parts": _gemini_parts(calls)}}]}
    return gemini.GenerateContentResponse.model_validate(answer).model_dump(mode="json")


def gemini_live(*calls):
    from google.genai import types as gemini

    message = {
        "toolCall": {
            "functionCalls": [{"id": i, "name": n, "args": json.loads(a)} for i, n, a in calls]
        }
    }
    return gemini.LiveServerMessage.model_validate(message).model_dump(
        mode="json", by_alias=True, exclude_none=True
    )


def openai_takes(answers):
    import openai.types.chat

    TypeAdapter(list[openai.types.chat.ChatCompletionToolMessageParam]).validate_python(
        answers, extra="forbid"
    )
    return [(a["tool_call_id"], json.loads(a["content"])) for a in answers]


def responses_takes(answers):
    from openai.types.responses.response_input_item_param import FunctionCallOutput

    TypeAdapter(list[FunctionCallOutput]).validate_python(answers)
    return [(a["call_id"], json.loads(a["output"])) for a in answers]


def anthropic_takes(answers):
    import anthropic.types

    TypeAdapter(list[anthropic.types.MessageParam]).validate_python(answers)
    (message,) = answers
    for block in message["content"]:
        assert block["is_error"] is not json.loads(block["content"])["ok"]
    return [(b["tool_use_id"], json.loads(b["content"])) for b in message["content"]]


def gemini_takes(answers):
    from google.genai import types as gemini

    contents = TypeAdapter(list[gemini.Content]).validate_python(answers)
    return [
        (part.function_response.id, part.function_response.response)
        for content in contents
        for part in content.parts
    ]


def live_takes(answers):
    from google.genai import types as gemini

    (message,) = TypeAdapter(list[gemini.LiveClientMessage]).validate_python(answers)
    return [
        (response.id, response.response) for response in message.tool_response.function_responses
    ]


FORMS = {
    "openai": ("openai", openai_chat, openai_takes),
    "openai message": (
        "openai",
        lambda *calls: openai_chat(*calls)["choices"][0]["message"],
        openai_takes,
    ),
    "responses": ("openai-responses", openai_responses, responses_takes),
    "responses output": (
        "openai-responses",
        lambda *calls: openai_responses(*calls)["output"],
        responses_takes,
    ),
    "anthropic": ("anthropic", anthropic_message, anthropic_takes),
    "anthropic content": (
        "anthropic",
        lambda *calls: anthropic_message(*calls)["content"],
        anthropic_takes,
    ),
    "gemini": ("gemini", gemini_answer, gemini_takes),
    "gemini in Python": ("gemini", gemini_in_python, gemini_takes),
    "gemini content": (
        "gemini",
        lambda *calls: gemini_answer(*calls)["candidates"][0]["content"],
        gemini_takes,
    ),
    "gemini live": ("gemini", gemini_live, live_takes),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.requirement("I6-llm-types", "S2-112", "S2-113", "S2-114")
def test_messages_match_the_types_of_each_provider(form):
    provider, made, taken = FORMS[form]
    message = made(
        ("call_000000001", "clock__now", "{}"),
        ("call_000000002", "notes__add", '{"text": "Käse 🧀", "tags": [1, {"a": null}]}'),
    )
    calls = TRANSPORTS[provider].calls(message)
    assert calls == (
        ModelCall("call_000000001", "clock__now", {}),
        ModelCall("call_000000002", "notes__add", {"text": "Käse 🧀", "tags": [1, {"a": None}]}),
    )
    answers = TRANSPORTS[provider].answer(message, list(zip(calls, (GOOD, BAD), strict=True)))
    assert taken(json.loads(json.dumps(answers))) == [
        ("call_000000001", GOOD),
        ("call_000000002", BAD),
    ]


@pytest.mark.parametrize("form", FORMS)
def test_a_message_that_asks_for_nothing_is_answered_by_nothing(form):
    provider, made, _ = FORMS[form]
    message = made()
    assert TRANSPORTS[provider].calls(message) == ()
    assert TRANSPORTS[provider].answer(message, []) == []


def test_plain_text_of_an_assistant_asks_for_nothing():
    assert TRANSPORTS["anthropic"].calls({"role": "assistant", "content": "Hello"}) == ()
    assert TRANSPORTS["openai"].calls({"role": "assistant", "content": "Hello"}) == ()


@pytest.mark.requirement("S2-112", "I6-llm-answered")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("{bad", "not JSON"),
        ("[1]", "must be an object, not a list"),
        ("null", "must be an object, not null"),
        ('"x"', "must be an object, not text"),
        ('{"a": NaN}', "NaN is no JSON"),
        ("[" * 100_000, "not JSON"),
        (7, "must be an object, not a number"),
        ("1" * 5000, "not JSON"),
    ],
)
@pytest.mark.parametrize("form", ["openai", "responses"])
def test_arguments_that_are_no_object_are_the_problem_of_that_call_alone(form, arguments, says):
    provider, made, _ = FORMS[form]
    message = made(("call_000000001", "clock__now", "{}"), ("call_000000002", "clock__now", "{}"))
    place = (
        message["choices"][0]["message"]["tool_calls"][1]["function"]
        if form == "openai"
        else message["output"][2]
    )
    place["arguments"] = arguments
    fine, broken = TRANSPORTS[provider].calls(message)
    assert (fine.problem, broken.args) == ("", {})
    assert says in broken.problem


@pytest.mark.parametrize("nothing", ["", "  ", None])
def test_a_model_with_nothing_to_say_may_send_empty_text(nothing):
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "clock__now", "arguments": nothing},
    }
    assert TRANSPORTS["openai"].calls({"tool_calls": [call]}) == (
        ModelCall("call_1", "clock__now"),
    )


@pytest.mark.requirement("S2-113")
def test_a_gemini_call_may_lack_id_and_arguments():
    message = {"candidates": [{"content": {"parts": [{"functionCall": {"name": "clock__now"}}]}}]}
    (call,) = TRANSPORTS["gemini"].calls(message)
    assert call == ModelCall(None, "clock__now")
    (content,) = TRANSPORTS["gemini"].answer(message, [(call, GOOD)])
    assert content == {
        "role": "user",
        "parts": [{"functionResponse": {"name": "clock__now", "response": GOOD}}],
    }


@pytest.mark.requirement("I6-llm-answered")
def test_what_cannot_be_run_is_still_a_call_with_an_id():
    custom = {"id": "call_9", "type": "custom", "custom": {"name": "x", "input": "y"}}
    (call,) = TRANSPORTS["openai"].calls({"tool_calls": [custom]})
    assert (call.id, bool(call.problem)) == ("call_9", True)
    parts = {"functionCall": {"id": "f1", "name": "clock__now", "willContinue": True}}
    (call,) = TRANSPORTS["gemini"].calls({"parts": [parts]})
    assert (call.id, call.name) == ("f1", "clock__now")
    assert "in parts" in call.problem
    (call,) = TRANSPORTS["anthropic"].calls(
        [{"type": "tool_use", "id": "t1", "name": 7, "input": {}}]
    )
    assert (call.id, call.problem) == ("t1", "name: must be text of 1 to 255 characters")
    assert (
        TRANSPORTS["anthropic"].calls(
            [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}]
        )
        == ()
    )


@pytest.mark.parametrize(
    ("provider", "message", "names"),
    [
        ("openai", [], "message: must be an object"),
        ("openai", {"choices": [{}]}, "choices.0.message: must be an object"),
        ("openai", {"tool_calls": {}}, "tool_calls: must be a list, not an object"),
        ("openai", {"tool_calls": [{"type": "function"}]}, "tool_calls.0.id: missing"),
        (
            "openai",
            {"tool_calls": [{"id": 7, "function": {"name": "x"}}]},
            "tool_calls.0.id: must be text",
        ),
        (
            "openai",
            {"tool_calls": [{"id": "c", "function": "x"}]},
            "tool_calls.0.function: must be an object, not text",
        ),
        (
            "openai-responses",
            {"output": [{"type": "function_call", "name": "x"}]},
            "output.0.call_id: missing",
        ),
        ("openai-responses", {"output": 1}, "output: must be a list, not a number"),
        ("anthropic", {"content": [{"type": "tool_use", "name": "x"}]}, "content.0.id: missing"),
        ("anthropic", {"content": [True]}, "content.0: must be an object, not true or false"),
        ("gemini", {"candidates": [{"content": "x"}]}, "content: must be an object, not text"),
        (
            "gemini",
            {"toolCall": {"functionCalls": [None]}},
            "toolCall.functionCalls.0: must be an object, not null",
        ),
        (
            "gemini",
            {"parts": [{"functionCall": {"id": 7, "name": "x"}}]},
            "parts.0.functionCall.id: must be text",
        ),
        (
            "openai",
            {
                "tool_calls": [
                    {"id": f"c{n}", "function": {"name": "x"}} for n in range(MAX_CALLS + 1)
                ]
            },
            f"{MAX_CALLS + 1} calls in one message",
        ),
    ],
)
def test_a_message_that_cannot_be_answered_is_refused_by_the_field(provider, message, names):
    with pytest.raises(BadMessage, match="^" + names.replace(".", r"\.")):
        TRANSPORTS[provider].calls(message)


JSONS: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "message",
                    "tool_calls",
                    "function",
                    "id",
                    "type",
                    "output",
                    "content",
                    "parts",
                    "functionCall",
                    "name",
                    "args",
                    "toolCall",
                    "functionCalls",
                    "candidates",
                    "call_id",
                    "input",
                    "arguments",
                ]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from(sorted(TRANSPORTS)), JSONS)
def test_whatever_comes_is_read_or_refused(provider, message):
    try:
        calls = TRANSPORTS[provider].calls(message)
    except BadMessage:
        return
    assert all(isinstance(call.args, dict) and isinstance(call.name, str) for call in calls)
    json.dumps(TRANSPORTS[provider].answer(message, [(call, GOOD) for call in calls]))


# ------------------------------------------------------------------ pictures

PNG = "iVBORw0KGgoA" + "A" * 4000
JPEG = "/9j/" + "B" * 4000
SEEN = {
    "ok": True,
    "data": {"text": "two pictures"},
    "render": {
        "display": {"layout": "bitmap_view", "data": PNG, "alt": "a cat"},
        "audio": {"pcm": "UENN" * 1000},
    },
    "meta": {
        "route": "upstream",
        "content": [
            {"type": "text", "text": "two pictures"},
            {"type": "image", "data": PNG, "mimeType": "image/png"},
            {"type": "image", "data": JPEG, "mimeType": "image/jpeg"},
            {"type": "audio", "data": "UklGRgAA", "mimeType": "audio/wav"},
        ],
    },
}


def anthropic_pictures(answers):
    import anthropic.types

    TypeAdapter(list[anthropic.types.MessageParam]).validate_python(answers)
    said, *shown = answers[0]["content"][0]["content"]
    return said["text"], [(p["source"]["media_type"], p["source"]["data"]) for p in shown]


def openai_pictures(answers):
    import openai.types.chat

    result, user = answers
    params = openai.types.chat
    TypeAdapter(params.ChatCompletionToolMessageParam).validate_python(result, extra="forbid")
    TypeAdapter(params.ChatCompletionUserMessageParam).validate_python(user)
    named, *shown = user["content"]
    assert named["text"] == "The pictures of see (call_1):"
    return result["content"], [_of_url(part["image_url"]["url"]) for part in shown]


def responses_pictures(answers):
    from openai.types.responses.response_input_item_param import FunctionCallOutput

    TypeAdapter(list[FunctionCallOutput]).validate_python(answers)
    said, *shown = answers[0]["output"]
    return said["text"], [_of_url(part["image_url"]) for part in shown]


def gemini_pictures(answers):
    from google.genai import types as gemini

    (content,) = TypeAdapter(list[gemini.Content]).validate_json(json.dumps(answers))
    response = content.parts[0].function_response
    shown = answers[0]["parts"][0]["functionResponse"].get("parts", ())
    assert [p.inline_data.mime_type for p in response.parts or ()] == [
        p["inlineData"]["mimeType"] for p in shown
    ]
    inline = [(p["inlineData"]["mimeType"], p["inlineData"]["data"]) for p in shown]
    return json.dumps(answers[0]["parts"][0]["functionResponse"]["response"]), inline


def _of_url(url):
    head, _, data = url.partition(";base64,")
    return head.removeprefix("data:"), data


PICTURES = {
    "openai": openai_pictures,
    "openai-responses": responses_pictures,
    "anthropic": anthropic_pictures,
    "gemini": gemini_pictures,
}
CALL = ModelCall("call_1", "see", {})


@pytest.mark.parametrize("provider", PICTURES)
@pytest.mark.requirement("I13-llm-pictures")
def test_pictures_are_the_providers_own_parts_once_and_never_text(provider):
    text, shown = PICTURES[provider](TRANSPORTS[provider].answer({}, [(CALL, SEEN)]))
    assert shown == [("image/png", PNG), ("image/jpeg", JPEG)]
    assert len(text) < 1000
    assert json.loads(text) == {
        "ok": True,
        "data": {"text": "two pictures"},
        "render": {
            "display": {"layout": "bitmap_view", "data": "(picture 1)", "alt": "a cat"},
            "audio": {"pcm": "(left out: not text)"},
        },
        "meta": {
            "route": "upstream",
            "content": [
                {"type": "text", "text": "two pictures"},
                {"type": "image", "data": "(picture 1)", "mimeType": "image/png"},
                {"type": "image", "data": "(picture 2)", "mimeType": "image/jpeg"},
                {"type": "audio", "data": "(left out: not text)", "mimeType": "audio/wav"},
            ],
        },
    }
    assert SEEN["meta"]["content"][1]["data"] == PNG, "the envelope itself is not changed"


@pytest.mark.parametrize("provider", PICTURES)
@pytest.mark.requirement("I13-llm-pictures")
def test_what_the_wearer_saw_is_a_picture_unless_the_model_sent_it(provider):
    of_an_app = {"ok": True, "render": SEEN["render"], "meta": {"route": "cloud"}}
    text, shown = PICTURES[provider](TRANSPORTS[provider].answer({}, [(CALL, of_an_app)]))
    assert shown == [("image/png", PNG)]
    assert PNG not in text
    own = {"ok": True, "render": SEEN["render"], "meta": {"route": "glasses"}}
    assert PNG not in json.dumps(TRANSPORTS[provider].answer({}, [(CALL, own)]))


def test_pictures_of_several_calls_follow_all_results_of_a_chat():
    other = ModelCall("call_2", "look", {})
    answers = TRANSPORTS["openai"].answer({}, [(CALL, SEEN), (other, GOOD), (other, SEEN)])
    assert [a["role"] for a in answers] == ["tool", "tool", "tool", "user"]
    kinds = [part.get("text", "picture") for part in answers[3]["content"]]
    assert kinds == [
        *("The pictures of see (call_1):", "picture", "picture"),
        *("The pictures of look (call_2):", "picture", "picture"),
    ]


def test_a_picture_that_comes_twice_is_sent_once():
    blocks = [{"type": "image", "data": PNG, "mimeType": "image/png"}] * 2
    envelope = {"ok": True, "meta": {"content": blocks}}
    text, shown = gemini_pictures(TRANSPORTS["gemini"].answer({}, [(CALL, envelope)]))
    assert shown == [("image/png", PNG)]
    assert text.count("(picture 1)") == 2


@pytest.mark.parametrize("data", ["iVBORw0KGgo!", "R0lGODlh", 7, None, ""])
def test_a_damaged_or_unknown_picture_is_left_out(data):
    blocks = [{"type": "image", "data": data, "mimeType": "image/png"}]
    envelope = {"ok": True, "meta": {"content": blocks}}
    (message,) = TRANSPORTS["openai"].answer({}, [(CALL, envelope)])
    assert "(left out: not text)" in message["content"]


def test_the_result_of_an_error_is_text_alone_for_anthropic():
    failed = {**SEEN, "ok": False, "error": {"message": "no"}}
    (message,) = TRANSPORTS["anthropic"].answer({}, [(CALL, failed)])
    (result,) = message["content"]
    assert isinstance(result["content"], str)
    assert PNG not in result["content"]


# ------------------------------------------------------------------ what is no reply

OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
QUOTA = {"error": {"message": "You exceeded your quota", "type": "insufficient_quota", "code": 1}}
BLOCKED = {"promptFeedback": {"blockReason": "SAFETY"}}
BLOCKED_IN_PYTHON = {"candidates": None, "prompt_feedback": {"block_reason": "SAFETY"}}
MALFORMED = {
    "candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "print(x)"}]
}


@pytest.mark.requirement("I13-llm-replies")
@pytest.mark.parametrize(
    ("provider", "message", "says"),
    [
        ("anthropic", OVERLOADED, "with an error: Overloaded (overloaded_error)"),
        ("openai", QUOTA, "with an error: You exceeded your quota (insufficient_quota)"),
        ("openai-responses", QUOTA, "You exceeded your quota"),
        ("openai", {"error": "no such model"}, "with an error: no such model"),
        ("gemini", {"error": {"code": 429, "message": "slow", "status": "RES"}}, "slow (RES)"),
        ("gemini", [{"error": {"code": 429, "message": "slow"}}], "slow (429)"),
        ("openai-responses", {"status": "failed", "output": []}, "empty, and ended with failed"),
        ("gemini", BLOCKED, "empty, and ended with the prompt blocked (SAFETY)"),
        ("gemini", BLOCKED_IN_PYTHON, "empty, and ended with the prompt blocked (SAFETY)"),
        ("gemini", {"candidates": []}, "the provider's reply is empty"),
        ("gemini", MALFORMED, "ended with MALFORMED_FUNCTION_CALL: print(x)"),
        ("anthropic", [], "the provider's reply is empty"),
        ("anthropic", {"content": [], "stop_reason": "refusal"}, "ended with refusal"),
        ("openai-responses", [], "the provider's reply is empty"),
        (
            "openai",
            {"choices": [{"finish_reason": "content_filter", "message": {"content": None}}]},
            "ended with content_filter",
        ),
    ],
)
def test_an_error_or_an_empty_reply_is_the_providers_and_no_end(provider, message, says):
    with pytest.raises(ProviderError) as caught:
        TRANSPORTS[provider].calls(message)
    assert says in str(caught.value)


@pytest.mark.requirement("I13-llm-replies")
@pytest.mark.parametrize("provider", PICTURES)
def test_an_empty_object_is_no_reply(provider):
    for nothing in ({}, {"object": "list"}):
        with pytest.raises(BadMessage, match=f"no reply of {provider}, it is empty or"):
            TRANSPORTS[provider].calls(nothing)


MADE = {
    "openai": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic_message,
    "gemini": gemini_answer,
}


@pytest.mark.requirement("I13-llm-replies")
@pytest.mark.parametrize("wanted", MADE)
def test_the_reply_of_another_provider_is_named(wanted):
    for owner, make in MADE.items():
        if owner != wanted:
            for message in (make(("call_000000001", "clock__now", "{}")), make()):
                with pytest.raises(BadMessage, match=f"of {wanted}, it looks like one of {owner};"):
                    TRANSPORTS[wanted].calls(message)


@pytest.mark.parametrize(
    ("provider", "message"),
    [
        ("anthropic", {"content": [], "stop_reason": "end_turn"}),
        ("openai-responses", {"output": [], "status": "completed", "error": None}),
        ("gemini", {"candidates": [{"finishReason": "STOP", "content": {"role": "model"}}]}),
        ("gemini", {"serverContent": {"turnComplete": True}}),
    ],
)
def test_a_model_that_has_nothing_to_add_has_finished(provider, message):
    assert TRANSPORTS[provider].calls(message) == ()


def test_calls_of_a_reply_that_a_filter_cut_are_answered():
    function = {"name": "clock__now", "arguments": "{}"}
    said = {"content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    message = {"choices": [{"finish_reason": "content_filter", "message": said}]}
    assert [call.id for call in TRANSPORTS["openai"].calls(message)] == ["c1"]
