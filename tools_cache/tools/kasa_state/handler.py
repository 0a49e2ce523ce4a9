"""Reads devices."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.kasa_devices import (
    MAX_AT_ONCE,
    KasaHome,
    Wish,
    listed_text,
    public,
    states_text,
)


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return the state of one device, or of all that are known."""
    home, name = KasaHome(ctx), args.get("device", "")
    if name:
        device = await home.find(name)
        state = await home.change(Wish(device))
        one = {**state, "name": device.name}
        return {"data": {"devices": [public(one)], "text": listed_text([one])}}
    known = await home.known()
    if not known:
        devices, problems = await home.discover()
        lines = [*devices, *problems]
    else:
        outcomes = await home.apply([Wish(device) for device in known[:MAX_AT_ONCE]])
        lines = [
            {"name": one.device.name, "text": one.problem}
            if one.failed
            else {**one.state, "name": one.device.name}
            for one in outcomes
        ]
    return {"data": {"devices": list(map(public, lines)), "text": states_text(lines)}}
