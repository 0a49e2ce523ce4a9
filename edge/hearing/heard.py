"""What was recognised → those who are to have it: the bus, a question, captions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from edge.core.hearing.purposes import Audience, Purpose
from edge.core.hearing.wake import AWAKE_S, after_phrase
from edge.hearing.uses import Uses
from edge.listening_ports import CaptionPage, ListeningMark, SpeechPort
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import GlassesSaid, PrivateWords
from firmware_bridge.messages import Transcript

LONGEST_S: Final = 31.0
"""The longest utterance of a recogniser, and a little more."""


@dataclass(frozen=True, slots=True)
class Hearers:
    """Who gets words. `suppressed`: whether words may be in no event now. `answer` takes what was
    said to a question.
    """

    bus: Bus
    mark: ListeningMark
    speech: SpeechPort
    captions: CaptionPage
    answer: Callable[[Transcript], object]
    suppressed: Callable[[], bool]


class HeardWords:
    """Gives the words of one stream after another to its audience."""

    def __init__(self, hearers: Hearers, uses: Uses, clock: Clock) -> None:
        self._to = hearers
        self._uses = uses
        self._clock = clock
        self.wake_phrase = ""
        self.pushed = False
        """Whether these words are what push to talk waits for."""
        self.answered = False
        """Whether the last words were a whole sentence to the glasses."""
        self.sentences = 0
        """Sentences since the microphone went on."""
        self.awake_until = float("-inf")
        """Until when what begins is said to the glasses, without the wake phrase (boot clock)."""

    def speech_began(self, audience: Audience) -> None:
        """Somebody began to speak: stop our own speech, unless only captions are heard for."""
        now = self._clock.boot()
        self._uses.note_speech(now)
        if now <= self.awake_until:
            self.awake_until = now + LONGEST_S
        if audience is not Audience.BYSTANDERS:
            self._to.speech.stop()

    def take(self, said: Transcript, audience: Audience) -> None:
        """Take words, partial ones too."""
        if not said.text.strip():
            return
        self._uses.note_speech(self._clock.boot())
        self.sentences += said.final
        match audience:
            case Audience.QUESTION:
                if said.final:
                    self._to.answer(said)
            case Audience.COMMANDS:
                self._command(said)
            case Audience.BYSTANDERS:
                self._overhear(said)

    def _command(self, said: Transcript) -> None:
        if not (said.final and self.pushed):  # its answer comes at once
            self._to.mark.show("" if said.final else said.text)
        self._publish(replace(said, addressed=self.pushed))
        if said.final and self.pushed:
            self.pushed = False
            self._uses.close(Purpose.PUSH_TO_TALK)

    def _overhear(self, said: Transcript) -> None:
        awake = self.wake_phrase and self._is_awake(said)
        if said.final and self.wake_phrase:
            after = after_phrase(said, self.wake_phrase)
            if after is not None and not after.text:
                self._wake_up()
                return
            if after is not None or awake:
                self.sleep(answered=True)
                self._publish(after or replace(said, addressed=True))
                return
        if awake:
            self._to.mark.show(said.text)
        elif Purpose.CAPTIONS in self._uses:
            self._to.captions.hear(said)

    def _is_awake(self, said: Transcript) -> bool:
        began_at = self._clock.boot() if said.began_at is None else said.began_at
        return began_at <= self.awake_until

    def _wake_up(self) -> None:
        self.awake_until = self._clock.boot() + AWAKE_S
        self._to.speech.stop()
        self._to.mark.show()

    def sleep(self, *, answered: bool = False) -> None:
        """Wait for the wake phrase again. `answered`: what was said is being answered."""
        self.awake_until = float("-inf")
        if not self._uses.marked():
            self._to.mark.clear(answered=answered)

    def _publish(self, said: Transcript) -> None:
        self.answered = said.final
        kind = PrivateWords if self._to.suppressed() else GlassesSaid
        self._to.bus.publish(kind(said))
