"""Changes settings of the glasses: brightness, silent mode, and the volume of the voice."""

from collections.abc import Mapping

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Apply the named settings, in an order in which the effect is still visible."""
    level, auto, silent = args.get("brightness"), args.get("auto"), args.get("silent")
    volume = args.get("volume")
    if level is None and auto is None and silent is None and volume is None:
        raise _wrong("Nothing to set: give brightness, auto, volume or silent")
    if level is None and auto is False:
        raise _wrong("Without auto a brightness is needed: give brightness, 0 to 100")
    said = []
    if level is not None or auto:
        await ctx.glasses_do("brightness", {"level": level, "auto": auto is True})
        said.append("Brightness: automatic" if auto else f"Brightness: {level} %")
    if volume is not None:
        await ctx.glasses_do("volume", {"level": volume})
        said.append(f"Volume: {volume} %" if volume else "Volume: 0 %, nothing is spoken")
    if silent is not None:
        await ctx.glasses_do("silent", {"on": silent})
        said.append("Silent mode: on" if silent else "Silent mode: off")
    return {"data": {**args, "text": "\n".join(said)}}


def _wrong(message: str) -> ToolFailure:
    return ToolFailure.of(ErrorCode.INVALID_ARGUMENTS, message)
