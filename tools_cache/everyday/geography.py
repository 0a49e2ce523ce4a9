"""Positions on the earth: distances, directions, and how they are written for people."""

import math
import re
from collections.abc import Mapping
from typing import Final

from tools_cache.api.handed import Json

EARTH_M: Final = 6_371_009.0
"""Mean radius."""
COMPASS: Final = (
    "north",
    "north-east",
    "east",
    "south-east",
    "south",
    "south-west",
    "west",
    "north-west",
)
_FOOT_M: Final = 0.3048
_MILE_M: Final = 1609.344
_PAIR: Final = re.compile(r"([+-]?\d{1,3}(?:\.\d{1,12})?)\s*[,; ]\s*([+-]?\d{1,3}(?:\.\d{1,12})?)")


def coordinates_in(text: str) -> tuple[float, float] | None:
    """Return latitude and longitude of "60.39, 5.32"; None for any other text."""
    found = _PAIR.fullmatch(text.strip())
    if found is None:
        return None
    latitude, longitude = map(float, found.groups())
    return (latitude, longitude) if on_earth(latitude, longitude) else None


def on_earth(latitude: object, longitude: object) -> bool:
    """Return whether these are the two numbers of a position."""
    return (
        isinstance(latitude, int | float)
        and isinstance(longitude, int | float)
        and not isinstance(latitude, bool)
        and not isinstance(longitude, bool)
        and -90 <= latitude <= 90
        and -180 <= longitude <= 180
    )


def distance_m(start: Mapping[str, Json], end: Mapping[str, Json]) -> float:
    """Return the distance of two places by air."""
    one, other = math.radians(start["latitude"]), math.radians(end["latitude"])
    along = math.radians(end["longitude"] - start["longitude"])
    half = math.sin((other - one) / 2) ** 2
    half += math.cos(one) * math.cos(other) * math.sin(along / 2) ** 2
    return 2 * EARTH_M * math.asin(math.sqrt(min(1.0, half)))


def bearing(start: Mapping[str, Json], end: Mapping[str, Json]) -> float:
    """Return the direction from one place to another, in degrees from north over east."""
    one, other = math.radians(start["latitude"]), math.radians(end["latitude"])
    along = math.radians(end["longitude"] - start["longitude"])
    east = math.sin(along) * math.cos(other)
    north = math.cos(one) * math.sin(other) - math.sin(one) * math.cos(other) * math.cos(along)
    return math.degrees(math.atan2(east, north)) % 360


def compass(degrees: float) -> str:
    """Return the nearest of the eight directions: "north-west"."""
    return COMPASS[round(degrees % 360 / 45) % 8]


def length(metres: float, units: str) -> str:
    """Return a distance as people say it: "120 m", "2.1 km"; imperial "390 ft", "1.3 mi"."""
    if units == "imperial":
        feet = metres / _FOOT_M
        if feet < 1000:
            return f"{_rounded(feet)} ft"
        return _large(metres / _MILE_M, "mi")
    if metres < 995:
        return f"{_rounded(metres)} m"
    return _large(metres / 1000, "km")


def _rounded(value: float) -> int:
    """Return a short distance in steps of ten, the shortest as it is."""
    return round(value) if value < 20 else round(value / 10) * 10


def _large(value: float, unit: str) -> str:
    return f"{value:.1f} {unit}" if value < 9.95 else f"{round(value)} {unit}"


def minutes(seconds: float) -> str:
    """Return how long a way takes: "1 min" at least, "1 h 5 min"."""
    whole = max(1, round(seconds / 60))
    parts = ((whole // 60, "h"), (whole % 60, "min"))
    return " ".join(f"{value} {unit}" for value, unit in parts if value)
