"""LC3 sound of a Mentra Live: `F1 number` and frames of 40 bytes (10 ms, 16 kHz, 32 kbit/s), the
same in both directions (M26). Older sources look for A0 as the first byte.
"""

from typing import Final

from firmware_bridge import lc3
from firmware_bridge.codecs.mentra_live.wire import MAX_NOTIFICATION
from firmware_bridge.errors import CommandRefused, RemoteViolation, Violation
from firmware_bridge.messages import MicrophoneChunk

SOUND: Final = 0xF1
OLD_SOUND: Final = 0xA0
FRAME: Final = 40
MAX_FRAMES: Final = 10
FRAME_S: Final = 0.01
_FIRST: Final = (bytes((SOUND,)), bytes((OLD_SOUND,)))
_LATE: Final = 32
"""A packet at most so far back is late or doubled; one further back is counted as ahead."""


def frames_of(packet: bytes) -> tuple[int, tuple[bytes, ...]]:
    """Return number and frames of a packet. Raises `RemoteViolation`."""
    body = packet[2:]
    if not body or packet[0] not in (SOUND, OLD_SOUND) or len(body) % FRAME:
        raise RemoteViolation(Violation.TRUNCATED, f"sound packet of {len(packet)} bytes")
    return packet[1], tuple(body[at : at + FRAME] for at in range(0, len(body), FRAME))


def packet_of(number: int, frames: tuple[bytes, ...], first: int = SOUND) -> bytes:
    return bytes((first, number % 256)) + b"".join(frames)


def frames_per_packet(max_packet: int) -> int:
    return min(MAX_FRAMES, (max_packet - 2) // FRAME)


class MicrophoneStream:
    """One open microphone: packets are numbered 0 to 255 again and again, chunks go on."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.heard = False
        self._index = -1
        self._sequence = 0
        self._begun = b""

    def receive(self, packet: bytes) -> list[MicrophoneChunk]:
        """Return the chunks that are whole now; lost packets leave a gap. A packet that the chip
        cut goes on in the next notification, without a head. Raises `RemoteViolation`.
        """
        begun, self._begun = self._begun, b""
        if begun and (len(begun) + len(packet) - 2) % FRAME == 0:
            return [self._chunk(begun + packet)]
        # the rest of it was lost: its whole frames remain
        found = [self._chunk(begun[: 2 + (len(begun) - 2) // FRAME * FRAME])] if begun else []
        if packet[:1] in _FIRST and len(packet) == MAX_NOTIFICATION:
            self._begun = packet
            return found
        return [*found, self._chunk(packet)]

    def _chunk(self, packet: bytes) -> MicrophoneChunk:
        sequence, frames = frames_of(packet)
        if not self.heard:
            self._index = 0
        else:
            self._index += (sequence - self._sequence + _LATE) % 256 - _LATE
        self.heard, self._sequence = True, sequence
        return MicrophoneChunk(self.number, max(0, self._index), frames)


class SpeakerStream:
    """One stream to the speaker: samples become LC3 packets, and time tells when it was played."""

    def __init__(self, number: int) -> None:
        """Raises `CommandRefused` where this machine cannot code LC3."""
        self.number = number
        self.ending: int | None = None
        """Number of the command that ends it."""
        self.played_at = 0.0
        """When the last sample sent will have been played."""
        self._rest = b""
        self._frames: list[bytes] = []
        self._packets = 0
        try:
            self._encoder = lc3.Encoder(FRAME)
        except lc3.Lc3Missing as missing:
            raise CommandRefused("unsupported", str(missing)) from None

    def feed(self, pcm: bytes, now: float, per_packet: int) -> list[bytes]:
        """Return the packets that are full now."""
        self._rest += pcm
        whole = len(self._rest) // lc3.FRAME_BYTES * lc3.FRAME_BYTES
        for at in range(0, whole, lc3.FRAME_BYTES):
            self._frames.append(self._encoder.encode(self._rest[at : at + lc3.FRAME_BYTES]))
        self._rest = self._rest[whole:]
        count = len(self._frames) // per_packet * per_packet
        return self._send(count, now, per_packet)

    def flush(self, now: float, per_packet: int) -> list[bytes]:
        """Return the rest, filled up with silence."""
        if self._rest:
            self.feed(bytes(-len(self._rest) % lc3.FRAME_BYTES), now, MAX_FRAMES * 256)
        return self._send(len(self._frames), now, per_packet)

    def _send(self, count: int, now: float, per_packet: int) -> list[bytes]:
        ready, self._frames = self._frames[:count], self._frames[count:]
        self.played_at = max(self.played_at, now) + FRAME_S * count
        out = []
        for at in range(0, count, per_packet):
            out.append(packet_of(self._packets, tuple(ready[at : at + per_packet])))
            self._packets += 1
        return out
