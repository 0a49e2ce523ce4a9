"""Synthetic speech as a microphone hears it: voices, speeds, noise, and what coding does to it."""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

RATE: Final = 16000
VOICES: Final = ("en-GB", "en-US")
SPEEDS: Final = (0.85, 1.0, 1.15)
"""Slow, plain and quick speech."""
_HOTH_HZ: Final = (100, 200, 400, 800, 1600, 3150, 6300, 8000)
_HOTH_DB: Final = (32.4, 27.6, 22.7, 17.8, 12.9, 7.8, -1.3, -6.6)
"""The spectrum of noise in rooms, power a hertz (Hoth; ITU-T P.800, annex A)."""


class Noise(NamedTuple):
    """`kind`: `room`, or `white`, which hides consonants far more. `db`: how far the speech is
    above it.
    """

    kind: str
    db: int

    @classmethod
    def parse(cls, text: str) -> "Noise | None":
        """Read `room:20`; `none` is no noise. Raises ValueError."""
        if text == "none":
            return None
        kind, _, db = text.partition(":")
        if kind not in ("room", "white") or not db.isdecimal():
            raise ValueError(f"{text!r} is no noise; none, room:20 and white:20 are")
        return cls(kind, int(db))

    def __str__(self) -> str:
        return f"{self.kind} {self.db} dB"


NOISES: Final = (None, Noise("room", 20), Noise("white", 20), Noise("room", 10), Noise("white", 10))
"""None is clean."""
CODINGS: Final = ("pcm", "lc3")
_QUIET_S: Final = 0.3
"""Before and after a sentence, with the noise of the room in it."""
_VOLUME: Final = 0.5
_AUDIBLE: Final = 0.01
"""Of full scale: what is quieter is no speech, and does not count for its power."""


@dataclass(frozen=True, slots=True)
class Take:
    """How one sentence is spoken and heard."""

    voice: str = VOICES[0]
    speed: float = 1.0
    noise: Noise | None = None
    coding: str = "pcm"


def takes(
    number: int,
    *,
    every_speed: bool = False,
    noises: Sequence[Noise | None] = NOISES,
    codings: Sequence[str] = CODINGS,
) -> Iterator[Take]:
    """Yield the takes of the sentence of this number; without `every_speed` one speed a voice, so
    that each speed gets a third of the sentences.
    """
    for at, voice in enumerate(VOICES):
        speeds = SPEEDS if every_speed else (SPEEDS[(number + at) % len(SPEEDS)],)
        for speed in speeds:
            for noise in noises:
                for coding in codings:
                    yield Take(voice, speed, noise, coding)


class Speaker:
    """Speaks with Pico; keeps what was spoken in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def speak(self, text: str, take: Take) -> bytes:
        """Return the sentence as 16-bit PCM, with quiet around it and noise over it."""
        samples = np.frombuffer(self._spoken(text, take), dtype="<i2").astype(np.float64) / 32768
        quiet = np.zeros(int(_QUIET_S * RATE))
        return with_noise(np.concatenate([quiet, samples, quiet]), take.noise, text)

    def _spoken(self, text: str, take: Take) -> bytes:
        name = hashlib.sha256(f"{take.voice} {take.speed} {text}".encode()).hexdigest()[:20]
        file = self._folder / f"{name}.pcm"
        if not file.exists():
            from py_nanotts import NanoTTS

            pcm = NanoTTS().speak(text, voice=take.voice, speed=take.speed, volume=_VOLUME)
            file.write_bytes(pcm)
        return file.read_bytes()


def with_noise(samples: "np.ndarray", noise: Noise | None, seed: str) -> bytes:
    """Add noise under the speech; the same for the same seed."""
    if noise is not None:
        loud = samples[np.abs(samples) > _AUDIBLE]
        power = float(np.mean(loud**2)) / 10 ** (noise.db / 10)
        source = np.random.default_rng(int.from_bytes(seed.encode()[:8].ljust(8), "big"))
        sound = source.normal(0, 1, len(samples))
        sound = _as_in_rooms(sound) if noise.kind == "room" else sound
        samples = samples + sound * math.sqrt(power / float(np.mean(sound**2)))
    return (np.clip(samples, -1, 1 - 1 / 32768) * 32768).astype("<i2").tobytes()


def _as_in_rooms(white: "np.ndarray") -> "np.ndarray":
    """Give white noise the spectrum of noise in rooms; what is deeper is left out."""
    frequencies = np.fft.rfftfreq(len(white), 1 / RATE)
    octaves = np.log2(np.maximum(frequencies, _HOTH_HZ[0]))
    gain = 10 ** (np.interp(octaves, np.log2(_HOTH_HZ), _HOTH_DB) / 20)
    gain[frequencies < _HOTH_HZ[0]] = 0
    return np.fft.irfft(np.fft.rfft(white) * gain, len(white))


def white_noise(seconds: float, level: float = 0.05, seed: int = 1) -> bytes:
    source = np.random.default_rng(seed)
    return (
        (np.clip(source.normal(0, level, int(seconds * RATE)), -1, 0.99) * 32768)
        .astype("<i2")
        .tobytes()
    )


def mix(first: bytes, second: bytes) -> bytes:
    """Two people who speak at the same time."""
    longer, shorter = sorted((first, second), key=len, reverse=True)
    both = np.frombuffer(longer, dtype="<i2").astype(np.int32)
    both[: len(shorter) // 2] += np.frombuffer(shorter, dtype="<i2")
    return np.clip(both, -32768, 32767).astype("<i2").tobytes()
