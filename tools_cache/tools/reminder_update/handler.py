"""Changes a reminder."""

from collections.abc import Mapping

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure
from tools_cache.everyday.dates.spoken_dates import When
from tools_cache.everyday.reminders import Reminder, ReminderBook


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Change what was given."""
    book = ReminderBook(ctx)
    reminder = await book.the_one(args["reminder"])
    row = _changes(args, reminder, book)
    if "completed" in args:
        row["completed"] = int(args["completed"])
        row["completed_at"] = ctx.now() if args["completed"] else None
    if not row:
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            "Invalid parameters: nothing is to be changed",
            suggestion="Give text, when, repeat or completed",
        )
    await book.change(reminder, row)
    after = await book.the_one(str(reminder.id))
    return {"data": {**after.to_json(book), "what": after.text, "text": after.line(book.now)}}


def _changes(args: Mapping[str, Json], reminder: Reminder, book: ReminderBook) -> dict[str, Json]:
    """Return the columns that change. Raises `ToolFailure`."""
    row: dict[str, Json] = {}
    if text := " ".join(args.get("text", "").split()):
        row["text"] = text
    repeat = args.get("repeat", "")
    if not args.get("when") and not repeat:
        return row
    when = book.moment(args["when"]) if args.get("when") else When(local=reminder.due or book.now)
    if repeat == "none":
        due, rule = book.due(When(local=when.local, after=when.after), "")
    else:
        due, rule = book.due(when, repeat or ("" if when.repeat else reminder.row["repeat"]))
    return {**row, "due": due, "repeat": rule, "announced": None}
