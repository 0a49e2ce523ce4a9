"""The steps of a way as plain sentences, from the maneuvers of OSRM and of Valhalla."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from tools_cache.everyday.geography import compass

MAX_NAME: Final = 100
_TURNS: Final = {
    "uturn": "Make a U-turn",
    "sharp right": "Turn sharp right",
    "right": "Turn right",
    "slight right": "Turn slightly right",
    "straight": "Go straight",
    "slight left": "Turn slightly left",
    "left": "Turn left",
    "sharp left": "Turn sharp left",
}
"""OSRM's modifiers of a maneuver."""
_ORDINALS: Final = {1: "1st", 2: "2nd", 3: "3rd"}


def plain_text(value: Any, most: int = MAX_NAME) -> str:
    """Return a text of a service in one line; "" for what is no text."""
    text = value if isinstance(value, str) else ""
    return " ".join("".join(ch if ch.isprintable() else " " for ch in text).split())[:most]


def osrm_step(step: Mapping[str, Any], end: str) -> dict[str, Any]:
    """Return `{text, distance_m}` of a step. `end`: the name of the place that is gone to."""
    found = step.get("maneuver")
    maneuver: Mapping[str, Any] = found if isinstance(found, dict) else {}
    kind, modifier = plain_text(maneuver.get("type")), plain_text(maneuver.get("modifier"))
    if kind == "arrive":
        return {"text": _arrive(modifier, end), "distance_m": 0}
    say = _SENTENCES.get(kind, _turn)  # as OSRM asks: a kind that is not known is a turn
    text = say(_Where(step, maneuver, modifier))
    if step.get("mode") == "ferry":
        text = "Take the ferry" + _named(" ", plain_text(step.get("name")))
    elif step.get("mode") == "pushing bike":
        text = f"{text}, push the bike"
    return {"text": text, "distance_m": _metres(step.get("distance"))}


def valhalla_step(step: Mapping[str, Any], end: str) -> dict[str, Any]:
    """Return `{text, distance_m}` of a maneuver; its instruction is a sentence already."""
    metres = _metres(step.get("length"), 1000)
    kind, text = step.get("type"), plain_text(step.get("instruction"), 200).rstrip(".")
    if isinstance(kind, int) and kind in _VALHALLA_ARRIVE:
        return {"text": _arrive(_VALHALLA_ARRIVE[kind], end), "distance_m": 0}
    if not text:
        streets = step.get("street_names")
        street = plain_text(streets[0]) if isinstance(streets, list) and streets else ""
        text = "Continue" + _named(" on ", street)
    return {"text": text, "distance_m": metres}


class _Where:
    """What a sentence is made of."""

    def __init__(self, step: Mapping[str, Any], maneuver: Mapping[str, Any], modifier: str) -> None:
        name, ref = plain_text(step.get("name")), plain_text(step.get("ref"))
        self.street = name or ref
        self.modifier = modifier
        self.side = next((side for side in ("left", "right") if side in modifier), "")
        self.number = plain_text(step.get("exits"), 20)
        self.towards = _named(" towards ", plain_text(step.get("destinations")))
        self.exit = maneuver.get("exit")
        self.heading = maneuver.get("bearing_after")

    @property
    def onto(self) -> str:
        return _named(" onto ", self.street) or self.towards

    @property
    def on(self) -> str:
        return _named(" on ", self.street) or self.towards


def _turn(where: _Where) -> str:
    return _TURNS.get(where.modifier, "Continue") + where.onto


def _depart(where: _Where) -> str:
    heading = where.heading
    if isinstance(heading, int | float) and math.isfinite(heading):
        return f"Head {compass(heading)}{where.on}"
    return f"Start{where.on}"


def _new_name(where: _Where) -> str:
    return f"Continue{where.onto}"


def _continue(where: _Where) -> str:
    if where.modifier in ("", "straight"):
        return f"Continue straight{where.on}"
    turn = _TURNS.get(where.modifier, "Continue")
    return f"{turn}{where.on}" if where.modifier == "uturn" else turn + _stay(where)


def _stay(where: _Where) -> str:
    return _named(" to stay on ", where.street)


def _merge(where: _Where) -> str:
    return f"Merge{_named(' ', where.side)}{where.onto}"


def _ramp(where: _Where) -> str:
    return f"Take the ramp{_named(' on the ', where.side)}{where.onto}"


def _off_ramp(where: _Where) -> str:
    number = _named(" ", where.number)
    return f"Take exit{number}{_aside(where)}" if number else f"Take the exit{_aside(where)}"


def _aside(where: _Where) -> str:
    return f"{_named(' on the ', where.side)}{where.onto}"


def _fork(where: _Where) -> str:
    keep = f"Keep {where.side}" if where.side else "Go straight"
    return f"{keep} at the fork{where.onto}"


def _end_of_road(where: _Where) -> str:
    return f"{_TURNS.get(where.modifier, 'Turn')} at the end of the road{where.onto}"


def _lane(where: _Where) -> str:
    lane = f"Keep {where.side}" if where.side else "Go straight"
    return f"{lane}{where.on}"


def _roundabout(where: _Where) -> str:
    number = where.exit
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < 30:
        return f"Enter the roundabout{where.onto}"
    return f"At the roundabout take the {_ORDINALS.get(number, f'{number}th')} exit{where.onto}"


def _roundabout_turn(where: _Where) -> str:
    turn = _TURNS.get(where.modifier, "Continue")
    return f"At the roundabout {turn[:1].lower()}{turn[1:]}{where.onto}"


def _leave_roundabout(where: _Where) -> str:
    return f"Leave the roundabout{where.onto}"


def _notification(where: _Where) -> str:
    return f"Continue{where.on}"


def _arrive(modifier: str, end: str) -> str:
    side = next((each for each in ("left", "right") if each in modifier), "")
    ahead = "straight ahead" if modifier == "straight" else ""
    return f"You have arrived: {end}" + _named(", ", f"on the {side}" if side else ahead)


def _named(before: str, name: str) -> str:
    return f"{before}{name}" if name else ""


def _metres(value: Any, unit_m: int = 1) -> int:
    """Return a length in metres; 0 for what is none."""
    fine = isinstance(value, int | float) and not isinstance(value, bool)
    return round(value * unit_m) if fine and math.isfinite(value) and 0 <= value < 1e8 else 0


_SENTENCES: Final[Mapping[str, Callable[[_Where], str]]] = {
    "depart": _depart,
    "new name": _new_name,
    "continue": _continue,
    "merge": _merge,
    "ramp": _ramp,
    "on ramp": _ramp,
    "off ramp": _off_ramp,
    "fork": _fork,
    "end of road": _end_of_road,
    "use lane": _lane,
    "roundabout": _roundabout,
    "rotary": _roundabout,
    "roundabout turn": _roundabout_turn,
    "exit roundabout": _leave_roundabout,
    "exit rotary": _leave_roundabout,
    "notification": _notification,
}
"""OSRM's kinds of maneuvers."""
_VALHALLA_ARRIVE: Final = {4: "", 5: "right", 6: "left"}
"""Valhalla's types of arriving, and the side on which the place is."""
