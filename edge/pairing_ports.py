"""What others may ask of the pairing desk, and the words they share. No code runs here."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from edge.core.pairing_state import PairingState
from tools_cache.tool import Json


@dataclass(frozen=True, slots=True)
class Bond:
    """One pair of glasses of ours. `id` is the name of a pair of two sides, else the address;
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
class Heard:
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
class Step:
    """One step of a pairing window. `ask` is passkey, compare or show; `number` the six digits of
    it. A FAILED step has `code`, `text` and `fix`.
    """

    state: PairingState
    glasses: Heard | None = None
    text: str = ""
    ask: str = ""
    number: str = ""
    how: str = ""
    code: str = ""
    fix: str = ""


class DeskRefused(Exception):
    """The desk does not do this now. `code` BUSY, AMBIGUOUS, NOT_FOUND, NOTHING_ASKED or
    NOT_SAVED; `fix` is the next thing to do.
    """

    def __init__(self, code: str, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.fix = fix


class Pausable(Protocol):
    """The link, as far as the desk needs it."""

    def paused(self, why: str) -> AbstractAsyncContextManager[None]:
        """While entered the link leaves the radio alone (a connection is closed first);
        afterwards it seeks at once.
        """


class PairingPort(Protocol):
    """Implemented by `pairing.py`."""

    def scan(self, seconds: float, *, settle_s: float | None = None) -> AsyncGenerator[Heard, None]:
        """Tell what is heard, each again when something about it changed. With `settle_s` it ends
        when nothing new was heard for so long after the first. Raises `DeskRefused` while a window
        is open, `RadioError`.
        """

    def window(
        self, wanted: str | None, *, seconds: float | None = None
    ) -> AsyncGenerator[Step, None]:
        """Pair with the glasses of this address (or pair id), or with the only ones there are, and
        tell each step; the last one is PAIRED or FAILED. Leaving the iterator closes the window.
        Raises `DeskRefused` when another one is open.
        """

    def answer(self, *, passkey: int | None = None, same: bool | None = None) -> None:
        """Answer what is asked now. Raises `DeskRefused`."""

    async def close(self) -> bool:
        """Close the window; False when none is open."""

    async def unpair(self, wanted: str | None) -> Bond | None:
        """Forget our side of a bond (None: of the only one). Raises `DeskRefused`, `RadioError`."""

    def bonds(self) -> tuple[Bond, ...]: ...

    def describe(self) -> Mapping[str, Json]:
        """`GET /v1/pairing`: the state, how long the window stays open, and the bonds."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Times of the desk, in seconds; tests shorten them."""

    window_s: float = 120.0
    scan_s: float = 15.0
    """How long the wanted glasses are listened for; fast advertising shows itself in a second,
    a sleeping one in ten.
    """
    settle_s: float = 2.0
    """With nobody named: how long after the first glasses a second pair is waited for."""
