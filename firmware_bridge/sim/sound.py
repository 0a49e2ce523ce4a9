"""The simulated speaker: 16 kHz sound in simulated time, WAV files."""

import wave
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from firmware_bridge.messages import AudioFormat
from firmware_bridge.sim.time import SimTime
from firmware_bridge.sim.wav import RATE

MAX_STREAM_S: Final = 300.0
"""Maximum seconds of one stream: 9.6 MB of samples."""
KEPT_FILES: Final = 50
_BYTES_PER_SAMPLE: Final = 2
_LONGEST_OPUS_FRAME: Final = RATE * 120 // 1000
"""Samples in the longest Opus frame, 120 ms (RFC 6716, section 3.2.5)."""


class SpeakerError(Exception):
    """The speaker refuses a request. `code` is one of the profile's error codes."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


@dataclass(frozen=True, slots=True)
class HeardSound:
    """One finished stream: what was really played, and its file."""

    stream: int
    samples: int
    wav: Path
    format: AudioFormat
    flushed: bool
    bad_frames: int

    @property
    def seconds(self) -> float:
        return self.samples / RATE


class _Stream:
    """One open stream."""

    def __init__(self, number: int, format: AudioFormat) -> None:
        self.number = number
        self.format = format
        self.samples = bytearray()
        self.ends_at = 0.0  # when the last buffered sample will have been played
        self.bad_frames = 0
        self.overflowed = False
        self._opus = None
        if format is AudioFormat.OPUS:
            import opuslib_next  # noqa: PLC0415 - a C library that only sound in Opus needs

            self._opus = opuslib_next.Decoder(RATE, 1)

    def decode(self, frame: bytes) -> bytes:
        if self._opus is None:
            if len(frame) % _BYTES_PER_SAMPLE:
                self.bad_frames += 1
            return frame[: len(frame) - len(frame) % _BYTES_PER_SAMPLE]
        import opuslib_next  # noqa: PLC0415 - as above

        if not frame:  # a decoder would fill in lost sound for an empty frame, but nothing was lost
            self.bad_frames += 1
            return b""
        try:
            return bytes(self._opus.decode(frame, _LONGEST_OPUS_FRAME))
        except opuslib_next.OpusError:
            self.bad_frames += 1
            return b""


class SimSpeaker:
    """Plays one stream at a time, in simulated time."""

    def __init__(
        self,
        out_dir: Path,
        time: SimTime,
        *,
        play: Callable[[bytes, float], None] = lambda _pcm, _at: None,
        stop: Callable[[], None] = lambda: None,
    ) -> None:
        """`play` receives what is played and when it begins, `stop` that the rest is not played."""
        self._out_dir = out_dir
        self._time = time
        self._play = play
        self._stop = stop
        self._stream: _Stream | None = None
        self._written = 0
        self.last: HeardSound | None = None

    @property
    def playing(self) -> bool:
        return self._stream is not None

    def start(self, number: int, format: AudioFormat, rate: int) -> None:
        """Open a stream. Raises `SpeakerError`."""
        is_pcm = format is AudioFormat.PCM16 and rate == RATE
        if format is not AudioFormat.OPUS and not is_pcm:
            raise SpeakerError("unsupported", f"{format} at {rate} Hz; opus, or pcm16 at {RATE} Hz")
        if self._stream is not None:
            raise SpeakerError("busy", f"stream {self._stream.number} is playing")
        self._stream = _Stream(number, format)

    def feed(self, number: int, frames: Sequence[bytes]) -> None:
        """Take frames of the open stream; those of another are dropped, which shows at its end."""
        stream = self._stream
        if stream is None or stream.number != number:
            return
        before = len(stream.samples)
        for frame in frames:
            stream.samples += stream.decode(frame)
        bound = int(MAX_STREAM_S * RATE) * _BYTES_PER_SAMPLE
        if len(stream.samples) > bound:
            stream.overflowed = True
            del stream.samples[bound:]
        added = (len(stream.samples) - before) / _BYTES_PER_SAMPLE
        begins_at = max(stream.ends_at, self._time.now())
        stream.ends_at = begins_at + added / RATE
        self._play(bytes(stream.samples[before:]), begins_at)

    async def drain(self, number: int) -> HeardSound:
        """Wait until the last sample was played. Raises `SpeakerError` (flushed: `interrupted`)."""
        stream = self._open(number)
        while (left := stream.ends_at - self._time.now()) > 0:
            await self._time.rest(left)
            if self._stream is not stream:
                raise SpeakerError("interrupted", "the stream was flushed")
        if stream.overflowed:
            self._finish(stream, flushed=False)
            raise SpeakerError(
                "too_big", f"more than {MAX_STREAM_S:.0f} s; the rest was not played"
            )
        return self._finish(stream, flushed=False)

    def flush(self, number: int) -> HeardSound:
        """Stop now; only what was played counts. Raises `SpeakerError`."""
        stream = self._open(number)
        unplayed = max(0.0, stream.ends_at - self._time.now()) * RATE
        keep = max(0, len(stream.samples) // _BYTES_PER_SAMPLE - round(unplayed))
        del stream.samples[keep * _BYTES_PER_SAMPLE :]
        self._stop()
        return self._finish(stream, flushed=True)

    def interrupt(self) -> HeardSound | None:
        """Stop the current stream, as when the connection is lost."""
        return None if self._stream is None else self.flush(self._stream.number)

    def _open(self, number: int) -> _Stream:
        if self._stream is None or self._stream.number != number:
            raise SpeakerError("no_stream", f"stream {number} is not open")
        return self._stream

    def _finish(self, stream: _Stream, *, flushed: bool) -> HeardSound:
        self._stream = None
        samples = len(stream.samples) // _BYTES_PER_SAMPLE
        wav = self._write(stream.samples)
        self.last = HeardSound(
            stream.number, samples, wav, stream.format, flushed, stream.bad_frames
        )
        return self.last

    def _write(self, samples: bytes | bytearray) -> Path:
        self._written += 1
        path = self._out_dir / f"speaker-{self._written:04d}.wav"
        with wave.open(str(path), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(_BYTES_PER_SAMPLE)
            file.setframerate(RATE)
            file.writeframes(bytes(samples))
        (self._out_dir / f"speaker-{self._written - KEPT_FILES:04d}.wav").unlink(missing_ok=True)
        return path
