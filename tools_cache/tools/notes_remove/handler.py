"""Removes a note."""

from collections.abc import Mapping

from tools_cache.api import notes
from tools_cache.api.tool import ErrorCode, Json, Named, ToolContext, ToolFailure
from tools_cache.everyday.naming import name_one


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Remove note `id`; returns once it is gone from disk."""
    number = int(args["id"])
    there = await notes.there(ctx.storage)
    found = await ctx.storage.fetch(notes.ONE, number) if there else []
    if not found:
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            f"Invalid parameters: /id there is no note {number}",
            suggestion="notes:list gives the notes with their numbers",
            for_wearer="That note is not there any more.",
        )
    await ctx.storage.execute(notes.REMOVE, number)
    return {"data": {"id": number, "text": f"Removed: {found[0]['text']}"}}


async def name_arguments(args: Mapping[str, Json], ctx: ToolContext) -> dict[str, Named]:
    """Return the text of the note, if no other has the same."""
    if not await notes.there(ctx.storage):
        return {}
    number = int(args["id"])
    found = await ctx.storage.fetch(notes.ONE, number)
    twins = await ctx.storage.fetch(notes.SAME, number)
    return name_one("id", "note", found[0]["text"], [row["text"] for row in twins]) if found else {}
