"""Questions to the wearer as tools: a `space` tool's arguments become questions on the lens, the
answer its result.
"""

from collections.abc import Mapping
from typing import Final

from edge.ports import AskPort, Chosen, NobodyToAsk, Progress, Question
from edge.runtime.clock import Clock
from firmware_bridge.messages import Answer
from tools_cache.api.tool import ErrorCode, Json, Mode, ToolCall, ToolDefinition, ToolResponse

TIMEOUT_S: Final = 60.0
MAX_WAIT_S: Final = 60.0
"""The longest that a call itself waits for its answer; most clients give up at about that time."""
MAX_CHOICES: Final = 9
_ANSWER_FIRST_S: Final = 2.0
"""A caller waits so much longer than its question is open, so that it gets the outcome and not
`pending` a moment before.
"""
_OTHER_WORDS: Final = "Ask in other words: all of a question has to be shown or spoken"
_TEXT_KEYS: Final = ("question", "text", "message", "prompt", "title")


class UserPrompts:
    """`answer` waits for the wearer. Two answers are a tap away; of more choices each is
    offered in turn.
    """

    def __init__(self, ask: AskPort, clock: Clock) -> None:
        self._ask = ask
        self._clock = clock

    async def answer(
        self, call: ToolCall, tool: ToolDefinition, _progress: Progress
    ) -> ToolResponse:
        """See `RunTool`. `{answer, …}`; SESSION_INACTIVE when nobody can be asked, DEADLINE_EXPIRED
        when nobody answers.
        """
        text = _text(call.args) or tool.description
        wait_s = _wait_s(call)
        timeout_s = min(call.ttl_s, _seconds(call.args.get("timeout_s"), wait_s or TIMEOUT_S))
        ends_at = self._clock.boot() + (wait_s if _within_call(call) else call.ttl_s)
        choices = _choices(call.args.get("choices"))
        try:
            if not choices:
                return _yes_or_no(
                    await self._ask.ask(
                        Question(f"{call.call_id}/ask", text, timeout_s, by_voice=True)
                    )
                )
            return await self._among(call.call_id, text, choices, timeout_s, ends_at)
        except NobodyToAsk as e:
            return ToolResponse.failure(
                ErrorCode.SESSION_INACTIVE,
                f"The wearer cannot be asked: {e}",
                suggestion=_OTHER_WORDS if e.for_wearer else "Bring the glasses back",
                for_wearer=e.for_wearer,
            )

    async def _among(
        self, call_id: str, text: str, choices: list[str], timeout_s: float, ends_at: float
    ) -> ToolResponse:
        for number, choice in enumerate(choices):
            left_s = ends_at - self._clock.boot()
            if left_s <= 0:
                return _silence()
            more = "next" if number + 1 < len(choices) else "none"
            question = Question(
                f"{call_id}/ask-{number + 1}",
                f"{text}\n{choice} ({number + 1} of {len(choices)})",
                min(timeout_s, left_s),
                allow="this",
                deny=more,
                by_voice=True,
                choices=tuple(choices),
            )
            answer = await self._ask.choose(question)
            if isinstance(answer, Chosen):
                named = choices[answer.number - 1]
                return ToolResponse(data={"answer": named, "number": answer.number})
            if answer is Answer.ALLOW:
                return ToolResponse(data={"answer": choice, "number": number + 1})
            if answer is Answer.TIMEOUT:
                return _silence()
        return ToolResponse(data={"answer": None, "number": None, "text": "none of these"})


def patience_s(call: ToolCall, *, voice_s: float) -> float:
    """Return how long a caller waits for the wearer before it gets `pending`; 0: not at all. A
    voice never waits over `voice_s`.
    """
    if call.mode is Mode.VOICE:
        return min(_wait_s(call), voice_s)
    return _wait_s(call) + _ANSWER_FIRST_S * _within_call(call)


def _wait_s(call: ToolCall) -> float:
    return min(MAX_WAIT_S, _seconds(call.args.get("wait_s"), 0.0))


def _within_call(call: ToolCall) -> bool:
    """Whether the question is over when the caller stops waiting: no longer time was asked for."""
    wait_s = _wait_s(call)
    return wait_s > 0 and _seconds(call.args.get("timeout_s"), wait_s) <= wait_s


def _yes_or_no(answer: Answer) -> ToolResponse:
    if answer is Answer.TIMEOUT:
        return _silence()
    return ToolResponse(data={"answer": "yes" if answer is Answer.ALLOW else "no"})


def _silence() -> ToolResponse:
    return ToolResponse.failure(ErrorCode.DEADLINE_EXPIRED, "The wearer did not answer in time")


def _text(args: Mapping[str, Json]) -> str:
    return next(
        (
            str(args[key])
            for key in _TEXT_KEYS
            if isinstance(args.get(key), str) and str(args[key]).strip()
        ),
        "",
    )


def _seconds(asked: Json, default: float) -> float:
    if isinstance(asked, bool) or not isinstance(asked, int | float) or asked <= 0:
        return default
    return float(asked)


def _choices(asked: Json) -> list[str]:
    return [str(choice) for choice in asked[:MAX_CHOICES]] if isinstance(asked, list) else []
