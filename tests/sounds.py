"""What tests of the voice share: a server of voices, and measures of what was played.

The measures share no code with what they judge.
"""

import math
import wave
from array import array
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from tests.wyoming_process import wyoming_process

RATE = 16000


def wyoming_server(path: Path | None = None) -> AbstractContextManager[str]:
    """Run a Wyoming text-to-speech server, and return its address."""
    return wyoming_process(
        "tests.unit.display.voice.wyoming_server", *([str(path)] if path else [])
    )


def strength(samples: "array[int]", hertz: float) -> float:
    """Amplitude of one frequency."""
    parts = [
        sum(v * f(2 * math.pi * hertz * n / RATE) for n, v in enumerate(samples))
        for f in (math.sin, math.cos)
    ]
    return 2 * math.hypot(*parts) / len(samples)


def decibels(value: float) -> float:
    return 20 * math.log10(max(value, 1e-3) / 32768)


@dataclass(frozen=True)
class Measured:
    """A recording: its samples, what is silent at its beginning, its loudest sample, and how loud
    the parts with sound in them are (dB below full scale).
    """

    samples: "array[int]"
    seconds: float
    lead_s: float
    peak_db: float
    speech_db: float


def measure(path: str | Path) -> Measured:
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE, 1, 2)
        samples = array("h", file.readframes(file.getnframes()))
    windows = [samples[at : at + 160] for at in range(0, len(samples), 160)]
    loud = [max(map(abs, window)) > 328 for window in windows]
    heard = [v for window, is_loud in zip(windows, loud, strict=True) if is_loud for v in window]
    return Measured(
        samples,
        len(samples) / RATE,
        (loud.index(True) if True in loud else len(loud)) / 100,
        decibels(max(map(abs, samples), default=0)),
        decibels(math.sqrt(sum(v * v for v in heard) / max(1, len(heard)))),
    )
