"""What pairing is: who is asked, what was proved, why it failed. Shared by every radio.

Knows no radio. That somebody was asked is remembered here, because no host stack can be trusted to
say it.
"""

from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol, TypeVar

from firmware_bridge.deadlines import timeout
from firmware_bridge.errors import BridgeError

T = TypeVar("T")

ANSWER_S: Final = 30.0
"""A person has as long as the Security Manager itself waits for the next step (Core 5.4, Vol 3,
Part H, 3.4).
"""
LAST_PASSKEY: Final = 999_999


class How(StrEnum):
    """How a bond came to be."""

    NONE = "none"
    """these glasses know no pairing"""
    JUST_WORKS = "just_works"
    """encrypted, but nobody compared or typed anything"""
    PASSKEY = "passkey"
    """a code shown by one side was typed on the other"""
    COMPARED = "compared"
    """a person saw the same number on both sides"""


PROVED: Final = frozenset({How.PASSKEY, How.COMPARED})


@dataclass(frozen=True, slots=True)
class Proof:
    """A pairing that was done. `address` is the glasses' own, which may be another than the one
    they advertised.
    """

    how: How
    address: str

    @property
    def asked(self) -> bool:
        return self.how in PROVED


class Asker(Protocol):
    """The person at our end. Called in any order, one question at a time; cancelled when it is
    too late.
    """

    async def passkey(self) -> int | None:
        """Give the code that the glasses show; None to refuse."""

    async def same(self, number: int) -> bool:
        """Say whether the glasses show this very number."""

    async def show(self, number: int) -> None:
        """Tell the code that must be typed on the glasses; returns at once."""


class PairingReason(StrEnum):
    """Why there is no bond."""

    WRONG_CODE = "wrong_code"
    NOT_ANSWERED = "not_answered"
    REFUSED = "refused"
    """by the glasses"""
    UNPROVEN = "unproven"
    """it went through without the code that these glasses can show"""
    LOST = "lost"
    TIMEOUT = "timeout"
    OTHER = "other"


class PairingError(BridgeError):
    """Pairing failed and left nothing behind. `hint` is the next thing a person can do."""

    def __init__(self, reason: PairingReason, detail: str, hint: str = "") -> None:
        super().__init__(detail)
        self.reason = reason
        self.hint = hint


class Witness:
    """Carries the questions of one pairing to a person, each with its deadline, and remembers
    the answers. Used once.
    """

    def __init__(self, asker: Asker, *, answer_s: float = ANSWER_S) -> None:
        self._asker = asker
        self._answer_s = answer_s
        self.how = How.JUST_WORKS
        self.declined = False
        """Somebody was asked and said no, or nothing in time."""

    async def passkey(self) -> int | None:
        number = await self._answered(self._asker.passkey())
        if number is None or not 0 <= number <= LAST_PASSKEY:
            self.declined = True
            return None
        self.how = How.PASSKEY
        return number

    async def same(self, number: int) -> bool:
        agreed = await self._answered(self._asker.same(number)) is True
        if agreed:
            self.how = How.COMPARED
        else:
            self.declined = True
        return agreed

    async def show(self, number: int) -> None:
        await self._answered(self._asker.show(number))
        self.how = How.PASSKEY

    async def _answered(self, question: Awaitable[T]) -> T | None:
        try:
            async with timeout(self._answer_s):
                return await question
        except TimeoutError:
            return None


class Bonding(Protocol):
    """What one radio's host stack does about bonds."""

    def asking(self, address: str, witness: Witness) -> AbstractAsyncContextManager[None]:
        """For as long as this is entered, pairing with this address may ask `witness`; nothing
        else may pair at all.
        """

    async def forget(self, address: str) -> bool:
        """Delete the bond with an address; False when there was none."""
