"""Removes a reminder."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.reminders import ReminderBook


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Remove it; answers with what was removed."""
    book = ReminderBook(ctx)
    reminder = await book.the_one(args["reminder"])
    removed = await book.remove(reminder)
    return {"data": {"id": reminder.id, "removed": removed, "text": f"Removed: {reminder.text}"}}
