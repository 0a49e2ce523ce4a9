"""Anthropic's format: `tool_use` blocks of an assistant's message, answered by `tool_result` blocks
of one user's message. The tests compare it with the types of the `anthropic` package.
"""

from collections.abc import Sequence
from typing import Final

from edge.mcp.llm import models, pictures, replies
from edge.mcp.llm.models import Answered, Envelope, ModelCall
from tools_cache.api.tool import Json

_FINISHED: Final = ("end_turn", "stop_sequence")


class Anthropic:
    """Reads a message, or its `content`."""

    form = "anthropic"

    def calls(self, message: Json) -> tuple[ModelCall, ...]:
        replies.check_error(message)
        content, ended = message, None
        if not isinstance(message, list):
            whole = models.an_object(message, "message")
            content, ended = whole.get("content"), whole.get("stop_reason")
            if content is None or whole.get("tool_calls"):
                raise replies.foreign(message, "anthropic")
        if not content:
            replies.empty(ended, _FINISHED)
        if isinstance(content, str):
            return ()
        found = []
        for number, one in enumerate(models.a_list(content, "content")):
            where = f"content.{number}"
            block = models.an_object(one, where)
            if not isinstance(block.get("type"), str) or "call_id" in block:
                raise replies.foreign(message, "anthropic")
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
                "content": _content(envelope),
                "is_error": not envelope.get("ok"),
            }
            for call, envelope in answered
        ]
        return [{"role": "user", "content": results}] if results else []

    def tools(self, forms: Sequence[Json]) -> list[Json]:
        return list(forms)


def _content(envelope: Envelope) -> str | list[dict[str, Json]]:
    """Return an answer with its pictures; the result of an error may hold text only."""
    said, found = pictures.split(envelope)
    if not found or not envelope.get("ok"):
        return models.text(said)
    return [
        {"type": "text", "text": models.text(said)},
        *(
            {
                "type": "image",
                "source": {"type": "base64", "media_type": each.media_type, "data": each.data},
            }
            for each in found
        ),
    ]
