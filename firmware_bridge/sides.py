"""Types for glasses with two radios: packets with a side, and the loss or return of a side."""

from enum import StrEnum

from msgspec import Struct


class Side(StrEnum):
    """One radio of a pair, from the wearer's point of view."""

    LEFT = "left"
    RIGHT = "right"

    @property
    def other(self) -> "Side":
        return Side.LEFT if self is Side.RIGHT else Side.RIGHT


class SidePacket(Struct, frozen=True):
    """One write to, or notification from, one side."""

    side: Side
    data: bytes

    def __len__(self) -> int:
        return len(self.data)


class SideNews(Struct, frozen=True):
    """A side was lost or came back: a packet of the stream, so that the order of both is known."""

    side: Side
    up: bool
    reason: str = ""

    def __len__(self) -> int:
        return 0


Sided = SidePacket | SideNews
"""What moves between a codec and a transport of two-sided glasses."""
