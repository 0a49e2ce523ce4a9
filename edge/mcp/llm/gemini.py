"""Gemini's format: `functionCall` parts of a content, or the `toolCall` of a live session, answered
by `functionResponse`s. It reads the spelling of the API (`functionCall`) and of the Python package
(`function_call`), and writes the first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from edge.mcp.llm import models
from edge.mcp.llm.models import Answered, ModelCall
from tools_cache.api.tool import Json


class Gemini:
    """Reads an answer of `generateContent`, one content of it, or a message of a live session. A
    call may have no id.
    """

    form = "gemini"

    def calls(self, message: Json) -> tuple[ModelCall, ...]:
        found = models.an_object(message, "message")
        live = _get(found, "toolCall", "tool_call")
        if live is not None:
            where = "toolCall.functionCalls"
            listed = _get(models.an_object(live, "toolCall"), "functionCalls", "function_calls")
            calls = enumerate(models.a_list(listed, where))
            return models.limit([_call(one, f"{where}.{n}") for n, one in calls])
        parts = [models.an_object(part, f"parts.{n}") for n, part in enumerate(_parts(found))]
        asked = [(n, _get(part, "functionCall", "function_call")) for n, part in enumerate(parts)]
        return models.limit(
            [_call(one, f"parts.{n}.functionCall") for n, one in asked if one is not None]
        )

    def answer(self, message: Json, answered: Sequence[Answered]) -> list[dict[str, Json]]:
        responses = [
            ({} if call.id is None else {"id": call.id})
            | {"name": call.name, "response": dict(envelope)}
            for call, envelope in answered
        ]
        if not responses:
            return []
        if isinstance(message, dict) and _get(message, "toolCall", "tool_call") is not None:
            return [{"toolResponse": {"functionResponses": responses}}]
        parts = [{"functionResponse": response} for response in responses]
        return [{"role": "user", "parts": parts}]

    def tools(self, forms: Sequence[Json]) -> list[Json]:
        return [{"functionDeclarations": list(forms)}] if forms else []


def _parts(message: Mapping[str, Json]) -> list[Any]:
    content: Json = message
    if candidates := models.a_list(message.get("candidates"), "candidates"):
        content = models.an_object(candidates[0], "candidates.0").get("content")
    content = {} if content is None else models.an_object(content, "content")
    return models.a_list(content.get("parts"), "parts")


def _call(one: Json, where: str) -> ModelCall:
    asked = models.an_object(one, where)
    id_, name, args = asked.get("id") or None, asked.get("name"), asked.get("args")
    if _get(asked, "willContinue", "will_continue") or _get(asked, "partialArgs", "partial_args"):
        problem = "arguments: come in parts; hand in the call when it is whole"
        return replace(models.call(id_, name or "_", {}, where=where), problem=problem)
    return models.call(id_, name, args, where=where)


def _get(of: Mapping[str, Json], *spellings: str) -> Json:
    return next((of[key] for key in spellings if of.get(key) is not None), None)
