"""Lets the glasses vibrate once."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Send the order; what the glasses do is felt, and not reported."""
    length = args.get("length", "medium")
    await ctx.glasses_do("vibrate", {"length": length})
    return {"data": {"length": length, "text": f"Vibration: {length}"}}
