"""When the microphone of the glasses is on, for what, and who gets the words.

Gestures, questions, voice sessions, captions and the wake phrase open and close purposes
(core/hearing/purposes.py); one task turns the microphone on while there is one, and off.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from edge.core.hearing.expected import ExpectedWords
from edge.core.hearing.purposes import (
    Audience,
    Purpose,
    audience_of,
    push_to_talk,
    sound_format,
    sound_rate,
)
from edge.core.hearing.wake import with_phrase
from edge.hearing import obstacles
from edge.hearing.dependencies import (
    LAST_WORDS_S,
    LOOK_S,
    NO_SOUND_S,
    START_S,
    ListeningPorts,
)
from edge.hearing.heard import HeardWords
from edge.hearing.journal import ListeningJournal
from edge.hearing.microphone import Microphone
from edge.hearing.recorder import NoWords, Recorder, to_wav
from edge.hearing.rest import Rest
from edge.hearing.settings import ListeningSettings
from edge.hearing.uses import Use, Uses
from edge.listening_ports import (
    CannotListen,
    RecognitionFailed,
    RecognitionPort,
    RecognitionStream,
    SpeechBegan,
)
from edge.ports import Question
from edge.runtime.bus import Listener
from edge.runtime.events import (
    CapabilitiesLearned,
    GlassesLost,
    GlassesReady,
    GlassesSaid,
    ToolsListChanged,
)
from edge.runtime.first_completed import Tasks, race
from firmware_bridge.deadlines import timeout
from firmware_bridge.messages import AudioFormat, ButtonReleased, Gesture, WornChanged
from firmware_bridge.sides import Side
from tools_cache.api.tool import Json

_log: Final = logging.getLogger(__name__)


class Listening:
    """Implements `ListeningPort`, `CaptionsPort` and `RecordingPort`; `run()` is the service.
    Nothing waits but captions and recordings.
    """

    def __init__(self, ports: ListeningPorts, settings: ListeningSettings) -> None:
        self._ports = ports
        self._settings = settings
        self._glasses = ports.glasses
        self._clock = ports.clock
        self._mark = ports.hearers.mark
        self._captions = ports.hearers.captions
        self._uses = Uses()
        self._words = HeardWords(ports.hearers, self._uses, ports.clock)
        self._microphone = Microphone(ports.glasses, ports.hearers.speech, ports.clock)
        self._journal = ListeningJournal(ports.clock, ports.audit)
        self._tasks = Tasks()
        self._changed = asyncio.Event()
        self._recogniser: RecognitionPort | None = None
        self._choices: Sequence[str] = ()
        """Those of the question that is open."""
        self._session_id: str | None = None
        """The voice session that was listened to last, also if that is over."""
        self._line = ""
        """What the wearer is to read when the service runs."""
        self._finish = False
        """Whether the last words of the stream that ends are to be waited for."""
        self._recorder: Recorder | None = None
        self._stream: RecognitionStream | None = None
        self._audience: Audience | None = None
        """Who gets the words of that stream."""
        self._rest = Rest()
        """Before listening for the wake phrase again."""
        ports.session.on_change = self._changed.set
        self.use(settings)

    # -------------------------------------------------------------- what opens and closes it

    def use(self, settings: ListeningSettings, *, again: bool = False) -> None:
        """Apply settings. `again`: what recognises has changed, so it is made again."""
        self._settings = settings
        self._words.wake_phrase = settings.wake_phrase
        self._rest.end()
        if again:
            self._recogniser = None
        if not settings.allow:
            self._close_all(obstacles.FORBIDDEN)
        self._changed.set()

    def unused_gesture(self, gesture: Gesture, _side: Side | None) -> None:
        """See `ListeningPort`. Push to talk: start to listen, or stop. A gesture ends the listening
        of a voice session too, and a recording, of which nothing is kept then.
        """
        capabilities = self._glasses.status().capabilities
        if gesture is not push_to_talk(self._settings.push_to_talk, capabilities):
            return
        for purpose in (Purpose.PUSH_TO_TALK, Purpose.SESSION, Purpose.RECORDING):
            if purpose in self._uses:
                self._close(purpose, obstacles.ENDED if purpose is Purpose.RECORDING else "")
                return
        if (obstacle := self.obstacle()) is not None:
            # on glasses that only tap, a double tap on the dark lens often means nothing
            if self._settings.push_to_talk != "auto" or gesture is not Gesture.DOUBLE_TAP:
                self._tell(obstacle.line)
            return
        self._ports.hearers.speech.stop()
        self._open(Purpose.PUSH_TO_TALK)

    def opened(self, question: Question) -> bool:
        """See `ListeningPort`. For a question that a spoken yes does not answer the microphone
        does not go on; a no is heard where it is on.
        """
        if self.obstacle() is not None:
            return False
        self._open(Purpose.QUESTION, alone=question.by_voice)
        self._choices = question.choices
        self.expect()
        return Purpose.QUESTION in self._now()

    def closed(self) -> None:
        """See `ListeningPort`."""
        self._close(Purpose.QUESTION)

    async def switch(self, *, on: bool) -> None:
        """See `CaptionsPort`."""
        if not on:
            self._close(Purpose.CAPTIONS)
            return
        obstacle = self.obstacle()
        if why := self._captions.why_not() or (obstacle.line if obstacle else ""):
            raise CannotListen(why)
        if Purpose.CAPTIONS in self._uses:
            return
        use = self._open(Purpose.CAPTIONS)
        self._captions.begin(partial(self._close, Purpose.CAPTIONS))
        await self._start(use)

    async def record(self, seconds: float, *, rate: int) -> bytes:
        """See `RecordingPort`."""
        if (why := self._obstacle_to_sound()) is not None:
            raise CannotListen(why.line)
        if self._recorder is not None:
            raise CannotListen(obstacles.RECORDING)
        capabilities = self._glasses.status().capabilities
        assert capabilities is not None, "an obstacle without glasses"
        form, of_glasses = sound_format(capabilities), sound_rate(capabilities)
        recorder = self._recorder = Recorder(form, of_glasses, self._clock)
        self._microphone.record = recorder.take
        try:
            await self._start(self._open(Purpose.RECORDING))
            await recorder.wait(seconds)
        finally:
            self._recorder = self._microphone.record = None
            self._close(Purpose.RECORDING)
        return await to_wav(recorder.packed(seconds, rate=rate))

    async def _start(self, use: Use) -> None:
        """Wait until the microphone is on for it. Raises `CannotListen`."""
        try:
            async with timeout(START_S):
                await asyncio.shield(use.started)
        except TimeoutError:
            self._close(use.purpose, obstacles.STOPPED)
            raise CannotListen(obstacles.STOPPED) from None

    def _open(self, purpose: Purpose, *, alone: bool = True) -> Use:
        self._changed.set()
        if self._glasses.status().ready:
            self._uses.away_since = None
        return self._uses.open(purpose, self._clock.boot(), alone=alone)

    def _close(self, purpose: Purpose, why: str = "") -> None:
        """End a purpose. `why`: what the wearer reads of it, "" if nothing is wrong."""
        if self._uses.close(purpose, why) is None:
            return
        if purpose is Purpose.CAPTIONS:
            self._captions.end(why)
        if purpose is Purpose.RECORDING and self._recorder is not None:
            self._recorder.end(why)
        self._changed.set()

    def _close_all(self, why: str) -> None:
        """Nothing can be heard any more: say so once, to those who asked for it."""
        if Purpose.PUSH_TO_TALK in self._uses or Purpose.SESSION in self._uses:
            self._tell(why)
        for use in self._uses:
            self._close(use.purpose, why)

    def _tell(self, line: str) -> None:
        self._line = line
        if self._tasks.open:
            self._line = ""
            telling = self._ports.stage.tell(line, scene="microphone")
            self._tasks.create_task(telling, name="microphone.tell")

    # -------------------------------------------------------------- what others ask

    def obstacle(self) -> obstacles.Obstacle | None:
        """Return why nothing can be heard now; None if it can."""
        why_no_words = self._ports.why_no_words
        return obstacles.find_obstacle(self._settings, self._glasses.status(), why_no_words)

    def _obstacle_to_sound(self) -> obstacles.Obstacle | None:
        """Return why no sound can be recorded now, for which nothing need be recognised."""
        return obstacles.find_obstacle(self._settings, self._glasses.status(), lambda: "")

    def describe(self) -> dict[str, Json]:
        """Return the status: `{state, for, since_s, recogniser, reason, last}`."""
        obstacle = self.obstacle()
        on = self._microphone.is_on
        return {
            "state": "listening" if on else obstacle.state if obstacle is not None else "off",
            "for": ", ".join(purpose for purpose in Purpose if on and purpose in self._now()),
            "recogniser": self._settings.recogniser,
            "reason": obstacle.reason if obstacle is not None else "",
            **self._journal.describe(),
        }

    # -------------------------------------------------------------- the service

    async def run(self) -> None:
        """Turn the microphone on and off until cancelled."""
        if not self._glasses.status().ready:
            self._uses.away_since = self._clock.boot()
        with self._ports.bus.listen(calls=False) as events:
            async with self._tasks.run():
                if self._line:
                    self._tell(self._line)
                await race(self._follow(events), self._work())

    async def _follow(self, events: Listener) -> None:
        async for event in events:
            match event:
                case GlassesReady():
                    self._uses.away_since = None
                    self._rest.end()
                case GlassesLost():
                    self._lose_glasses()
                case ToolsListChanged():
                    self.expect()
                    continue
                case GlassesSaid(ButtonReleased()):
                    self._uses.let_go(self._clock.boot())
                case CapabilitiesLearned() | GlassesSaid(WornChanged()):
                    pass
                case _:
                    continue
            self._changed.set()

    def _lose_glasses(self) -> None:
        """The sound so far is all there is. Push to talk is over, also if they are back already."""
        self._finish = True
        self._microphone.lost()
        self._close(Purpose.PUSH_TO_TALK)
        if not self._glasses.status().ready:
            self._uses.away_since = self._clock.boot()

    async def _work(self) -> None:
        while True:
            self._changed.clear()
            if audience_of(self._now()) is None:
                await self._until_changed()
                continue
            why = ""
            try:
                await self._listen()
            except CannotListen as e:
                why = str(e)
            except RecognitionFailed as e:
                _log.warning("the words cannot be recognised: %s", e)
                why = obstacles.line_of_failure(self._settings)
            except Exception:
                why = obstacles.STOPPED
                raise
            finally:
                await self._turn_off(why)

    async def _listen(self) -> None:
        """Keep the microphone on, one stream of sound after another, while somebody needs it."""
        while (audience := audience_of(self._now())) is not None:
            capabilities = self._glasses.status().capabilities
            assert capabilities is not None, "needed only with known glasses"
            form, rate = sound_format(capabilities), sound_rate(capabilities)
            stream = await self._begin(audience, form, rate)
            try:
                if not self._microphone.is_on:
                    await self._microphone.turn_on(form, rate)
                self._stream, self._audience = stream, audience
                self._microphone.feed = stream.feed
                await self._serve(stream, audience)
            finally:
                self._stream = self._microphone.feed = None
                await stream.close()

    async def _begin(self, audience: Audience, form: AudioFormat, rate: int) -> RecognitionStream:
        if audience is Audience.NOBODY:
            return NoWords()
        if self._recogniser is None:
            self._recogniser = await self._ports.recogniser()
        if self._takes_commands(audience):
            await self._ports.read_names()
        return await self._recogniser.begin(form, self._expected(audience), rate=rate)

    async def _turn_off(self, why: str) -> None:
        self._mark.clear(answered=self._words.answered and not why)
        await self._microphone.turn_off()
        self._journal.off(self._words.sentences, why)
        self._words.sentences, self._words.answered = 0, False
        if why:
            self._rest.failed(self._clock.boot())
            self._close_all(why)

    async def _serve(self, stream: RecognitionStream, audience: Audience) -> None:
        """Take the words of one stream until they are for others, or nobody. Raises
        `RecognitionFailed`, `CannotListen`.
        """
        self._finish, self._words.pushed = False, Purpose.PUSH_TO_TALK in self._uses
        if self._uses.marked():
            self._mark.show()
        else:
            self._mark.clear()
        reading = asyncio.ensure_future(self._read(stream, audience))
        reading.add_done_callback(lambda _: self._changed.set())
        try:
            while not reading.done():
                self._changed.clear()
                wanted = self._now()
                if audience_of(wanted) is not audience or not self._microphone.is_on:
                    break
                self._journal.serve(wanted)
                for use in self._uses:
                    use.start()
                if self._clock.boot() - self._microphone.sound_at > NO_SOUND_S:
                    raise CannotListen(obstacles.NO_SOUND)
                await self._until_changed()
            if self._finish and not reading.done():
                stream.finish()
                await asyncio.wait([reading], timeout=LAST_WORDS_S)
            if reading.done():
                reading.result()
        finally:
            reading.cancel()
            await asyncio.wait([reading])

    async def _read(self, stream: RecognitionStream, audience: Audience) -> None:
        async for heard in stream:
            self._rest.succeeded()
            if isinstance(heard, SpeechBegan):
                self._words.speech_began(audience)
            else:
                self._words.take(heard, audience)
                self._changed.set()
        if not self._finish:
            raise RecognitionFailed("the recogniser ended by itself")

    async def _until_changed(self) -> None:
        """Wait for a change, or until something is due."""
        due = [self._uses.due_at(), self._words.awake_until, self._rest.until]
        now = self._clock.boot()
        left = [at - now for at in due if at is not None and at > now]
        idle = not self._microphone.is_on and not left
        with suppress(TimeoutError):
            async with timeout(None if idle else min([LOOK_S, *left])):
                await self._changed.wait()

    def _now(self) -> set[Purpose]:
        """Return what the microphone is needed for now; end what is over."""
        now = self._clock.boot()
        self._follow_session(now)
        for purpose in self._uses.over(now):
            self._finish = True
            self._close(purpose, obstacles.AWAY if self._uses.away_since is not None else "")
        if float("-inf") < self._words.awake_until < now:
            self._words.sleep()
        if not self._glasses.status().ready or not self._settings.allow:
            return set()
        wanted = self._uses.needed()
        if self._listens_for_wake(now):
            wanted.add(Purpose.WAKE)
            wanted |= {use.purpose for use in self._uses}
        return wanted

    def _follow_session(self, now: float) -> None:
        """A voice session is listened to once: what ended it, or the listening, is final."""
        wanted = self._ports.session.snapshot().session_id
        if wanted is None or not self._ports.session.voice_active(now):
            self._close(Purpose.SESSION)
        elif wanted != self._session_id:
            self._session_id = wanted
            if self._settings.allow:
                self._open(Purpose.SESSION)

    def _listens_for_wake(self, now: float) -> bool:
        status = self._glasses.status()
        return (
            bool(self._settings.wake_phrase)
            and now >= self._rest.until
            and status.worn is not False
            and self.obstacle() is None
        )

    def expect(self) -> None:
        """Let the recogniser know what may be said now, if it listens."""
        if self._stream is not None and self._audience is not None:
            self._stream.expect(self._expected(self._audience))

    def _expected(self, audience: Audience) -> ExpectedWords:
        expected = self._ports.expected(audience, self._choices)
        if audience is not Audience.BYSTANDERS or not self._takes_commands(audience):
            return expected
        commands = self._ports.expected(Audience.COMMANDS, ())
        return with_phrase(commands, self._settings.wake_phrase)

    def _takes_commands(self, audience: Audience) -> bool:
        wakes = audience is Audience.BYSTANDERS and bool(self._settings.wake_phrase)
        return audience is Audience.COMMANDS or wakes
