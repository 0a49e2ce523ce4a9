"""The sound of an open microphone (F1): numbers its packets so that lost ones can be seen, and
notices when a recording has ended.
"""

from typing import Final

from firmware_bridge.codecs.even_g1.wire import LC3_FRAME_BYTES, LC3_FRAMES
from firmware_bridge.errors import RemoteViolation, Violation
from firmware_bridge.messages import MicrophoneChunk

PACKET_S: Final = 0.1
PAUSE_S: Final = 2.0
"""Seconds without sound after which an open microphone is switched on again."""
SHORT_PAUSE_S: Final = 0.4
"""The same when the recording is about as long as some firmware allows: 30 s."""
_LONG_PACKETS: Final = 290
_LATE_PACKETS: Final = 32
"""A packet at most so far back is late or doubled; one further back begins a new recording."""
_HURRY_PACKETS: Final = 5
"""More packets than the time since the last one has room for, by which a delayed one may differ."""
_BYTES: Final = 2 + LC3_FRAMES * LC3_FRAME_BYTES


class SoundStream:
    """One open microphone. The glasses number packets from 0 to 255, and begin at 0 again whenever
    the microphone is switched on; the chunks are numbered through.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self._index = -1
        """Of the last chunk."""
        self._sequence = 0
        """The number that the glasses gave it."""
        self._began = 0
        """The index at which this recording began."""
        self._heard_at = 0.0
        self._watching = False
        self._opened = False
        self._reopened = False

    @property
    def is_open(self) -> bool:
        """Whether the glasses have switched it on; what came before belongs to another stream."""
        return self._opened

    def opened(self, now: float) -> None:
        """The glasses switched it on."""
        self._opened = self._watching = True
        self._heard_at = now

    def reopened(self) -> None:
        """It is being switched on again: the glasses will number from 0."""
        self._reopened, self._watching = True, False

    def due(self) -> float | None:
        """Return the time at which to switch it on again, or None: that was done already."""
        if not self._watching:
            return None
        long = self._index - self._began >= _LONG_PACKETS
        return self._heard_at + (SHORT_PAUSE_S if long else PAUSE_S)

    def receive(self, packet: bytes, now: float) -> MicrophoneChunk:
        """Return ten LC3 frames, 100 ms in all. Raises `RemoteViolation` for any other length."""
        if len(packet) != _BYTES:
            raise RemoteViolation(Violation.TRUNCATED, f"sound packet of {len(packet)} bytes")
        index = self._number(packet[1], now)
        starts = range(2, _BYTES, LC3_FRAME_BYTES)
        frames = tuple(packet[at : at + LC3_FRAME_BYTES] for at in starts)
        return MicrophoneChunk(self.number, index, frames)

    def _number(self, sequence: int, now: float) -> int:
        """Return the packet's index: lost packets leave a gap, late ones come where they belong."""
        passed = round((now - self._heard_at) / PACKET_S)
        self._heard_at, self._watching = now, True
        if self._index < 0:
            self._index, self._sequence = 0, sequence
            return 0
        # of all distances that differ by whole rounds of 256, the one that fits the time best
        step = (sequence - self._sequence - passed + 128) % 256 - 128 + passed
        if self._is_new_recording(sequence, step, passed):
            self._reopened = False
            step = max(1, passed)
            self._began = self._index + step
        self._index, self._sequence = self._index + step, sequence
        return self._index

    def _is_new_recording(self, sequence: int, step: int, passed: int) -> bool:
        if self._reopened:
            return sequence == 0 or not 0 < step <= passed + _HURRY_PACKETS
        return step < -_LATE_PACKETS or self._index + step < self._began
