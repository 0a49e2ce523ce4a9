"""Searches the notes."""

from collections.abc import Mapping

from tools_cache.api import notes
from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure

MAX_WORDS = 10


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return up to `limit` notes that contain every word of `query`, newest first."""
    words = notes.folded(args["query"]).split()[:MAX_WORDS]
    if not words:
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            "Invalid parameters: /query holds only blanks",
            suggestion="Give a word",
        )
    found: list[dict[str, Json]] = []
    if await notes.there(ctx.storage):
        found = await ctx.storage.fetch(notes.newest(len(words)), *words, args.get("limit", 10))
    text = notes.listing(found) or f"No note contains: {args['query']}"
    return {"data": {"notes": notes.shown(found), "text": text}}
