"""Measures and shapes speech as 16-bit mono PCM: is there sound, how loud, at which rate.

Used by the child process of the voice only. Plain Python: the voice needs no other library for it.
"""

import math
from array import array
from collections.abc import Sequence
from functools import lru_cache
from operator import mul
from typing import Final

RATE: Final = 16000
FULL: Final = 32768
"""Full scale of 16 bits: 0 dBFS."""
AUDIBLE_PEAK: Final = FULL // 100
"""-40 dBFS. Speech has most of its windows above it; an engine that skips the letters of a script
it does not know leaves noise below -47 dBFS.
"""
AUDIBLE_S: Final = 0.06
"""Seconds that must be above it: the shortest spoken digit has five times as much."""
SPEECH_DB: Final = -20.0
"""Loudness of speech at full volume, over the windows that have sound; what espeak-ng has."""
CEILING_DB: Final = -3.0
"""No sample is louder. Opus raised peaks by up to 1.1 dB in seven languages, and what the glasses
play is to stay below -1 dBFS.
"""
_RANGE_DB: Final = 20.0
"""Between the lowest volume and the highest: what is levelled can be heard at any but 0."""
_WINDOW: Final = RATE // 50
_TAPS: Final = 24
"""Input samples that one output sample is made of."""


def from_bytes(pcm: bytes) -> "array[int]":
    """Read little-endian PCM; half a sample at its end is dropped."""
    samples = array("h")
    samples.frombytes(pcm[: len(pcm) // 2 * 2])
    return samples


def peak_of(samples: Sequence[int]) -> int:
    high, low = (max(samples), min(samples)) if samples else (0, 0)
    return max(high, -low)


def heard_after(samples: "array[int]") -> int:
    """Return how many samples must be played until a person has heard something; 0: never. Samples
    alone are no sound.
    """
    left = AUDIBLE_S * RATE
    for number, window in enumerate(_windows(samples), 1):
        left -= len(window) if peak_of(window) >= AUDIBLE_PEAK else 0
        if left <= 0:
            return min(number * _WINDOW, len(samples))
    return 0


def levelled(samples: "array[int]", volume: int = 100) -> "array[int]":
    """Bring speech of any engine to one loudness, then to the volume (0 to 100 percent).

    No sample is louder than `CEILING_DB`. Silence stays silence.
    """
    heard = [window for window in _windows(samples) if peak_of(window) >= AUDIBLE_PEAK]
    count = sum(map(len, heard))
    if not count:
        return samples
    power = sum(sum(map(mul, window, window)) for window in heard) / count
    wanted = min(
        _ratio(SPEECH_DB) * FULL / math.sqrt(power), _ratio(CEILING_DB) * FULL / peak_of(samples)
    )
    factor = wanted * gain(volume)
    return array("h", [int(sample * factor) for sample in samples])


def gain(volume: int) -> float:
    """Return the factor for a volume in percent; half of it sounds half as loud (-10 dB)."""
    return _ratio(_RANGE_DB * (min(100, volume) / 100 - 1)) if volume > 0 else 0.0


def silence(seconds: float) -> "array[int]":
    """Return silence; played first, it wakes a loudspeaker that sleeps."""
    return array("h", bytes(2 * round(seconds * RATE)))


def mixed(samples: "array[int]", channels: int) -> "array[int]":
    """Mix interleaved channels to one."""
    if channels == 1:
        return samples
    whole = len(samples) // channels * channels
    parts = [samples[channel:whole:channels] for channel in range(channels)]
    return array("h", [sum(each) // channels for each in zip(*parts, strict=True)])


def resampled(samples: "array[int]", rate: int) -> "array[int]":
    """Change the rate to `RATE`, without what the new rate cannot carry."""
    if rate == RATE or not samples:
        return samples
    common = math.gcd(rate, RATE)
    up, down = RATE // common, rate // common
    filters = _filters(up, min(1.0, RATE / rate))
    half = _TAPS // 2
    padded = array("h", bytes(2 * half)) + samples + array("h", bytes(2 * half))
    out = array("h")
    for at in range(len(samples) * up // down):
        whole, phase = divmod(at * down, up)
        value = sum(map(mul, padded[whole + 1 : whole + 1 + _TAPS], filters[phase]))
        out.append(max(-FULL, min(FULL - 1, round(value))))
    return out


def _windows(samples: "array[int]") -> "list[array[int]]":
    return [samples[at : at + _WINDOW] for at in range(0, len(samples), _WINDOW)]


def _ratio(decibels: float) -> float:
    return float(10 ** (decibels / 20))


@lru_cache(maxsize=4)
def _filters(phases: int, band: float) -> tuple[tuple[float, ...], ...]:
    """Return the weights of the input samples around each phase: a sinc in a Hann window, a little
    narrower than `band` (1: half the input rate), with sum 1.
    """
    half, cutoff = _TAPS // 2, band * 0.92
    out = []
    for phase in range(phases):
        places = [tap - half + 1 - phase / phases for tap in range(_TAPS)]
        row = [
            (math.sin(math.pi * cutoff * x) / (math.pi * x) if x else cutoff)
            * (0.5 + 0.5 * math.cos(math.pi * x / (half + 0.5)))
            for x in places
        ]
        total = sum(row)
        out.append(tuple(weight / total for weight in row))
    return tuple(out)
