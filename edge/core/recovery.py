"""What to do about a failed link, from its earlier failures: a table of steps.

    reconnect            the same radio, a new connection: mostly somebody walked out of range
        │  failed `fresh` times
    fresh connection     end a leftover link, drop what the radio remembers of the glasses, scan
        │  failed `reset` times; again after twice as many, four times as many …
    reset adapter        power it off and on over D-Bus; our own host stack: open HCI again
        │  failed `leave` times, and systemd watches this process
    leave it to systemd  end the process with an error; continue if nothing restarts it

    ask                  refused `ask` times: wait until somebody pairs or says go on. If the bond
                         is only in doubt, try again now and then: the glasses may be too far away.

Failures are counted by kind since the last stable link. `link/manager.py` waits, and
`link/discovery.py` executes the steps.
"""

from collections.abc import Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec import Struct

from firmware_bridge.errors import BridgeError, LinkLost, LostReason, RadioError, RadioReason

STABLE_S: Final = 10.0
"""A link that was ready this long was stable: earlier failures are forgotten."""
STORM_S: Final = 0.5
"""Minimum pause before glasses that were lost at once more than twice are connected again."""
DOUBT_S: Final = 600.0
"""Pause between attempts while a person is asked about a doubtful bond: the glasses may just have
been too far away.
"""
MAX_HISTORY: Final = 256
"""Failures remembered; beyond it the adapter is reset every 128 failures at most."""


class RecoveryStep(StrEnum):
    """One step; the word is used in `status` and in the log."""

    RECONNECT = "reconnect"
    FRESH = "fresh connection"
    RESET = "reset adapter"
    LEAVE = "leave it to systemd"
    ASK = "ask"


class Wake(StrEnum):
    """What ends a pause early, beside a person's request."""

    ADVERT = "advertisement"
    """our glasses are heard"""
    RADIO = "radio"
    """the adapter can be used again"""
    NOTHING = "nothing"
    """the glasses are heard all the time: only waiting helps"""


Kind = RadioReason | LostReason


class Rung(Struct, frozen=True):
    """After how many failures of a kind each step comes (0: never); `at_least_s`: minimum pause."""

    fresh: int = 0
    reset: int = 0
    leave: int = 0
    ask: int = 0
    wake: Wake = Wake.NOTHING
    at_least_s: float = 0.0


_L, _R, _A, _X = LostReason, RadioReason, Wake.ADVERT, Wake.RADIO
LADDER: Final = MappingProxyType(
    {
        # kind                     fresh reset leave ask  woken by
        _L.DISCONNECTED: Rung(3, 0, 0, 0, _A),  # out of range, switched off: the everyday one
        _L.SILENT: Rung(1, 4, 0, 0, _A),  # heartbeats were missed on a link that pretends to live
        _L.WRITE_FAILED: Rung(1, 3, 9, 0, _A),
        _L.PROTOCOL: Rung(2, 0, 0, 0),
        _L.CLOSED: Rung(0, 0, 0, 0),
        _L.ADAPTER_LOST: Rung(1, 0, 0, 0, _X),
        _R.NO_ADAPTER: Rung(0, 0, 0, 0, _X),  # somebody plugs it in
        _R.POWERED_OFF: Rung(0, 0, 0, 0, _X),  # somebody switched it off, and may want it so
        _R.NO_SERVICE: Rung(0, 0, 0, 0, _X),  # no bluetoothd or D-Bus; systemd starts them
        _R.NOT_ALLOWED: Rung(0, 0, 0, 0, at_least_s=5.0),
        _R.NOT_FOUND: Rung(0, 0, 0, 0, _A),  # away for days is no fault
        _R.DEAF: Rung(1, 2, 0, 0, _A),  # nothing at all was heard for 90 s
        _R.BUSY: Rung(2, 4, 12, 0),
        _R.TIMEOUT: Rung(2, 5, 15, 0),
        _R.LINK_FAILED: Rung(2, 6, 0, 0),
        _R.STALE_CACHE: Rung(1, 3, 0, 0),
        _R.CONNECTED_ELSEWHERE: Rung(1, 0, 0, 0),
        _R.BOND_DOUBT: Rung(1, 0, 0, 3),  # BlueZ never says that keys differ: three times is proof
        _R.BOND_LOST: Rung(0, 0, 0, 1),
        _R.NOT_PAIRED: Rung(0, 0, 0, 1),
        _R.NO_AGENT: Rung(0, 0, 0, 1),
        _R.REFUSED: Rung(0, 0, 0, 1),
        _R.OTHER: Rung(2, 6, 18, 0),
    }
)
"""Every way a link fails, and when each step comes."""

