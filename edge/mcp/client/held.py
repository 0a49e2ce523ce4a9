"""A call at an older server that asks something within the call: the question goes to the caller
like that of a newer server, and the call goes on when the caller brings the answer.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

import mcp_types as types

from edge.mcp.client.models import HELD, Json, Outcome

MAX_QUESTIONS: Final = 8
"""Questions of one call that may wait; further ones are declined."""
HOLD_S: Final = 330.0
"""How long a call waits for the answer: clients of our MCP server are asked for 300 s."""
KEY: Final = "question"
OVER: Final = "its question is over; call the tool again"


@dataclass(frozen=True, slots=True)
class ServerQuestion:
    """What a server asks within a call."""

    params: types.ElicitRequestParams
    answer: "asyncio.Future[types.ElicitResult]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def settle(self, answer: types.ElicitResult) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)

    def cancel(self) -> None:
        """Answer it if nobody did: its call is over."""
        self.settle(types.ElicitResult(action="cancel"))


def new_question_queue() -> "asyncio.Queue[ServerQuestion]":
    return asyncio.Queue(MAX_QUESTIONS)


def cancel_all(questions: "asyncio.Queue[ServerQuestion]") -> None:
    """Answer what waits for a call that is over."""
    while not questions.empty():
        questions.get_nowait().cancel()


def new_state() -> str:
    return HELD + uuid4().hex


def question_of(question: ServerQuestion, state: str) -> Outcome:
    """Return the question as a newer server would ask it."""
    params = question.params.model_dump(mode="json", by_alias=True, exclude_none=True)
    request: dict[str, Any] = {"method": "elicitation/create", "params": params}
    return Outcome(input_requests={KEY: request}, request_state=state)


def answer_of(given: Mapping[str, Json]) -> types.ElicitResult:
    """Return the answer that a caller brings. Raises `ValidationError`."""
    responses = given.get("inputResponses")
    answer = responses.get(KEY) if isinstance(responses, Mapping) else None
    return types.ElicitResult.model_validate(answer)
