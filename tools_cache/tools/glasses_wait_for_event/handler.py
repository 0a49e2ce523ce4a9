"""Waits for the wearer to do something."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return the event; nothing is shown to the wearer, who caused it."""
    return {
        "data": await ctx.wearer.next(
            args.get("events"), after=args.get("after"), timeout_s=args["timeout_s"]
        )
    }
