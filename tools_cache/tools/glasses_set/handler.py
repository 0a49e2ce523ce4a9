"""Changes settings of the glasses: brightness, place of the picture, silent mode, and the volume of
the voice.
"""

from collections.abc import Mapping

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Apply the named settings, in an order in which the effect is still visible."""
    level, auto, silent = args.get("brightness"), args.get("auto"), args.get("silent")
    volume, height, depth = args.get("volume"), args.get("height"), args.get("depth")
    if all(each is None for each in (level, auto, silent, volume, height, depth)):
        raise _wrong("Nothing to set: give brightness, auto, volume, height and depth, or silent")
    if (height is None) is not (depth is None):
        raise _wrong("height and depth are set together: give both")
    if level is None and auto is False:
        raise _wrong("Without auto a brightness is needed: give brightness, 0 to 100")
    said = []
    if level is not None or auto:
        await ctx.glasses_do("brightness", {"level": level, "auto": auto is True})
        said.append("Brightness: automatic" if auto else f"Brightness: {level} %")
    if height is not None:
        await ctx.glasses_do("position", {"height": height, "depth": depth})
        said.append(f"Picture: height {height}, depth {depth}")
    if volume is not None:
        await ctx.glasses_do("volume", {"level": volume})
        said.append(f"Volume: {volume} %" if volume else "Volume: 0 %, nothing is spoken")
    if silent is not None:
        await ctx.glasses_do("silent", {"on": silent})
        said.append("Silent mode: on" if silent else "Silent mode: off")
    return {"data": {**args, "text": "\n".join(said)}}


def _wrong(message: str) -> ToolFailure:
    return ToolFailure.of(ErrorCode.INVALID_ARGUMENTS, message)
