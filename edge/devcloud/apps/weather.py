"""Weather: a made-up forecast, the same for the same place until the season changes."""

import hashlib
import os
from typing import Any, Final

from edge.devcloud.apps.state import state_file
from edge.devcloud.appserver import AppServer
from edge.devcloud.sdk import CallContext, create_tool, params, reply, string

SEASON_ENV: Final = "GLASSD_WEATHER_SEASON"
SEASON_FILE: Final = "season.txt"
"""In the app's state folder; its text changes the weather, and comes before `SEASON_ENV`."""
CACHE_S: Final = 3600.0
_FAIR: Final = ("clear", "a few clouds", "overcast", "light rain")
_SKIES: Final = (*_FAIR, "showers", "fog", "snow", "thunderstorms")
_DAYS: Final = ("today", "tomorrow", "the day after")


def season() -> str:
    try:
        return state_file(SEASON_FILE).read_text(encoding="utf-8").strip()[:100]
    except (OSError, UnicodeDecodeError):
        return os.environ.get(SEASON_ENV, "")


def forecast(place: str, when: str) -> list[dict[str, Any]]:
    """Return three days of weather, made from the words: `[{day, sky, low, high, wind}]` in °C and
    km/h.
    """
    days = []
    for day in _DAYS:
        dice = hashlib.sha256(f"{place.casefold()}\n{when}\n{day}".encode()).digest()
        sky = _SKIES[dice[0] % len(_SKIES)]
        low = dice[1] % 25 - 5 if sky != "snow" else dice[1] % 9 - 10
        high, wind = low + 2 + dice[2] % 9, dice[3] % 60
        days.append({"day": day, "sky": sky, "low": low, "high": high, "wind": wind})
    return days


def _forecast_tool(args: dict[str, Any], _: CallContext) -> Any:
    place = " ".join(args["place"].split())
    if not place:
        raise ValueError("place: must not be blank")
    days = forecast(place, season())
    shown = "\n".join(f"{d['day']}: {d['sky']}, {d['low']} to {d['high']} °C" for d in days)
    return reply({"place": place, "days": days}, title=place, show=shown)


app = AppServer("com.example.weather", name="Weather")
app.register_tool(
    create_tool(
        "forecast",
        "Tells the weather of three days for a place.",
        params(["place"], place=string("Town or region", 100)),
        _forecast_tool,
        activation_phrases=["what's the weather in", "weather in", "weather like in"],
        category="retrieval",
        side_effects="read_only",
        idempotent=True,
        cache_ttl_s=CACHE_S,
    )
)

if __name__ == "__main__":
    app.run()
