"""Takes a photo with the glasses' camera."""

from collections.abc import Mapping
from typing import Final

from tools_cache.api.tool import Json, ToolContext

_TYPE: Final = "image/jpeg"


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Take it. The picture is content of its own; the data says what it is."""
    photo = await ctx.camera.take(str(args["size"]))
    said = "A photo was taken"
    picture = await ctx.attach(photo.jpeg, _TYPE)
    return {
        "ok": True,
        "data": {"text": said, "type": _TYPE, "bytes": len(photo.jpeg), "turned": photo.turned},
        "render": {
            "display": {"layout": "text_wall", "text": said, "durationMs": 3000, "recall": False}
        },
        "meta": {"content": [{"type": "text", "text": said}, picture]},
    }
