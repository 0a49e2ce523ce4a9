"""Scenes: what several Kasa devices do together, as the owner's settings say."""

from collections.abc import Mapping, Sequence
from typing import Final

from tools_cache.api.notes import folded
from tools_cache.api.tool import Json
from tools_cache.errors import ErrorCode, ToolFailure
from tools_cache.everyday.kasa_devices import KasaHome, Outcome, Wish, state_before

MOST_NAMED: Final = 10
_MATCHES: Final = (str.__eq__, str.startswith, str.__contains__)


def find_scene(scenes: Sequence[Mapping[str, Json]], name: str) -> Mapping[str, Json]:
    """Return the one scene of this name, as devices are found by name. Raise `ToolFailure`."""
    wanted, found = folded(" ".join(name.split())), list(scenes)
    for match in _MATCHES:
        if found := [one for one in scenes if match(folded(one["name"]), wanted)]:
            break
    if len(found) == 1:
        return found[0]
    names = ", ".join(one["name"] for one in (found or scenes)[:MOST_NAMED]) or "none"
    problem = f"{name!r} could be {len(found)} scenes" if found else f"there is no scene {name!r}"
    raise ToolFailure.of(
        ErrorCode.INVALID_ARGUMENTS,
        f"Invalid parameters: /scene {problem}; there is {names}",
        suggestion="Give the whole name, or add [[tool.kasa.scenes]] to the settings",
        for_wearer=f"Which scene: {names}?" if scenes else "There are no scenes.",
    )


async def set_together(
    home: KasaHome, states: Sequence[Mapping[str, Json]], *, field: str
) -> list[Outcome]:
    """Set several devices; return what each answered. Raise `ToolFailure` if one failed: the
    others are set all the same.
    """
    wishes = [
        Wish(
            await home.find(one["device"], field=field),
            on=one.get("on", True),
            brightness=one.get("brightness"),
        )
        for one in states
    ]
    outcomes = await home.apply(wishes)
    failed = [one for one in outcomes if one.failed]
    if not failed:
        return outcomes
    error = failed[0].state["error"]
    problems = "; ".join(one.problem for one in failed[:MOST_NAMED])
    changed = any(not one.failed and one.state["changed"] for one in outcomes)
    raise ToolFailure.of(
        ErrorCode(error["code"]),
        f"{len(outcomes) - len(failed)} of {len(outcomes)} devices are set. {problems}",
        suggestion=error["fix"] or None,
        partial_side_effects=changed or any(one.state["error"]["sent"] for one in failed),
        for_wearer=f"{problems}.",
    )


def set_data(outcomes: Sequence[Outcome], text: str) -> dict[str, Json]:
    """Return the data of an answer: the devices, and what they were before."""
    return {
        "devices": [
            {
                "device": one.device.name,
                "on": one.state["on"],
                "brightness": one.state["brightness"],
            }
            for one in outcomes
        ],
        "before": [state_before(one.device, one.state) for one in outcomes],
        "text": text,
    }
