"""Fills the dashboard that the glasses show by themselves."""

from collections.abc import Mapping

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Send the given parts, one after another."""
    if not args:
        raise _wrong("Nothing to fill: give layout, weather, calendar, map or note")
    if "pane" in args and "layout" not in args:
        raise _wrong("A pane is part of a layout: give both")
    said = []
    if "layout" in args:
        pane = {"pane": args["pane"]} if "pane" in args else {}
        await ctx.glasses_do("layout", {"layout": args["layout"], **pane})
        said.append("layout")
    if "weather" in args:
        await ctx.glasses_do("weather", args["weather"])
        said.append("weather")
    if "calendar" in args:
        await ctx.glasses_do("calendar", {"entries": args["calendar"]})
        said.append("calendar")
    if "map" in args:
        await ctx.glasses_do("map", {"image": args["map"]})
        said.append("map")
    if "note" in args:
        await ctx.glasses_do("note", args["note"])
        said.append(f"note {args['note']['slot']}")
    return {"data": {"text": f"Dashboard: {', '.join(said)}"}}


def _wrong(message: str) -> ToolFailure:
    return ToolFailure.of(ErrorCode.INVALID_ARGUMENTS, message)
