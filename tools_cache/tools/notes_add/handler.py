"""Adds a note."""

from collections.abc import Mapping

from tools_cache.api import notes
from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Store `text`; returns once it is on disk."""
    text = args["text"].strip()
    if not text:
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            "Invalid parameters: /text holds only blanks",
            suggestion="Give the text to note",
        )
    await ctx.storage.execute(notes.CREATE)
    number = await ctx.storage.execute(notes.INSERT, text, notes.folded(text), ctx.now())
    return {"data": {"id": number, "text": f"Noted: {text}"}}
