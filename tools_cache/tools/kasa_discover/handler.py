"""Searches for devices."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.kasa_devices import KasaHome, listed_text, public


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:  # noqa: ARG001 - a handler's form
    """Return the devices that answered a search, and those that cannot be used."""
    devices, problems = await KasaHome(ctx).discover()
    lines = [*devices, *problems]
    return {
        "data": {
            "devices": [
                {**public(one), "kind": one["kind"], "host": one["host"]} for one in devices
            ],
            "problems": problems,
            "text": listed_text(lines),
        }
    }
