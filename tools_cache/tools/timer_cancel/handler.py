"""Cancels a timer."""

from collections.abc import Mapping

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Cancel timer `id`."""
    number = int(args["id"])
    if not await ctx.alarms.cancel(number):
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            f"Invalid parameters: /id no timer {number} is running",
            suggestion="timer:list gives the running ones",
        )
    return {"data": {"id": number, "text": f"Timer {number} cancelled"}}
