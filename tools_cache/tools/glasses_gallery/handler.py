"""Returns what pictures the glasses keep, and sets whether their button keeps more."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Set it if that is asked for, and return the numbers as the glasses report them."""
    if (keep := args.get("keep")) is not None:
        await ctx.glasses_do("keep_pictures", {"on": keep})
    data = await ctx.glasses_ask("gallery", {})
    if data["busy"]:
        said = f"The camera is busy: {data['busy']}"
    else:
        said = f"Photos in the glasses: {data['photos']}, videos: {data['videos']}"
    return {"data": {**data, "text": said}}
