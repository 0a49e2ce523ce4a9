"""The storm on paper: from one seed, every life of the daemon with its calls, its faults and the
way it is killed.

It knows no processes and no clocks: offsets are seconds since the daemon of that life answered.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

FAULTS = (
    "broker_restart",
    "broker_wiped",
    "cut_up",
    "cut_down",
    "swallow_up",
    "swallow_down",
    "reorder",
    "delay",
    "clock_forward",
    "clock_back",
    "disk_full",
    "glasses_drop",
    "glasses_off",
    "worker_kill",
    "mid_confirmation",
)
"""Each kind in turn, shuffled: even a short storm meets all of them."""

CALLS = {
    "mark": 22,
    "note": 14,
    "look": 12,
    "mark_keyed": 10,
    "jot": 8,
    "jot_keyed": 10,
    "jot_invoked": 12,
    "show": 4,
    "show_invoked": 4,
    "say": 4,
}
"""Kind → weight. `mark`, `note` and `jot` leave with 202; the first two may wait for the network;
`jot` is `notes:add`, which lives on the edge; `keyed` ones are asked again with the same
idempotency key until they are answered; `invoked` ones come over MQTT.
"""

RUNNING, RANDOM, STARTING = "running", "random", "starting"


@dataclass(frozen=True)
class Call:
    """One call of one caller. `delay_s` is how long the mini-app takes; half of it before the
    effect, half after.
    """

    at_s: float
    token: str
    kind: str
    delay_s: float

    @property
    def key(self) -> str | None:
        return f"key-{self.token}" if self.kind.endswith("_keyed") else None


@dataclass(frozen=True)
class Fault:
    at_s: float
    kind: str
    lasts_s: float = 0.0
    share: float = 0.5
    """How much of the packet gets through where a connection is cut in the middle of one."""


@dataclass(frozen=True)
class Life:
    """One daemon, from its start to its kill. `aim` says what the killer waits for; then it
    waits `jitter_s` more.
    """

    number: int
    aim: str
    up_s: float
    jitter_s: float
    calls: tuple[Call, ...]
    faults: tuple[Fault, ...] = field(default=())


def plan(
    seed: int, kills: int, calls: int, *, faults: tuple[str, ...] = FAULTS, mean_up_s: float = 1.6
) -> list[Life]:
    """The whole storm: `kills` lives that are killed, `calls` calls spread over them. The same
    seed gives the same plan.
    """
    chance = random.Random(seed)
    deck = _deck(chance, faults)
    share, rest = divmod(calls, kills)
    lives = []
    for number in range(kills):
        up_s = min(4.0, max(0.05, chance.gauss(mean_up_s, 0.6)))
        aim = chance.choices((RUNNING, RANDOM, STARTING), (50, 42, 8))[0]
        wanted = share + (number < rest)
        made = tuple(
            sorted((_call(chance, number, i, up_s) for i in range(wanted)), key=lambda c: c.at_s)
        )
        met = (
            tuple(
                _fault(chance, next(deck), up_s)
                for _ in range(chance.choices((0, 1, 2), (25, 55, 20))[0])
            )
            if faults
            else ()
        )
        lives.append(Life(number, aim, up_s, chance.uniform(0.0, 0.15), made, met))
    return lives


def _deck(chance: random.Random, faults: tuple[str, ...]) -> Iterator[str]:
    while True:
        hand = list(faults)
        chance.shuffle(hand)
        yield from hand


def _call(chance: random.Random, life: int, number: int, up_s: float) -> Call:
    kind = chance.choices(tuple(CALLS), tuple(CALLS.values()))[0]
    # Most are quick; every fifth is still running when something happens to it.
    delay_s = chance.uniform(0.4, 2.0) if chance.random() < 0.2 else chance.uniform(0.0, 0.25)
    at_s = chance.uniform(0.0, up_s + 0.3)
    if kind.startswith("jot") and chance.random() < 0.6:
        at_s = max(
            0.0, up_s + chance.uniform(-0.04, 0.03)
        )  # these take milliseconds: together, around the kill
    return Call(at_s, f"L{life:04d}-{number:03d}", kind, round(delay_s, 3))


def _fault(chance: random.Random, kind: str, up_s: float) -> Fault:
    return Fault(
        chance.uniform(0.0, up_s),
        kind,
        round(chance.uniform(0.3, 1.5), 3),
        round(chance.uniform(0.1, 0.9), 3),
    )


def counted(lives: list[Life]) -> dict[str, Any]:
    """What the plan holds, for the report."""
    kinds: dict[str, int] = {}
    for life in lives:
        for call in life.calls:
            kinds[call.kind] = kinds.get(call.kind, 0) + 1
    return {
        "lives": len(lives),
        "calls": sum(kinds.values()),
        "calls_by_kind": dict(sorted(kinds.items())),
    }
