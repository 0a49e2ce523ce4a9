"""The buffer that a simulated Halo has for sound: what does not fit into it is lost."""

from typing import Final

from firmware_bridge.codecs.frame.wire import LC3_FRAME, SPOKEN_RATE

RING_BYTES: Final = 8192


class SoundRing:
    """How full the buffer is, as sound arrives and is played. `lost`: bytes that did not fit."""

    def __init__(self) -> None:
        self.lost = 0
        self._rate = 0
        """Bytes played in a second; 0 while the speaker is closed."""
        self._empty_at = 0.0

    def open(self, *, coded: bool) -> None:
        self._rate = LC3_FRAME * 100 if coded else 2 * SPOKEN_RATE
        self._empty_at = 0.0

    def close(self) -> None:
        self._rate = 0

    def take(self, size: int, now: float) -> bool:
        """Take sound; return whether there was room for it and somebody who plays it."""
        begins_at = max(self._empty_at, now)
        if not self._rate or (begins_at - now) * self._rate + size > RING_BYTES:
            self.lost += size
            return False
        self._empty_at = begins_at + size / self._rate
        return True
