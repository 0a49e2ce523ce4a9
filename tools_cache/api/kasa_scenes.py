"""Scenes: what several Kasa devices do together, as the owner's settings say."""

from collections.abc import Mapping, Sequence
from typing import Final

from tools_cache.api.kasa_devices import KasaHome, KnownDevice, Outcome, Wish
from tools_cache.api.notes import folded
from tools_cache.api.tool import Json, ToolContext
from tools_cache.errors import ErrorCode, ToolFailure

PREVIOUS: Final = "previous"
"""Names what was before the last scene."""
MOST_NAMED: Final = 10
_TABLE: Final = "before_scene"
_COLUMNS: Final = {"encrypted__states": "TEXT"}
_THERE: Final = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'before_scene'"


class KasaScenes:
    """The scenes of the settings, and what was before the last one."""

    def __init__(self, home: KasaHome, ctx: ToolContext) -> None:
        self._home, self._ctx = home, ctx

    async def find(self, name: str) -> tuple[str, list[Wish]]:
        """Return a scene's name, and what its devices are to do. Raise `ToolFailure`."""
        wanted = folded(" ".join(name.split()))
        if wanted == PREVIOUS:
            return PREVIOUS, await self._before()
        scene = _only(self._ctx.config.get("scenes", []), wanted, name)
        wishes = [
            Wish(
                await self._home.find(one["device"], field=f"scene {scene['name']!r}"),
                on=one.get("on", True),
                brightness=one.get("brightness"),
            )
            for one in scene["devices"]
        ]
        return str(scene["name"]), wishes

    async def apply(self, wishes: Sequence[Wish]) -> list[Outcome]:
        """Set the devices, and remember what was before."""
        outcomes = await self._home.apply(wishes)
        before = [
            {"card": dict(one.device.card), **one.state["was"]}
            for one in outcomes
            if not one.failed
        ]
        if before:
            await self._ctx.db.create_table(_TABLE, _COLUMNS)
            await self._ctx.db.delete(_TABLE, where={})
            await self._ctx.db.insert(_TABLE, {"encrypted__states": before})
        return outcomes

    def failure(self, name: str, outcomes: Sequence[Outcome]) -> ToolFailure:
        """Return the error that names the devices which failed."""
        failed = [one for one in outcomes if one.failed]
        error = failed[0].state["error"]
        problems = "; ".join(one.problem for one in failed[:MOST_NAMED])
        changed = any(not one.failed and one.state["changed"] for one in outcomes)
        return ToolFailure.of(
            ErrorCode(error["code"]),
            f"{len(outcomes) - len(failed)} of {len(outcomes)} devices of {name!r} are set. "
            + problems,
            suggestion=error["fix"] or None,
            partial_side_effects=changed or any(one.state["error"]["sent"] for one in failed),
            for_wearer=f"{problems}.",
        )

    def done(self, name: str) -> str:
        return "Set back" if name == PREVIOUS else f"{name}: set"

    async def _before(self) -> list[Wish]:
        rows: list[dict[str, Json]] = []
        if await self._ctx.db.fetch(_THERE):
            rows = await self._ctx.db.select(_TABLE, limit=1)
        if not rows:
            raise ToolFailure.of(
                ErrorCode.INVALID_ARGUMENTS,
                "Invalid parameters: /scene no scene was set yet",
                suggestion="Set a scene first",
                for_wearer="No scene was set yet.",
            )
        return [_back(one) for one in rows[0]["encrypted__states"]]


def _back(one: Mapping[str, Json]) -> Wish:
    device = KnownDevice(one["card"])
    return Wish(device, on=one["on"], brightness=one["brightness"] if one["on"] else None)


def _only(scenes: Sequence[Mapping[str, Json]], wanted: str, name: str) -> Mapping[str, Json]:
    """Return the one scene of this name. Raise `ToolFailure`."""
    for match in (str.__eq__, str.startswith, str.__contains__):
        found = [one for one in scenes if match(folded(one["name"]), wanted)]
        if len(found) == 1:
            return found[0]
        if found:
            break
    names = ", ".join(one["name"] for one in (found or scenes)[:MOST_NAMED]) if scenes else "none"
    problem = f"{name!r} could be several scenes" if scenes and found else f"no scene {name!r}"
    raise ToolFailure.of(
        ErrorCode.INVALID_ARGUMENTS,
        f"Invalid parameters: /scene {problem}: there is {names}",
        suggestion="Give the whole name, or add [[tool.kasa.scenes]] to the settings",
        for_wearer=f"Which scene? There is {names}.",
    )
