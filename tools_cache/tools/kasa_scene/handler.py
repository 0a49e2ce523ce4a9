"""Sets a scene."""

from collections.abc import Mapping

from tools_cache.api.kasa_devices import KasaHome
from tools_cache.api.kasa_scenes import KasaScenes
from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Set all devices of a scene; returns once each of them confirmed that."""
    scenes = KasaScenes(KasaHome(ctx), ctx)
    name, wishes = await scenes.find(args["scene"])
    outcomes = await scenes.apply(wishes)
    failed = [one for one in outcomes if one.failed]
    if failed:
        raise scenes.failure(name, outcomes)
    return {
        "data": {
            "scene": name,
            "devices": [
                {
                    "device": one.device.name,
                    "on": one.state["on"],
                    "brightness": one.state["brightness"],
                }
                for one in outcomes
            ],
            "text": scenes.done(name),
        }
    }
