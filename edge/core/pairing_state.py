"""The life of one pairing window, as a table, and the values that describe it; an unlisted step
raises.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class PairingState(StrEnum):
    """One word for where the pairing desk is."""

    IDLE = "IDLE"
    """no window is open; nobody can pair"""
    SCANNING = "SCANNING"
    """the window is open; the glasses are listened for"""
    CHOSEN = "CHOSEN"
    """they were heard; an old bond is forgotten first"""
    CONNECTING = "CONNECTING"
    """the bond is being made"""
    ASKING = "ASKING"
    """a person is asked for a code, or whether two numbers are the same"""
    PAIRED = "PAIRED"
    """the bond is on disk"""
    FAILED = "FAILED"
    """no bond was made; the reason was told"""


_S = PairingState
STEPS: Final = MappingProxyType(
    {
        _S.IDLE: frozenset({_S.SCANNING, _S.FAILED}),
        _S.SCANNING: frozenset({_S.CHOSEN, _S.FAILED, _S.IDLE}),
        _S.CHOSEN: frozenset({_S.CONNECTING, _S.FAILED, _S.IDLE}),
        _S.CONNECTING: frozenset({_S.ASKING, _S.CONNECTING, _S.PAIRED, _S.FAILED, _S.IDLE}),
        _S.ASKING: frozenset({_S.CONNECTING, _S.FAILED, _S.IDLE}),
        _S.PAIRED: frozenset({_S.IDLE}),
        _S.FAILED: frozenset({_S.IDLE}),
    }
)
"""Every step there is. CONNECTING follows itself with glasses of two sides; FAILED follows IDLE
when the radio is not to be had, and IDLE everything: the window was closed.
"""


class IllegalPairingStep(Exception):
    """A bug in glassd: the table does not list this step."""


def check(old: PairingState, new: PairingState) -> PairingState:
    """Return `new` when the table allows it. Raises `IllegalPairingStep`."""
    if new not in STEPS[old]:
        raise IllegalPairingStep(f"pairing cannot go from {old} to {new}")
    return new


@dataclass(frozen=True, slots=True)
class Bond:
    """One pair of paired glasses. `id` is the name of a pair of two sides, else the address;
    `addresses` by side ("" for glasses of one radio); `how` as `firmware_bridge.bonding.How` says
    it; `paired_at` is wall time.
    """

    id: str
    model: str
    name: str
    addresses: Mapping[str, str]
    how: str
    paired_at: float


@dataclass(frozen=True, slots=True)
class HeardGlasses:
    """Glasses heard by a scan. `ours`: there is a bond; `missing` names a side of the pair that
    was not heard (yet).
    """

    id: str
    model: str
    title: str
    name: str
    address: str
    rssi: int | None
    ours: bool = False
    connected: bool = False
    missing: str = ""


@dataclass(frozen=True, slots=True)
class PairingStep:
    """One step of a pairing window. `ask` is passkey, compare or show; `number` the six digits of
    it. A FAILED step has `code`, `text` and `fix`.
    """

    state: PairingState
    glasses: HeardGlasses | None = None
    text: str = ""
    ask: str = ""
    number: str = ""
    how: str = ""
    code: str = ""
    fix: str = ""


class PairingRefused(Exception):
    """The desk does not do this now. `code` BUSY, AMBIGUOUS, NOT_FOUND, NOTHING_ASKED or
    NOT_SAVED; `fix` is the next thing to do.
    """

    def __init__(self, code: str, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.fix = fix


@dataclass(frozen=True, slots=True)
class PairingTimes:
    """Times of the desk, in seconds; tests shorten them."""

    window_s: float = 120.0
    scan_s: float = 15.0
    """How long the wanted glasses are listened for; fast advertising shows itself in a second,
    a sleeping one in ten.
    """
    settle_s: float = 2.0
    """With nobody named: how long after the first glasses a second pair is waited for."""
