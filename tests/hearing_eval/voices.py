"""Synthetic speech as a microphone hears it: voices, speeds, noise, and what coding does to it."""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

RATE: Final = 16000
VOICES: Final = ("en-GB", "en-US")
SPEEDS: Final = (0.85, 1.0, 1.15)
"""Slow, plain and quick speech."""
NOISES: Final = (None, 20, 10)
"""dB of speech above white noise; None is clean."""
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
    noise_db: int | None = None
    coding: str = "pcm"


def takes(
    number: int,
    *,
    every_speed: bool = False,
    noises: Sequence[int | None] = NOISES,
    codings: Sequence[str] = CODINGS,
) -> Iterator[Take]:
    """Yield the takes of the sentence of this number; without `every_speed` one speed a voice, so
    that each speed gets a third of the sentences.
    """
    for at, voice in enumerate(VOICES):
        speeds = SPEEDS if every_speed else (SPEEDS[(number + at) % len(SPEEDS)],)
        for speed in speeds:
            for noise_db in noises:
                for coding in codings:
                    yield Take(voice, speed, noise_db, coding)


class Speaker:
    """Speaks with Pico; keeps what was spoken in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def speak(self, text: str, take: Take) -> bytes:
        """Return the sentence as 16-bit PCM, with quiet around it and noise over it."""
        samples = np.frombuffer(self._spoken(text, take), dtype="<i2").astype(np.float64) / 32768
        quiet = np.zeros(int(_QUIET_S * RATE))
        return with_noise(np.concatenate([quiet, samples, quiet]), take.noise_db, text)

    def _spoken(self, text: str, take: Take) -> bytes:
        name = hashlib.sha256(f"{take.voice} {take.speed} {text}".encode()).hexdigest()[:20]
        file = self._folder / f"{name}.pcm"
        if not file.exists():
            from py_nanotts import NanoTTS

            pcm = NanoTTS().speak(text, voice=take.voice, speed=take.speed, volume=_VOLUME)
            file.write_bytes(pcm)
        return file.read_bytes()


def with_noise(samples: "np.ndarray", noise_db: int | None, seed: str) -> bytes:
    """Add white noise that lies `noise_db` under the speech; the same noise for the same seed."""
    if noise_db is not None:
        loud = samples[np.abs(samples) > _AUDIBLE]
        power = float(np.mean(loud**2)) / 10 ** (noise_db / 10)
        source = np.random.default_rng(int.from_bytes(seed.encode()[:8].ljust(8), "big"))
        samples = samples + source.normal(0, math.sqrt(power), len(samples))
    return (np.clip(samples, -1, 1 - 1 / 32768) * 32768).astype("<i2").tobytes()


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
