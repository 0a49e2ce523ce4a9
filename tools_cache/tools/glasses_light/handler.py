"""Sets how bright the glasses' own light is."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Set it."""
    await ctx.glasses_do("light", {"level": args["level"]})
    return {"data": {**args, "text": f"Light: {args['level']} %"}}
