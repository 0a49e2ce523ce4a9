"""Returns the spoken notes that the glasses keep, or what is said in one."""

import base64
from collections.abc import Mapping
from typing import Final

from tools_cache.api.tool import Json, ToolContext, ToolFailure

_TYPE: Final = "audio/wav"


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """List them; with a number fetch that one: its words, else its sound as content."""
    if "note" not in args:
        kept = dict(await ctx.glasses_ask("voice_notes", {}))
        lines = [f"{each['note']}: {each['at']}" for each in kept["notes"]]
        none = "No spoken notes" if kept["known"] else "The glasses have not said which notes"
        return {"data": {**kept, "text": "\n".join(lines) or none}}
    found = dict(await ctx.glasses_ask("voice_note", {"note": args["note"]}))
    wave = found.pop("wave", None)
    if wave is None:
        return {"data": {**found, "text": found["words"] or "Nothing was understood"}}
    said = f"A spoken note of {found['seconds']:g} s"
    try:
        sound = await ctx.attach(base64.b64decode(wave), _TYPE)
    except ToolFailure as failure:
        why = f"{failure.error.message}; its words cannot be had: {found['why_no_words']}"
        raise ToolFailure.of(failure.error.code, why) from None
    return {
        "ok": True,
        "data": {**found, "type": _TYPE, "text": said},
        "meta": {"content": [{"type": "text", "text": said}, sound]},
    }
