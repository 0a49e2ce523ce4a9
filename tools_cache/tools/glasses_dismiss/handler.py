"""Sends the glasses back to their own dashboard. Knows nothing of lenses."""

from collections.abc import Mapping

from tools_cache.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:  # noqa: ARG001 - every handler has this shape
    """Leave; what was shown is not to come back after a reconnect, so it is cleared too."""
    await ctx.glasses_do("dashboard", {})
    return {
        "data": {},
        "render": {"display": {"layout": "clear_view"}, "audio": {"suppressVoiceResponse": True}},
    }
