"""Questions to the wearer as tools: a `space` tool's arguments become questions on the lens, the answer its result.

Refuses to know lenses and taps (the stage does) and to keep the result (the table of pending calls does).
"""

from collections.abc import Mapping
from typing import Final

from edge.ports import AskPort, NobodyToAsk, Question
from firmware_bridge.messages import Answer
from tools_cache.tool import ErrorCode, Json, ToolCall, ToolDefinition, ToolResponse

TIMEOUT_S: Final = 60.0
MAX_CHOICES: Final = 9
_TEXT_KEYS: Final = ("question", "text", "message", "prompt", "title")


class WearerQuestions:
    """`answer` waits for the wearer. Two answers are a tap away; of more choices each is offered in turn."""

    def __init__(self, ask: AskPort) -> None:
        self._ask = ask

    async def answer(self, call: ToolCall, tool: ToolDefinition, *, left_s: float) -> ToolResponse:
        """`{answer, …}`; SESSION_INACTIVE when nobody can be asked, DEADLINE_EXPIRED when nobody answers."""
        text = _text(call.args) or tool.description
        timeout_s = min(left_s, _seconds(call.args.get("timeout_s"), TIMEOUT_S))
        choices = _choices(call.args.get("choices"))
        try:
            if not choices:
                return _yes_or_no(await self._ask.ask(Question(f"{call.call_id}/ask", text, timeout_s)))
            return await self._among(call.call_id, text, choices, timeout_s)
        except NobodyToAsk as e:
            return ToolResponse.failure(
                ErrorCode.SESSION_INACTIVE, f"The wearer cannot be asked: {e}", suggestion="Bring the glasses back"
            )

    async def _among(self, call_id: str, text: str, choices: list[str], timeout_s: float) -> ToolResponse:
        for number, choice in enumerate(choices):
            more = "next" if number + 1 < len(choices) else "none"
            question = Question(
                f"{call_id}/ask-{number + 1}", f"{text}\n{number + 1}/{len(choices)} {choice}", timeout_s,
                allow="this", deny=more,
            )  # fmt: skip
            answer = await self._ask.ask(question)
            if answer is Answer.ALLOW:
                return ToolResponse(data={"answer": choice, "number": number + 1})
            if answer is Answer.TIMEOUT:
                return _silence()
        return ToolResponse(data={"answer": None, "number": None, "text": "none of these"})


def _yes_or_no(answer: Answer) -> ToolResponse:
    if answer is Answer.TIMEOUT:
        return _silence()
    return ToolResponse(data={"answer": "yes" if answer is Answer.ALLOW else "no"})


def _silence() -> ToolResponse:
    return ToolResponse.failure(ErrorCode.DEADLINE_EXPIRED, "The wearer did not answer in time")


def _text(args: Mapping[str, Json]) -> str:
    return next((str(args[key]) for key in _TEXT_KEYS if isinstance(args.get(key), str) and str(args[key]).strip()), "")


def _seconds(asked: Json, default: float) -> float:
    if isinstance(asked, bool) or not isinstance(asked, int | float) or asked <= 0:
        return default
    return float(asked)


def _choices(asked: Json) -> list[str]:
    return [str(choice) for choice in asked[:MAX_CHOICES]] if isinstance(asked, list) else []
