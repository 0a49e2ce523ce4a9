"""Shows a text on the lens."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:  # noqa: ARG001 - every handler has this shape
    """Return the text for the lens, without speech."""
    display: dict[str, Json] = {"layout": "text_wall", "text": args["text"]}
    if "title" in args:
        display = {"layout": "reference_card", "title": args["title"], "text": args["text"]}
    if "scene" in args:
        display["scene"] = args["scene"]
    if "duration_s" in args:
        display["durationMs"] = max(1, round(args["duration_s"] * 1000))
    return {
        "data": {"text": args["text"]},
        "render": {"display": display},
    }
