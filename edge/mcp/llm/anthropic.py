"""Anthropic's format: `tool_use` blocks of an assistant's message, answered by `tool_result` blocks
of one user's message. The tests compare it with the types of the `anthropic` package.
"""

from collections.abc import Sequence

from edge.mcp.llm import models
from edge.mcp.llm.models import Answered, ModelCall
from tools_cache.api.tool import Json


class Anthropic:
    """Reads a message, or its `content`."""

    form = "anthropic"

    def calls(self, message: Json) -> tuple[ModelCall, ...]:
        content = message
        if not isinstance(message, list):
            content = models.an_object(message, "message").get("content")
        if isinstance(content, str):
            return ()
        found = []
        for number, one in enumerate(models.a_list(content, "content")):
            where = f"content.{number}"
            block = models.an_object(one, where)
            if block.get("type") == "tool_use":
                id_ = models.call_id(block, where=where)
                call = models.call(id_, block.get("name"), block.get("input"), where=where)
                found.append(call)
        return models.limit(found)

    def answer(self, message: Json, answered: Sequence[Answered]) -> list[dict[str, Json]]:
        """Return one message with all results: several messages would be refused."""
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
