"""What waits for the Lua machine of simulated glasses: texts for the prompt, data for a program."""

from collections import deque
from typing import Final

PROMPT_S: Final = 0.010
"""Seconds until the prompt takes a text: it looks every 10 ms."""
DATA_S: Final = 0.001
QUEUED_TEXT: Final = 1024
QUEUED_DATA: Final = 4096
"""Bytes that Halo keeps; each packet of data takes two more."""


class Slot:
    """Packets of one kind. A Frame keeps one, which the next one replaces; a Halo keeps `room`
    bytes (None: a Frame), and refuses what has no room.
    """

    def __init__(self, delay_s: float, room: int | None) -> None:
        self._delay_s = delay_s
        self._room = room
        self._waiting: deque[tuple[float, bytes]] = deque()

    def put(self, packet: bytes, now: float) -> None:
        if self._room is None:
            self._waiting.clear()
        elif not packet or self._used + len(packet) + 2 > self._room:
            return
        self._waiting.append((now + self._delay_s, packet))

    @property
    def _used(self) -> int:
        return sum(len(packet) + 2 for _, packet in self._waiting)

    def take(self, now: float) -> bytes | None:
        """Return the next packet that is taken by now, or None."""
        if not self._waiting or now < self._waiting[0][0]:
            return None
        return self._waiting.popleft()[1]

    def due(self) -> list[float]:
        """Return when the next packet is taken, if one waits."""
        return [self._waiting[0][0]] if self._waiting else []

    def clear(self) -> None:
        self._waiting.clear()
