"""Makes what listens at its first use: until then a daemon has nothing of it in memory."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from edge.config.model import Settings
from edge.core.session import SessionController
from edge.ports import GlassesStatus, Question
from edge.runtime.clock import Clock
from firmware_bridge.capabilities import Hardware
from firmware_bridge.messages import Gesture
from firmware_bridge.sides import Side
from tools_cache.api.tool import Json

if TYPE_CHECKING:
    from edge.hearing.listening import Listening
    from edge.hearing.obstacles import Obstacle
    from edge.hearing.recogniser import Recogniser
    from edge.hearing.settings import ListeningSettings
    from edge.listening_ports import RecognitionPort

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

    async def close(self) -> None:
        """End the recogniser; fine when there is none."""
        if self._current is not None:
            await self._current.close()
            self._current = None


class ListeningOnDemand:
    """Stands for `Listening`, and makes it when a gesture, a question, a voice session, captions or
    a wake phrase may need it. `run()` is the service.
    """

    def __init__(
        self,
        make: "Callable[[ListeningSettings], Listening]",
        settings: Settings,
        *,
        session: SessionController,
        glasses: Callable[[], GlassesStatus],
        why_no_words: Callable[[], str],
    ) -> None:
        self._make = make
        self._settings = settings
        self._session = session
        self._glasses = glasses
        self._why_no_words = why_no_words
        self._listening: Listening | None = None
        self._needed = asyncio.Event()
        session.on_change = self._follow_session

    @property
    def made(self) -> "Listening":
        """Return what listens."""
        if self._listening is None:
            self._listening = self._make(listening_settings(self._settings))
            self._needed.set()
        return self._listening

    def _follow_session(self) -> None:
        if self._session.snapshot().session_id is not None:
            _ = self.made  # which follows the session from now on

    async def run(self) -> None:
        """Wait until it is needed, then serve."""
        if self._settings.microphone.wake_phrase:
            _ = self.made
        await self._needed.wait()
        await self.made.run()

    def use(self, settings: Settings, *, again: bool) -> None:
        """Apply settings. `again`: what recognises has changed."""
        self._settings = settings
        if self._listening is not None:
            self._listening.use(listening_settings(settings), again=again)
        elif settings.microphone.wake_phrase:
            _ = self.made

    def unused_gesture(self, gesture: Gesture, side: Side | None) -> None:
        """See `Listening`."""
        known = self._glasses().capabilities
        if known is not None and known.has(Hardware.MICROPHONE):
            self.made.unused_gesture(gesture, side)

    def opened(self, question: Question) -> bool:
        """See `SpokenAnswersPort`."""
        may = self._listening is not None or (question.by_voice and self._obstacle() is None)
        return may and self.made.opened(question)

    def closed(self) -> None:
        """See `SpokenAnswersPort`."""
        if self._listening is not None:
            self._listening.closed()

    async def switch(self, *, on: bool) -> None:
        """See `CaptionsPort`."""
        if on or self._listening is not None:
            await self.made.switch(on=on)

    def why_not(self) -> str:
        """Return why nothing can be heard now, in words for anybody; "" if it can."""
        obstacle = self._obstacle()
        return obstacle.line if obstacle is not None else ""

    def describe(self) -> dict[str, Json]:
        """Return what the status says of the microphone."""
        if self._listening is not None:
            return self._listening.describe()
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
        return find_obstacle(settings, self._glasses(), self._why_no_words)
