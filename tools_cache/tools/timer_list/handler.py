"""Lists the running timers."""

from collections.abc import Mapping

from tools_cache.api.durations import TIME_IS_UP, spoken
from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:  # noqa: ARG001 - every handler has this shape
    """Return every timer with its remaining time."""
    timers = [
        {
            "id": alarm["id"],
            "label": alarm["text"].removeprefix(TIME_IS_UP),
            "remaining_s": round(alarm["remaining_s"]),
        }
        for alarm in await ctx.alarms.pending()
    ]
    lines = [
        f"Timer {timer['id']}, {timer['label']}: {spoken(timer['remaining_s'])} left"
        for timer in timers
    ]
    return {"data": {"timers": timers, "text": "\n".join(lines) or "No timer is running"}}
