"""Finds places with Nominatim's API and ways with OSRM's or Valhalla's."""

import json
import math
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from edge.tools.workers.http_client import HttpAnswer, HttpClient, read_json
from edge.tools.workers.position import here
from edge.tools.workers.route_steps import osrm_step, plain_text, valhalla_step
from tools_cache.errors import ErrorCode, ToolFailure
from tools_cache.everyday.geography import coordinates_in, on_earth

TIMEOUT_S: Final = 4.0
"""Of one request. With the wait for gpsd and three requests it stays below the handler's
deadline.
"""
MAX_PLACES: Final = 5
MAX_STEPS: Final = 500
MAX_ADDRESS: Final = 300
AROUND: Final = 0.5
"""Degrees around the device in which places are preferred."""
_COSTING: Final = {"foot": "pedestrian", "bike": "bicycle", "car": "auto"}
_NO_WAY: Final = frozenset({"NoRoute", 442})
_NO_STREET: Final = frozenset({"NoSegment", 171})
"""Codes of OSRM and of Valhalla."""


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Return `{places, position}` or `{route}`. Raises `ToolFailure`."""
    request = {**request, "route_url": request["route_url"].replace("{by}", request.get("by", ""))}
    hosts = [urlsplit(request[key]).hostname or "" for key in ("search_url", "route_url")]
    client = HttpClient(hosts, timeout_s=TIMEOUT_S)
    if request["ask"] == "find":
        position = _position(request)
        return {"places": _search(request["place"], request, client, position)} | (
            {} if position is None else {"position": position}
        )
    return {"route": _route(request, client)}


# ------------------------------------------------------------------ places


def _position(request: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return where the device is, None if that is not known: a place is found without it too."""
    try:
        return here(request)
    except ToolFailure:
        return None


