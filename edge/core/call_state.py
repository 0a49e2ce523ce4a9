"""The life cycle of one tool call, as a table of every allowed step."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple


class CallState(StrEnum):
    """The state of a call. A refused call stays RECEIVED: it is audited, not stored."""

    RECEIVED = "RECEIVED"
    ADMITTED = "ADMITTED"
    AWAITING_CONFIRMATION = "AWAITING_CONFIRMATION"
    RUNNING = "RUNNING"
    PENDING = "PENDING"
    ANSWERED = "ANSWERED"
    DELIVERED = "DELIVERED"
    FAILED = "FAILED"
    EXPIRED = "EXPIRED"
    CANCELLED = "CANCELLED"


_S = CallState
STEPS: Final[Mapping[CallState, frozenset[CallState]]] = MappingProxyType(
    {
        _S.RECEIVED: frozenset({_S.ADMITTED, _S.AWAITING_CONFIRMATION, _S.FAILED, _S.CANCELLED}),
        _S.AWAITING_CONFIRMATION: frozenset({_S.ADMITTED, _S.FAILED, _S.EXPIRED, _S.CANCELLED}),
        _S.ADMITTED: frozenset(
            {_S.RUNNING, _S.PENDING, _S.ANSWERED, _S.FAILED, _S.EXPIRED, _S.CANCELLED}
        ),
        _S.RUNNING: frozenset(
            {_S.RUNNING, _S.PENDING, _S.ANSWERED, _S.FAILED, _S.EXPIRED, _S.CANCELLED}
        ),
        _S.PENDING: frozenset({_S.RUNNING, _S.ANSWERED, _S.FAILED, _S.EXPIRED, _S.CANCELLED}),
        _S.ANSWERED: frozenset({_S.DELIVERED, _S.EXPIRED}),
        _S.FAILED: frozenset({_S.DELIVERED}),
        _S.DELIVERED: frozenset(),
        _S.EXPIRED: frozenset(),
        _S.CANCELLED: frozenset(),
    }
)
"""State → allowed next states. ADMITTED → ANSWERED is a stored answer; RUNNING → RUNNING is a new
daemon's second attempt; PENDING → RUNNING is a worker that takes a queued call; FAILED → DELIVERED
is a wearer who reads why.
"""

ANSWERED_STATES: Final = frozenset({_S.ANSWERED, _S.DELIVERED, _S.FAILED, _S.EXPIRED, _S.CANCELLED})
"""States in which a call has its one answer."""


class Recovery(StrEnum):
    """What a new daemon does with a call that the last one left open."""

    ASK = "ask"
    """ask again, within the time that is left"""
    RUN = "run"
    """it never began: run it"""
    AGAIN = "again"
    """it began, and running it twice does no more than once"""
    WAIT = "wait"
    """it runs elsewhere (in a worker, or the caller submits the result): wait for it"""
    END = "end"
    """it began and must not run twice: TRANSIENT with `partialSideEffects`"""


class Left(NamedTuple):
    """How a call was left. `elsewhere`: its answer comes from the cloud, or is submitted."""

    state: CallState
    elsewhere: bool
    repeatable: bool


_R = Recovery
RECOVERY: Final[Mapping[Left, Recovery]] = MappingProxyType(
    {
        Left(state, elsewhere, repeatable): rule
        for state, here, here_repeatable, away in (
            #                          not repeatable, repeatable, elsewhere
            (_S.AWAITING_CONFIRMATION, _R.ASK, _R.ASK, _R.ASK),
            (_S.ADMITTED, _R.RUN, _R.RUN, _R.RUN),
            (_S.RUNNING, _R.END, _R.AGAIN, _R.WAIT),
            (_S.PENDING, _R.END, _R.AGAIN, _R.WAIT),
        )
        for elsewhere, repeatable, rule in (
            (False, False, here),
            (False, True, here_repeatable),
            (True, False, away),
            (True, True, away),
        )
    }
)
"""How a call was left → what to do with it. States with an answer are not listed."""


class UnlistedStep(Exception):
    """A step that the table does not have; always a bug in glassd."""


def check(before: str, after: str) -> None:
    """Raise `UnlistedStep` unless the table has this step between two existing states."""
    try:
        allowed = STEPS[CallState(before)]
        target = CallState(after)
    except ValueError:
        raise UnlistedStep(f"{before} → {after}: no such state") from None
    if target not in allowed:
        listed = ", ".join(sorted(allowed)) or "nowhere"
        raise UnlistedStep(f"{before} → {after}: from {before} a call goes to {listed}")


def diagram() -> str:
    """Return the table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {CallState.RECEIVED}"]
    for state, targets in STEPS.items():
        lines += [f"    {state} --> {target}" for target in CallState if target in targets]
        if not targets:
            lines.append(f"    {state} --> [*]")
    return "\n".join(lines) + "\n"


class Submission(StrEnum):
    """Outcome of submitting a result for a pending call."""

    TAKEN = "taken"
    UNKNOWN = "unknown"
    """no such call, or not one of this caller's"""
    OVER = "over"
    """already resolved, cancelled or expired"""
