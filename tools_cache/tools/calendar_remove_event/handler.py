"""Removes an event that `calendar:create_event` made, after the user confirmed it."""

from collections.abc import Mapping

from tools_cache.api.calendars import CalendarTrouble, failure
from tools_cache.api.tool import ErrorCode, Json, Named, ToolContext, ToolFailure
from tools_cache.everyday.naming import name_known


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Remove the event of this id."""
    try:
        title = await ctx.calendars.remove(args["event_id"])
    except CalendarTrouble as e:
        raise failure(e) from e
    if title is None:
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            "Invalid parameters: /event_id there is no such event that calendar:create_event made",
            for_wearer="That event is not there any more.",
        )
    text = f"Removed from the calendar: {title}"
    return {"data": {"event_id": args["event_id"], "title": title, "text": text}}


async def name_arguments(args: Mapping[str, Json], ctx: ToolContext) -> dict[str, Named]:
    """Return title and start of an event that `calendar:create_event` made."""
    return await name_known(ctx.db, "event_id", "event", args["event_id"])