def _search(
    name: str, request: Mapping[str, Any], client: HttpClient, near: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """Return up to five places of this name, those near the device preferred."""
    params = {
        "q": name,
        "format": "jsonv2",
        "limit": MAX_PLACES,
        "accept-language": request["language"],
    }
    if near is not None:
        west, east = near["longitude"] - AROUND, near["longitude"] + AROUND
        south, north = near["latitude"] - AROUND, near["latitude"] + AROUND
        params["viewbox"] = ",".join(f"{edge:.4f}" for edge in (west, north, east, south))
    url = request["search_url"]
    raw = client.get_json(f"{url}/search", params)
    if not isinstance(raw, list):
        raise _bad(url, "a list of places", "search_url")
    found = [_place(each) for each in raw[:MAX_PLACES]]
    places = [place for place in found if place is not None]
    if raw and not places:
        raise _bad(url, "the position of any place", "search_url")
    return places


def _place(raw: Any) -> dict[str, Any] | None:
    if not isinstance(raw, dict):
        return None
    latitude, longitude = _degrees(raw.get("lat")), _degrees(raw.get("lon"))
    if not on_earth(latitude, longitude):
        return None
    address = plain_text(raw.get("display_name"), MAX_ADDRESS)
    name = plain_text(raw.get("name")) or plain_text(address.partition(",")[0])
    rest = address.removeprefix(name).lstrip(", ")
    kind = plain_text(raw.get("type")).replace("_", " ")
    place = {"name": name or f"{latitude}, {longitude}", "address": rest or address, "kind": kind}
    return {**place, "latitude": latitude, "longitude": longitude}


def _degrees(value: Any) -> float | None:
    """Return a number that Nominatim writes as text."""
    try:
        return float(value) if isinstance(value, str | float | int) else None
    except ValueError:
        return None


def _one(
    field: str, request: Mapping[str, Any], client: HttpClient, near: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the place that an argument names, by its coordinates or as the first found."""
    name = request[field]
    if (pair := coordinates_in(name)) is not None:
        return {"name": name, "latitude": pair[0], "longitude": pair[1]}
    places = _search(name, request, client, near)
    if not places:
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            f"Invalid parameters: /{field} no place is called {name!r}",
            suggestion="Give a name that maps:find finds, or latitude and longitude",
            for_wearer=f"No place is called “{name}”.",
        )
    return places[0]


# ------------------------------------------------------------------ the way


def _route(request: Mapping[str, Any], client: HttpClient) -> dict[str, Any]:
    """Return `{from, to, by, distance_m, duration_s, steps}`."""
    if request["from"]:
        near = _position(request)
        start = _one("from", request, client, near)
    else:
        near = here(request)
        if near is None:
            raise ToolFailure.of(
                ErrorCode.TOOL_UNAVAILABLE,
                "It is not known where this device is",
                suggestion="Give `from`, or set gpsd, or latitude and longitude, in [tool.maps]",
            )
        start = {"name": "here", **near}
    end = _one("to", request, client, near or start)
    ask = _by_valhalla if request["route_form"] == "valhalla" else _by_osrm
    return {"from": start, "to": end, "by": request["by"], **ask(start, end, request, client)}


def _by_osrm(
    start: Mapping[str, Any],
    end: Mapping[str, Any],
    request: Mapping[str, Any],
    client: HttpClient,
) -> dict[str, Any]:
    url = request["route_url"]
    points = ";".join(f"{each['longitude']},{each['latitude']}" for each in (start, end))
    path = f"{url}/route/v1/{request['by']}/{points}?overview=false&steps=true"
    raw = _checked(client.request("GET", path, redirects=0), request)
    if not isinstance(raw, dict) or raw.get("code") != "Ok":
        raise _bad(url, 'the code "Ok"', "route_url")
    routes = raw.get("routes")
    route = routes[0] if isinstance(routes, list) and routes else None
    legs = route.get("legs") if isinstance(route, dict) else None
    if not isinstance(route, dict) or not isinstance(legs, list):
        raise _bad(url, "a route with legs", "route_url")
    steps = [
        osrm_step(step, end["name"]) for step in _objects(legs, "steps") if isinstance(step, dict)
    ]
    return _whole(route.get("distance"), route.get("duration"), steps, url)


def _by_valhalla(
    start: Mapping[str, Any],
    end: Mapping[str, Any],
    request: Mapping[str, Any],
    client: HttpClient,
) -> dict[str, Any]:
    url = request["route_url"]
    body = {
        "locations": [{"lat": p["latitude"], "lon": p["longitude"]} for p in (start, end)],
        "costing": _COSTING[request["by"]],
        "units": "kilometers",
        "language": "en-US",
    }
    try:
        said = client.request(
            "POST",
            f"{url}/route",
            headers={"Content-Type": "application/json"},
            body=json.dumps(body).encode(),
            redirects=0,
        )
    except ToolFailure as failure:
        e = failure.error  # asking for a way changes nothing, although it is a POST
        raise ToolFailure.of(e.code, e.message, suggestion=e.suggestion) from None
    raw = _checked(said, request)
    trip = raw.get("trip") if isinstance(raw, dict) else None
    legs = trip.get("legs") if isinstance(trip, dict) else None
    summary = trip.get("summary") if isinstance(trip, dict) else None
    if not isinstance(legs, list) or not isinstance(summary, dict):
        raise _bad(url, "a trip with legs and a summary", "route_url")
    steps = [
        valhalla_step(step, end["name"])
        for step in _objects(legs, "maneuvers")
        if isinstance(step, dict)
    ]
    length = summary.get("length")
    metres = length * 1000 if isinstance(length, int | float) else None
    return _whole(metres, summary.get("time"), steps, url)


def _checked(said: HttpAnswer, request: Mapping[str, Any]) -> Any:
    """Return the JSON of an answer. Raises `ToolFailure`: in plain words if there is no way."""
    if said.status == 400 and not said.cut:
        try:
            raw = json.loads(said.body)
        except (ValueError, RecursionError):
            raw = None
        code = (raw.get("code") or raw.get("error_code")) if isinstance(raw, dict) else None
        by = {"foot": "on foot", "bike": "by bike", "car": "by car"}[request["by"]]
        if isinstance(code, str | int) and code in _NO_WAY:
            raise _no_way(f"There is no way {by} to {request['to']}")
        if isinstance(code, str | int) and code in _NO_STREET:
            raise _no_way(f"No street {by} is near the start or near {request['to']}")
    return read_json(said)


def _no_way(text: str) -> ToolFailure:
    suggestion = "Give another place, or another `by`"
    return ToolFailure.of(
        ErrorCode.INVALID_ARGUMENTS, text, suggestion=suggestion, for_wearer=f"{text}."
    )


def _objects(legs: list[Any], key: str) -> list[Any]:
    """Return the steps of all legs."""
    lists = [leg.get(key) for leg in legs if isinstance(leg, dict)]
    return [step for steps in lists if isinstance(steps, list) for step in steps][:MAX_STEPS]


def _whole(metres: Any, seconds: Any, steps: list[dict[str, Any]], url: str) -> dict[str, Any]:
    if not steps or not _positive(metres) or not _positive(seconds):
        raise _bad(url, "distance, duration and steps", "route_url")
    return {"distance_m": round(metres), "duration_s": round(seconds), "steps": steps}


def _positive(value: Any) -> bool:
    fine = isinstance(value, int | float) and not isinstance(value, bool)
    return bool(fine and math.isfinite(value) and 0 <= value < 1e8)


def _bad(url: str, what: str, key: str) -> ToolFailure:
    return ToolFailure.of(
        ErrorCode.HTTP_ERROR,
        f"{urlsplit(url).hostname} answered without {what}",
        suggestion=f"Check {key} in [tool.maps]",
    )
