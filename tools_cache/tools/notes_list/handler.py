"""Lists the newest notes."""

from collections.abc import Mapping

from tools_cache.api import notes
from tools_cache.api.tool import Json, ToolContext

NO_NOTES = "No notes yet"


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return up to `limit` notes, newest first."""
    if not await notes.there(ctx.storage):
        return {"data": {"notes": [], "total": 0, "text": NO_NOTES}}
    found = await ctx.storage.fetch(notes.newest(), args.get("limit", 10))
    total = await ctx.storage.fetch(notes.COUNT)
    return {
        "data": {
            "notes": notes.shown(found),
            "total": total[0]["total"],
            "text": notes.listing(found) or NO_NOTES,
        }
    }
