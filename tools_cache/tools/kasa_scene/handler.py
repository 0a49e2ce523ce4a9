"""Sets a scene."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.kasa_devices import KasaHome
from tools_cache.everyday.kasa_scenes import find_scene, set_data, set_together


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Set all devices of a scene; returns once each of them confirmed that."""
    scene = find_scene(ctx.config.get("scenes", []), args.get("scene", ""))
    name = str(scene["name"])
    outcomes = await set_together(KasaHome(ctx), scene["devices"], field=f"scene {name!r}")
    return {"data": {"scene": name, **set_data(outcomes, f"{name}: set")}}
