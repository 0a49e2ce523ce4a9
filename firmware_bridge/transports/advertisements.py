"""Glasses heard in a scan: with one radio, or as two arms that belong together."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any, Final

from firmware_bridge.catalog import Model
from firmware_bridge.sides import Side

ARMS_GRACE_S: Final = 3.0
"""Seconds one arm of a pair waits for the other: an arm in range advertises many times in it."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """Glasses just heard. `device` is bleak's own and goes stale within half a minute.

    `bonded`: the radio has a key for them. `left_over`: not heard, but already connected to this
    machine. For two-sided glasses this is one `side` of a `pair`; `other` is the other side, if
    heard too.
    """

    entry: Model
    address: str
    name: str
    rssi: int
    device: Any
    bonded: bool = False
    left_over: bool = False
    pair: str = ""
    side: Side | None = None
    other: "Sighting | None" = None

    @property
    def arms(self) -> "tuple[Sighting, ...]":
        """The sightings of all arms heard."""
        return (self,) if self.other is None else (self, self.other)


def sided(sighting: Sighting) -> Sighting:
    """Return it with pair and side set from its name."""
    arm = sighting.entry.side_of(sighting.name)
    return sighting if arm is None else replace(sighting, pair=arm[0], side=arm[1])


def whole(found: list[Sighting]) -> list[Sighting]:
    """Return both arms of a pair as one sighting, the left first."""
    pairs: dict[str, list[Sighting]] = {}
    for sighting in sorted(found, key=lambda s: s.side or ""):
        pairs.setdefault(sighting.pair or sighting.address, []).append(sighting)
    return [replace(first, other=rest[0] if rest else None) for first, *rest in pairs.values()]


class Pairs:
    """Collects arms heard in one scan, until a wanted pair is complete or its time is over."""

    def __init__(self, found: "asyncio.Future[Sighting]") -> None:
        self._found = found
        self._heard: dict[str, dict[Side, Sighting]] = {}
        self._waiting: dict[str, asyncio.TimerHandle] = {}

    def heard(self, arm: Sighting, *, ours: bool) -> None:
        """Add an arm; a pair is wanted as soon as one of its arms is."""
        assert arm.side is not None
        pair = self._heard.setdefault(arm.pair, {})
        pair[arm.side] = arm
        if ours and arm.pair not in self._waiting:
            later = asyncio.get_running_loop().call_later(ARMS_GRACE_S, self._enough, arm.pair)
            self._waiting[arm.pair] = later
        if len(pair) == len(Side) and arm.pair in self._waiting:
            self._enough(arm.pair)

    def _enough(self, pair: str) -> None:
        if not self._found.done():
            self._found.set_result(whole(list(self._heard[pair].values()))[0])

    def close(self) -> None:
        for waiting in self._waiting.values():
            waiting.cancel()
