"""Lets the glasses join a Wi-Fi network."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Join it, and return the state as the glasses report it."""
    data = await ctx.glasses_ask("join_wifi", args)
    return {"data": {**data, "text": f"Wi-Fi: {data['ssid'] or 'connected'}"}}
