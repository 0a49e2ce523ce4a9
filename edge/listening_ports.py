"""The interfaces of what listens, and the values they exchange; see `edge/ports.py`.

They are apart from the others because most daemons never listen, and load nothing of it.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Protocol

from edge.core.hearing.expected import ExpectedWords
from edge.ports import Question
from firmware_bridge.messages import AudioFormat, Gesture, MicrophoneChunk, Transcript
from firmware_bridge.sides import Side


class RecognitionFailed(Exception):
    """No words come of this sound; the text says why."""


@dataclass(frozen=True, slots=True)
class SpeechBegan:
    """Somebody began to speak; `at` on the boot clock."""

    at: float


class RecognitionPort(Protocol):
    """Implemented by `hearing/recogniser.py`: one stream of sound at a time."""

    def why_not(self) -> str:
        """Return why this machine recognises no words, and what would help; "" if it does."""

    async def begin(
        self, form: AudioFormat, expected: ExpectedWords, *, rate: int = 16000
    ) -> "RecognitionStream":
        """Open a stream of sound (mono; `rate` in Hz). Raises `RecognitionFailed`."""


class RecognitionStream(Protocol):
    """Sound in, words out. Iterate it until it ends; close it in any case."""

    def feed(self, chunk: MicrophoneChunk) -> None:
        """Take sound; never waits. What comes too fast is dropped, the oldest first."""

    def expect(self, expected: ExpectedWords) -> None:
        """Change what may be said, from the next utterance on."""

    def finish(self) -> None:
        """There is no more sound: the last words follow, then the iteration ends."""

    def __aiter__(self) -> AsyncIterator[SpeechBegan | Transcript]:
        """Yield partial and final transcripts; a final one has no text if nothing was understood.
        Raises `RecognitionFailed`.
        """

    async def close(self) -> None:
        """Give up what is left."""


class CannotListen(Exception):
    """The microphone is not turned on; the text says why, in words for the wearer."""


class ListeningMark(Protocol):
    """Implemented by `display/presenter.py` (`Presenter.listening_mark`): the lens says that the
    microphone is on. Nothing happens on glasses without a lens.
    """

    def show(self, text: str = "") -> None:
        """Say that the microphone is on; `text`: what was understood so far, for the wearer alone
        (it is in no report, event or log). Never waits; may be called as often as there are words.
        """

    def clear(self, *, answered: bool = False) -> None:
        """The microphone is off. `answered`: what was said is being answered, so the lens need not
        go dark for the moment until the answer is there.
        """


class SpeechPort(Protocol):
    """Implemented by `display/presenter.py` (`Presenter.speech`): what the daemon says itself."""

    @property
    def speaking(self) -> bool:
        """Whether our voice can be heard from the glasses now."""

    def stop(self) -> None:
        """The wearer speaks: stop, unless a question is being spoken. Never waits."""


class CaptionsPort(Protocol):
    """Implemented by `hearing/listening.py`: turns captions on and off for `glasses:captions`."""

    async def switch(self, *, on: bool) -> None:
        """Return when they are on, or off. Raises `CannotListen`."""


class RecordingPort(Protocol):
    """Implemented by `hearing/listening.py`: records sound for `glasses:record_sound`."""

    async def record(self, seconds: float, *, rate: int) -> bytes:
        """Return the sound of the next `seconds` as WAV of `rate` Hz (16000 or 8000), mono, 16
        bits. Raises `CannotListen`; a recording that ends before its time gives nothing.
        """


class CaptionPage(Protocol):
    """Implemented by `display/listening/captions.py` (`Presenter.captions`): words of those around,
    on the lens while nothing else is there, and nowhere else.
    """

    def why_not(self) -> str:
        """Return why these glasses show no captions; "" if they do."""

    def begin(self, left: Callable[[], None]) -> None:
        """Captions are on. `left`: called when the wearer leaves them by a double tap; then, as in
        any case, `end` is to be called.
        """

    def hear(self, said: Transcript) -> None:
        """Take words, partial ones as often as they change. Never waits."""

    def end(self, why: str = "") -> None:
        """Captions are off; `why` is shown for a moment, in words for the wearer."""


class ListeningPort(Protocol):
    """Implemented by `hearing/listening.py`. It listens while a question is before the wearer, and
    gives what it hears to `Presenter.answer_by_words`.
    """

    def unused_gesture(self, gesture: Gesture, side: Side | None) -> None:
        """Take a gesture that neither a question, nor a call, nor a page, nor a speech used. Never
        waits.
        """

    def opened(self, question: Question) -> bool:
        """A question is about to be put to the wearer; return whether an answer by voice can be
        heard, so that the lens says so. Never waits; a question that is shown again comes again.
        """

    def closed(self) -> None:
        """No question is before the wearer any more."""
