"""The sound of an open microphone: one arm's packets, numbered through so that lost ones show."""

from typing import Final

from firmware_bridge.codecs.even_g2.lanes import NEVER
from firmware_bridge.codecs.even_g2.wire import LC3_FRAME_BYTES, LC3_FRAMES, SOUND_BYTES, SOUND_S
from firmware_bridge.errors import RemoteViolation, Violation
from firmware_bridge.messages import MicrophoneChunk
from firmware_bridge.sides import Side

PAUSE_S: Final = 2.0
"""Seconds without sound after which an open microphone is switched on again."""
SWITCH_S: Final = 0.5
"""Seconds without sound of one arm after which that of the other is taken."""
_COUNTER: Final = SOUND_BYTES - 1
_LATE: Final = 20
"""A packet at most so far back is late or doubled; one further back begins a new count."""


class SoundStream:
    """One open microphone. Both arms may send; the left one's sound is taken if there is any."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.is_open = False
        """Whether the glasses have switched it on; what came before belongs to another stream."""
        self._arm: Side | None = None
        self._index = -1
        self._counter = 0
        self._heard_at = 0.0
        self._watching = False

    def opened(self, now: float) -> None:
        """The glasses switched it on."""
        self.is_open = self._watching = True
        self._heard_at = max(now, self._heard_at)

    def reopening(self) -> None:
        """It is being switched on again."""
        self._watching = False

    def due(self) -> float:
        """Return the time at which to switch it on again; infinity: that was done already."""
        return self._heard_at + PAUSE_S if self._watching else NEVER

    def receive(self, side: Side, packet: bytes, now: float) -> MicrophoneChunk | None:
        """Return five LC3 frames, 50 ms in all; None for a packet of the other arm.

        What follows them is ignored. Raises `RemoteViolation` for fewer bytes.
        """
        if len(packet) < SOUND_BYTES:
            raise RemoteViolation(Violation.TRUNCATED, f"sound packet of {len(packet)} bytes")
        if side is not self._arm:
            silent = now - self._heard_at >= SWITCH_S
            if self._arm is not None and side is not Side.LEFT and not silent:
                return None
            self._arm = side
            step = 1 if self._index < 0 else max(1, self._passed(now))
        else:
            step = self._step(packet[_COUNTER], now)
            if step == 0:
                return None
        self._counter, self._heard_at, self._watching = packet[_COUNTER], now, True
        self._index = max(0, self._index + step)
        starts = range(0, LC3_FRAMES * LC3_FRAME_BYTES, LC3_FRAME_BYTES)
        frames = tuple(packet[at : at + LC3_FRAME_BYTES] for at in starts)
        return MicrophoneChunk(self.number, self._index, frames)

    def _passed(self, now: float) -> int:
        return round((now - self._heard_at) / SOUND_S)

    def _step(self, counter: int, now: float) -> int:
        """Return how far this packet is after the last: of all distances that differ by whole
        rounds of 256, the one that fits the time best; late packets are behind it.
        """
        passed = self._passed(now)
        step = (counter - self._counter - passed + 128) % 256 - 128 + passed
        return step if step >= -_LATE else max(1, passed)
