"""Sets several devices."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.kasa_devices import KasaHome, listed_text
from tools_cache.everyday.kasa_scenes import set_data, set_together


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Set several devices; returns once each of them confirmed that."""
    outcomes = await set_together(KasaHome(ctx), args.get("states", []), field="states")
    text = listed_text([{**one.state, "name": one.device.name} for one in outcomes])
    return {"data": set_data(outcomes, text)}
