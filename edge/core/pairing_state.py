"""The life cycle of a pairing window, as a table, and the values that describe it."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from msgspec import Struct


class PairingState(StrEnum):
    """The state of a pairing window."""

    IDLE = "IDLE"
    """no window is open; nobody can pair"""
    SCANNING = "SCANNING"
    """the window is open; scanning for the glasses"""
    CHOSEN = "CHOSEN"
    """glasses found; an old bond is deleted first"""
    CONNECTING = "CONNECTING"
    """creating the bond"""
    ASKING = "ASKING"
    """asking a person for a code, or whether two numbers are equal"""
    PAIRED = "PAIRED"
    """the bond is on disk"""
    FAILED = "FAILED"
    """no bond was created; the reason was reported"""


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
"""State → allowed next states. CONNECTING follows itself for glasses with two sides; FAILED follows
IDLE if the radio cannot be used, and IDLE any state when the window is closed.
"""


class IllegalPairingStep(Exception):
    """A bug in glassd: the table does not list this step."""


def check(old: PairingState, new: PairingState) -> PairingState:
    """Return `new` if the table allows it. Raises `IllegalPairingStep`."""
    if new not in STEPS[old]:
        raise IllegalPairingStep(f"pairing cannot go from {old} to {new}")
    return new


class Bond(Struct, frozen=True):
    """Paired glasses. `id`: the name of a pair with two sides, else the address; `addresses` by
    side ("" for glasses with one radio); `how`: a `firmware_bridge.bonding.How`; `paired_at`: wall
    time.
    """

    id: str
    model: str
    name: str
    addresses: Mapping[str, str]
    how: str
    paired_at: float


class HeardGlasses(Struct, frozen=True):
    """Glasses found by a scan. `ours`: there is a bond; `missing`: a side not found (yet)."""

    id: str
    model: str
    title: str
    name: str
    address: str
    rssi: int | None
    ours: bool = False
    connected: bool = False
    missing: str = ""


class PairingStep(Struct, frozen=True):
    """One step of a pairing window. `ask` is passkey, compare or show; `number` its six digits. A
    FAILED step has `code`, `text` and `fix`.
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
    """Pairing is not possible now. `code`: BUSY, AMBIGUOUS, NOT_FOUND, NOTHING_ASKED or NOT_SAVED;
    `fix`: what to do next.
    """

    def __init__(self, code: str, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.fix = fix


class PairingTimes(Struct, frozen=True):
    """Times of a pairing window, in seconds; tests shorten them."""

    window_s: float = 120.0
    scan_s: float = 15.0
    """Scan for the wanted glasses: fast advertising shows within a second, slow within ten."""
    settle_s: float = 2.0
    """If no glasses were named: wait for a second pair after the first was found."""
