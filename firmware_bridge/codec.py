"""The codec interface: packets in, messages out, and back; no I/O and no clock.

Time is an argument (seconds, any monotonic origin). The shape follows h11 (three verbs, NEED_DATA)
and aioquic (`get_timer`).
"""

from collections.abc import Sized
from enum import Enum, StrEnum
from typing import Final, Literal, Protocol, TypeVar

from msgspec import Struct

from firmware_bridge.messages import Command, Event, Reply

P = TypeVar("P", bound=Sized)
"""One write or notification: bytes for glasses with one radio, `Sided` for glasses with two."""


class Role(StrEnum):
    """Which end of the connection a codec implements."""

    CENTRAL = "central"
    PERIPHERAL = "peripheral"


class _NeedData(Enum):
    NEED_DATA = "NEED_DATA"


NEED_DATA: Final = _NeedData.NEED_DATA
"""Returned by `next_event` when more packets are needed."""


class Incoming(Struct, frozen=True):
    """A message from the peer.

    `re`: number of our command that it answers. `number`: the peer's own number, if it expects an
    answer.
    """

    message: Command | Event | Reply
    re: int | None = None
    number: int | None = None


class Codec(Protocol[P]):
    """Protocol state of one connection, used once."""

    def set_max_packet(self, size: int) -> None:
        """Bytes one write or notification can carry (ATT MTU − 3); may grow during a connection."""

    def receive_packet(self, packet: P, now: float) -> None:
        """Process a packet. Raises `RemoteViolation` for invalid bytes; the codec stays usable."""

    def next_event(self) -> Incoming | Literal[_NeedData.NEED_DATA]:
        """Return the next complete message."""

    def send(self, message: Command | Event | Reply, now: float, *, re: int | None = None) -> int:
        """Queue a message; return its number, which identifies the answer, or 0 if none is
        expected.

        Raises `CommandRefused("unsupported")` for a command that this family does not have.
        """

    def packets_to_send(self, now: float) -> list[P]:
        """Packets the peer has room for now, in order; each at most the maximum packet size."""

    def backlog(self) -> int:
        """Bytes queued or sent and not yet acknowledged by the peer."""

    def next_timer(self) -> float | None:
        """The time when `handle_timer` must be called, or None."""

    def handle_timer(self, now: float) -> None:
        """Retransmit what is due. Raises `LinkLost(SILENT)` if the peer stopped acknowledging."""
