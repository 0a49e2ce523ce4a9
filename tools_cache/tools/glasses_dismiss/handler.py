"""Returns the glasses to their own dashboard, or takes a notification off the lens."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Leave the page; it is also cleared, so that it does not return after a reconnect."""
    if args.get("notification"):
        await ctx.glasses_do("unnotify", {})
        return {"data": {}, "render": {"audio": {"suppressVoiceResponse": True}}}
    await ctx.glasses_do("dashboard", {})
    return {
        "data": {},
        "render": {"display": {"layout": "clear_view"}, "audio": {"suppressVoiceResponse": True}},
    }
