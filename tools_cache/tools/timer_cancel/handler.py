"""Cancels a timer."""

from collections.abc import Mapping

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Cancel timer `id`, or the only one that runs."""
    number = int(args["id"]) if "id" in args else await _only_one(ctx)
    if not await ctx.alarms.cancel(number):
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            f"Invalid parameters: /id no timer {number} is running",
            suggestion="timer:list gives the running ones",
        )
    return {"data": {"id": number, "text": f"Timer {number} cancelled"}}


async def _only_one(ctx: ToolContext) -> int:
    running = sorted(int(alarm["id"]) for alarm in await ctx.alarms.pending())
    if len(running) == 1:
        return running[0]
    numbers = ", ".join(map(str, running))
    raise ToolFailure.of(
        ErrorCode.INVALID_ARGUMENTS,
        f"Invalid parameters: /id {f'is one of {numbers}' if running else 'no timer is running'}",
        suggestion="timer:list gives the running ones",
        for_wearer=f"Which timer? {numbers}." if running else "No timer is running.",
    )
