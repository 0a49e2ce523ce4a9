"""The mock's voice pick-up: what the simulated wearer says, as 16 kHz PCM in real time.

Knows no words: speech is a tone per word, enough to tell talking from silence and one word from the
next.
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
"""A word lasts 200 ms, with one chunk of silence behind it: about 250 words a minute."""
WORD_S: Final = _WORD_CHUNKS * CHUNK_MS / 1000
_LOUD: Final = 8000


class Microphone:
    """Gives one chunk after another: a queued word, else silence."""

    def __init__(self) -> None:
        self._words: list[str] = []
        self._heard_s = 0.0

    def say(self, text: str) -> None:
        """Queue a sentence; words over the bound are not heard."""
        self._words = (self._words + text.split())[:MAX_QUEUED_WORDS]

    def talks(self, seconds: float) -> bool:
        """Hear the next stretch of time without its sound: is the wearer talking? A word takes
        0.2 s.
        """
        talking = bool(self._words)
        self._heard_s = self._heard_s + seconds if talking else 0.0
        while self._words and self._heard_s >= WORD_S:
            self._heard_s -= WORD_S
            self._words.pop(0)
        return talking

    def chunks(self) -> Iterator[bytes]:
        """PCM16 little-endian mono, `CHUNK_MS` each, without end."""
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
    """Hertz, the same for the same word."""
    return 200.0 + sum(word.encode()) % 64 * 10


def _tone(hertz: float, chunk: int) -> bytes:
    start = chunk * CHUNK_SAMPLES
    wave = (
        round(_LOUD * math.sin(2 * math.pi * hertz * (start + i) / RATE))
        for i in range(CHUNK_SAMPLES)
    )
    return struct.pack(f"<{CHUNK_SAMPLES}h", *wave)
