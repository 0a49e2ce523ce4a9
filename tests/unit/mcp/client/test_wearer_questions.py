"""A call whose server asks: how often the wearer answers, and how it ends."""

import pytest

from edge.mcp.client import wearer_questions
from edge.mcp.client.held import KEY, new_state
from edge.mcp.client.models import Outcome
from edge.mcp.client.wearer_questions import WearerQuestions, converse
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
        return Answer.ALLOW


class Server:
    """Asks so many times within one call, whatever it is answered."""

    def __init__(self, times, state=new_state):
        self.actions, self._times, self._state = [], times, state

    async def send(self, *, timeout_s, input):
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


async def test_a_newer_server_is_not_declined_its_question_is_the_outcome():
    server = Server(10**6, state=lambda: "sealed")
    _, outcome = await called(server)
    assert outcome.input_requests
    assert set(server.actions) == {"accept"}
