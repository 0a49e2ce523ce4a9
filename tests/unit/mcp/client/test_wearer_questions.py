"""A call whose server asks: how often the wearer answers, and how it ends."""

import pytest

from edge.mcp.client import wearer_questions
from edge.mcp.client.held import KEY, new_state
from edge.mcp.client.models import Outcome
from edge.mcp.client.wearer_questions import (
    MAX_MESSAGE,
    NobodyAnswers,
    WearerQuestions,
    converse,
)
from firmware_bridge.messages import Answer
from tools_cache.api.tool import CallOrigin, ToolCall

ASKS = {KEY: {"method": "elicitation/create", "params": {"message": "Sure?"}}}
CALL = ToolCall(call_id="c1", tool="raw:ask", args={}, origin=CallOrigin.MCP)


class Wearer:
    """Says yes to everything."""

    def __init__(self):
        self.asked = 0

    async def ask(self, question):
        self.asked += 1
        self.question = question
        return Answer.ALLOW


class Server:
    """Asks so many times within one call, whatever it is answered."""

    def __init__(self, times, state=new_state):
        self.actions, self.left, self._times, self._state = [], [], times, state

    async def send(self, *, timeout_s, input):
        self.left.append(timeout_s)
        if input is not None:
            self.actions += [one["action"] for one in input["inputResponses"].values()]
        if len(self.actions) < self._times:
            return Outcome(input_requests=ASKS, request_state=self._state())
        return Outcome(content=({"type": "text", "text": "done"},))


async def called(server):
    wearer = Wearer()
    questions = WearerQuestions(wearer, lambda: True)
    return wearer, await converse(server.send, questions, call=CALL, server="Raw", life_s=30.0)


@pytest.mark.requirement("I13-older-questions")
async def test_the_wearer_answers_a_few_questions_of_one_call_and_then_it_is_declined():
    """The call at the server must not stay open behind the answer."""
    most = wearer_questions.ROUNDS
    for times in (1, most):
        server = Server(times)
        wearer, outcome = await called(server)
        assert (wearer.asked, outcome.content[-1]["text"]) == (times, "done")
    server = Server(most + 3)
    wearer, outcome = await called(server)
    assert wearer.asked == most
    assert server.actions == ["accept"] * most + ["decline"] * 3
    assert "“Sure?” (it asks again and again)" in outcome.content[-1]["text"]


async def test_a_server_that_asks_for_ever_gets_an_end():
    server = Server(10**6)
    _, outcome = await called(server)
    assert outcome.input_requests
    assert len(server.actions) == 2 * wearer_questions.ROUNDS
    declines = server.left[-wearer_questions.ROUNDS :]
    assert declines == sorted(declines, reverse=True), "one time for all of them"
    assert len(set(declines)) == len(declines)
    assert declines[0] <= wearer_questions.DECLINED_S


async def test_a_newer_server_is_not_declined_its_question_is_the_outcome():
    server = Server(10**6, state=lambda: "sealed")
    _, outcome = await called(server)
    assert outcome.input_requests
    assert set(server.actions) == {"accept"}


def form(properties, **more):
    schema = {"type": "object", "properties": properties}
    params = {"message": "Which one?", "requestedSchema": schema, **more}
    return {"method": "elicitation/create", "params": params}


MANY = {"one": {"type": "string", "enum": [str(n) for n in range(10)]}}


@pytest.mark.parametrize(
    ("requests", "ready", "why"),
    [
        ({"a": form({}), "b": form({})}, True, "several things at once"),
        ({"a": form({})}, False, "the glasses are away"),
        ({"a": form(MANY)}, True, "needs more than taps"),
        ({"a": form({"n": {"type": "string"}})}, True, "needs more than taps"),
        ({"a": form({"n": {"enum": [1, 2]}})}, True, "needs more than taps"),
        ({"a": form({"n": {}, "m": {}})}, True, "several fields"),
        ({"a": form({}, mode="url", url="https://x.example")}, True, "more than a form"),
        ({"a": form({}, message=" ")}, True, "does not say what it asks"),
        ({"a": {"method": "roots/list"}}, True, "more than a form"),
    ],
)
async def test_what_taps_cannot_answer_is_not_asked(requests, ready, why):
    wearer = Wearer()
    questions = WearerQuestions(wearer, lambda: ready)
    with pytest.raises(NobodyAnswers, match=why):
        await questions.answer(requests, server="Raw", call_id="c1", left_s=30.0)
    assert not wearer.asked


async def test_a_question_names_its_server_and_is_short():
    wearer = Wearer()
    questions = WearerQuestions(wearer, lambda: True)
    asked = {"a": form({}, message="x\x1b[31m" * 1000)}
    await questions.answer(asked, server="Raw", call_id="c1", left_s=30.0)
    text = wearer.question.text
    assert text.startswith("Raw asks: x")
    assert text.isprintable()
    assert len(text) <= len("Raw asks: ") + MAX_MESSAGE
    assert wearer.question.timeout_s <= 28.0, "its answer must reach the server in time"
