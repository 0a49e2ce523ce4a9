"""Sound to Halo's speaker: samples become LC3 where this machine can code it, and go out no faster
than the glasses play, because what does not fit into their buffer is lost without a word.
"""

from typing import Final

from firmware_bridge import lc3
from firmware_bridge.codecs.frame.wire import LC3_FRAME, SPEAKER, SPOKEN_RATE
from firmware_bridge.errors import CommandRefused
from firmware_bridge.messages import AudioChunk, AudioFormat, EndAudio, StartAudio
from firmware_bridge.packets import ChannelPacket

BUFFER_BYTES: Final = 6144
"""Bytes that are ahead of what is played; the glasses hold 8192."""
MAX_WAITING: Final = 1 << 20
"""Bytes that may wait to be sent: 32 s of samples. A driver waits long before that."""
LATE_S: Final = 0.3
"""Seconds by which the glasses may play later than sent: the radio, and their own queue."""
PCM, LC3 = b"\0", b"\1"
"""Content of the message that opens the speaker."""


class Speaker:
    """The speaker of one connection, and its open stream if any."""

    def __init__(self) -> None:
        self.stream: int | None = None
        self.ending = 0
        """Number of the command that ends the stream when all of it was played; 0: none."""
        self._encoder: lc3.Encoder | None = None
        self._rest = b""
        self._waiting = bytearray()
        self._opened = False
        self._played_at = 0.0
        """When the last byte sent will have been played."""

    @property
    def size(self) -> int:
        """Bytes that wait."""
        return len(self._waiting)

    @property
    def _rate(self) -> int:
        """Bytes that are played in a second."""
        return 2 * SPOKEN_RATE if self._encoder is None else LC3_FRAME * 100

    def open(self, command: StartAudio) -> bytes:
        """Begin a stream; return the content of the message for it. Raises `CommandRefused`."""
        if command.format is not AudioFormat.PCM16 or command.rate != SPOKEN_RATE:
            detail = f"{command.format} at {command.rate} Hz; the speaker takes pcm16 at 16000 Hz"
            raise CommandRefused("unsupported", detail)
        if self.stream is not None:
            raise CommandRefused("busy", f"stream {self.stream} is open")
        try:
            self._encoder = lc3.Encoder(LC3_FRAME)
        except lc3.Lc3Missing:
            self._encoder = None
        self.stream, self.ending, self._opened = command.stream, 0, False
        self._rest, self._played_at = b"", 0.0
        self._waiting.clear()
        return PCM if self._encoder is None else LC3

    def opened(self) -> None:
        """The glasses took the message: sound may be sent."""
        self._opened = True

    def close(self) -> None:
        """Forget the stream and what waits of it."""
        self.stream, self.ending = None, 0
        self._waiting.clear()

    def feed(self, chunk: AudioChunk) -> None:
        """Take samples of the open stream; those of another, and too many, are dropped."""
        if chunk.stream == self.stream and not self.ending and self.size < MAX_WAITING:
            self._add(b"".join(chunk.frames))

    def _add(self, samples: bytes) -> None:
        if self._encoder is None:
            self._waiting += samples
            return
        samples = self._rest + samples
        whole = len(samples) // lc3.FRAME_BYTES * lc3.FRAME_BYTES
        for at in range(0, whole, lc3.FRAME_BYTES):
            self._waiting += self._encoder.encode(samples[at : at + lc3.FRAME_BYTES])
        self._rest = samples[whole:]

    def check_end(self, command: EndAudio) -> None:
        """Raises `CommandRefused` for a stream that is not open, or ends already."""
        if command.stream != self.stream or (self.ending and not command.flush):
            raise CommandRefused("no_stream", f"stream {command.stream} is not open")

    def end(self, number: int) -> None:
        """No more follows: the command with this number ends the stream when it was played."""
        if self._rest:
            self._add(bytes(lc3.FRAME_BYTES - len(self._rest)))
        self.ending = number

    # -------------------------------------------------------------- time

    def emit(self, now: float, max_packet: int) -> list[bytes]:
        """Return the sound for which the glasses have room now."""
        out: list[bytes] = []
        while self._room_at(max_packet) <= now:
            piece = bytes(self._waiting[:max_packet])
            del self._waiting[: len(piece)]
            self._played_at = max(self._played_at, now) + len(piece) / self._rate
            out.append(ChannelPacket(piece, SPEAKER))
        return out

    def _room_at(self, max_packet: int) -> float:
        """When the next piece fits into the glasses' buffer; never if nothing waits."""
        if not self._opened or not self._waiting:
            return float("inf")
        piece = min(len(self._waiting), max_packet)
        return self._played_at - (BUFFER_BYTES - piece) / self._rate

    def due(self, max_packet: int) -> float | None:
        """When there is something to do, or None."""
        if self._waiting:
            at = self._room_at(max_packet)
            return None if at == float("inf") else at
        return self._played_at + LATE_S if self.ending else None

    def is_played(self, now: float) -> bool:
        """Whether the stream has ended and all of it should have been played."""
        return bool(self.ending) and not self._waiting and now >= self._played_at + LATE_S
