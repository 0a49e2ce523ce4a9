"""The Codec contract: packets in, messages out, and the other way round; no I/O, no clock of its
own.

Time is an argument (seconds, any monotonic origin). After h11 (three verbs, NEED_DATA) and aioquic
(`get_timer`).
"""

from collections.abc import Sized
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final, Literal, Protocol, TypeVar

from firmware_bridge.errors import RemoteViolation
from firmware_bridge.messages import Command, Event, Reply

P = TypeVar("P", bound=Sized)
"""What one write or notification is: bytes where the glasses are one radio, `Sided` where they
are two.
"""


class Role(StrEnum):
    """Which end of the connection a codec speaks for."""

    CENTRAL = "central"
    PERIPHERAL = "peripheral"


class _NeedData(Enum):
    NEED_DATA = "NEED_DATA"


NEED_DATA: Final = _NeedData.NEED_DATA
"""`next_event` has nothing more until more packets arrive."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message from the peer.

    `re` is the number of our command that it answers, `number` the peer's own number when it
    expects an answer.
    """

    message: Command | Event | Reply
    re: int | None = None
    number: int | None = None


class Codec(Protocol[P]):
    """One connection's protocol state, used once."""

    def set_max_packet(self, size: int) -> None:
        """Bytes one write or notification can carry (ATT MTU − 3); may grow during a connection."""

    def receive_packet(self, packet: P, now: float) -> None:
        """Take one packet. Raises `RemoteViolation` for bytes no correct peer sends; the codec
        stays usable.
        """

    def next_event(self) -> Incoming | Literal[_NeedData.NEED_DATA]:
        """Give the next whole message."""

    def send(self, message: Command | Event | Reply, now: float, *, re: int | None = None) -> int:
        """Queue a message; returns its number, by which its answer will be known; 0 when none will
        come.

        Raises `CommandRefused("unsupported")` for a command that this family has no words for.
        """

    def packets_to_send(self, now: float) -> list[P]:
        """Packets the peer has room for now, in order; each at most the max packet."""

    def backlog(self) -> int:
        """Bytes queued or sent and not yet acknowledged by the peer."""

    def next_timer(self) -> float | None:
        """When `handle_timer` wants to be called, or None."""

    def handle_timer(self, now: float) -> None:
        """Retransmit what is due. Raises `LinkLost(SILENT)` when the peer has stopped
        acknowledging.
        """


__all__ = ["NEED_DATA", "Codec", "Incoming", "P", "RemoteViolation", "Role"]
