"""Removes a note."""

from collections.abc import Mapping

from tools_cache.api import notes
from tools_cache.api.tool import ErrorCode, Json, Named, ToolContext, ToolFailure
from tools_cache.everyday.naming import name_one


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Remove note `id`; returns once it is gone from disk."""
    text = await _text(args, ctx)
    await ctx.storage.execute(notes.REMOVE, int(args["id"]))
    return {"data": {"id": int(args["id"]), "text": f"Removed: {text}"}}


async def name_arguments(args: Mapping[str, Json], ctx: ToolContext) -> dict[str, Named]:
    """Return the text of the note, if no other has the same."""
    text = await _text(args, ctx)
    twins = await ctx.storage.fetch(notes.SAME, int(args["id"]))
    return name_one("id", "note", text, [row["text"] for row in twins])


async def _text(args: Mapping[str, Json], ctx: ToolContext) -> str:
    """Return the text of note `id`. Raise `ToolFailure` if there is none."""
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
    return str(found[0]["text"])
