"""Lets the glasses leave their Wi-Fi network, or forget one."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Leave it, and return the state as the glasses report it."""
    data = await ctx.glasses_ask("leave_wifi", args)
    said = f"Wi-Fi: {data['ssid'] or 'connected'}" if data["connected"] else "Wi-Fi: not connected"
    return {"data": {**data, "text": said}}
