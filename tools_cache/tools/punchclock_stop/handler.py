"""Stops work."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.punch_clock import PunchClock
from tools_cache.everyday.work_hours import duration


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:  # noqa: ARG001 - every handler has this shape
    """End work, also from a pause; returns once it is on disk."""
    clock = PunchClock(ctx.db, ctx.now(), ctx.config.get("timezone", ""))
    work, stopped = await clock.stop()
    text, ended = "Not working", work.last if stopped else None
    if ended:
        name = f"Stopped {ended.project}" if ended.project else "Stopped"
        text = f"{name} after {duration(ended.length(clock.now))}"
    return {
        "data": {
            **clock.answer(work, text),
            "stopped": stopped,
            "entry": clock.to_json(ended) if ended else None,
        }
    }
