"""Deletes a note that the wearer spoke and the glasses keep."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, Named, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Delete it; returns what is left."""
    kept = await ctx.glasses_ask("remove_voice_note", {"note": args["note"]})
    return {"data": {**kept, "text": f"Spoken note {args['note']} is deleted"}}


async def name_arguments(args: Mapping[str, Json], ctx: ToolContext) -> dict[str, Named]:
    """Return when the note was spoken, if the glasses said that."""
    notes = (await ctx.glasses_ask("voice_notes", {}))["notes"]
    at = next((each["at"] for each in notes if each["note"] == args["note"]), None)
    return {} if at is None else {"note": Named("note", f"{args['note']}, of {at}")}
