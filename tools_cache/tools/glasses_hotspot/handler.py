"""Switches the Wi-Fi network that the glasses make themselves."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Switch it, and return how to join it."""
    data = await ctx.glasses_ask("hotspot", {"on": args["on"]})
    said = f"Hotspot: {data['ssid'] or 'on'}" if data["on"] else "Hotspot: off"
    return {"data": {**data, "text": said}}
