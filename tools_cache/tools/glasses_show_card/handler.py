"""Shows a card on the lens."""

from collections.abc import Mapping

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:  # noqa: ARG001 - every handler has this shape
    """Return the card for the lens, without speech."""
    lines = [" ".join(line.split()) for line in args["lines"]]
    if not any(lines):
        raise ToolFailure.of(ErrorCode.INVALID_ARGUMENTS, "lines: all lines are empty")
    text = "\n".join([*lines, *([args["footer"]] if "footer" in args else [])])
    display: dict[str, Json] = {"layout": "reference_card", "title": args["title"], "text": text}
    if "scene" in args:
        display["scene"] = args["scene"]
    if "duration_s" in args:
        display["durationMs"] = max(1, round(args["duration_s"] * 1000))
    data = {"text": f"{args['title']}\n{text}"}
    return {"data": data, "render": {"display": display}}
