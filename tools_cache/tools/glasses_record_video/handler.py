"""Records or streams a video with the glasses' camera."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Begin it."""
    if (url := args.get("url")) is not None:
        data = await ctx.glasses_ask("stream_video", {"url": url})
        return {"data": {**data, "text": "Streaming a video"}}
    data = await ctx.glasses_ask("record_video", {})
    return {"data": {**data, "text": "Recording a video"}}
