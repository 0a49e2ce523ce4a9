"""Sound in order → utterances: what one person said from the first word to the pause after it."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from edge.hearing.voice_activity import RATE, WINDOW_BYTES, WINDOW_S, Change, VoiceActivity

BEFORE_S: Final = 0.3
"""Sound before the first speech that belongs to it: soft consonants come before what counts as
speech.
"""
_BEFORE: Final = round(BEFORE_S / WINDOW_S) + 5
"""Windows kept while nobody speaks: those, and the five in which speech is noticed."""
LONG_COMMAND_S: Final = 15.0
"""No sentence to a tool is so long; what is longer ends at a short pause."""
LONG_TALK_S: Final = 5.0
"""The same where no sentence is expected, as with captions: short parts are decoded sooner."""
LONGEST_S: Final = 20.0
"""Longer speech is cut, and goes on as the next utterance. Time and memory of the recogniser grow
with the square of the length: the bundled one needs 220 MiB for 20 s, 280 MiB for 30 s.
"""


@dataclass(slots=True)
class Utterance:
    """Times on the boot clock."""

    began_at: float
    ended_at: float
    sound: bytearray = field(default_factory=bytearray)

    @property
    def seconds(self) -> float:
        return len(self.sound) / 2 / RATE


Changed = tuple[Change, Utterance]


class Utterances:
    """Finds the utterances of one stream of sound."""

    def __init__(self, probability: Callable[[bytes], float]) -> None:
        self._activity = VoiceActivity(probability, LONG_COMMAND_S)
        self._rest = bytearray()
        """Sound that is no whole window yet."""
        self._before: deque[bytes] = deque(maxlen=_BEFORE)
        self.current: Utterance | None = None

    def expect(self, *, commands: bool) -> None:
        """Say whether sentences to tools may come."""
        self._activity.long_s = LONG_COMMAND_S if commands else LONG_TALK_S

    @property
    def silent_s(self) -> float:
        """How long the speaker of the current utterance has been silent."""
        return self._activity.silent_s

    def hear(self, pcm: bytes, at: float) -> list[Changed]:
        """Return which utterances began or are over. `at`: the time of the end of `pcm`."""
        self._rest += pcm
        changed: list[Changed] = []
        while len(self._rest) >= WINDOW_BYTES:
            window = bytes(self._rest[:WINDOW_BYTES])
            del self._rest[:WINDOW_BYTES]
            changed += self._window(window, at - len(self._rest) / 2 / RATE)
        return changed

    def end(self) -> list[Changed]:
        """What comes next does not continue this: the current utterance is over."""
        self._activity.reset()
        self._before.clear()
        self._rest.clear()
        return self._over()

    def _window(self, window: bytes, at: float) -> list[Changed]:
        change = self._activity.hear(window)
        if self.current is None:
            self._before.append(window)
            if change is not Change.BEGAN:
                return []
            sound = bytearray().join(self._before)
            self._before.clear()
            self.current = Utterance(at - self._activity.first_s, at, sound)
            return [(Change.BEGAN, self.current)]
        self.current.sound += window
        if change is Change.ENDED:
            return self._over()
        if not self._activity.silent_s:
            self.current.ended_at = at
        if self.current.seconds < LONGEST_S:
            return []
        cut = self._over()
        self.current = Utterance(at, at)  # the speaker goes on
        return cut

    def _over(self) -> list[Changed]:
        over, self.current = self.current, None
        return [] if over is None else [(Change.ENDED, over)]
