"""Switches a device."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.kasa_devices import KasaHome, Wish, state_before


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Switch one device on or off; returns once it confirmed that."""
    home = KasaHome(ctx)
    device = await home.find(args.get("device", ""))
    state = await home.change(Wish(device, on=args.get("on", True)))
    word = "on" if state["on"] else "off"
    return {
        "data": {
            "device": device.name,
            "on": state["on"],
            "was_on": state["was"]["on"],
            **({"before": [state_before(device, state)]} if state["changed"] else {}),
            "changed": state["changed"],
            "text": f"{device.name}: {word}"
            if state["changed"]
            else f"{device.name}: {word} already",
        }
    }
