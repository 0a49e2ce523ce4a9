"""Turns live captions on or off."""

from collections.abc import Mapping
from typing import Final

from tools_cache.api.tool import Json, ToolContext

_OFF: Final = {
    "layout": "text_wall",
    "text": "Captions are off",
    "durationMs": 2000,
    "recall": False,
}


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Switch them. Once they are on, a clear lens shows them."""
    on = args.get("on") is not False
    await ctx.captions.switch(on=on)
    return {
        "data": {"on": on, "text": "Captions are on" if on else "Captions are off"},
        "render": {
            "display": {"layout": "clear_view"} if on else _OFF,
            "audio": {"suppressVoiceResponse": True},
        },
    }
