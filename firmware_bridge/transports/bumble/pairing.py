"""Our side of pairing on bumble: keyboard and display, used only while a pairing runs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

from bumble.pairing import PairingConfig, PairingDelegate

from firmware_bridge.bonding import Witness
from firmware_bridge.transports.bumble.keys import KeyFile

_KEYBOARD_DISPLAY: Final = PairingDelegate.IoCapability.DISPLAY_OUTPUT_AND_KEYBOARD_INPUT
_RANDOM: Final = PairingConfig.AddressType.RANDOM
"""We identify by the address in the key file; with another type the peer finds the wrong bond."""


class Delegate(PairingDelegate):
    """Answers for one pairing; without a witness it refuses everything."""

    def __init__(self, witness: Witness | None) -> None:
        super().__init__(io_capability=_KEYBOARD_DISPLAY)
        self._witness = witness

    async def accept(self) -> bool:
        return False  # only we start pairings

    async def confirm(self, auto: bool = False) -> bool:  # noqa: ARG002, FBT001, FBT002 - bumble's signature
        return self._witness is not None  # Just Works: its acceptability is decided afterwards

    async def get_number(self) -> int | None:
        # bumble 0.0.236 takes 0 for "none yet" and never goes on: one code in a million has to be
        # asked for again.
        number = await self._witness.passkey() if self._witness is not None else None
        return number or None

    async def compare_numbers(self, number: int, digits: int) -> bool:  # noqa: ARG002 - bumble's signature
        return self._witness is not None and await self._witness.same(number)

    async def display_number(self, number: int, digits: int) -> None:  # noqa: ARG002 - as above
        if self._witness is not None:
            await self._witness.show(number)


def central_config(witness: Witness | None) -> PairingConfig:
    return PairingConfig(
        sc=True, mitm=True, bonding=True, delegate=Delegate(witness), identity_address_type=_RANDOM
    )


class Window(Protocol):
    """Holds the witness of the running pairing, for every adapter of one radio."""

    keys: KeyFile
    witness: Witness | None


class BumbleBonding:
    """Implements `Bonding` on the key file of one radio."""

    def __init__(self, window: Window) -> None:
        self._window = window

    @asynccontextmanager
    async def asking(self, address: str, witness: Witness) -> AsyncIterator[None]:  # noqa: ARG002 - only we begin a pairing here
        self._window.witness = witness
        try:
            yield
        finally:
            self._window.witness = None

    async def forget(self, address: str) -> bool:
        names = [
            name for name, _ in await self._window.keys.get_all() if same_address(name, address)
        ]
        for name in names:
            await self._window.keys.delete(name)
        return bool(names)


def same_address(name: str, address: Any) -> bool:
    """Compare addresses; bumble writes public ones as `…/P`."""
    return name.removesuffix("/P").upper() == str(address).removesuffix("/P").upper()
