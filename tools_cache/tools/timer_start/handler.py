"""Starts a timer."""

from collections.abc import Mapping

from tools_cache.api.durations import TIME_IS_UP, spoken
from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Set an alarm `seconds` from now."""
    seconds = int(args["seconds"])
    label = args.get("label", "").strip()
    number = await ctx.alarms.set(seconds, TIME_IS_UP + (label or spoken(seconds)))
    name = f"Timer {number}: {label}" if label else f"Timer {number}"
    return {"data": {"id": number, "seconds": seconds, "text": f"{name}, {spoken(seconds)}"}}
