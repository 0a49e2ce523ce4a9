"""Sound as it came off the air → samples in order: late, doubled and lost chunks, and the formats.

Samples are 16 kHz, mono, 16 bits in the machine's byte order.
"""

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from firmware_bridge.lc3 import FRAME_BYTES, FRAME_SAMPLES, MAX_CODED, MIN_CODED, Decoder
from firmware_bridge.messages import AudioFormat, MicrophoneChunk

RATE: Final = 16000
MAX_CONCEALED_S: Final = 0.5
"""A longer gap ends the utterance: words are missing that nobody can guess."""
_HELD: Final = 2
"""Chunks kept back while one before them is missing; radios deliver late ones within 200 ms."""
_RESTARTED: Final = 32
"""An index so far back is no late chunk: the glasses count from the beginning again."""
_OPUS_STEP: Final = 160
"""Samples in 10 ms, the steps in which lost sound is concealed; a frame says its own length."""
_OPUS_MOST: Final = 1920
"""Samples in the longest frame of Opus, 120 ms."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Sound in order. `at`: when it arrived (boot clock), taken for the time of its end."""

    pcm: bytes
    at: float


class Break:
    """What follows does not continue what was before."""


class Chunks:
    """Chunks of one stream, in the order of their arrival."""

    def __init__(self, form: AudioFormat, *, rate: int = RATE) -> None:
        """`rate`: in Hz, of samples; coded sound of LC3 and Opus is decoded at 16 kHz. Raises
        `Lc3Missing` and ImportError only when sound comes.
        """
        self._format: _Format = _FORMATS[form](rate)
        self._stream: int | None = None
        self._next = 0
        self._held: dict[int, tuple[MicrophoneChunk, float]] = {}
        self._per_chunk_s = 0.0
        self.lost = 0
        """Chunks that never came, or too late."""

    def take(self, chunk: MicrophoneChunk, at: float) -> list[Samples | Break]:
        """Return what can be heard now. `at`: when it arrived."""
        out: list[Samples | Break] = []
        if self._is_new(chunk):
            if self._stream is not None:
                out += [*self.rest(), Break()]
            self._stream, self._next = chunk.stream, chunk.index
        if chunk.index < self._next:
            return out  # it came twice, or its place is past
        self._held[chunk.index] = chunk, at
        out += self._in_order()
        if len(self._held) > _HELD:
            out += [*self._skip(), *self._in_order()]
        return out

    def rest(self) -> list[Samples | Break]:
        """Return what was kept back; no chunk before it can come any more."""
        out: list[Samples | Break] = []
        while self._held:
            out += [*self._skip(), *self._in_order()]
        return out

    def _is_new(self, chunk: MicrophoneChunk) -> bool:
        return chunk.stream != self._stream or self._next - chunk.index > _RESTARTED

    def _in_order(self) -> list[Samples | Break]:
        out: list[Samples | Break] = []
        while (found := self._held.pop(self._next, None)) is not None:
            chunk, at = found
            pcm = self._format.decode(chunk.frames)
            self._per_chunk_s = len(pcm) / 2 / RATE
            self._next += 1
            out.append(Samples(pcm, at))
        return out

    def _skip(self) -> list[Samples | Break]:
        """Go on with the first chunk kept back: those before it are lost."""
        first = min(self._held)
        lost, self._next = first - self._next, first
        self.lost += lost
        seconds = lost * self._per_chunk_s
        if seconds > MAX_CONCEALED_S:
            return [Break()]
        return [Samples(self._format.conceal(seconds), self._held[first][1] - self._per_chunk_s)]


class _Format(Protocol):
    def decode(self, frames: tuple[bytes, ...]) -> bytes: ...

    def conceal(self, seconds: float) -> bytes:
        """Return sound for frames that were lost."""


class _Pcm:
    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._last = 0

    def decode(self, frames: tuple[bytes, ...]) -> bytes:
        pcm = b"".join(frames)
        return self._at_full_rate(pcm[: len(pcm) & ~1])

    def _at_full_rate(self, pcm: bytes) -> bytes:
        """Return sound of 8 kHz at 16 kHz: between two samples comes their mean. There is still
        nothing above 4 kHz that was spoken.
        """
        if self._rate == RATE or not pcm:
            return pcm
        samples = array("h", pcm)
        before = array("h", [self._last, *samples[:-1]])
        self._last = samples[-1]
        both = array("h", bytes(2 * len(pcm)))
        both[::2] = array("h", [(a + b) // 2 for a, b in zip(before, samples, strict=True)])
        both[1::2] = samples
        return both.tobytes()

    def conceal(self, seconds: float) -> bytes:
        return bytes(2 * round(seconds * RATE))


class _MuLaw(_Pcm):
    def decode(self, frames: tuple[bytes, ...]) -> bytes:
        samples = array("h", map(_MULAW.__getitem__, b"".join(frames)))
        return self._at_full_rate(samples.tobytes())


def _expand(code: int) -> int:
    """Return the sample of a mu-law code (ITU-T G.711)."""
    code = ~code & 0xFF
    size = (((code & 0x0F) << 3) + _BIAS << (code >> 4 & 7)) - _BIAS
    return -size if code & 0x80 else size


_BIAS: Final = 0x84
_MULAW: Final = tuple(map(_expand, range(256)))


class _Lc3:
    def __init__(self, _rate: int) -> None:
        self._decoder: Decoder | None = None
        self._size = 0

    def decode(self, frames: tuple[bytes, ...]) -> bytes:
        """A frame of another size than the first is damaged, and concealed."""
        return b"".join(map(self._frame, frames))

    def _frame(self, frame: bytes) -> bytes:
        if self._decoder is None:
            if not MIN_CODED <= len(frame) <= MAX_CODED:
                return bytes(FRAME_BYTES)
            self._size, self._decoder = len(frame), Decoder(len(frame))
        return self._decoder.decode(frame if len(frame) == self._size else None)

    def conceal(self, seconds: float) -> bytes:
        if self._decoder is None:
            return bytes(2 * round(seconds * RATE))
        count = round(seconds * RATE / FRAME_SAMPLES)
        return b"".join(self._decoder.decode(None) for _ in range(count))


class _Opus:
    def __init__(self, _rate: int) -> None:
        self._decoder: Any = None
        self._steps = 2
        """Length of the last frame, in steps."""

    def decode(self, frames: tuple[bytes, ...]) -> bytes:
        return b"".join(map(self._frame, frames))

    def _frame(self, frame: bytes) -> bytes:
        import opuslib_next  # noqa: PLC0415 - the extra may be missing

        if self._decoder is None:
            self._decoder = opuslib_next.Decoder(RATE, 1)
        try:
            pcm = bytes(self._decoder.decode(frame, _OPUS_MOST))
        except opuslib_next.OpusError:  # damaged
            return self._fill(self._steps)
        self._steps = max(1, len(pcm) // 2 // _OPUS_STEP)
        return pcm

    def conceal(self, seconds: float) -> bytes:
        return self._fill(round(seconds * RATE / _OPUS_STEP))

    def _fill(self, steps: int) -> bytes:
        return b"".join(self._decoder.decode(b"", _OPUS_STEP) for _ in range(steps))


_FORMATS: Final[Mapping[AudioFormat, Callable[[int], _Format]]] = {
    AudioFormat.PCM16: _Pcm,
    AudioFormat.LC3: _Lc3,
    AudioFormat.OPUS: _Opus,
    AudioFormat.MULAW: _MuLaw,
}
