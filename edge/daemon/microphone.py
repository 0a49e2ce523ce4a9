"""Makes what listens at its first use: until then a daemon has nothing of it in memory."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from edge.config.model import Settings
from edge.core.session import SessionController
from edge.core.tools.snapshot import Snapshot
from edge.display.presenter import Presenter
from edge.ports import GlassesPort, Question
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import CallAnswered, CallCompleted
from edge.runtime.first_completed import race
from edge.storage.tools.user_stores import PrivateStores
from firmware_bridge.capabilities import Hardware
from firmware_bridge.messages import AudioFormat, Gesture, MicrophoneChunk, Transcript
from firmware_bridge.sides import Side
from tools_cache.api.tool import Json

if TYPE_CHECKING:
    from edge.core.hearing.names import KnownNames
    from edge.daemon.known_names import KnownNamesReader
    from edge.hearing.listening import Listening
    from edge.hearing.obstacles import Obstacle
    from edge.hearing.recogniser import Recogniser
    from edge.hearing.settings import ListeningSettings
    from edge.listening_ports import RecognitionPort, RecognitionStream

RATE: Final = 16000
FRAMES_A_SECOND: Final = 100
CHUNK: Final = 10
"""Frames of a recording that go to a recogniser together: 100 ms."""
PACE_S: Final = 0.1
AT_ONCE: Final = 1200
"""Frames that wait for a recogniser without one being dropped, see `hearing/child_process.py`."""
_SHAPING = ("recogniser", "model")
"""The settings that another recogniser is made for."""


def listening_settings(settings: Settings) -> "ListeningSettings":
    """Return these settings in the form of edge/hearing."""
    from edge.hearing.settings import ListeningSettings  # noqa: PLC0415 - see the top

    m = settings.microphone
    return ListeningSettings(
        allow=m.allow,
        recogniser=m.recogniser,
        push_to_talk=m.push_to_talk,
        wake_phrase=m.wake_phrase,
    )


class Recognisers:
    """Makes the recogniser of the settings; the one before it is closed. `command` replaces the
    child process, in tests.
    """

    def __init__(
        self, settings: Settings, clock: Clock, command: Sequence[str] | None = None
    ) -> None:
        self._settings = settings
        self._clock = clock
        self.command = command
        self._current: Recogniser | None = None

    def use(self, settings: Settings) -> bool:
        """Take these settings from the next recogniser on; return whether another one is needed."""
        before, now = self._settings, settings
        self._settings = settings
        return now.spoken_language != before.spoken_language or any(
            getattr(now.microphone, key) != getattr(before.microphone, key) for key in _SHAPING
        )

    @property
    def language(self) -> str:
        return self._settings.spoken_language

    def why_not(self) -> str:
        """Return why this machine recognises no words, and what would help; "" if it does."""
        from edge.hearing.engines.choice import why_not  # noqa: PLC0415 - as below

        name = self._settings.microphone.recogniser
        return "" if self.command is not None else why_not(name, self.language)

    async def make(self) -> "RecognitionPort":
        """Make one. Its child process starts when there is something to hear."""
        await self.close()
        from edge.hearing.recogniser import Recogniser, RecogniserChoice  # noqa: PLC0415 - only a daemon that listens needs it

        m = self._settings.microphone
        choice = RecogniserChoice(m.recogniser, m.model, self.language)
        self._current = Recogniser(choice, self._clock, command=self.command)
        return self._current

    async def words(self, form: AudioFormat, frames: tuple[bytes, ...]) -> str:
        """Return what is said in a recording, "" if nothing is understood. Raises
        `RecognitionFailed`, also while the recogniser hears something else.
        """
        from edge.core.hearing.expected import ExpectedWords  # noqa: PLC0415 - as above

        recogniser = self._current or await self.make()
        stream = await recogniser.begin(form, ExpectedWords())
        try:
            feeding = asyncio.ensure_future(_feed(stream, frames))
            try:
                said = [each async for each in stream if isinstance(each, Transcript)]
            finally:
                feeding.cancel()
        finally:
            await stream.close()
        return " ".join(each.text for each in said if each.final and each.text)

    async def wave(self, form: AudioFormat, frames: tuple[bytes, ...]) -> bytes:
        """Return a recording as a WAV file of 8 kHz. Raises `CannotListen`."""
        from edge.hearing.recorder import Recorder, to_wav  # noqa: PLC0415 - as above

        recorder = Recorder(form, RATE, self._clock)
        for chunk in _chunks(frames):
            recorder.take(chunk)
        return await to_wav(recorder.packed(len(frames) / FRAMES_A_SECOND, rate=RATE // 2))

    async def close(self) -> None:
        """End the recogniser; fine when there is none."""
        if self._current is not None:
            await self._current.close()
            self._current = None


async def _feed(stream: "RecognitionStream", frames: tuple[bytes, ...]) -> None:
    """Give a recording to a recogniser: its beginning at once, the rest as fast as it was spoken,
    because of what waits too long the oldest is dropped.
    """
    for chunk in _chunks(frames):
        if chunk.index * CHUNK >= AT_ONCE:
            await asyncio.sleep(PACE_S)
        stream.feed(chunk)
    stream.finish()


def _chunks(frames: tuple[bytes, ...]) -> list[MicrophoneChunk]:
    starts = enumerate(range(0, len(frames), CHUNK))
    return [MicrophoneChunk(0, index, frames[at : at + CHUNK]) for index, at in starts]


class ListeningOnDemand:
    """Stands for `Listening`, and makes it when a gesture, a question, a voice session, captions or
    a wake phrase may need it. `run()` is the service.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        recognisers: Recognisers,
        session: SessionController,
        glasses: GlassesPort,
        stage: Presenter,
        snapshot: Callable[[], Snapshot],
        private: PrivateStores,
        bus: Bus,
        clock: Clock,
        audit: Callable[[Mapping[str, Json]], None],
    ) -> None:
        self._settings = settings
        self._recognisers = recognisers
        self._session = session
        self._glasses = glasses
        self._stage = stage
        self._snapshot = snapshot
        self._private = private
        self._bus = bus
        self._clock = clock
        self._audit = audit
        self._listening: Listening | None = None
        self._names: KnownNamesReader | None = None
        self._needed = asyncio.Event()
        session.on_change = self._follow_session

    def _make(self) -> "Listening":
        from edge.daemon.known_names import KnownNamesReader  # noqa: PLC0415
        from edge.daemon.sayable_words import SayableWords  # noqa: PLC0415 - see the top
        from edge.hearing.dependencies import ListeningPorts  # noqa: PLC0415
        from edge.hearing.heard import Hearers  # noqa: PLC0415
        from edge.hearing.listening import Listening  # noqa: PLC0415

        user, private = self._settings.edge.user_id, self._private
        names = KnownNamesReader(user, self._snapshot, private.of, private.has_tables)
        self._names = names
        hearers = Hearers(
            bus=self._bus,
            mark=self._stage.listening_mark,
            speech=self._stage.speech,
            captions=self._stage.captions,
            answer=self._stage.answer_by_words,
            suppressed=self._session.suppresses_transcripts,
        )
        ports = ListeningPorts(
            glasses=self._glasses,
            recogniser=self._recognisers.make,
            why_no_words=self._recognisers.why_not,
            session=self._session,
            stage=self._stage,
            hearers=hearers,
            expected=SayableWords(
                self._snapshot, lambda: self._recognisers.language, lambda: names.current
            ),
            read_names=names.read,
            bus=self._bus,
            clock=self._clock,
            audit=self._audit,
        )
        return Listening(ports, listening_settings(self._settings))

    @property
    def listening(self) -> "Listening":
        """Return what listens; it is made at its first use."""
        if self._listening is None:
            self._listening = self._make()
            self._needed.set()
        return self._listening

    def _follow_session(self) -> None:
        if self._session.snapshot().session_id is not None:
            _ = self.listening  # which follows the session from now on

    async def run(self) -> None:
        """Wait until it is needed, then serve."""
        if self._settings.microphone.wake_phrase:
            _ = self.listening
        await self._needed.wait()
        await race(self.listening.run(), self._follow_names())

    async def _follow_names(self) -> None:
        """Read the names again while it listens, when a call may have changed them."""
        assert self._names is not None, "made with what listens"
        with self._bus.listen() as events:
            async for event in events:
                if not isinstance(event, CallAnswered | CallCompleted):
                    continue
                if self._names.may_change(event.tool) and await self._names.read():
                    self.listening.expect()

    @property
    def names(self) -> "KnownNames | None":
        """Return the names that may be said, as they were read last; None before it listened."""
        return None if self._names is None else self._names.current

    def use(self, settings: Settings, *, again: bool) -> None:
        """Apply settings. `again`: what recognises has changed."""
        self._settings = settings
        if self._listening is not None:
            self._listening.use(listening_settings(settings), again=again)
        elif settings.microphone.wake_phrase:
            _ = self.listening

    def unused_gesture(self, gesture: Gesture, side: Side | None) -> None:
        """See `ListeningPort`."""
        known = self._glasses.status().capabilities
        if known is not None and known.has(Hardware.MICROPHONE):
            self.listening.unused_gesture(gesture, side)

    def opened(self, question: Question) -> bool:
        """See `ListeningPort`."""
        may = self._listening is not None or (question.by_voice and self._obstacle() is None)
        return may and self.listening.opened(question)

    def closed(self) -> None:
        """See `ListeningPort`."""
        if self._listening is not None:
            self._listening.closed()

    async def switch(self, *, on: bool) -> None:
        """See `CaptionsPort`."""
        if on or self._listening is not None:
            await self.listening.switch(on=on)

    async def record(self, seconds: float, *, rate: int) -> bytes:
        """See `RecordingPort`."""
        return await self.listening.record(seconds, rate=rate)

    def why_not(self) -> str:
        """Return why nothing can be heard now, in words for anybody; "" if it can."""
        obstacle = self._obstacle()
        return obstacle.line if obstacle is not None else ""

    def describe(self) -> dict[str, Json]:
        """Return what the status says of the microphone."""
        if self._listening is not None and self._names is not None:
            return {**self._listening.describe(), **self._names.describe()}
        obstacle = self._obstacle()
        return {
            "state": "off" if obstacle is None else obstacle.state,
            "for": "",
            "recogniser": self._settings.microphone.recogniser,
            "reason": "" if obstacle is None else obstacle.reason,
            "since_s": None,
            "last": None,
        }

    def _obstacle(self) -> "Obstacle | None":
        from edge.hearing.obstacles import find_obstacle  # noqa: PLC0415 - see the top

        settings = listening_settings(self._settings)
        return find_obstacle(settings, self._glasses.status(), self._recognisers.why_not)
