"""Pairing on any radio: questions to the user, the proof obtained, the errors.

It records itself which questions were asked: no host stack reports that reliably.
"""

from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Final, Protocol, TypeVar

from msgspec import Struct

from firmware_bridge.deadlines import timeout
from firmware_bridge.errors import BridgeError

T = TypeVar("T")

ANSWER_S: Final = 30.0
"""Seconds to answer a question; the Security Manager's own timeout (Core 5.4, Vol 3 Part H 3.4)."""
LAST_PASSKEY: Final = 999_999


class How(StrEnum):
    """How a bond came to be."""

    NONE = "none"
    """these glasses do not support pairing"""
    JUST_WORKS = "just_works"
    """encrypted, but no code was compared or typed"""
    PASSKEY = "passkey"
    """a code shown on one side was typed on the other"""
    COMPARED = "compared"
    """a person confirmed that both sides show the same number"""


PROVED: Final = frozenset({How.PASSKEY, How.COMPARED})


class Proof(Struct, frozen=True):
    """A completed pairing. `address`: the identity address, perhaps not the advertised one."""

    how: How
    address: str

    @property
    def proved(self) -> bool:
        return self.how in PROVED


class Asker(Protocol):
    """The user on our side: one question at a time, in any order; cancelled when time is over."""

    async def passkey(self) -> int | None:
        """Return the code the glasses show; None to refuse."""

    async def same(self, number: int) -> bool:
        """Return whether the glasses show this number."""

    async def show(self, number: int) -> None:
        """Show the code to type on the glasses; returns at once."""


class PairingReason(StrEnum):
    """Why pairing failed."""

    WRONG_CODE = "wrong_code"
    NOT_ANSWERED = "not_answered"
    REFUSED = "refused"
    """refused by the glasses"""
    UNPROVEN = "unproven"
    """paired without the code that these glasses can show"""
    LOST = "lost"
    TIMEOUT = "timeout"
    OTHER = "other"


class PairingError(BridgeError):
    """Pairing failed and left nothing behind. `hint` tells the user what to do next."""

    def __init__(self, reason: PairingReason, detail: str, hint: str = "") -> None:
        super().__init__(detail)
        self.reason = reason
        self.hint = hint


class Witness:
    """Asks the user one pairing's questions, each with a deadline, and keeps the answers."""

    def __init__(self, asker: Asker, *, answer_s: float = ANSWER_S) -> None:
        self._asker = asker
        self._answer_s = answer_s
        self.how = How.JUST_WORKS
        self.declined = False
        """True if the user declined, or did not answer in time."""

    async def passkey(self) -> int | None:
        number = await self._ask(self._asker.passkey())
        if number is None or not 0 <= number <= LAST_PASSKEY:
            self.declined = True
            return None
        self.how = How.PASSKEY
        return number

    async def same(self, number: int) -> bool:
        agreed = await self._ask(self._asker.same(number)) is True
        if agreed:
            self.how = How.COMPARED
        else:
            self.declined = True
        return agreed

    async def show(self, number: int) -> None:
        await self._ask(self._asker.show(number))
        self.how = How.PASSKEY

    async def _ask(self, question: Awaitable[T]) -> T | None:
        try:
            async with timeout(self._answer_s):
                return await question
        except TimeoutError:
            return None


class Bonding(Protocol):
    """Bond management of one radio's host stack."""

    def asking(self, address: str, witness: Witness) -> AbstractAsyncContextManager[None]:
        """While entered, pairing with this address may ask `witness`; other pairing is refused."""

    async def forget(self, address: str) -> bool:
        """Delete the bond with an address; False when there was none."""
