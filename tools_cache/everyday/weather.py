"""The weather of a place: asked of a service, else the last known one with its age."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from tools_cache.api.durations import ago
from tools_cache.api.handed import Database, Json
from tools_cache.api.notes import folded
from tools_cache.api.tool import ToolContext
from tools_cache.errors import ErrorCode, ToolFailure
from tools_cache.everyday.geography import coordinates_in, distance_m

DEADLINE_S: Final = 14.0
MAX_PLACES: Final = 50
MAX_AGE_S: Final = 7 * 86_400.0
"""A forecast is of seven days."""
NEAR_M: Final = 10_000.0
"""The weather of a place is that of one so near."""
AWAY: Final = frozenset({ErrorCode.NETWORK_ERROR, ErrorCode.RATE_LIMIT, ErrorCode.HTTP_ERROR})
"""Failures after which the last known weather is given: also what a hotel's sign-in page causes."""
SMALL: Final = 10
"""A smaller chance of rain, in percent, is not said."""
WET: Final = 51
"""From this weather code on something falls."""
WORDS: Final = {
    0: "clear",
    1: "mostly clear",
    2: "partly cloudy",
    3: "overcast",
    45: "fog",
    48: "freezing fog",
    51: "light drizzle",
    53: "drizzle",
    55: "heavy drizzle",
    56: "light freezing drizzle",
    57: "freezing drizzle",
    61: "light rain",
    63: "rain",
    65: "heavy rain",
    66: "light freezing rain",
    67: "freezing rain",
    71: "light snow",
    73: "snow",
    75: "heavy snow",
    77: "snow grains",
    80: "light showers",
    81: "showers",
    82: "heavy showers",
    85: "light snow showers",
    86: "heavy snow showers",
    95: "thunderstorm",
    96: "thunderstorm with hail",
    99: "thunderstorm with heavy hail",
}
"""WMO weather codes, as Open-Meteo uses them."""
_NO_PLACE: Final = frozenset(
    "here today tonight tomorrow now please outside day days week like the next this for in right"
    " hier heute morgen jetzt bitte aquí hoy mañana ici demain qui oggi domani".split()
)
"""Words beside a place in a spoken sentence: "Bergen tomorrow"."""
_TABLE: Final = "forecasts"
_COLUMNS: Final = {"asked": "REAL NOT NULL", "encrypted__known": "TEXT"}
_THERE: Final = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'forecasts'"
_CHANGING: Final = asyncio.Lock()
"""Held while a forecast takes the place of an earlier one."""


@dataclass(frozen=True, slots=True)
class Report:
    """A forecast for a place. `age_s`: of one that is not new; `why`: why there is no new one."""

    place: Mapping[str, Json]
    forecast: Mapping[str, Any]
    now: float
    units: str
    age_s: float | None = None
    why: str = ""

    @property
    def name(self) -> str:
        return str(self.place["name"])

    @property
    def age(self) -> str:
        """Return " (3 h ago)", nothing if it is new."""
        return "" if self.age_s is None else f" ({ago(self.age_s, short=True)})"

    def local(self, at: float) -> datetime:
        """Return a moment as the clocks at the place show it."""
        return datetime.fromtimestamp(at + self.forecast["utc_offset_s"], UTC)

    def degrees(self, celsius: float) -> str:
        """Return a temperature: "7°", "45°F"."""
        if self.units == "imperial":
            return f"{round(celsius * 9 / 5 + 32)}°F"
        return f"{round(celsius)}°"

    def in_units(self, celsius: float | None) -> float | None:
        """Return a temperature in the unit of the settings."""
        if celsius is None or self.units == "metric":
            return celsius
        return round(celsius * 9 / 5 + 32, 1)

    def speed(self, kmh: float | None) -> float | None:
        """Return a speed in the unit of the settings."""
        return kmh if kmh is None or self.units == "metric" else round(kmh / 1.609344, 1)

    def to_json(self) -> dict[str, Json]:
        """Return what every answer has: place, units, and the age of an old one."""
        imperial = self.units == "imperial"
        units = {"temperature": "°F", "wind": "mph"} if imperial else _METRIC
        old = {} if self.age_s is None else {"age_s": round(self.age_s), "warning": self.why}
        return {"place": dict(self.place), "units": dict(units), **old}


_METRIC: Final = {"temperature": "°C", "wind": "km/h"}