ADAPTER_ISSUES: Final = frozenset(
    {
        _L.ADAPTER_LOST,
        _R.NO_ADAPTER,
        _R.POWERED_OFF,
        _R.NO_SERVICE,
        _R.NOT_ALLOWED,
        _R.DEAF,
        _R.BUSY,
    }
)
"""Faults of our own radio; all others are between us and the glasses."""
BOND_LOST: Final = "the glasses do not know our key any more: pair them again with `glassd pair`"
"""What to do once a doubt about the bond is confirmed."""


class Failure(NamedTuple):
    """An attempt or connection that ended. `up_s`: how long it was ready; 0 if never."""

    kind: Kind
    up_s: float = 0.0


class Advice(Struct, frozen=True):
    """What to do next, why, and what may end the pause before the next attempt. `times`: failures
    of this kind since the last stable link; the pause grows with them. `hint`: for a person; "" for
    the radio's own. `again_s`: while a person is asked, try again after so long; 0 for never.
    """

    step: RecoveryStep
    why: str
    times: int = 1
    wake: Wake = Wake.NOTHING
    at_least_s: float = 0.0
    hint: str = ""
    again_s: float = 0.0


class LeftToSystemd(Exception):
    """No step helped and systemd watches: this process ends and is started again."""


def kind_of(cause: BridgeError) -> Kind:
    """Return the kind of failure; our own misuse and refused greetings count as protocol errors."""
    if isinstance(cause, RadioError | LinkLost):
        return cause.reason
    return LostReason.PROTOCOL


def remember(history: Sequence[Failure], failure: Failure) -> tuple[Failure, ...]:
    """Return the history with one more failure; after a stable link it starts again."""
    before = () if failure.up_s >= STABLE_S else tuple(history)
    return (*before, failure)[-MAX_HISTORY:]


def advise(history: Sequence[Failure], *, watched: bool = False) -> Advice:
    """Choose the step for the newest failure. `watched`: systemd restarts this process."""
    kind = history[-1].kind
    times = sum(failure.kind is kind for failure in history)
    rung = LADDER[kind]
    step = _step(rung, times, watched=watched)
    storm_s = max(0.0, STORM_S - history[-1].up_s) if times > 2 else 0.0
    doubted = step is RecoveryStep.ASK and kind is RadioReason.BOND_DOUBT
    hint, again_s = (BOND_LOST, DOUBT_S) if doubted else ("", 0.0)
    return Advice(
        step, f"{kind} × {times}", times, rung.wake, max(rung.at_least_s, storm_s), hint, again_s
    )


def _step(rung: Rung, times: int, *, watched: bool) -> RecoveryStep:
    if rung.ask and times >= rung.ask:
        return RecoveryStep.ASK
    if rung.leave and times >= rung.leave and watched:
        return RecoveryStep.LEAVE
    if rung.reset and times % rung.reset == 0 and (times // rung.reset).bit_count() == 1:
        return RecoveryStep.RESET
    if rung.fresh and times >= rung.fresh:
        return RecoveryStep.FRESH
    return RecoveryStep.RECONNECT


def table() -> str:
    """Return the table as Markdown."""
    lines = [
        (
            "| failure | reconnect | fresh connection | reset adapter | "
            "leave to systemd | ask | woken by |"
        ),
        "|---|---|---|---|---|---|---|",
    ]
    for kind, rung in LADDER.items():
        after = [f"from {n}" if n else "–" for n in (rung.fresh, rung.reset, rung.leave, rung.ask)]
        first = "–" if 1 in (rung.fresh, rung.ask) else "at first"
        lines.append(
            f"| {kind} | {first} | {after[0]} | {after[1]} | "
            f"{after[2]} | {after[3]} | {rung.wake} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())  # noqa: T201 - this is the printer
