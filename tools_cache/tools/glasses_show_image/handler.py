"""Shows a picture on the lens."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return the picture converted for this lens, without speech."""
    display: dict[str, Json] = {
        "layout": "bitmap_view",
        "data": await ctx.pictures.fitted(args["image"]),
        "alt": args["alt"],
    }
    if "caption" in args:
        display |= {"beside": args["caption"], "alt": f"{args['alt']}\n{args['caption']}"}
    if "duration_s" in args:
        display["durationMs"] = max(1, round(args["duration_s"] * 1000))
    return {
        "data": {"text": args["alt"]},
        "render": {"display": display},
    }
