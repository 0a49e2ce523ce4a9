"""Sets by how much the glasses' microphone amplifies."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Set it."""
    await ctx.glasses_do("gain", {"level": args["gain"]})
    return {"data": {**args, "text": f"Gain of the microphone: {args['gain']} %"}}
