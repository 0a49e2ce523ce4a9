"""Returns the spoken notes that the glasses keep, or what is said in one."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext

_TYPE = "audio/wav"


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
    sound = {"type": "audio", "data": wave, "mimeType": _TYPE}
    return {
        "ok": True,
        "data": {**found, "type": _TYPE, "text": said},
        "meta": {"content": [{"type": "text", "text": said}, sound]},
    }
