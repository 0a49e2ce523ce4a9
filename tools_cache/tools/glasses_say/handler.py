"""Speaks a text."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:  # noqa: ARG001 - every handler has this shape
    """Return the text as speech."""
    return {"data": {"text": args["text"]}, "render": {"audio": {"text": args["text"]}}}
