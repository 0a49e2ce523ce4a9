"""Shows a card on the lens. Knows what stands on it, not how a lens draws."""

from collections.abc import Mapping

from tools_cache.tool import ErrorCode, Json, ToolContext, ToolError, ToolFailure


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:  # noqa: ARG001 - every handler has this shape
    """Hand the card to the lens, silently."""
    lines = [" ".join(line.split()) for line in args["lines"]]
    if not any(lines):
        raise ToolFailure(
            ToolError.of(ErrorCode.INVALID_ARGUMENTS, "lines: there is nothing in any of them")
        )
    text = "\n".join([*lines, *([args["footer"]] if "footer" in args else [])])
    display: dict[str, Json] = {"layout": "reference_card", "title": args["title"], "text": text}
    if "duration_s" in args:
        display["durationMs"] = max(1, round(args["duration_s"] * 1000))
    data = {"text": f"{args['title']}\n{text}"}
    return {"data": data, "render": {"display": display, "audio": {"suppressVoiceResponse": True}}}
