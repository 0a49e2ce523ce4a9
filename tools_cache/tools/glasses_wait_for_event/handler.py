"""Waits for the wearer to do something. Knows the words for it, not how it is heard."""

from collections.abc import Mapping

from tools_cache.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Say which it was; the wearer, who did it, is shown nothing."""
    return {
        "data": await ctx.wearer.next(
            args.get("events"), after=args.get("after"), timeout_s=args["timeout_s"]
        )
    }
