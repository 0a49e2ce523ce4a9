"""Shows a turn in the navigation that the glasses draw by themselves."""

from collections.abc import Mapping

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure

_BESIDE = ("end", "map")


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Show the turn, or leave navigation."""
    turn, end = args.get("turn"), args.get("end") is True
    if end is (turn is not None) or (end and "map" in args):
        raise ToolFailure.of(ErrorCode.INVALID_ARGUMENTS, "Give either a turn or end")
    if end:
        await ctx.glasses_do("end_navigation", {})
        return {"data": {"text": "Navigation: over"}}
    await ctx.glasses_do("navigate", {key: args[key] for key in args if key not in _BESIDE})
    if "map" in args:
        await ctx.glasses_do("route", {"image": args["map"]})
    parts = [str(turn).replace("_", " "), args.get("street", ""), args.get("distance", "")]
    return {"data": {"text": f"Navigation: {', '.join(filter(None, parts))}"}}
