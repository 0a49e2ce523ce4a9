"""The life of one pairing window, as a table. Refuses to know radios, people and time; an
unlisted step raises.
"""

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


class IllegalStep(Exception):
    """A bug of ours: the table does not list this step."""


def check(old: PairingState, new: PairingState) -> PairingState:
    """Return `new` when the table allows it. Raises `IllegalStep`."""
    if new not in STEPS[old]:
        raise IllegalStep(f"pairing cannot go from {old} to {new}")
    return new
