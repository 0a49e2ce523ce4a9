"""What a driver shows of its traffic to whoever records it; nobody does by default."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any


class Passing(StrEnum):
    """What passes through a driver, and the value that a tap is given with it."""

    CONNECTED = "connected"
    """a new connection: the model, and the transport"""
    SIZE = "size"
    """bytes that one packet can carry from here on"""
    COMMAND = "command"
    """a command and the number that its answer will have"""
    OUT = "out"
    """a packet to the glasses"""
    IN = "in"
    """a packet from the glasses"""
    MESSAGE = "message"
    """what the packets of the glasses meant: an `Incoming`"""


Tap = Callable[[float, Passing, Any], None]
"""Takes (time, what passes, its value); it neither waits nor raises."""
