"""Restarts the glasses."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:  # noqa: ARG001 - it has none
    """Send the order; the glasses do not answer it."""
    await ctx.glasses_do("restart", {})
    return {"data": {"text": "The glasses restart"}}
