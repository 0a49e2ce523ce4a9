"""Weather: a made-up forecast, the same for the same place until the season changes."""

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any, Final

from edge.devcloud.appserver import AppServer
from edge.devcloud.sdk import CallContext, create_tool, params, reply

STATE_ENV: Final = "GLASSD_APP_STATE_DIR"
SEASON_ENV: Final = "GLASSD_WEATHER_SEASON"
SEASON_FILE: Final = "season.txt"
"""In the app's state folder; its words make other weather from the next question on, the
environment's until then.
"""
CACHE_S: Final = 3600.0
_SKIES: Final = (
    "clear",
    "a few clouds",
    "overcast",
    "light rain",
    "showers",
    "fog",
    "snow",
    "thunderstorms",
)
_DAYS: Final = ("today", "tomorrow", "the day after")


def season() -> str:
    file = Path(os.environ.get(STATE_ENV) or tempfile.gettempdir()) / SEASON_FILE
    try:
        return file.read_text(encoding="utf-8").strip()[:100]
    except (OSError, UnicodeDecodeError):
        return os.environ.get(SEASON_ENV, "")


def forecast(place: str, when: str) -> list[dict[str, Any]]:
    """Three days of weather, drawn from the words alone: `[{day, sky, low, high, wind}]` in °C
    and km/h.
    """
    made = []
    for day in _DAYS:
        dice = hashlib.sha256(f"{place.casefold()}\n{when}\n{day}".encode()).digest()
        sky = _SKIES[dice[0] % len(_SKIES)]
        low = dice[1] % 25 - 5 if sky != "snow" else dice[1] % 9 - 10
        made.append(
            {
                "day": day,
                "sky": sky,
                "low": low,
                "high": low + 2 + dice[2] % 9,
                "wind": dice[3] % 60,
            }
        )
    return made


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
        params(
            ["place"],
            place={
                "type": "string",
                "minLength": 1,
                "maxLength": 100,
                "description": "Town or region",
            },
        ),
        _forecast_tool,
        activation_phrases=["what's the weather in", "weather in"],
        category="retrieval",
        side_effects="read_only",
        idempotent=True,
        cache_ttl_s=CACHE_S,
    )
)

if __name__ == "__main__":
    app.run()
