"""WAV files, as sound for the simulated microphone: 16 kHz, mono, 16 bits.

The conversion is simple. Speech stays intelligible; music would want better filters.
"""

import io
import sys
import wave
from array import array
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Final

RATE: Final = 16000
MAX_SOUND_S: Final = 300.0
MAX_FILE_BYTES: Final = 128 * 1024 * 1024
"""A file of `MAX_SOUND_S` with 48 kHz, stereo and 32 bits fits."""
_LOWEST_RATE, _HIGHEST_RATE = 4000, 192_000
_MOST_CHANNELS: Final = 8
MAGIC: Final = b"RIFF"
_NEEDED: Final = "a WAV file with whole numbers of 8, 16, 24 or 32 bits is needed (PCM, not float)"


class SoundError(ValueError):
    """Sound that cannot be used; the message names it, the problem and what is needed."""


def read_file(path: Path) -> bytes:
    """Return the sound of a file as little-endian samples. Raises `SoundError`."""
    try:
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise SoundError(f"{path}: {size} bytes; at most {MAX_FILE_BYTES} are read")
        data = path.read_bytes()
    except OSError as error:
        raise SoundError(f"{path}: {error.strerror or error}") from None
    return read(data, name=str(path))


def read(data: bytes, *, name: str = "the sound") -> bytes:
    """Return the sound of a WAV file's bytes as little-endian samples. Raises `SoundError`."""
    if not data.startswith(MAGIC):
        raise SoundError(f"{name} is no WAV file; {_NEEDED}")
    try:
        with wave.open(io.BytesIO(data)) as file:
            channels, width, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
            if not 1 <= channels <= _MOST_CHANNELS:
                raise SoundError(f"{name} has {channels} channels; 1 to {_MOST_CHANNELS} are read")
            if not _LOWEST_RATE <= rate <= _HIGHEST_RATE:
                rates = f"{_LOWEST_RATE} to {_HIGHEST_RATE}"
                raise SoundError(f"{name} has {rate} samples a second; {rates} are read")
            if file.getnframes() > MAX_SOUND_S * rate:
                raise SoundError(f"{name} is longer than {MAX_SOUND_S:.0f} s")
            frames = file.readframes(file.getnframes())
    except (wave.Error, EOFError, RuntimeError) as error:  # the last for damaged sizes of chunks
        raise SoundError(f"{name}: {str(error) or 'it ends too early'}; {_NEEDED}") from None
    samples = _mono(_sixteen_bits(frames, width), channels)
    return _little(samples if rate == RATE else _at_our_rate(samples, rate))


def _sixteen_bits(frames: bytes, width: int) -> Sequence[int]:
    """Return the upper 16 bits of each sample; 8-bit WAV samples are unsigned."""
    count = len(frames) // width
    frames = frames[: count * width]
    if width == 1:
        return [(each - 128) << 8 for each in frames]
    upper = bytearray(2 * count)
    upper[0::2], upper[1::2] = frames[width - 2 :: width], frames[width - 1 :: width]
    return _numbers(bytes(upper))


def _mono(samples: Sequence[int], channels: int) -> Sequence[int]:
    """Return the mean of all channels."""
    if channels == 1:
        return samples
    apart = [samples[at::channels] for at in range(channels)]
    return [sum(each) // channels for each in zip(*apart, strict=False)]


def _at_our_rate(samples: Sequence[int], rate: int) -> Sequence[int]:
    """Resample: down by the mean of each stretch, up by straight lines between samples."""
    if len(samples) < 2:
        return []
    count, step, last = len(samples) * RATE // rate, rate / RATE, len(samples) - 1
    if step < 1:
        places = (min(at * step, last - 1e-6) for at in range(count))
        return [
            round(samples[int(at)] + (at - int(at)) * (samples[int(at) + 1] - samples[int(at)]))
            for at in places
        ]
    sums = [0, *accumulate(samples)]

    def sum_until(at: float) -> float:
        whole = min(int(at), last)
        return sums[whole] + (at - whole) * samples[whole]

    edges = [sum_until(min(at * step, last + 1.0)) for at in range(count + 1)]
    return [round((end - start) / step) for start, end in pairwise(edges)]


def _numbers(little: bytes) -> "array[int]":
    numbers = array("h", little)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _little(samples: Sequence[int]) -> bytes:
    numbers = array("h", samples)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def scale(pcm: bytes, share: float) -> bytes:
    """Return the sound with this share of its strength, which is at most 1."""
    return _little([round(each * share) for each in _numbers(pcm)])


def mix(one: bytes, other: bytes) -> bytes:
    """Return both sounds at once, limited to the range of a sample; as long as the first."""
    both = zip(_numbers(one), _numbers(other), strict=False)
    return _little([max(-32768, min(32767, a + b)) for a, b in both])
