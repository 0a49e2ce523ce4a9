"""Removes a reminder."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, Named, ToolContext
from tools_cache.everyday.naming import name_one
from tools_cache.everyday.reminders import ReminderBook


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Remove it; answers with what was removed."""
    book = ReminderBook(ctx)
    reminder = await book.the_one(args["reminder"])
    removed = await book.remove(reminder)
    return {"data": {"id": reminder.id, "removed": removed, "text": f"Removed: {reminder.text}"}}


async def name_arguments(args: Mapping[str, Json], ctx: ToolContext) -> dict[str, Named]:
    """Return the text and the moment of the reminder that is meant, if no other has the same."""
    book = ReminderBook(ctx)
    meant = await book.the_one(args["reminder"])
    others = [each.words for each in await book.all() if each.id != meant.id]
    return name_one("reminder", "reminder", meant.words, others)
