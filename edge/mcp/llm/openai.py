"""OpenAI's two formats: chat completions (`message.tool_calls`) and responses (`output` with
`function_call` items). The tests compare them with the types of the `openai` package.
"""

from collections.abc import Sequence
from typing import Final

from edge.mcp.llm import models
from edge.mcp.llm.models import Answered, ModelCall
from tools_cache.api.tool import Json

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
        return [
            {"role": "tool", "tool_call_id": call.id, "content": models.text(envelope)}
            for call, envelope in answered
        ]

    def tools(self, forms: Sequence[Json]) -> list[Json]:
        return list(forms)

    @staticmethod
    def _message(message: Json) -> dict[str, Json]:
        found = models.an_object(message, "message")
        choices = models.a_list(found.get("choices"), "choices")
        if not choices:
            return found
        message = models.an_object(choices[0], "choices.0").get("message")
        return models.an_object(message, "choices.0.message")

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
        items = message
        if not isinstance(message, list):
            items = models.a_list(models.an_object(message, "response").get("output"), "output")
        found = []
        for number, one in enumerate(items):
            where = f"output.{number}"
            item = models.an_object(one, where)
            if item.get("type") == "function_call":
                id_ = models.call_id(item, where=where, key="call_id")
                call = models.call(id_, item.get("name"), item.get("arguments"), where=where)
                found.append(call)
        return models.limit(found)

    def answer(self, message: Json, answered: Sequence[Answered]) -> list[dict[str, Json]]:
        del message
        return [
            {"type": "function_call_output", "call_id": call.id, "output": models.text(envelope)}
            for call, envelope in answered
        ]

    def tools(self, forms: Sequence[Json]) -> list[Json]:
        """Return the same form, flat: `{type, name, description, parameters, strict}`."""
        return [{"type": "function", **one["function"]} for one in forms]
