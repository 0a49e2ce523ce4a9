"""Dims a light."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.kasa_devices import KasaHome, Wish, state_before


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Set the brightness of a light; returns once it confirmed that."""
    home = KasaHome(ctx)
    device = await home.find(args.get("device", ""))
    state = await home.change(Wish(device, brightness=args.get("brightness", 0)))
    level = state["brightness"] if state["on"] else 0
    return {
        "data": {
            "device": device.name,
            "on": state["on"],
            "brightness": level,
            **({"before": [state_before(device, state)]} if state["changed"] else {}),
            "changed": state["changed"],
            "text": f"{device.name}: {level} %" if level else f"{device.name}: off",
        }
    }
