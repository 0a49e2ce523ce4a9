"""Adds a reminder."""

from collections.abc import Mapping

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure
from tools_cache.everyday.dates import spoken_dates
from tools_cache.everyday.reminders import USER, ReminderBook

NO_TEXT = "it is time"
"""What a reminder says that has only a moment."""


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Store the reminder. The moment is `when`, else the one that the text names."""
    book = ReminderBook(ctx)
    text, when = " ".join(args["text"].split()), None
    if args.get("when"):
        when = book.moment(args["when"])
    else:
        text, when = spoken_dates.split(text, book.now)
        text = text or (NO_TEXT if when else "")
    if not text:
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            "Invalid parameters: /text holds only blanks",
            suggestion="Give what to be reminded of",
        )
    if when is None and args.get("repeat"):
        when = spoken_dates.When(local=book.now.replace(second=0, microsecond=0))
    due, repeat = book.due(when, args.get("repeat", "")) if when else (None, "")
    contact = await _contact(args["contact"], ctx) if args.get("contact") else ""
    row = {
        "text": text,
        "contact": contact,
        "category": args.get("category", USER),
        "due": due,
        "repeat": repeat,
    }
    number = await book.add(row)
    added = next(r for r in await book.all() if r.id == number)
    line = added.line(book.now) if added.due else f"Without a time: {text}"
    return {"data": {**added.to_json(book), "what": text, "text": line}}


async def _contact(name: str, ctx: ToolContext) -> str:
    """Return the id of the one contact of this name. Raises `ToolFailure`."""
    answer = await ctx.call_tool("contacts:find", {"query": name})
    if answer.error is not None:
        raise ToolFailure(answer.error)
    found = answer.data["contacts"]
    if answer.data["total"] == 1:
        return str(found[0]["id"])
    named = ", ".join(contact["name"] for contact in found)
    problem = f"matches {answer.data['total']} contacts: {named}" if found else "is no contact"
    raise ToolFailure.of(
        ErrorCode.INVALID_ARGUMENTS,
        f"Invalid parameters: /contact {name[:80]!r} {problem}",
        suggestion="Give the whole name, or the id from contacts:find",
        details={"matches": found},
    )
