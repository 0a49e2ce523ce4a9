"""Says a text. Knows what to say, not how sound is made."""

from collections.abc import Mapping

from tools_cache.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:  # noqa: ARG001 - every handler has this shape
    """Hand the text to the speaker."""
    return {"data": {"text": args["text"]}, "render": {"audio": {"text": args["text"]}}}
