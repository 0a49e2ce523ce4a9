"""Reads the motion sensor of the glasses."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:  # noqa: ARG001 - every handler has this shape
    """Read it once."""
    data = await ctx.glasses_ask("motion", {})
    words = " · ".join(f"{each:.3g}" for each in data["acceleration"])
    return {"data": {**data, "text": f"Motion: {words}"}}
