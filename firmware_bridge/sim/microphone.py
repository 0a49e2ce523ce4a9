"""The simulated microphone: what the wearer says, as 16 kHz PCM in real time.

Speech is one tone per word, enough to tell speech from silence and one word from the next.
"""

import math
import struct
from collections.abc import Iterator
from typing import Final

RATE: Final = 16000
CHUNK_MS: Final = 40
CHUNK_SAMPLES: Final = RATE * CHUNK_MS // 1000
MAX_QUEUED_WORDS: Final = 512
_WORD_CHUNKS: Final = 5
"""Chunks per word: 200 ms, followed by one chunk of silence, about 250 words a minute."""
WORD_S: Final = _WORD_CHUNKS * CHUNK_MS / 1000
_LOUD: Final = 8000


class Microphone:
    """Produces one chunk after another: a queued word, else silence."""

    def __init__(self) -> None:
        self._words: list[str] = []
        self._heard_s = 0.0

    def say(self, text: str) -> None:
        """Queue a sentence; words beyond the limit are dropped."""
        self._words = (self._words + text.split())[:MAX_QUEUED_WORDS]

    def talks(self, seconds: float) -> bool:
        """Let time pass without its sound; return whether the wearer talks. A word takes 0.2 s."""
        talking = bool(self._words)
        self._heard_s = self._heard_s + seconds if talking else 0.0
        while self._words and self._heard_s >= WORD_S:
            self._heard_s -= WORD_S
            self._words.pop(0)
        return talking

    def chunks(self) -> Iterator[bytes]:
        """Yield PCM16 little-endian mono, `CHUNK_MS` each, indefinitely."""
        silence = bytes(2 * CHUNK_SAMPLES)
        while True:
            if not self._words:
                yield silence
                continue
            word = self._words.pop(0)
            for index in range(_WORD_CHUNKS):
                yield _tone(_pitch(word), index)
            yield silence


def _pitch(word: str) -> float:
    """Return a frequency in hertz, the same for the same word."""
    return 200.0 + sum(word.encode()) % 64 * 10


def _tone(hertz: float, chunk: int) -> bytes:
    start = chunk * CHUNK_SAMPLES
    wave = (
        round(_LOUD * math.sin(2 * math.pi * hertz * (start + i) / RATE))
        for i in range(CHUNK_SAMPLES)
    )
    return struct.pack(f"<{CHUNK_SAMPLES}h", *wave)