async def report(args: Mapping[str, Json], ctx: ToolContext) -> Report:
    """Return the forecast for a place, or for where the device is. Raises `ToolFailure`."""
    settings, known = ctx.config, KnownForecasts(ctx.db)
    name = place_in(args.get("place", ""))
    _check_settings(name, settings)
    request = {
        key: settings.get(key, None)
        for key in ("url", "geocoding_url", "home", "latitude", "longitude", "gpsd")
    }
    units, place = str(settings.get("units", "metric")), None
    try:
        answer = await ctx.workers.ask("weather", {**request, "place": name}, deadline_s=DEADLINE_S)
        place = answer["place"]
        if "failed" in answer:
            failed = answer["failed"]
            raise ToolFailure.of(ErrorCode(failed.pop("code")), failed.pop("message"), **failed)
    except ToolFailure as failure:
        old = await known.find(name, place) if failure.error.code in AWAY else None
        if old is None or (age_s := max(0.0, ctx.now() - old["asked"])) > MAX_AGE_S:
            raise
        why = failure.error.message
        return Report(old["place"], old["forecast"], ctx.now(), units, age_s, why)
    try:
        await known.keep(name, place, answer["forecast"], ctx.now())
    except Exception as e:  # noqa: BLE001 - a full disk is no reason to withhold the weather
        ctx.log.warning("the forecast is not kept for later: %s", e)
    return Report(place, answer["forecast"], ctx.now(), units)


def place_in(text: str) -> str:
    """Return a place without the words that a spoken sentence has around it."""
    words = text.split()
    for end in (-1, 0):
        while words and words[end].casefold().strip("?!.,") in _NO_PLACE:
            del words[end]
    if len(words) > 1 and words[0] == "a":  # "che tempo fa a Roma": no phrase ends with an article
        del words[0]
    return " ".join(words).rstrip("?!, ")


def words_of(code: float | None) -> str:
    """Return the plain words for a WMO weather code."""
    return "" if code is None else WORDS.get(int(code), f"weather code {int(code)}")


def joined(*parts: str) -> str:
    """Return the parts that say something, with commas."""
    return ", ".join(filter(None, parts))


def sky(code: float | None, percent: float | None, celsius: float) -> str:
    """Return "rain 80 %", "overcast, rain 30 %": the weather with the chance of rain or snow; small
    ones say nothing.
    """
    words = words_of(code)
    if percent is None or percent < SMALL:
        return words
    if code is not None and code >= WET:
        return f"{words} {round(percent)} %"
    return joined(words, f"{'snow' if celsius <= 0 else 'rain'} {round(percent)} %")


def _check_settings(name: str, settings: Any) -> None:
    """Raise `ToolFailure` if the settings do not say where to look."""
    unnamed = not settings.get("geocoding_url", "")
    if name and unnamed and coordinates_in(name) is None:
        raise _unset("A place by name", "geocoding_url")
    at_home = settings.get("latitude", None) is not None
    if name or settings.get("gpsd", "") or at_home:
        return
    if not settings.get("home", ""):
        raise ToolFailure.of(
            ErrorCode.TOOL_UNAVAILABLE,
            "It is not known where this device is",
            suggestion="Name a place, or set gpsd, or latitude and longitude, in [tool.weather]",
            for_wearer="I do not know where we are. Name a place.",
        )
    if unnamed and coordinates_in(settings.get("home", "")) is None:
        raise _unset("home", "geocoding_url, or latitude and longitude,")


def _unset(what: str, key: str) -> ToolFailure:
    return ToolFailure.of(
        ErrorCode.TOOL_UNAVAILABLE,
        f"{what} needs {key} in the settings",
        suggestion=f"Set {key} in [tool.weather]",
    )


class KnownForecasts:
    """The last forecasts of a user's places, encrypted."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def find(self, name: str, place: Mapping[str, Json] | None) -> dict[str, Any] | None:
        """Return `{asked, place, forecast}` of what was asked by this name; without a name, of the
        nearest place, or of where the device was last. None if there is none.
        """
        rows = await self._rows()
        if name or place is None:
            wanted = folded(name)
            return next((row for row in rows if row["name"] == wanted), None)
        near = [row for row in rows if distance_m(row["place"], place) <= NEAR_M]
        return min(near, key=lambda row: distance_m(row["place"], place), default=None)

    async def keep(
        self, name: str, place: Mapping[str, Json], forecast: Mapping[str, Json], now: float
    ) -> None:
        """Store a forecast in place of the earlier one; at most 50 are kept, the newest."""
        known = {"name": folded(name), "place": dict(place), "forecast": dict(forecast)}
        async with _CHANGING:
            rows = await self._rows()
            await self._db.create_table(_TABLE, _COLUMNS)
            await self._db.insert(_TABLE, {"asked": now, "encrypted__known": known})
            same = [row for row in rows if row["name"] == known["name"]]
            others = [row for row in rows if row["name"] != known["name"]]
            gone = [row["id"] for row in (*same, *others[MAX_PLACES - 1 :])]
            if gone:
                await self._db.delete(_TABLE, where={"id": gone})

    async def _rows(self) -> list[dict[str, Any]]:
        """Return what is stored, newest first. Creates no table, so it works on a full disk."""
        if not await self._db.fetch(_THERE):
            return []
        rows = await self._db.select(_TABLE, order="-id", limit=2 * MAX_PLACES)
        return [{"id": row["id"], "asked": row["asked"], **row["encrypted__known"]} for row in rows]
