"""Anthropic's form: `tool_use` blocks of an assistant's message, answered by `tool_result` blocks
of one user's message.

Refuses to run anything. Sources: facts/providers.md 4; the types of the `anthropic` package,
against which the tests hold it.
"""

from collections.abc import Sequence

from edge.mcp.llm import models
from edge.mcp.llm.models import Answered, BadMessage, ModelCall
from tools_cache.api.tool import Json


class Anthropic:
    """Takes a message, or its `content`."""

    form = "anthropic"

    def calls(self, message: Json) -> tuple[ModelCall, ...]:
        content = (
            message
            if isinstance(message, list)
            else models.an_object(message, "message").get("content")
        )
        if isinstance(content, str):
            return ()
        found = []
        for number, one in enumerate(models.a_list(content, "content")):
            block = models.an_object(one, f"content.{number}")
            if block.get("type") == "tool_use":
                if not block.get("id"):
                    raise BadMessage(
                        f"content.{number}.id: missing; the answer is found by it, "
                        "so hand in the message as it came"
                    )
                found.append(models.call(block, block.get("input"), where=f"content.{number}"))
        return models.bounded(found)

    def answer(self, message: Json, answered: Sequence[Answered]) -> list[dict[str, Json]]:
        """One message with all of them: results that are spread over several are refused there."""
        del message
        results = [
            {
                "type": "tool_result",
                "tool_use_id": call.id,
                "content": models.text(envelope),
                "is_error": not envelope.get("ok"),
            }
            for call, envelope in answered
        ]
        return [{"role": "user", "content": results}] if results else []

    def tools(self, forms: Sequence[Json]) -> list[Json]:
        return list(forms)
