"""Gemini's form: `functionCall` parts of a content, or the `toolCall` of a live session, answered
by `functionResponse`s.

Refuses to run anything. Both spellings are read, the wire's (`functionCall`) and the Python
package's (`function_call`); what is answered is the wire's. Sources: facts/providers.md 5; the
types of the `google-genai` package.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from edge.mcp.llm import models
from edge.mcp.llm.models import Answered, ModelCall
from tools_cache.api.tool import Json


class Gemini:
    """Takes an answer of `generateContent`, one content of it, or a message of a live session.
    A call may have no id.
    """

    form = "gemini"

    def calls(self, message: Json) -> tuple[ModelCall, ...]:
        found = models.an_object(message, "message")
        live = _said(found, "toolCall", "tool_call")
        if live is not None:
            listed = models.a_list(
                _said(models.an_object(live, "toolCall"), "functionCalls", "function_calls"),
                "toolCall.functionCalls",
            )
            return models.bounded(
                [_call(one, f"toolCall.functionCalls.{n}") for n, one in enumerate(listed)]
            )
        parts = [models.an_object(part, f"parts.{n}") for n, part in enumerate(_parts(found))]
        asked = [(n, _said(part, "functionCall", "function_call")) for n, part in enumerate(parts)]
        return models.bounded(
            [_call(one, f"parts.{n}.functionCall") for n, one in asked if one is not None]
        )

    def answer(self, message: Json, answered: Sequence[Answered]) -> list[dict[str, Json]]:
        responses = [
            {
                **({} if call.id is None else {"id": call.id}),
                "name": call.name,
                "response": dict(envelope),
            }
            for call, envelope in answered
        ]
        if not responses:
            return []
        if isinstance(message, dict) and _said(message, "toolCall", "tool_call") is not None:
            return [{"toolResponse": {"functionResponses": responses}}]
        return [
            {"role": "user", "parts": [{"functionResponse": response} for response in responses]}
        ]

    def tools(self, forms: Sequence[Json]) -> list[Json]:
        return [{"functionDeclarations": list(forms)}] if forms else []


def _parts(message: Mapping[str, Json]) -> list[Any]:
    candidates = models.a_list(message.get("candidates"), "candidates")
    content = (
        models.an_object(candidates[0], "candidates.0").get("content") if candidates else message
    )
    return models.a_list(
        (content or {}).get("parts")
        if isinstance(content, Mapping | None)
        else models.an_object(content, "content"),
        "parts",
    )


def _call(one: Json, where: str) -> ModelCall:
    asked = models.an_object(one, where)
    if _said(asked, "willContinue", "will_continue") or _said(asked, "partialArgs", "partial_args"):
        whole = models.call({**asked, "name": asked.get("name") or "_"}, {}, where=where)
        return ModelCall(
            whole.id, whole.name, {}, "arguments: come in parts; hand in the call when it is whole"
        )
    return models.call({**asked, "id": asked.get("id") or None}, asked.get("args"), where=where)


def _said(of: Mapping[str, Json], *spellings: str) -> Json:
    return next((of[key] for key in spellings if of.get(key) is not None), None)
