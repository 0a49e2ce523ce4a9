"""Turns sound into words in a child process: started by the first stream, ended a minute after the
last. The daemon itself loads no recogniser.
"""

import asyncio
import json
import logging
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from edge.core.hearing.expected import ExpectedWords
from edge.hearing import child_messages as messages
from edge.hearing.child_process import RecogniserProcess
from edge.hearing.engines.choice import why_not
from edge.listening_ports import RecognitionFailed, SpeechBegan
from edge.runtime.clock import Clock
from firmware_bridge.deadlines import timeout
from firmware_bridge.messages import AudioFormat, MicrophoneChunk, Transcript

IDLE_S: Final = 60.0
STUCK_S: Final = 20.0
"""A child handles everything within this time, the loading of its model (5 s on a small machine)
and the words of 30 s of speech included.
"""
_MOST_EVENTS: Final = 256
"""Events that may wait for the reader of a stream; partial transcripts are dropped first."""
_OPUS_FRAME_S: Final = 0.02
_LC3_FRAME_S: Final = 0.01
_CLOSED: Final = "the recogniser is closed"
_WORKER: Final = ("-I", "-m", "edge.hearing.worker")
"""-I: neither the environment nor the working directory can put another module in the engine's
place.
"""

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RecogniserChoice:
    """As configured: a name or a server's address, the folder of a model, a language ("en-GB")."""

    name: str = "auto"
    model: str = ""
    language: str = ""


class Recogniser:
    """Implements `RecognitionPort`. One per daemon; `close` it at the end."""

    def __init__(
        self,
        choice: RecogniserChoice,
        clock: Clock,
        *,
        idle_s: float = IDLE_S,
        stuck_s: float = STUCK_S,
        command: Sequence[str] | None = None,
    ) -> None:
        self._choice = choice
        self._clock = clock
        self._idle_s = idle_s
        self.stuck_s = stuck_s
        settings = json.dumps([choice.name, choice.model, choice.language])
        self._custom = command is not None
        self._command = tuple(command or (sys.executable, *_WORKER, settings))
        self._child: RecogniserProcess | None = None
        self._dying: list[RecogniserProcess] = []
        self._is_closed = False
        self._starting = asyncio.Lock()
        self._stream: _RecogniserStream | None = None
        self._streams = 0
        self._idle_since = 0.0
        self._idle_check: asyncio.TimerHandle | None = None

    def why_not(self) -> str:
        """Return why this machine recognises no words, and what would help; "" if it does."""
        return "" if self._custom else why_not(self._choice.name, self._choice.language)

    async def begin(
        self, form: AudioFormat, expected: ExpectedWords, *, rate: int = 16000
    ) -> "_RecogniserStream":
        """Open a stream of sound (mono; `rate` in Hz). Raises `RecognitionFailed`."""
        if why := self.why_not():
            raise RecognitionFailed(why)
        if self._is_closed:
            raise RecognitionFailed(_CLOSED)
        if self._stream is not None:
            raise RecognitionFailed("the recogniser is listening to something else already")
        self._cancel_idle_check()
        self._streams += 1
        child, is_new = self._child, False
        if child is None:
            child, is_new = RecogniserProcess(self._receive, self._child_ended), True
            self._child = child
        seconds = partial(_seconds, form, rate)
        stream = self._stream = _RecogniserStream(self, child, self._streams, seconds)
        child.send(messages.pack_begin(self._streams, form, rate, expected))
        if is_new:
            try:
                async with self._starting:
                    await child.start(self._command)
            except BaseException as e:
                self._child = self._stream = None
                if isinstance(e, OSError):
                    why = f"the recogniser cannot be started: {e.strerror}"
                    raise RecognitionFailed(why) from e
                raise
        return stream

    async def close(self) -> None:
        """End the child and what listens to it; fine when there is none."""
        self._is_closed = True
        self._cancel_idle_check()
        if self._child is not None:
            self._child_ended(_CLOSED)
        async with self._starting:
            dying, self._dying = self._dying, []
            for child in dying:
                await child.wait()

    # -------------------------------------------------------------- for the streams

    def over(self, stream: "_RecogniserStream") -> None:
        """This stream is closed: the child is kept for a while."""
        if self._stream is stream:
            self._stream = None
            self._idle_since = self._clock.boot()
            self._check_idle()

    def check_stuck(self) -> None:
        """End a child that has handled nothing for too long."""
        child = self._child
        if child is None or not child.is_behind:
            return
        silent_s = asyncio.get_running_loop().time() - child.last_message_at
        if silent_s > self.stuck_s:
            _log.warning("the recogniser was stuck for %.0f s; killed", silent_s)
            self._child_ended("the recogniser was stuck")

    @property
    def now(self) -> float:
        return self._clock.boot()

    # -------------------------------------------------------------- the child

    def _receive(self, message: messages.Message) -> None:
        stream = self._stream
        if message["do"] == "failed":
            self._child_ended(str(message.get("why") or "the recogniser failed")[:400])
        elif stream is not None and message.get("stream") == stream.number:
            stream.receive(message)

    def _child_ended(self, why: str) -> None:
        child, self._child = self._child, None
        if child is not None:
            self._give_up(child)
        if self._stream is not None:
            self._stream.fail(why)

    def _give_up(self, child: RecogniserProcess) -> None:
        child.give_up()
        self._dying = [one for one in self._dying if not one.is_gone] + [child]

    def _check_idle(self) -> None:
        """End the child if it was idle for long enough. Timers stand still while the machine
        sleeps and the boot clock does not, so it is looked at more often.
        """
        self._cancel_idle_check()
        left = self._idle_since + self._idle_s - self._clock.boot()
        if left > 0 and self._child is not None:
            wait_s = min(left, self._idle_s / 10)
            self._idle_check = asyncio.get_running_loop().call_later(wait_s, self._check_idle)
        elif self._child is not None:
            _log.debug("the recogniser was idle for %.0f s", self._idle_s)
            self._child_ended("")

    def _cancel_idle_check(self) -> None:
        if self._idle_check is not None:
            self._idle_check.cancel()
            self._idle_check = None


