"""Listening with glasses, a recogniser and a lens that tests drive by hand."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

from edge.core.hearing.expected import ExpectedWords
from edge.core.session import SessionController
from edge.hearing.dependencies import ListeningPorts
from edge.hearing.heard import Hearers
from edge.hearing.listening import Listening
from edge.hearing.settings import ListeningSettings
from edge.listening_ports import RecognitionFailed
from edge.ports import GlassesAway, GlassesStatus, Question
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import GlassesLost, GlassesReady, GlassesSaid, as_json
from firmware_bridge.capabilities import Capabilities, Origin
from firmware_bridge.errors import CommandRefused
from firmware_bridge.messages import (
    AudioFormat,
    ButtonReleased,
    Gesture,
    MicrophoneChunk,
    StartMicrophone,
    StopMicrophone,
    Transcript,
)

G1 = {
    "display": True,
    "microphone": True,
    "microphone.codecs": "lc3",
    "gestures": "tap,double_tap,button_long",
}
_END = object()


class Glasses:
    """Answers commands, and says which microphone streams are open."""

    def __init__(self, facts=G1):
        self.facts = facts
        self.ready = True
        self.worn = None
        self.open = None
        self.asked = []
        self.refuse = []
        self.take = None

    def status(self):
        known = Capabilities.of("test", self.facts, origin=Origin.FIRMWARE, now=0.0)
        return GlassesStatus(ready=self.ready, capabilities=known, worn=self.worn)

    def listen_to(self, take):
        self.take = take

    async def request(self, command, *, timeout_s=5.0):
        await asyncio.sleep(0)
        if not self.ready:
            raise GlassesAway("away")
        self.asked.append(command)
        if self.refuse and isinstance(command, StartMicrophone):
            raise CommandRefused(self.refuse.pop(0), "no")
        match command:
            case StartMicrophone(stream=stream):
                self.open = stream
            case StopMicrophone():
                self.open = None

    def sound(self, index=0):
        self.take(MicrophoneChunk(self.open, index, (b"x",)))


class Stream:
    def __init__(self, form, expected):
        self.form = form
        self.expected = [expected]
        self.chunks = []
        self.finished = self.closed = False
        self.last_words = None
        self.words = asyncio.Queue()

    def feed(self, chunk):
        self.chunks.append(chunk)

    def expect(self, expected):
        self.expected.append(expected)

    def finish(self):
        self.finished = True
        if self.last_words is not None:
            self.words.put_nowait(Transcript(self.last_words))
        self.words.put_nowait(_END)

    async def close(self):
        self.closed = True

    async def __aiter__(self):
        while (word := await self.words.get()) is not _END:
            if isinstance(word, Exception):
                raise word
            yield word


class Recognition:
    def __init__(self):
        self.missing = ""
        self.fails = ""
        self.streams = []

    def why_not(self):
        return self.missing

    async def begin(self, form, expected, *, rate=16000):
        await asyncio.sleep(0)
        if self.fails:
            raise RecognitionFailed(self.fails)
        assert all(stream.closed for stream in self.streams), "one stream at a time"
        self.rate = rate
        self.streams.append(Stream(form, expected))
        return self.streams[-1]


class Mark:
    def __init__(self):
        self.seen = []

    def show(self, text=""):
        self.seen.append(text)

    def clear(self, *, answered=False):
        self.answered = answered
        if self.seen and self.seen[-1] is not None:
            self.seen.append(None)


class Speech:
    speaking = False
    stopped = 0

    def stop(self):
        self.stopped += 1
        self.speaking = False


class Captions:
    def __init__(self):
        self.missing = ""
        self.heard = []
        self.ends = []
        self.left = None

    def why_not(self):
        return self.missing

    def begin(self, left):
        self.left = left

    def hear(self, said):
        self.heard.append(said)

    def end(self, why=""):
        self.ends.append(why)


class Stage:
    def __init__(self):
        self.told = []

    async def tell(self, text, **_more):
        self.told.append(text)


class Time:
    """A boot clock that tests move."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Place:
    def __init__(self, facts=G1, **settings):
        self.time = Time()
        self.glasses = Glasses(facts)
        self.recognition = Recognition()
        self.mark, self.speech, self.captions = Mark(), Speech(), Captions()
        self.stage = Stage()
        self.session = SessionController()
        self.bus = Bus()
        self.answers, self.audit, self.said = [], [], []
        self.names_read = []
        self.suppressed = False
        self.settings = ListeningSettings(**settings)
        clock = Clock(boot=self.time)
        self.listening = Listening(
            ListeningPorts(
                glasses=self.glasses,
                recogniser=self._make_recogniser,
                why_no_words=self.recognition.why_not,
                session=self.session,
                stage=self.stage,
                hearers=Hearers(
                    bus=self.bus,
                    mark=self.mark,
                    speech=self.speech,
                    captions=self.captions,
                    answer=self.answers.append,
                    suppressed=lambda: self.suppressed,
                ),
                expected=lambda audience, choices: ExpectedWords((audience.value, *choices)),
                bus=self.bus,
                clock=clock,
                audit=self.audit.append,
                read_names=self.read_names,
            ),
            self.settings,
        )

    async def read_names(self):
        """Note how many streams there were before."""
        self.names_read.append(len(self.recognition.streams))

    async def _make_recogniser(self):
        return self.recognition

    @asynccontextmanager
    async def running(self):
        with self.bus.listen() as events:
            task = asyncio.ensure_future(self.listening.run())
            taking = asyncio.ensure_future(self._take(events))
            try:
                await self.settle()
                yield self
            finally:
                for each in (task, taking):
                    each.cancel()
                await asyncio.wait([task, taking], timeout=40)
                if task.done() and not task.cancelled() and task.exception():
                    raise task.exception()

    async def _take(self, events):
        async for event in events:
            if isinstance(event, GlassesSaid) and isinstance(event.event, Transcript):
                self.said.append((as_json(event)["event"], type(event).__name__, event.event))

    async def settle(self):
        for _ in range(60):
            await asyncio.sleep(0)

    async def pass_time(self, seconds):
        """Let time pass, and what sleeps look at the clock."""
        self.time.now += seconds
        self.listening._changed.set()
        await self.settle()

    async def press(self, gesture=Gesture.BUTTON_LONG):
        self.listening.unused_gesture(gesture, None)
        await self.settle()

    async def let_go(self):
        self.bus.publish(GlassesSaid(ButtonReleased()))
        await self.settle()

    async def hear(self, text, *, final=True, **more):
        self.stream.words.put_nowait(Transcript(text, final=final, **more))
        await self.settle()

    async def fail(self, why):
        self.stream.words.put_nowait(RecognitionFailed(why))
        await self.settle()

    async def lose(self):
        self.glasses.ready, self.glasses.open = False, None
        self.bus.publish(GlassesLost("gone"))
        await self.settle()

    async def return_(self):
        self.glasses.ready = True
        self.bus.publish(GlassesReady("test", "1", "a", 247, "memory"))
        await self.settle()

    async def start_session(self, name="voice-1"):
        intent = {"type": "START_VOICE_SESSION", "sessionId": name}
        self.session.apply(intent, tool="voice:start", now=self.time())
        await self.settle()

    async def configure(self, **settings):
        self.listening.use(replace(self.settings, **settings))
        await self.settle()

    @property
    def stream(self):
        return self.recognition.streams[-1]

    @property
    def on(self):
        return self.glasses.open is not None

    @property
    def texts(self):
        return [said.text for _, _, said in self.said]

    def question(self, **more):
        return Question("q", "Really?", 60.0, **more)


__all__ = ["G1", "AudioFormat", "Place"]
