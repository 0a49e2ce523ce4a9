"""Puts an event into the calendar it is lent. Confirmation is not its business: it runs only
when somebody said yes.
"""

from collections.abc import Mapping

from tools_cache.calendars import CalendarTrouble, Plan, failure, moment
from tools_cache.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Make the event; its name comes from the call, so that a second run of the same call makes
    no second one.
    """
    start, end = moment(args, "start"), moment(args, "end")
    plan = Plan(
        key=ctx.call.idempotency_key or ctx.call.call_id,
        title=args["title"],
        start=start,
        end=end,
        attendees=tuple(args.get("attendees", ())),
        description=args.get("description", ""),
        online=args.get("zoom", True),
    )
    try:
        made = await ctx.calendars.make(plan)
    except CalendarTrouble as e:
        raise failure(e) from e
    return {
        "data": {
            "event_id": made.uid,
            "calendar": made.calendar,
            "title": plan.title,
            "start": args["start"],
            "end": args["end"],
            "attendees": len(plan.attendees),
            "invited": made.invites and bool(plan.attendees),
            "meeting_link": made.link or None,
            "created": made.fresh,
            "text": f"In the calendar: {plan.title}, {start:%Y-%m-%d %H:%M}",
        }
    }
