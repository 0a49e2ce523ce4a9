"""Dims the glasses' own light, lets it shine in a colour, or switches it off."""

from collections.abc import Mapping

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Do the one thing that is asked for."""
    level, color, off = args.get("level"), args.get("color"), args.get("off") is True
    if off and (color is not None or level is not None):
        raise _wrong("Nothing to switch off: give off alone")
    if off:
        await ctx.glasses_do("light_off", {})
        return {"data": {"off": True, "text": "Light: off"}}
    if color is not None:
        ms, times = round(args.get("seconds", 1) * 1000), args.get("times", 1)
        pattern = {"color": color, "on_ms": ms, "off_ms": ms, "times": times}
        await ctx.glasses_do("blink", {**pattern, "level": level})
        more = f", {times} times" if times > 1 else ""
        return {"data": {"color": color, "times": times, "text": f"Light: {color}{more}"}}
    if level is None:
        raise _wrong("Nothing to do: give level, color or off")
    await ctx.glasses_do("light", {"level": level})
    return {"data": {"level": level, "text": f"Light: {level} %"}}


def _wrong(message: str) -> ToolFailure:
    return ToolFailure.of(ErrorCode.INVALID_ARGUMENTS, message)
