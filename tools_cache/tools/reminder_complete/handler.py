"""Marks a reminder as done."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.reminders import ReminderBook, spoken


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Mark it, or move one that repeats to its next moment."""
    book = ReminderBook(ctx)
    wanted = args["reminder"]
    for ending in (" as done", " as completed", " done"):  # as it is said
        wanted = wanted.removesuffix(ending) or wanted
    reminder = await book.the_one(wanted)
    text = f"Done: {reminder.text}"
    following = book.following(reminder) if reminder.row["repeat"] else None
    if following is None:
        if not reminder.done:
            await book.change(reminder, {"completed": 1, "completed_at": ctx.now()})
    else:
        due = reminder.due
        if due is not None and due.date() <= book.now.date():
            await book.change(reminder, {"due": following})
            due = book.local(following)
        text += f"\nNext: {spoken(due, book.now)}" if due is not None else ""
    after = await book.the_one(str(reminder.id))
    return {"data": {**after.to_json(book), "what": reminder.text, "text": text}}
