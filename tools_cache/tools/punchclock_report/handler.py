"""Returns the hours of work of a day or a week."""

from collections.abc import Mapping
from datetime import date, timedelta

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure
from tools_cache.everyday.punch_clock import PunchClock
from tools_cache.everyday.work_hours import (
    forgotten,
    read_day,
    report,
    summary,
    week_of,
    with_forgotten,
)

MOST_ENTRIES = 200
MOST_PROJECTS = 50


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return the hours per project and day, and the entries with their numbers."""
    clock = PunchClock(ctx.db, ctx.now(), ctx.config.get("timezone", ""))
    today = clock.calendar.day(clock.now)
    days = _days(args.get("period", "day"), args.get("date"), today)
    hours = report((await clock.read()).entries, days, clock.calendar, clock.now)
    late = forgotten([entry for entry, _ in hours.entries], clock.now)[:MOST_ENTRIES]
    projects = [{"project": name, "seconds": part} for name, part in hours.projects.items()]
    return {
        "data": {
            "from": days[0].isoformat(),
            "to": days[-1].isoformat(),
            "total_s": hours.total,
            "projects": projects[:MOST_PROJECTS],
            "more_projects": max(0, len(projects) - MOST_PROJECTS),
            "days": [{"date": d.isoformat(), "seconds": part} for d, part in hours.days.items()],
            "entries": [
                {**clock.to_json(entry), "counted_s": part}
                for entry, part in hours.entries[-MOST_ENTRIES:]
            ],
            "more_entries": max(0, len(hours.entries) - MOST_ENTRIES),
            "forgotten": late,
            "text": with_forgotten(summary(_title(days, today), hours), late),
        }
    }


def _days(period: str, given: str | None, today: date) -> list[date]:
    if given is not None and period not in ("day", "week"):
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            f"Invalid parameters: /date does not go with the period {period!r}",
            suggestion="Give the period day or week with a date",
        )
    day = read_day(given) if given is not None else today
    if period == "yesterday":
        return [day - timedelta(days=1)]
    if period == "last week":
        return week_of(day - timedelta(days=7))
    return week_of(day) if period == "week" else [day]


def _title(days: list[date], today: date) -> str:
    year = "" if days[0].year == today.year else f" {days[0].year}"
    if len(days) > 1:
        if today in days:
            return "This week"
        return f"Week of {days[0].day} {days[0]:%b}{year}"
    if days[0] == today:
        return "Today"
    if days[0] == today - timedelta(days=1):
        return "Yesterday"
    return f"{days[0]:%a} {days[0].day} {days[0]:%b}{year}"
