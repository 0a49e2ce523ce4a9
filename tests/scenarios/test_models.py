"""Story: an app's own model calls our tools in its provider's form; the app prints what it was
answered and goes on.
"""

import asyncio
import io
import itertools
import json
import sys

import pytest

from edge.cli import main

pytestmark = pytest.mark.asyncio(loop_scope="session")

TEXT = "Write to Ada Lovelace <ada@example.com>"


def fresh(numbers=itertools.count()):  # noqa: B008 - one count for all
    """A provider's id of a call: it never gives one twice."""
    return f"call_of_a_story_{next(numbers):08}"


FORMS = {
    "openai": (
        lambda name, args: {
            "tool_calls": [
                {
                    "id": fresh(),
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(args)},
                }
            ]
        },
        lambda answers: json.loads(answers[0]["content"]),
    ),
    "openai-responses": (
        lambda name, args: {
            "output": [
                {
                    "type": "function_call",
                    "call_id": fresh(),
                    "name": name,
                    "arguments": json.dumps(args),
                }
            ]
        },
        lambda answers: json.loads(answers[0]["output"]),
    ),
    "anthropic": (
        lambda name, args: {
            "content": [{"type": "tool_use", "id": fresh(), "name": name, "input": args}]
        },
        lambda answers: json.loads(answers[0]["content"][0]["content"]),
    ),
    "gemini": (
        lambda name, args: {
            "candidates": [{"content": {"parts": [{"functionCall": {"name": name, "args": args}}]}}]
        },
        lambda answers: answers[0]["parts"][0]["functionResponse"]["response"],
    ),
}


@pytest.fixture
def glassd(served, monkeypatch, capsys):
    place, _ = served

    async def run(*words, message=None, expect=0):
        monkeypatch.setattr(
            sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(message).encode()))
        )
        capsys.readouterr()
        code = await asyncio.to_thread(main, [*words, "--socket", str(place.socket), "--json"])
        printed = capsys.readouterr().out
        assert code == expect, printed
        return json.loads(printed)

    return run


def but_meta(envelope):
    return {key: value for key, value in envelope.items() if key != "meta"}


@pytest.mark.requirement("S2-115", "S2-114")
async def test_one_call_has_one_answer_whoever_s_form_it_comes_in(glassd):
    bare = await glassd("call", "contacts:extract", json.dumps({"text": TEXT}))
    assert bare["ok"]
    for provider, (asked, answer) in FORMS.items():
        found = answer(
            await glassd(
                "llm", "answer", provider, message=asked("contacts__extract", {"text": TEXT})
            )
        )
        assert but_meta(found) == but_meta(bare), provider
        assert found["meta"]["tool"] == "contacts:extract"


@pytest.mark.requirement("S2-114")
async def test_a_tools_refusal_reaches_the_model_whole(glassd):
    bare = await glassd("call", "contacts:extract", "{}", expect=1)
    for provider, (asked, answer) in FORMS.items():
        found = answer(
            await glassd("llm", "answer", provider, message=asked("contacts:extract", {}))
        )
        assert (found["error"]["type"], found["error"]["message"]) == (
            bare["error"]["type"],
            bare["error"]["message"],
        ), provider


@pytest.mark.requirement("I6-llm-twice")
async def test_a_turn_that_is_repeated_adds_no_second_note(glassd):
    for provider, (asked, answer) in FORMS.items():
        words = ("llm", "answer", provider, "--turn", f"turn-{provider}")
        message = asked("notes__add", {"text": f"repeated by {provider}"})
        first, again = (
            answer(await glassd(*words, message=message)),
            answer(await glassd(*words, message=message)),
        )
        assert first["ok"]
        assert but_meta(again) == but_meta(first)
        notes = await glassd("call", "notes:search", json.dumps({"query": f"repeated {provider}"}))
        assert [n["text"] for n in notes["data"]["notes"]].count(f"repeated by {provider}") == 1


async def test_every_tool_a_model_is_told_of_is_one_of_those_in_force(glassd):
    listed = {t["name"] for t in (await glassd("tools"))["tools"] if t["state"] == "offered"}
    for provider in FORMS:
        told = await glassd("llm", "tools", provider)
        assert len(told[0]["functionDeclarations"] if provider == "gemini" else told) == len(listed)


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ([], "standard input: message: must be an object"),
        ({"tool_calls": [{}]}, "standard input: tool_calls.0.id: missing"),
        ({"error": {"message": "Overloaded"}}, "the provider answered with an error: Overloaded"),
        ({}, "standard input: this is no reply of openai, it is empty or something else"),
    ],
)
async def test_a_message_that_cannot_be_read_is_wrong_usage(glassd, message, says):
    told = await glassd("llm", "answer", "openai", message=message, expect=2)
    assert says in told["error"]["message"]
