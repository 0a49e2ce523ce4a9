"""Records a video with the glasses' camera."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:  # noqa: ARG001 - every handler has this shape
    """Begin it."""
    data = await ctx.glasses_ask("record_video", {})
    return {"data": {**data, "text": "Recording a video"}}
