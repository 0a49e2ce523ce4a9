"""Creates an event in the calendar. The user confirmed the call before it runs."""

from collections.abc import Mapping

from tools_cache.api.calendars import CalendarTrouble, Plan, failure, moment
from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.naming import remember, written


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Create the event; its key comes from the call, so a repeated call creates no second one."""
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
    await remember(ctx, {made.uid: f"{plan.title}, {written(start)}"})
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
            "text": f"Added {plan.title}, {start.isoformat(timespec='minutes')}",
        }
    }
