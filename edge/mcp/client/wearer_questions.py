"""What another server asks within a call, as questions to the wearer: a yes or no, or one of a few
choices.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from edge.mcp.client.models import Json, Outcome, state_of
from edge.ports import AskPort, NobodyToAsk, Question
from edge.runtime.logs import clean
from firmware_bridge.messages import Answer
from tools_cache.api.tool import CAN_ANSWER, ToolCall

MAX_CHOICES: Final = 9
MAX_MESSAGE: Final = 300
MAX_CHOICE: Final = 60
ROUNDS: Final = 5
"""Questions within one call."""
DECLINED_S: Final = 5.0
_SENT_S: Final = 2.0
"""Left of a call's time for the answer's way to the server."""


class NobodyAnswers(Exception):
    """The question has no answer from the wearer; the text says why."""


@dataclass(frozen=True, slots=True)
class OfferedChoice:
    """One answer: its words, and what the server gets."""

    words: str
    content: Mapping[str, Json]


class WearerQuestions:
    """`ready` says whether the wearer's glasses are there."""

    def __init__(self, ask: AskPort, ready: Callable[[], bool]) -> None:
        self._ask = ask
        self._ready = ready

    async def answer(
        self, requests: Mapping[str, Json], *, server: str, call_id: str, left_s: float
    ) -> dict[str, Json]:
        """Return the answers by their keys. Raises `NobodyAnswers`."""
        if len(requests) != 1:
            raise NobodyAnswers("it asks several things at once")
        ((key, request),) = requests.items()
        message, choices = read(request)
        if not self._ready():
            raise NobodyAnswers("the glasses are away")
        ends_at = asyncio.get_running_loop().time() + max(0.0, left_s - _SENT_S)
        text = f"{server} asks: {message}"
        try:
            return {key: await self._choose(text, choices, call_id, ends_at)}
        except NobodyToAsk as e:
            raise NobodyAnswers(f"the wearer cannot be asked: {e}") from None

    async def _choose(
        self, text: str, choices: Sequence[OfferedChoice], call_id: str, ends_at: float
    ) -> dict[str, Json]:
        """Offer a yes or no, or each choice in turn."""
        of_two = len(choices) <= 2 and all(not choice.words for choice in choices)
        for number, choice in enumerate(choices[:1] if of_two else choices, 1):
            left_s = ends_at - asyncio.get_running_loop().time()
            if left_s <= 0:
                break
            offered = text if of_two else f"{text}\n{number}/{len(choices)} {choice.words}"
            last = number == len(choices)
            words = ("yes", "no") if of_two else ("this", "none" if last else "next")
            scene = f"{call_id}/server-{number}"
            said = await self._ask.ask(Question(scene, offered, left_s, *words))
            if said is Answer.ALLOW:
                return {"action": "accept", "content": dict(choice.content)}
            if said is Answer.TIMEOUT:
                break
        else:
            return _no(choices) if of_two else {"action": "decline"}
        raise NobodyAnswers("the wearer did not answer in time")


def _no(choices: Sequence[OfferedChoice]) -> dict[str, Json]:
    """A no is an answer where the form has a place for it."""
    if len(choices) == 2:
        return {"action": "accept", "content": dict(choices[1].content)}
    return {"action": "decline"}


def read(request: Json) -> tuple[str, tuple[OfferedChoice, ...]]:
    """Return the message, and the answers that a wearer can give with taps. Raises `NobodyAnswers`
    for what needs more than taps.
    """
    params = request.get("params") if isinstance(request, Mapping) else None
    known = isinstance(request, Mapping) and request.get("method") == "elicitation/create"
    if not known or not isinstance(params, Mapping) or params.get("mode", "form") != "form":
        raise NobodyAnswers("it asks for more than a form")
    message = clean(str(params.get("message") or ""), MAX_MESSAGE).strip()
    if not message:
        raise NobodyAnswers("it does not say what it asks")
    schema = params.get("requestedSchema")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or not properties:
        return message, (OfferedChoice("", {}),)
    required = schema.get("required") if isinstance(schema, Mapping) else None
    asked = [name for name in properties if name in (required or properties)]
    if len(asked) != 1 or not isinstance(properties[asked[0]], Mapping):
        raise NobodyAnswers("its form has several fields")
    return message, _choices(asked[0], properties[asked[0]])


