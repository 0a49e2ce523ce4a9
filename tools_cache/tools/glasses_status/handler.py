"""Returns the state of the glasses."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:  # noqa: ARG001 - every handler has this shape
    """Return the state, with a line for the lens."""
    glasses = {**ctx.glasses(), "network": ctx.network()}
    if not glasses["model"]:
        return {"data": {**glasses, "text": "No glasses were ever connected"}}
    battery = "" if glasses["battery"] is None else f", battery {glasses['battery']} %"
    case = "" if glasses["case"] is None else f", case {glasses['case']} %"
    link = "connected" if glasses["ready"] else "away"
    return {"data": {**glasses, "text": f"{glasses['model']}, {link}{battery}{case}"}}
