"""OpenAI's two formats: chat completions (`message.tool_calls`) and responses (`output` with
`function_call` items). The tests compare them with the types of the `openai` package.
"""

from collections.abc import Sequence
from typing import Final

from edge.mcp.llm import models, pictures, replies
from edge.mcp.llm.models import Answered, Envelope, ModelCall
from edge.mcp.llm.pictures import ResultPicture
from tools_cache.api.tool import Json

_FINISHED: Final = ("completed",)
NO_FUNCTION: Final = "this is no call of a function; only functions are offered here"


class OpenAiChat:
    """Reads an assistant message, or the whole chat completion."""

    def __init__(self, form: str = "openai") -> None:
        self.form = form

    def calls(self, message: Json) -> tuple[ModelCall, ...]:
        asked = models.a_list(self._message(message).get("tool_calls"), "tool_calls")
        return models.limit([self._call(one, f"tool_calls.{n}") for n, one in enumerate(asked)])

    def answer(self, message: Json, answered: Sequence[Answered]) -> list[dict[str, Json]]:
        del message
        split = [(call, *pictures.split(envelope)) for call, envelope in answered]
        results: list[dict[str, Json]] = [
            {"role": "tool", "tool_call_id": call.id, "content": models.text(said)}
            for call, said, _ in split
        ]
        # a tool's message takes text only; the user's one comes after all of them
        shown = [(call, found) for call, _, found in split if found]
        return [*results, {"role": "user", "content": _shown(shown)}] if shown else results

    def tools(self, forms: Sequence[Json]) -> list[Json]:
        return list(forms)

    @staticmethod
    def _message(message: Json) -> dict[str, Json]:
        replies.check_error(message)
        found = models.an_object(message, "message")
        choices = models.a_list(found.get("choices"), "choices")
        if not choices:
            if "tool_calls" in found or (found.get("role") == "assistant" and "type" not in found):
                return found
            raise replies.foreign(message, "openai")
        choice = models.an_object(choices[0], "choices.0")
        said = models.an_object(choice.get("message"), "choices.0.message")
        if choice.get("finish_reason") == "content_filter" and not said.get("tool_calls"):
            replies.empty("content_filter")
        return said

    @staticmethod
    def _call(one: Json, where: str) -> ModelCall:
        asked = models.an_object(one, where)
        id_ = models.call_id(asked, where=where)
        if asked.get("type", "function") != "function":
            return ModelCall(id_, "", {}, NO_FUNCTION)
        function = models.an_object(asked.get("function"), f"{where}.function")
        return models.call(id_, function.get("name"), function.get("arguments"), where=where)


class OpenAiResponses:
    """Reads a response, or its `output`."""

    def __init__(self, form: str = "openai") -> None:
        self.form = form

    def calls(self, message: Json) -> tuple[ModelCall, ...]:
        replies.check_error(message)
        items, ended = message, None
        if not isinstance(message, list):
            whole = models.an_object(message, "response")
            if "output" not in whole:
                raise replies.foreign(message, "openai-responses")
            items, ended = models.a_list(whole["output"], "output"), whole.get("status")
        if not items:
            replies.empty(ended, _FINISHED)
        found = []
        for number, one in enumerate(items):
            where = f"output.{number}"
            item = models.an_object(one, where)
            if not isinstance(item.get("type"), str) or item["type"] == "tool_use":
                raise replies.foreign(message, "openai-responses")
            if item.get("type") == "function_call":
                id_ = models.call_id(item, where=where, key="call_id")
                call = models.call(id_, item.get("name"), item.get("arguments"), where=where)
                found.append(call)
        return models.limit(found)

    def answer(self, message: Json, answered: Sequence[Answered]) -> list[dict[str, Json]]:
        del message
        return [
            {"type": "function_call_output", "call_id": call.id, "output": _output(envelope)}
            for call, envelope in answered
        ]

    def tools(self, forms: Sequence[Json]) -> list[Json]:
        """Return the same form, flat: `{type, name, description, parameters, strict}`."""
        return [{"type": "function", **one["function"]} for one in forms]


def _shown(found: Sequence[tuple[ModelCall, Sequence[ResultPicture]]]) -> list[dict[str, Json]]:
    """Return the pictures of several calls, each after the name of its call."""
    parts: list[dict[str, Json]] = []
    for call, each in found:
        parts.append({"type": "text", "text": f"The pictures of {call.name} ({call.id}):"})
        parts += [{"type": "image_url", "image_url": {"url": picture.url}} for picture in each]
    return parts


def _output(envelope: Envelope) -> str | list[dict[str, Json]]:
    """Return an answer with its pictures."""
    said, found = pictures.split(envelope)
    if not found:
        return models.text(said)
    shown: list[dict[str, Json]] = [
        {"type": "input_image", "image_url": picture.url, "detail": "auto"} for picture in found
    ]
    return [{"type": "input_text", "text": models.text(said)}, *shown]
