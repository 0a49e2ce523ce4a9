"""What a scan heard: one pair of glasses, of one radio or of two arms that belong together.

Knows no radio; how long an arm is waited for is the only time in it.
"""

import asyncio
from dataclasses import dataclass, replace
from typing import Any, Final

from firmware_bridge.catalog import Model
from firmware_bridge.sides import Side

ARMS_GRACE_S: Final = 3.0
"""How long one arm of a pair waits for the other: an arm that is there advertises many times in
it.
"""


@dataclass(frozen=True, slots=True)
class Sighting:
    """Glasses that were heard just now. `device` is bleak's own and goes stale within half a
    minute.

    `bonded`: the radio keeps a key of them. `left_over`: they were not heard, but are connected to
    this machine already. Of two-sided glasses this is one `side` of a `pair`; `other` is the other
    side, when it was heard too.
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
        """All of these glasses that was heard."""
        return (self,) if self.other is None else (self, self.other)


def sided(sighting: Sighting) -> Sighting:
    """Note which arm of which pair it is, by its name."""
    arm = sighting.entry.side_of(sighting.name)
    return sighting if arm is None else replace(sighting, pair=arm[0], side=arm[1])


def whole(found: list[Sighting]) -> list[Sighting]:
    """Both arms of a pair as one sighting, the left first."""
    pairs: dict[str, list[Sighting]] = {}
    for sighting in sorted(found, key=lambda s: s.side or ""):
        pairs.setdefault(sighting.pair or sighting.address, []).append(sighting)
    return [replace(first, other=rest[0] if rest else None) for first, *rest in pairs.values()]


class Pairs:
    """Arms heard in one scan, until a pair of ours is whole or has been waited for long enough."""

    def __init__(self, found: "asyncio.Future[Sighting]") -> None:
        self._found = found
        self._heard: dict[str, dict[Side, Sighting]] = {}
        self._waiting: dict[str, asyncio.TimerHandle] = {}

    def heard(self, arm: Sighting, *, ours: bool) -> None:
        """A pair is ours as soon as one of its arms is."""
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
