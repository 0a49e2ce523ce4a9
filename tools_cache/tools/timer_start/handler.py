"""Starts a timer."""

from collections.abc import Mapping

from tools_cache.api.durations import spoken
from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Set an alarm `seconds` from now."""
    seconds = int(args["seconds"])
    label = args.get("label", "").strip()
    number = await ctx.alarms.set(seconds, label or f"Timer: {spoken(seconds)} over")
    name = f"Timer {number}: {label}" if label else f"Timer {number}"
    return {"data": {"id": number, "seconds": seconds, "text": f"{name}, {spoken(seconds)}"}}
