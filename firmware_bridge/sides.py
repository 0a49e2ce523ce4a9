"""Glasses that are two radios: which side a packet belongs to, and the news that a side was lost or
is back.

Knows no family; a codec of two-sided glasses and a transport of two connections meet in these
words.
"""

from dataclasses import dataclass
from enum import StrEnum


class Side(StrEnum):
    """One radio of a pair, as the wearer sees it."""

    LEFT = "left"
    RIGHT = "right"


@dataclass(frozen=True, slots=True)
class SidePacket:
    """One write to, or notification from, one side."""

    side: Side
    data: bytes

    def __len__(self) -> int:
        return len(self.data)


@dataclass(frozen=True, slots=True)
class SideNews:
    """A side was lost, or is there (again). It travels in the stream of packets, so that a codec
    can never take a packet for one of another connection.
    """

    side: Side
    up: bool
    reason: str = ""

    def __len__(self) -> int:
        return 0


Sided = SidePacket | SideNews
"""What moves between a codec and a transport of two-sided glasses."""
