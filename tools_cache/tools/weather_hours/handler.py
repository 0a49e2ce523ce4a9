"""Returns the weather of the next hours."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure
from tools_cache.everyday.weather import WET, Report, joined, report, sky, words_of

HOURS: Final = 12
LIKELY: Final = 50
"""Percent from which rain is expected."""


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return the next hours, for a place or for where the device is; none that is over."""
    found = await report(args, ctx)
    coming = [hour for hour in found.forecast["hours"] if hour["at"] > found.now][:HOURS]
    if not coming:
        raise ToolFailure.of(
            ErrorCode.HTTP_ERROR,
            f"Nothing is known of the coming hours. {found.why}".strip(),
            suggestion="Try again when the network is back",
        )
    text = "\n".join([_first(found, coming), *(_line(found, hour) for hour in coming)])
    hours = [
        {
            "time": found.local(hour["at"]).strftime("%Y-%m-%dT%H:%M"),
            "temperature": found.in_units(hour["temperature"]),
            "weather": words_of(hour["code"]),
            "precipitation_chance": hour["chance"],
            "wind": found.speed(hour["wind"]),
        }
        for hour in coming
    ]
    return {"data": {**found.to_json(), "hours": hours, "text": text}}


def _first(found: Report, hours: Sequence[Mapping[str, Any]]) -> str:
    """Return the coldest and the warmest hour, and when something will fall."""
    values = [hour["temperature"] for hour in hours]
    low, high = found.degrees(min(values)), found.degrees(max(values))
    warmth = low if low == high else f"{low} to {high}"
    wet = next((hour for hour in hours if _is_wet(hour)), None)
    when = "dry" if wet is None else f"{_wet(wet)} at {found.local(wet['at']):%H:%M}"
    return f"{found.name} {warmth}, {when}{found.age}"


def _is_wet(hour: Mapping[str, Any]) -> bool:
    """Return whether something falls: by its chance or, where none is known, by the code."""
    known, code = hour["chance"], hour["code"]
    return bool(known >= LIKELY if known is not None else code is not None and code >= WET)


def _wet(hour: Mapping[str, Any]) -> str:
    code = hour["code"]
    return words_of(code) if code is not None and code >= WET else "rain"


def _line(found: Report, hour: Mapping[str, Any]) -> str:
    about = sky(hour["code"], hour["chance"], hour["temperature"])
    return joined(f"{found.local(hour['at']):%H:%M} {found.degrees(hour['temperature'])}", about)