def _choices(name: str, about: Mapping[str, Any]) -> tuple[OfferedChoice, ...]:
    if about.get("type") == "boolean":
        return OfferedChoice("", {name: True}), OfferedChoice("", {name: False})
    titled = about.get("oneOf")
    if isinstance(titled, list):
        values = [(one.get("const"), one.get("title")) for one in titled if isinstance(one, dict)]
    else:
        names = about.get("enumNames")
        listed: list[Any] = about["enum"] if isinstance(about.get("enum"), list) else []
        titles = names if isinstance(names, list) and len(names) == len(listed) else listed
        values = list(zip(listed, titles, strict=True))
    if not 0 < len(values) <= MAX_CHOICES or any(not isinstance(v, str) for v, _ in values):
        raise NobodyAnswers("its form needs more than taps")
    return tuple(
        OfferedChoice(clean(str(title or value), MAX_CHOICE), {name: value})
        for value, title in values
    )


# ------------------------------------------------------------------ one call, with its questions


class Send(Protocol):
    """`UpstreamClient.call`, of one call."""

    async def __call__(self, *, timeout_s: float, input: Mapping[str, Json] | None) -> Outcome: ...


async def converse(
    send: Send, wearer: WearerQuestions | None, *, call: ToolCall, server: str, life_s: float
) -> Outcome:
    """Call a tool within `life_s`. What its server asks back is for a caller that brings `input`,
    even an empty one, if it can answer that; else the wearer answers, or nobody.
    """
    loop, given = asyncio.get_running_loop(), call.input
    ends_at = loop.time() + life_s
    asked = 0
    while True:
        outcome = await send(timeout_s=ends_at - loop.time(), input=given)
        requests = outcome.input_requests
        if requests is None or wearer is None or _is_for_caller(requests, call):
            return outcome
        if asked == ROUNDS:
            return await _decline(send, outcome, "it asks again and again")
        left_s = ends_at - loop.time()
        try:
            answers = await wearer.answer(
                requests, server=server, call_id=call.call_id, left_s=left_s
            )
        except NobodyAnswers as e:
            return await _decline(send, outcome, str(e))
        given, asked = {"inputResponses": answers, "requestState": outcome.request_state}, asked + 1


def _is_for_caller(requests: Mapping[str, Json], call: ToolCall) -> bool:
    if call.input is None:
        return False
    methods = call.input.get(CAN_ANSWER)
    asked = [one.get("method") for one in requests.values() if isinstance(one, Mapping)]
    return methods is None or all(method in methods for method in asked)


async def _decline(send: Send, asked: Outcome, why: str) -> Outcome:
    """End a call whose question nobody answers. An older server waits within the call: it gets
    a no, and the outcome says why, because the server itself knows only that somebody declined. A
    newer server does not wait: its question is the outcome.
    """
    outcome, requests, loop = asked, asked.input_requests or {}, asyncio.get_running_loop()
    ends_at = loop.time() + DECLINED_S
    for _ in range(ROUNDS):
        state = {"requestState": outcome.request_state}
        if outcome.input_requests is None or not state_of(state):
            break
        no: dict[str, Json] = {key: {"action": "decline"} for key in outcome.input_requests}
        left_s = ends_at - loop.time()
        outcome = await send(timeout_s=left_s, input={"inputResponses": no, **state})
    if outcome is asked:
        return asked
    params = [one.get("params") for one in requests.values() if isinstance(one, Mapping)]
    messages = [p.get("message") for p in params if isinstance(p, Mapping)]
    said = clean(str(messages[0]) if messages else "", MAX_MESSAGE)
    note = f"Declined without being answered: “{said}” ({why})"
    if outcome.is_error:
        return replace(outcome, message=f"{outcome.message}. {note}")
    if outcome.ok:
        return replace(outcome, content=(*outcome.content, {"type": "text", "text": note}))
    return outcome
