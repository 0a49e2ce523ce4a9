"""OpenAI's two forms: chat completions (`message.tool_calls`) and responses (`output` of
`function_call` items).

Refuses to run anything. Sources: facts/providers.md 3; the types of the `openai` package, against
which the tests hold it.
"""

from collections.abc import Sequence
from typing import Final

from edge.mcp.llm import models
from edge.mcp.llm.models import Answered, BadMessage, ModelCall
from tools_cache.api.tool import Json

NO_FUNCTION: Final = "this is no call of a function; only functions are offered here"


class OpenAiChat:
    """Takes an assistant message, or the whole chat completion it came in."""

    def __init__(self, form: str = "openai") -> None:
        self.form = form

    def calls(self, message: Json) -> tuple[ModelCall, ...]:
        asked = models.a_list(self._message(message).get("tool_calls"), "tool_calls")
        return models.bounded(
            [self._call(one, f"tool_calls.{number}") for number, one in enumerate(asked)]
        )

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
        return models.an_object(
            models.an_object(choices[0], "choices.0").get("message"), "choices.0.message"
        )

    @staticmethod
    def _call(one: Json, where: str) -> ModelCall:
        asked = models.an_object(one, where)
        if not asked.get("id"):
            raise BadMessage(
                f"{where}.id: missing; the answer is found by it, so hand in the message as it came"
            )
        if asked.get("type", "function") != "function":
            return ModelCall(
                models.call({**asked, "name": "_"}, {}, where=where).id, "", {}, NO_FUNCTION
            )
        function = models.an_object(asked.get("function"), f"{where}.function")
        return models.call({**function, "id": asked["id"]}, function.get("arguments"), where=where)


class OpenAiResponses:
    """Takes a response, or its `output`."""

    def __init__(self, form: str = "openai") -> None:
        self.form = form

    def calls(self, message: Json) -> tuple[ModelCall, ...]:
        items = (
            message
            if isinstance(message, list)
            else models.a_list(models.an_object(message, "response").get("output"), "output")
        )
        found = []
        for number, one in enumerate(items):
            item = models.an_object(one, f"output.{number}")
            if item.get("type") == "function_call":
                if not item.get("call_id"):
                    raise BadMessage(
                        f"output.{number}.call_id: missing; the answer is found by "
                        "it, so hand in the response as it came"
                    )
                found.append(
                    models.call(
                        item, item.get("arguments"), where=f"output.{number}", id_key="call_id"
                    )
                )
        return models.bounded(found)

    def answer(self, message: Json, answered: Sequence[Answered]) -> list[dict[str, Json]]:
        del message
        return [
            {"type": "function_call_output", "call_id": call.id, "output": models.text(envelope)}
            for call, envelope in answered
        ]

    def tools(self, forms: Sequence[Json]) -> list[Json]:
        """The same form, flat: `{type, name, description, parameters, strict}`."""
        return [{"type": "function", **one["function"]} for one in forms]
