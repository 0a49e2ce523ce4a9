"""Returns the weather now."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.geography import compass
from tools_cache.everyday.weather import Report, joined, report, sky, words_of


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return the weather now, for a place or for where the device is."""
    found = await report(args, ctx)
    now = found.forecast["current"]
    weather = words_of(now["code"])
    data = {
        **found.to_json(),
        "temperature": found.in_units(now["temperature"]),
        "feels_like": found.in_units(now["feels_like"]),
        "weather": weather,
        "wind": found.speed(now["wind"]),
        "gusts": found.speed(now["gusts"]),
        "wind_from": now["wind_from"],
        "humidity": now["humidity"],
        "precipitation_mm": now["precipitation"],
    }
    first = f"{found.name} {found.degrees(now['temperature'])}, {weather}{found.age}"
    text = "\n".join(filter(None, (first, _felt(found), _today(found))))
    return {"data": {**data, "text": text}}


def _felt(found: Report) -> str:
    """Return "Feels like 4°, wind 22 km/h from the west", as far as it is known."""
    now = found.forecast["current"]
    felt = now["feels_like"]
    feels = "" if felt is None else f"feels like {found.degrees(felt)}"
    wind, side, speed = "", now["wind_from"], found.speed(now["wind"])
    if speed is not None:
        wind = f"wind {round(speed)} {found.to_json()['units']['wind']}"
        wind += "" if side is None else f" from the {compass(side)}"
    line = joined(feels, wind)
    return line[:1].upper() + line[1:]


def _today(found: Report) -> str:
    """Return "Today 5° to 9°, rain 80 %" of the day that it is at the place."""
    today = found.local(found.now).date().isoformat()
    for day in found.forecast["days"]:
        if day["date"] == today:
            low, high = found.degrees(day["low"]), found.degrees(day["high"])
            about = sky(day["code"], day["chance"], day["high"])
            return joined(f"Today {low} to {high}", about)
    return ""
