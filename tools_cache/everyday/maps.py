"""Places and ways: asked of the services of the settings; the route in use is kept, encrypted."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from tools_cache.api.durations import ago
from tools_cache.api.handed import Database, Json
from tools_cache.api.notes import folded
from tools_cache.api.tool import ToolContext
from tools_cache.errors import ErrorCode, ToolFailure
from tools_cache.everyday.geography import bearing, compass, distance_m, length

DEADLINE_S: Final = 18.0
AWAY: Final = frozenset({ErrorCode.NETWORK_ERROR, ErrorCode.RATE_LIMIT, ErrorCode.HTTP_ERROR})
"""Failures after which the last route is given: also what a hotel's sign-in page causes."""
BY: Final = {"foot": "on foot", "bike": "by bike", "car": "by car"}
MOST_SHOWN: Final = 40
"""Steps in the text of a route; maps:next_step gives the others."""
OLD_S: Final = 600.0
"""Age from which a route that would be done by now is said to be old."""
_SPOKEN_BY: Final = re.compile(
    r"\s+(?:(?P<foot>on foot|walking|zu fuß|a pie|andando|à pied|a piedi)"
    r"|(?P<bike>by bike|by bicycle|mit dem (?:fahr)?rad|en bici(?:cleta)?|à vélo"
    r"|in bici(?:cletta)?)"
    r"|(?P<car>by car|mit dem auto|en coche|en voiture|in (?:auto|macchina)))$",
    re.IGNORECASE,
)
"""How a spoken sentence says it: "how do I get to the station by bike"."""
_SETTINGS: Final = (
    "search_url",
    "route_url",
    "route_form",
    "language",
    "latitude",
    "longitude",
    "gpsd",
)
_TABLE: Final = "routes"
_COLUMNS: Final = {"asked": "REAL NOT NULL", "encrypted__route": "TEXT"}
_THERE: Final = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'routes'"
_CHANGING: Final = asyncio.Lock()
"""Held from reading the route in use until its change is stored."""


@dataclass(frozen=True, slots=True)
class Route:
    """The way a wearer goes. `asked`: when, seconds since 1970; `step`: which one is shown, from 0.

    `wanted` is what was asked for: `{to, from, by}` in folded letters.
    """

    wanted: Mapping[str, str]
    route: Mapping[str, Any]
    asked: float
    step: int = 0

    @property
    def steps(self) -> list[dict[str, Any]]:
        return list(self.route["steps"])

    def age(self, now: float) -> str:
        """Return "The route is from 20 minutes ago"."""
        return f"The route is from {ago(max(0.0, now - self.asked))}"

    def sentence(self, number: int, units: str) -> str:
        """Return a step: "Turn left onto Main Street, 120 m"."""
        step = self.steps[number]
        metres = step["distance_m"]
        return f"{step['text']}, {length(metres, units)}" if metres else str(step["text"])


async def ask(ctx: ToolContext, **request: Json) -> dict[str, Any]:
    """Return what the services answer. Raises `ToolFailure`."""
    settings = {key: ctx.config.get(key, None) for key in _SETTINGS}
    return await ctx.workers.ask("maps", {**settings, **request}, deadline_s=DEADLINE_S)


def spoken_target(text: str, by: str) -> tuple[str, str]:
    """Return a place without what a sentence says beside it, and how it is gone to."""
    place = " ".join(text.split()).rstrip("?!, ").removeprefix("a ")  # no phrase ends with "a"
    said = _SPOKEN_BY.search(place)
    if said is not None and said.start():
        by, place = by or str(said.lastgroup), place[: said.start()]
    return place, by or "foot"


def wanted(to: str, start: str, by: str) -> dict[str, str]:
    """Return what is asked for, to find it again."""
    return {"to": folded(to), "from": folded(start), "by": by}


def apart(position: Mapping[str, Json], place: Mapping[str, Json], units: str) -> str:
    """Return how far a place is, and in which direction: "1.2 km north-west"."""
    metres = distance_m(position, place)
    return f"{length(metres, units)} {compass(bearing(position, place))}"


class CurrentRoute:
    """The one route that a user follows."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def find(self) -> Route | None:
        """Return it; None if there is none. Creates no table, so it works on a full disk."""
        if not await self._db.fetch(_THERE):
            return None
        rows = await self._db.select(_TABLE, order="-id", limit=1)
        for row in rows:
            kept = row["encrypted__route"]
            return Route(kept["wanted"], kept["route"], row["asked"], kept["step"])
        return None

    async def keep(self, route: Route) -> None:
        """Store a route in place of the former one; returns once it is on disk."""
        async with _CHANGING:
            await self._store(route)

    async def move(self, steps: int) -> Route:
        """Go so many steps on, or back, as far as there are any. Raises `ToolFailure` if there is
        no route.
        """
        async with _CHANGING:
            route = await self.find()
            if route is None:
                raise ToolFailure.of(
                    ErrorCode.INVALID_ARGUMENTS,
                    "There is no route",
                    suggestion="Ask for one with maps:route",
                    for_wearer="There is no route. Ask for the way first.",
                )
            at = min(max(0, route.step + steps), len(route.steps) - 1)
            if at != route.step:
                route = replace(route, step=at)
                await self._store(route)
            return route

    async def _store(self, route: Route) -> None:
        kept = {"wanted": dict(route.wanted), "route": dict(route.route), "step": route.step}
        await self._db.create_table(_TABLE, _COLUMNS)
        new = await self._db.insert(_TABLE, {"asked": route.asked, "encrypted__route": kept})
        former = [row["id"] for row in await self._db.select(_TABLE, columns=("id",))]
        if gone := [number for number in former if number != new]:
            await self._db.delete(_TABLE, where={"id": gone})
