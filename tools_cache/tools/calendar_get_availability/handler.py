"""Finds free time in the calendars."""

from collections.abc import Mapping
from datetime import datetime, timedelta, tzinfo

from tools_cache.api import free_slots
from tools_cache.api.calendars import PRIMARY, Busy, CalendarTrouble, failure, moment
from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure

LONGEST = timedelta(days=31)


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return busy periods and the free slots between them."""
    start, end = moment(args, "start"), moment(args, "end")
    _check(start, end)
    try:
        found = await ctx.calendars.between(start, end, calendars=args.get("calendars", [PRIMARY]))
    except CalendarTrouble as e:
        raise failure(e) from e
    taken = free_slots.merged(found.busy, start, end)
    slots = free_slots.free(taken, start, end, minutes=args.get("min_duration", 30))
    zone = start.tzinfo
    data = {
        "busy": [_span(one.start, one.end, zone) for one in taken],
        "available_slots": [
            {**_span(one.start, one.end, zone), "duration_minutes": one.minutes} for one in slots
        ],
        "summary": free_slots.summary(taken, slots),
        "text": free_slots.text(slots, start, end),
        **({"unread_events": found.unread} if found.unread else {}),
    }
    if args.get("include_details", False):
        data["existing_events"] = [
            _event(one, zone) for one in sorted(found.busy, key=lambda b: (b.start, b.end, b.title))
        ]
    return {"data": data}


def _check(start: datetime, end: datetime) -> None:
    if start >= end:
        raise _invalid("/start must be before /end", "Swap start and end")
    if end - start > LONGEST:
        raise _invalid(
            f"/end is more than {LONGEST.days} days after /start", "Ask for a shorter time"
        )


def _span(start: datetime, end: datetime, zone: tzinfo | None) -> dict[str, Json]:
    return {"start": start.astimezone(zone).isoformat(), "end": end.astimezone(zone).isoformat()}


def _event(one: Busy, zone: tzinfo | None) -> dict[str, Json]:
    return {
        "title": one.title,
        **_span(one.start, one.end, zone),
        "calendar": one.calendar,
        "all_day": one.all_day,
    }


def _invalid(problem: str, fix: str) -> ToolFailure:
    return ToolFailure.of(
        ErrorCode.INVALID_ARGUMENTS, f"Invalid parameters: {problem}", suggestion=fix
    )
