"""Gemini's format: `functionCall` parts of a content, or the `toolCall` of a live session, answered
by `functionResponse`s. It reads the spelling of the API (`functionCall`) and of the Python package
(`function_call`), and writes the first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from edge.mcp.llm import models, pictures, replies
from edge.mcp.llm.models import Answered, Envelope, ModelCall
from tools_cache.api.tool import Json

_FINISHED: Final = ("STOP",)
_LIVE: Final = (
    *("setupComplete", "serverContent", "toolCallCancellation", "usageMetadata", "goAway"),
    *("setup_complete", "server_content", "tool_call_cancellation", "usage_metadata", "go_away"),
    *("sessionResumptionUpdate", "session_resumption_update"),
)
"""What a message of a live session may hold besides calls."""


class Gemini:
    """Reads an answer of `generateContent`, one content of it, or a message of a live session. A
    call may have no id.
    """

    form = "gemini"

    def calls(self, message: Json) -> tuple[ModelCall, ...]:
        replies.check_error(message)
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
        responses = [_response(call, envelope) for call, envelope in answered]
        if not responses:
            return []
        if isinstance(message, dict) and _get(message, "toolCall", "tool_call") is not None:
            return [{"toolResponse": {"functionResponses": responses}}]
        parts = [{"functionResponse": response} for response in responses]
        return [{"role": "user", "parts": parts}]

    def tools(self, forms: Sequence[Json]) -> list[Json]:
        return [{"functionDeclarations": list(forms)}] if forms else []


def _parts(message: Mapping[str, Json]) -> list[Any]:
    """Return the parts of a reply; none for a live session's message about something else."""
    content: Json = message
    ended: Json = None
    more: Json = ""
    if "candidates" in message or _get(message, "promptFeedback", "prompt_feedback") is not None:
        candidates = models.a_list(message.get("candidates"), "candidates")
        if not candidates:
            feedback = _get(message, "promptFeedback", "prompt_feedback")
            blocked = feedback if isinstance(feedback, dict) else {}
            reason = _get(blocked, "blockReason", "block_reason")
            replies.empty(reason and f"the prompt blocked ({reason})")
        first = models.an_object(candidates[0], "candidates.0")
        content, ended = first.get("content"), _get(first, "finishReason", "finish_reason")
        more = _get(first, "finishMessage", "finish_message")
    elif "parts" not in message:
        if any(message.get(key) is not None for key in _LIVE):
            return []
        raise replies.foreign(dict(message), "gemini")
    content = {} if content is None else models.an_object(content, "content")
    parts = models.a_list(content.get("parts"), "parts")
    if not parts:
        replies.empty(ended, _FINISHED, more=more)
    return parts


def _response(call: ModelCall, envelope: Envelope) -> dict[str, Any]:
    said, found = pictures.split(envelope)
    response: dict[str, Any] = {} if call.id is None else {"id": call.id}
    response |= {"name": call.name, "response": dict(said)}
    if found:
        inline = [{"mimeType": each.media_type, "data": each.data} for each in found]
        response["parts"] = [{"inlineData": data} for data in inline]
    return response


def _call(one: Json, where: str) -> ModelCall:
    asked = models.an_object(one, where)
    id_, name, args = asked.get("id") or None, asked.get("name"), asked.get("args")
    if _get(asked, "willContinue", "will_continue") or _get(asked, "partialArgs", "partial_args"):
        problem = "arguments: come in parts; hand in the call when it is whole"
        return replace(models.call(id_, name or "_", {}, where=where), problem=problem)
    return models.call(id_, name, args, where=where)


def _get(of: Mapping[str, Json], *spellings: str) -> Json:
    return next((of[key] for key in spellings if of.get(key) is not None), None)
