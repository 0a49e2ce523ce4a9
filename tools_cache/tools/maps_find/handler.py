"""Finds places."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.geography import bearing, compass, distance_m
from tools_cache.everyday.maps import apart, ask


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return up to five places of this name, each with how far it is."""
    name = " ".join(args["place"].split()).rstrip("?!, ")
    answer = await ask(ctx, ask="find", place=name)
    position, units = answer.get("position"), str(ctx.config.get("units", "metric"))
    places, lines = [], []
    for place in answer["places"]:
        far = "" if position is None else f", {apart(position, place, units)}"
        lines += [f"{place['name']}{far}", place["address"]]
        places.append(place if position is None else {**place, **_distance(position, place)})
    text = "\n".join(filter(None, lines)) or f"No place found: {name}"
    return {"data": {"places": places, "total": len(places), "text": text}}


def _distance(position: Mapping[str, Json], place: Mapping[str, Json]) -> dict[str, Json]:
    degrees = bearing(position, place)
    return {
        "distance_m": round(distance_m(position, place)),
        "bearing": round(degrees),
        "direction": compass(degrees),
    }
