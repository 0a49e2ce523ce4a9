"""Pauses work."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.punch_clock import PunchClock


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:  # noqa: ARG001 - every handler has this shape
    """Interrupt work; returns once it is on disk."""
    clock = PunchClock(ctx.db, ctx.now(), ctx.config.get("timezone", ""))
    return {"data": clock.answer(await clock.pause())}