class _RecogniserStream:
    """Implements `RecognitionStream`."""

    def __init__(
        self,
        recogniser: Recogniser,
        child: RecogniserProcess,
        number: int,
        seconds: Callable[[MicrophoneChunk], float],
    ) -> None:
        self._recogniser = recogniser
        self._child = child
        self._seconds = seconds
        self.number = number
        self._events: deque[SpeechBegan | Transcript] = deque()
        self._changed = asyncio.Event()
        self._is_finished = False
        self._has_ended = False
        self._failure = ""

    def feed(self, chunk: MicrophoneChunk) -> None:
        """Take sound; never waits. What comes too fast is dropped, the oldest first."""
        if not self._is_finished and not self._failure:
            body = messages.pack_sound(chunk, self._recogniser.now)
            self._child.send(body, self._seconds(chunk))

    def expect(self, expected: ExpectedWords) -> None:
        """Change what may be said, from the next utterance on."""
        if not self._is_finished and not self._failure:
            self._child.send(messages.pack_expect(expected))

    def finish(self) -> None:
        """There is no more sound: the last words follow, then the iteration ends."""
        if not self._is_finished and not self._failure:
            self._child.send(messages.pack("finish"))
        self._is_finished = True

    async def close(self) -> None:
        """Give up what is left."""
        if not self._is_finished and not self._failure:
            self._child.drop_sound()
            self._child.send(messages.pack("drop"))
        self._is_finished = self._has_ended = True
        self._events.clear()
        self._changed.set()
        self._recogniser.over(self)

    @property
    def dropped_s(self) -> float:
        """Seconds of sound that were dropped, of all streams of this child."""
        return self._child.dropped_s

    async def __aiter__(self) -> AsyncIterator[SpeechBegan | Transcript]:
        """Yield partial and final transcripts. Raises `RecognitionFailed`."""
        while True:
            while self._events:
                yield self._events.popleft()
            if self._failure:
                raise RecognitionFailed(self._failure)
            if self._has_ended:
                return
            await self._wait()

    async def _wait(self) -> None:
        """Wait for news; a child that handles nothing for too long is stuck."""
        self._changed.clear()
        try:
            async with timeout(self._recogniser.stuck_s / 4):
                await self._changed.wait()
        except TimeoutError:
            self._recogniser.check_stuck()

    def receive(self, message: messages.Message) -> None:
        """Take a message of the child. Raises `BadChildMessage`."""
        match message["do"]:
            case "began":
                self._add(messages.began_of(message))
            case "words":
                self._add(messages.words_of(message))
            case "end":
                self._has_ended = True
                self._changed.set()

    def fail(self, why: str) -> None:
        self._failure = why
        self._changed.set()

    def _add(self, event: SpeechBegan | Transcript) -> None:
        """Keep what waits for the reader bounded: of partial transcripts the newest is enough."""
        self._events.append(event)
        while len(self._events) > _MOST_EVENTS:
            partial = (e for e in self._events if isinstance(e, Transcript) and not e.final)
            self._events.remove(next(partial, self._events[0]))
        self._changed.set()


def _seconds(form: AudioFormat, rate: int, chunk: MicrophoneChunk) -> float:
    match form:
        case AudioFormat.LC3:
            return len(chunk.frames) * _LC3_FRAME_S
        case AudioFormat.OPUS:
            return len(chunk.frames) * _OPUS_FRAME_S
        case AudioFormat.PCM16:
            return sum(map(len, chunk.frames)) / 2 / rate
        case AudioFormat.MULAW:
            return sum(map(len, chunk.frames)) / rate
