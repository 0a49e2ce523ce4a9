"""Returns the state of the glasses' Wi-Fi, and the networks that they hear."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Ask the glasses."""
    data = dict(await ctx.glasses_ask("wifi", {}))
    said = f"Wi-Fi: {data['ssid'] or 'connected'}" if data["connected"] else "Wi-Fi: not connected"
    if args.get("scan"):
        networks = (await ctx.glasses_ask("wifi_networks", {}))["networks"]
        data["networks"] = networks
        said += "".join(f"\n{each['ssid']}" for each in networks) or "\nNo network is near"
    return {"data": {**data, "text": said}}
