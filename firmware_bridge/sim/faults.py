"""Parses faults of simulated glasses: `drop:left@3s`, `lose-acks:5`, `mtu:23`, `away:10`.

The same vocabulary serves `glassd sim --fault`, scripts and the control channel; fault_injector.py
applies the faults.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from firmware_bridge.messages import MicrophoneChunk
from firmware_bridge.sides import Side

MAX_AT_S: Final = 86_400.0
MAX_WORD: Final = 100


class FaultError(ValueError):
    """An invalid fault; the message names the word, the problem and what is allowed."""


@dataclass(frozen=True, slots=True)
class SimFault:
    """One fault: for one side or all (None), now (None) or `at_s` seconds from now."""

    kind: str
    value: float = 0
    side: Side | None = None
    at_s: float | None = None

    def __str__(self) -> str:
        number = f":{self.value:g}" if _KINDS[self.kind].number else ""
        return f"{self.kind}{number}{f':{self.side}' if self.side else ''}"


@dataclass(frozen=True, slots=True)
class FaultKind:
    """What a fault takes: a number with unit and bounds, and perhaps one side of a pair."""

    does: str
    number: str = ""
    low: float = 0
    high: float = 0
    whole: bool = True
    sided: bool = True


_KINDS: Final[Mapping[str, FaultKind]] = {
    "drop": FaultKind("lose the link; the glasses advertise again at once"),
    "lose-acks": FaultKind(
        "lose every Nth packet the glasses send (acknowledgements travel in them); 0 ends it",
        "N",
        0,
        1000,
    ),
    "delay": FaultKind(
        "everything the glasses send comes this much later; 0 ends it", "MS", 0, 10_000
    ),
    "mtu": FaultKind(
        "offer this ATT MTU from the next connection on; a link that is up is lost",
        "BYTES",
        23,
        517,
    ),
    "cut": FaultKind("lose the link in the middle of the next message of more than one packet"),
    "refuse": FaultKind("refuse every Nth command (a G1 answers CA); 0 ends it", "N", 0, 1000),
    "refuse-pairing": FaultKind("refuse to pair from now on", sided=False),
    "forget-bond": FaultKind("forget every bond, as after a reset of the glasses", sided=False),
    "battery": FaultKind("the battery's charge", "PERCENT", 0, 100),
    "away": FaultKind(
        "out of range: link lost, not advertising; back after this time",
        "SECONDS",
        0,
        3600,
        whole=False,
    ),
    "lose-sound": FaultKind(
        "lose this share of the microphone's packets; 0 ends it", "PERCENT", 0, 100
    ),
    "sound-gap": FaultKind(
        "lose all of the microphone's sound for this time", "SECONDS", 0, 60, whole=False
    ),
    "swap-sound": FaultKind(
        "every Nth packet of the microphone comes after the next one; 0 ends it", "N", 0, 1000
    ),
    "double-sound": FaultKind(
        "every Nth packet of the microphone comes twice; 0 ends it", "N", 0, 1000
    ),
    "cut-speech": FaultKind("lose the link in the middle of the next sound the microphone hears"),
}


def usage() -> list[tuple[str, str]]:
    """Return every fault as (syntax, effect)."""
    return [
        (kind + (f":{k.number}" if k.number else "") + ("[:SIDE]" if k.sided else ""), k.does)
        for kind, k in _KINDS.items()
    ]


def is_fault(word: str) -> bool:
    """Return whether a word looks like a fault: it starts with one of the kinds."""
    return word.partition("@")[0].partition(":")[0] in _KINDS


def parse_fault(word: str) -> SimFault:
    """Parse `KIND[:NUMBER][:SIDE][@T]`. Raises `FaultError`."""
    if len(word) > MAX_WORD:
        raise FaultError(f"{len(word)} characters are no fault")
    what, at, when = word.strip().partition("@")
    name, *parts = what.split(":")
    kind = _KINDS.get(name)
    if kind is None:
        raise FaultError(
            f"{name!r} is no fault; known: "
            f"{', '.join(f for f, _ in usage())}, each with @SECONDS if it shall wait"
        )
    value = _number(word, kind, parts.pop(0) if parts else "") if kind.number else 0
    side = _side(word, kind, parts)
    return SimFault(name, value, side, _moment(word, when) if at else None)


def _number(word: str, kind: FaultKind, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not kind.low <= value <= kind.high or (kind.whole and value != int(value)):
        what = "a whole number" if kind.whole else "a number"
        raise FaultError(f"{word!r}: {kind.number} is {what} from {kind.low:g} to {kind.high:g}")
    return value


def _side(word: str, kind: FaultKind, parts: list[str]) -> Side | None:
    if not parts:
        return None
    if not kind.sided:
        raise FaultError(f"{word!r}: {word.partition(':')[0]} concerns the pair; name no side")
    if len(parts) > 1 or parts[0] not in set(Side):
        raise FaultError(
            f"{word!r}: {':'.join(parts)!r} is no side; left or right, or none for both"
        )
    return Side(parts[0])


def _moment(word: str, text: str) -> float:
    scale, digits = (1000.0, text[:-2]) if text.endswith("ms") else (1.0, text.removesuffix("s"))
    try:
        moment = float(digits) / scale
    except ValueError:
        moment = -1
    if not 0 <= moment <= MAX_AT_S:
        raise FaultError(f"{word!r}: @{text} is no moment; write @3s, @0.5 or @200ms")
    return moment


class RadioFaults:
    """No faults until a field is set. `latency_s`: the normal delay of these glasses."""

    def __init__(self) -> None:
        self.latency_s = 0.0
        self.lose_every = 0
        self.refuse_every = 0
        self.delay_s = 0.0
        self.cutting = False
        self.sound = SoundFaults()
        self._sent = 0
        self._asked = 0

    @property
    def late_s(self) -> float:
        """Seconds by which sent packets are delayed."""
        return self.latency_s + self.delay_s

    def loses(self) -> bool:
        """Return whether the packet being sent is lost."""
        if not self.lose_every:
            self._sent = 0
            return False
        self._sent += 1
        return self._sent % self.lose_every == 0

    def refuses(self) -> bool:
        """Return whether the current command is refused, whatever it is."""
        if not self.refuse_every:
            self._asked = 0
            return False
        self._asked += 1
        return self._asked % self.refuse_every == 0


class SoundFaults:
    """What happens to the microphone's packets. No faults until a field is set."""

    def __init__(self) -> None:
        self.lose_percent = 0.0
        self.gap_until = float("-inf")
        """In simulated time."""
        self.swap_every = 0
        self.double_every = 0
        self.cutting = False
        """Whether the link is lost in the middle of the next sound."""
        self._random = random.Random(1)
        self._count = 0
        self._held: MicrophoneChunk | None = None

    def pass_on(self, chunk: MicrophoneChunk, now: float) -> list[MicrophoneChunk]:
        """Return what is sent now: usually the chunk."""
        if now < self.gap_until or 100 * self._random.random() < self.lose_percent:
            return []
        self._count += 1
        if self.swap_every and self._count % self.swap_every == 0 and self._held is None:
            self._held = chunk
            return []
        sent = [chunk] if self._held is None else [chunk, self._held]
        self._held = None
        doubled = self.double_every and self._count % self.double_every == 0
        return [chunk, *sent] if doubled else sent
