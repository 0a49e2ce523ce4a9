"""Lists reminders."""

from collections.abc import Mapping
from datetime import date

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure
from tools_cache.everyday.reminders import USER, ReminderBook, chosen

MOST = 100
SHOWN = 20
NOTHING = {
    "today": "No reminders today",
    "tomorrow": "No reminders tomorrow",
    "overdue": "Nothing is overdue",
    "past": "No past reminders",
    "date": "No reminders then",
    "range": "No reminders then",
}


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return the reminders of a range and a category."""
    book, which = ReminderBook(ctx), args.get("range", "upcoming")
    days = _days(args) if which in ("date", "range") else None
    category = args.get("category", USER)
    found = [
        reminder
        for reminder in chosen(await book.all(), which, book.now, days)
        if category in ("all", reminder.row["category"])
    ]
    lines = [reminder.line(book.now) for reminder in found[:SHOWN]]
    if len(found) > SHOWN:
        lines.append(f"and {len(found) - SHOWN} more")
    listed = [reminder.to_json(book) for reminder in found[:MOST]]
    text = "\n".join(lines) or NOTHING.get(which, "No reminders")
    return {"data": {"reminders": listed, "total": len(found), "text": text}}


def _days(args: Mapping[str, Json]) -> tuple[date, date]:
    """Return the first and the last day. Raises `ToolFailure`."""
    first = args.get("date", "")
    last = args.get("until", first) if args["range"] == "range" else first
    try:
        days = date.fromisoformat(first), date.fromisoformat(last)
    except ValueError:
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            "Invalid parameters: /date must be a day",
            suggestion="Give it like 2026-11-30",
        ) from None
    if days[1] < days[0]:
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS, "Invalid parameters: /until is before /date"
        )
    return days
