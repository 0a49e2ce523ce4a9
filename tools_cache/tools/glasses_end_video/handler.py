"""Ends the video that the glasses record or stream."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:  # noqa: ARG001 - every handler has this shape
    """End both, and say what there was."""
    data = await ctx.glasses_ask("end_video", {})
    if data["recorded_s"] is not None:
        said = f"The video was ended after {data['recorded_s']:.0f} s"
    else:
        said = "The stream was ended" if data["streamed"] else "No video was recorded"
    return {"data": {**data, "text": said}}
