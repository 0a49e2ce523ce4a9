"""Asks a service with Open-Meteo's API for the weather of a place."""

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from edge.tools.workers.http_client import HttpClient
from edge.tools.workers.position import here
from tools_cache.errors import ErrorCode, ToolFailure
from tools_cache.everyday.geography import coordinates_in, on_earth

TIMEOUT_S: Final = 4.0
"""Of one request. With the wait for gpsd and two requests it stays below the handler's deadline."""
MAX_HOURS: Final = 72
MAX_DAYS: Final = 7
MAX_NAME: Final = 100
_CURRENT: Final = {
    "temperature_2m": "temperature",
    "apparent_temperature": "feels_like",
    "relative_humidity_2m": "humidity",
    "precipitation": "precipitation",
    "weather_code": "code",
    "wind_speed_10m": "wind",
    "wind_gusts_10m": "gusts",
    "wind_direction_10m": "wind_from",
}
_HOURLY: Final = {
    "temperature_2m": "temperature",
    "weather_code": "code",
    "precipitation_probability": "chance",
    "wind_speed_10m": "wind",
}
_DAILY: Final = {
    "weather_code": "code",
    "temperature_2m_max": "high",
    "temperature_2m_min": "low",
    "precipitation_probability_max": "chance",
    "wind_speed_10m_max": "wind",
}
"""Open-Meteo's names of the values → ours, for which the unit is °C, km/h, mm or percent."""
_MOST_OFFSET_S: Final = 18 * 3600


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return `{place, forecast}`; `{place, failed}` if the place is known and its weather is not.
    Raises `ToolFailure`.
    """
    hosts = [urlsplit(request[key]).hostname or "" for key in ("url", "geocoding_url")]
    client = HttpClient(hosts, timeout_s=TIMEOUT_S)
    place = _place_of(request, client)
    params = {
        "latitude": place["latitude"],
        "longitude": place["longitude"],
        "current": ",".join(_CURRENT),
        "hourly": ",".join(_HOURLY),
        "daily": ",".join(_DAILY),
        "timezone": "auto",
    }
    try:
        raw = client.get_json(f"{request['url']}/v1/forecast", params)
        return {"place": place, "forecast": _forecast(raw, hosts[0])}
    except ToolFailure as failure:
        e = failure.error
        extra = {"suggestion": e.suggestion, "retry_after_ms": e.retry_after_ms}
        failed = {"code": e.code.value, "message": e.message}
        return {"place": place, "failed": failed | {k: v for k, v in extra.items() if v}}


# ------------------------------------------------------------------ the place


def _place_of(request: Mapping[str, Any], client: HttpClient) -> dict[str, Any]:
    """Return `{name, latitude, longitude, …}` of the place that is asked for, else of the device,
    else of the home of the settings.
    """
    named, home = str(request["place"]), str(request["home"])
    if named:
        return _by_name(named, request, client)
    try:
        place = here(request)
    except ToolFailure:
        if not home:
            raise
        place = None
    if place is not None:
        name = (home or "Home") if place["source"] == "home" else "Here"
        return {"name": name, **place}
    return _by_name(home, request, client)


def _by_name(name: str, request: Mapping[str, Any], client: HttpClient) -> dict[str, Any]:
    """Return the first place of this name that the geocoding service knows."""
    if (pair := coordinates_in(name)) is not None:
        return {"name": name, "latitude": pair[0], "longitude": pair[1], "source": "coordinates"}
    url = request["geocoding_url"]
    raw = client.get_json(f"{url}/v1/search", {"name": name, "count": 5, "language": "en"})
    if not isinstance(raw, dict):
        raise _bad(urlsplit(url).hostname, "an object")
    results = raw.get("results", [])
    for found in results if isinstance(results, list) else ():
        if isinstance(found, dict) and on_earth(found.get("latitude"), found.get("longitude")):
            known = {
                "name": _text(found.get("name")) or name,
                "region": _text(found.get("admin1")),
                "country": _text(found.get("country")),
            }
            at = {key: found[key] for key in ("latitude", "longitude")}
            return {**{k: v for k, v in known.items() if v}, **at, "source": "name"}
    raise ToolFailure.of(
        ErrorCode.INVALID_ARGUMENTS,
        f"Invalid parameters: /place no place is called {name!r}",
        suggestion="Give the name of a town, or its latitude and longitude",
        for_wearer=f"No place is called “{name}”.",
    )


# ------------------------------------------------------------------ the forecast


def _forecast(raw: Any, host: str) -> dict[str, Any]:
    """Return a forecast with our names; times are seconds since 1970. Raises `ToolFailure` if the
    answer lacks what every forecast has.
    """
    current = _object(_object(raw, "", host), "current", host)
    offset = _number(raw.get("utc_offset_seconds"))
    if offset is None or abs(offset) > _MOST_OFFSET_S:
        raise _bad(host, "utc_offset_seconds")
    now = {ours: _number(current.get(theirs)) for theirs, ours in _CURRENT.items()}
    if now["temperature"] is None or now["code"] is None:
        raise _bad(host, "current.temperature_2m and current.weather_code")
    return {
        "utc_offset_s": int(offset),
        "current": now,
        "hours": list(_hours(_object(raw, "hourly", host), int(offset)))[:MAX_HOURS],
        "days": list(_days(_object(raw, "daily", host)))[:MAX_DAYS],
    }


def _hours(table: Mapping[str, Any], offset_s: int) -> Iterator[dict[str, Any]]:
    for time, row in _rows(table, _HOURLY):
        try:
            local = datetime.fromisoformat(time).replace(tzinfo=UTC)
        except ValueError:
            continue
        if row["temperature"] is not None:
            yield {"at": round(local.timestamp()) - offset_s, **row}


def _days(table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for day, row in _rows(table, _DAILY):
        try:
            known = date.fromisoformat(day).isoformat()
        except ValueError:
            continue
        if row["low"] is not None and row["high"] is not None:
            yield {"date": known, **row}


def _rows(
    table: Mapping[str, Any], names: Mapping[str, str]
) -> Iterator[tuple[str, dict[str, float | None]]]:
    """Yield the rows of a table that is written as one list for each value."""
    lists = {ours: table.get(theirs) for theirs, ours in names.items()}
    times = table.get("time")
    for place, time in enumerate(times[:400] if isinstance(times, list) else ()):
        if isinstance(time, str):
            yield time, {ours: _number(_item(values, place)) for ours, values in lists.items()}


def _item(values: Any, place: int) -> Any:
    return values[place] if isinstance(values, list) and place < len(values) else None


def _object(raw: Any, key: str, host: str) -> Mapping[str, Any]:
    found = raw.get(key) if key else raw
    if not isinstance(found, dict):
        raise _bad(host, key or "an object")
    return found


def _number(value: Any) -> float | None:
    fine = isinstance(value, int | float) and not isinstance(value, bool)
    return value if fine and math.isfinite(value) and abs(value) < 1e6 else None


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else ""
    return "".join(ch for ch in text if ch.isprintable())[:MAX_NAME].strip()


def _bad(host: str | None, field: str) -> ToolFailure:
    return ToolFailure.of(
        ErrorCode.HTTP_ERROR,
        f"{host} answered without {field}",
        suggestion="Check the url in the settings: it needs Open-Meteo's API",
    )
