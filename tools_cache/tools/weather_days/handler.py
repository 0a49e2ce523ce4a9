"""Returns the weather of the coming days."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure
from tools_cache.everyday.weather import Report, joined, report, sky, words_of


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return the coming days, for a place or for where the device is; none that is over."""
    found = await report(args, ctx)
    today = found.local(found.now).date()
    known = [day for day in found.forecast["days"] if day["date"] >= today.isoformat()]
    coming = known[: args.get("days", 3)]
    if not coming:
        raise ToolFailure.of(
            ErrorCode.HTTP_ERROR,
            f"Nothing is known of the coming days. {found.why}".strip(),
            suggestion="Try again when the network is back",
        )
    first, *others = (_line(found, day, today) for day in coming)
    text = "\n".join([f"{found.name} {_within(first)}{found.age}", *others])
    days = [
        {
            "date": day["date"],
            "low": found.in_units(day["low"]),
            "high": found.in_units(day["high"]),
            "weather": words_of(day["code"]),
            "precipitation_chance": day["chance"],
            "wind_max": found.speed(day["wind"]),
        }
        for day in coming
    ]
    return {"data": {**found.to_json(), "days": days, "text": text}}


def _line(found: Report, day: Mapping[str, Any], today: date) -> str:
    when = date.fromisoformat(day["date"])
    near = {today: "Today", today + timedelta(days=1): "Tomorrow"}
    name = near.get(when) or f"{when:%A}"
    warmth = f"{name} {found.degrees(day['low'])} to {found.degrees(day['high'])}"
    return joined(warmth, sky(day["code"], day["chance"], day["high"]))


def _within(line: str) -> str:
    """Return a line as it stands within a sentence; the names of weekdays stay as they are."""
    near = line.startswith(("Today", "Tomorrow"))
    return line[:1].lower() + line[1:] if near else line
