"""Returns the glasses to their own dashboard."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:  # noqa: ARG001 - every handler has this shape
    """Leave the page; it is also cleared, so that it does not return after a reconnect."""
    await ctx.glasses_do("dashboard", {})
    return {
        "data": {},
        "render": {"display": {"layout": "clear_view"}, "audio": {"suppressVoiceResponse": True}},
    }
