"""Speaks text or plays sound on the glasses: sentences, frames, chunks at their pace."""

import asyncio
import base64
import binascii
import logging
import re
import unicodedata
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from enum import StrEnum
from typing import Final

from msgspec import Struct

from edge.core.results import LayoutKind
from edge.display.presentation import Presentation, SpeechState
from edge.display.voice.tts import (
    MAX_SENTENCE,
    SpokenSentence,
    TextToSpeech,
    Unspeakable,
    VoiceUnavailable,
)
from edge.ports import GlassesAway, GlassesPort
from firmware_bridge.capabilities import Capabilities, Hardware
from firmware_bridge.deadlines import timeout
from firmware_bridge.errors import BridgeError, CommandRefused, CommandTimeout
from firmware_bridge.messages import AudioChunk, AudioFormat, Done, EndAudio, StartAudio
from tools_cache.api.tool import Delivery

_log: Final = logging.getLogger(__name__)
RATE: Final = 16000
FRAME_MS: Final = 20
CHUNK_FRAMES: Final = 5
"""Frames in one chunk: 100 ms, so a tap stops within a tenth of a second; 3,200 bytes as PCM."""
AHEAD_S: Final = 1.0
"""Sound the glasses may hold unplayed: rides out a radio hiccup, and what a tap must flush."""
FASTEST: Final = 100.0
"""A `speaker.speed` above this is ignored."""
MAX_SPOKEN: Final = 4000
"""Characters spoken of one result: four minutes of listening."""
NO_SPEAKER: Final = "these glasses have no speaker"
_ANSWER_S: Final = 5.0
_ENDS: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_UNSAFE: Final = str.maketrans({"‹": " ", "›": " ", "<": " ", ">": " "})
"""The speech engine drops what stands inside these."""


class Spoken(Struct, frozen=True):
    """What was played. `samples`: None if not counted, 0 if nothing could be heard yet; `skipped`:
    parts without sound, and `why` the last of them has none.
    """

    samples: int | None
    parts: int
    skipped: int = 0
    stopped: bool = False
    why: str = ""


class CannotSpeak(Exception):
    """Nothing was spoken, and why."""


class NotWhole(CannotSpeak):
    """No voice knows a part of what is to be spoken whole."""


def sentences(text: str) -> Iterator[str]:
    """Cut a text into sentences of at most `MAX_SENTENCE`; each has a letter or digit."""
    safe = "".join(
        ch if ch == "\n" or unicodedata.category(ch)[0] != "C" else " "
        for ch in text.translate(_UNSAFE)
    )
    for part in _ENDS.split(safe[:MAX_SPOKEN]):
        rest = " ".join(part.split())
        while rest:
            cut = len(rest) if len(rest) <= MAX_SENTENCE else _seam(rest)
            piece, rest = rest[:cut].strip(), rest[cut:].strip()
            if any(ch.isalnum() for ch in piece):
                yield piece


def _seam(text: str) -> int:
    """Where to cut a sentence that is too long: after a comma, else at a space, else in a word."""
    for mark in (", ", "; ", " "):
        at = text.rfind(mark, 1, MAX_SENTENCE)
        if at > 0:
            return at + 1
    return MAX_SENTENCE


class SpeechPlayer:
    """Speaks one utterance at a time. `stop` ends it within a chunk, dropping what is buffered."""

    def __init__(self, glasses: GlassesPort, voice: TextToSpeech) -> None:
        self._glasses = glasses
        self._voice = voice
        self._stream = 0

    def why_not(self, capabilities: Capabilities) -> str:
        """Empty when words can be spoken on these glasses, else the first thing that is missing."""
        try:
            self._form(capabilities)
        except CannotSpeak as e:
            return str(e)
        return self._voice.why_not()

    def _form(self, capabilities: Capabilities) -> AudioFormat:
        """Opus where it goes (a tenth of the bytes on the air), else PCM. Raises `CannotSpeak`."""
        codecs = [c.strip() for c in str(capabilities.get("speaker.codecs", "")).split(",")]
        known = [form for form in (AudioFormat.OPUS, AudioFormat.PCM16) if form in codecs]
        if not known:
            raise CannotSpeak("these glasses take no sound we can make")
        for form in known:
            if self._voice.can_code(form):
                return form
        raise CannotSpeak("these glasses take only Opus: install glassd[voice]")

    async def speak(
        self,
        text: str,
        capabilities: Capabilities,
        *,
        stop: asyncio.Event,
        started: Callable[[], None],
        whole: bool = False,
    ) -> Spoken:
        """Speak; call `started` when the stream is open. `whole`: all of it, as it is, or nothing.
        Raises `CannotSpeak`, `GlassesAway`.
        """
        from edge.display.plain_text import spoken  # noqa: PLC0415 - at the first speech

        form, speed = self._form(capabilities), _speed(capabilities)
        sound = self._utterances(text if whole else spoken(text), form)
        sound = _all_of(sound) if whole else sound
        return await self._stream_out(form, speed, sound, stop, started)

    async def play(
        self,
        pcm: str,
        capabilities: Capabilities,
        *,
        stop: asyncio.Event,
        started: Callable[[], None],
    ) -> Spoken:
        """Play base64 PCM (16 kHz mono 16-bit). Raises `CannotSpeak`, `GlassesAway`."""
        try:
            base64.b64decode(pcm, validate=True)
        except (binascii.Error, ValueError) as e:
            raise CannotSpeak(f"audio.pcm is not base64: {e}") from None
        form, speed = self._form(capabilities), _speed(capabilities)
        return await self._stream_out(form, speed, self._samples(pcm, form), stop, started)

    async def _samples(self, pcm: str, form: AudioFormat) -> AsyncIterator[SpokenSentence | str]:
        try:
            yield await self._voice.code(pcm, form)
        except (Unspeakable, VoiceUnavailable) as e:
            raise CannotSpeak(f"audio.pcm: {e}") from None

    async def _utterances(
        self, text: str, form: AudioFormat
    ) -> AsyncIterator[SpokenSentence | str]:
        """Yield each part as sound, or why it has none."""
        from edge.display.voice.languages import (  # noqa: PLC0415 - lists of words that only speech needs
            language_of,
            parts as speakable_parts,
        )

        configured, first = self._voice.voice.partition("-")[0], True
        language = language_of(text, configured)
        for part in (part for sentence in sentences(text) for part in speakable_parts(sentence)):
            try:
                known = language_of(part, language, configured)
                utterance = await self._voice.say(part, form, known, first=first)
                _log.debug("%s speaks %d characters", utterance.voice, len(part))
                first = False
                yield utterance
            except Unspeakable as e:
                _log.debug("a part of %d characters is not spoken: %s", len(part), e)
                yield str(e)
            except VoiceUnavailable as e:
                raise CannotSpeak(str(e)) from None

    async def _stream_out(
        self,
        form: AudioFormat,
        speed: float,
        utterances: AsyncIterator[SpokenSentence | str],
        stop: asyncio.Event,
        started: Callable[[], None],
    ) -> Spoken:
        said = skipped = heard_after = 0
        why = ""
        player: _Player | None = None
        try:
            async for utterance in utterances:
                if stop.is_set():
                    break
                if isinstance(utterance, str):
                    skipped, why = skipped + 1, utterance
                    continue
                if player is None:
                    self._stream = self._stream % 0xFFFF + 1
                    player = _Player(self._glasses, self._stream, speed, stop)
                    await player.open(form)
                    started()
                    heard_after = utterance.heard_after
                await player.feed(utterance.frames)
                said += 1
        except BaseException:
            # a stream left open is "busy" for every later speech on this link
            if player is not None:
                flush = EndAudio(self._stream, flush=True)
                with suppress(BridgeError, GlassesAway):
                    await self._glasses.request(flush, timeout_s=_ANSWER_S)
            raise
        if player is None and stop.is_set():
            raise CannotSpeak("stopped before it began")
        if player is None:
            raise CannotSpeak(": ".join(filter(None, ("no sound for this text", why))))
        played = await player.end()
        heard = played and (played if played >= heard_after else 0)
        return Spoken(heard, said, skipped, stop.is_set(), why)


async def _all_of(
    sound: AsyncIterator[SpokenSentence | str],
) -> AsyncIterator[SpokenSentence | str]:
    """Yield nothing until all of it is there. Raises `NotWhole` when a part has no sound."""
    ready = [part async for part in sound]
    if missing := next((part for part in ready if isinstance(part, str)), ""):
        raise NotWhole(f"a part of it cannot be spoken: {missing}")
    for part in ready:
        yield part


class _Player:
    """One stream on the glasses: opened, fed, ended; used once. It ends with the connection over
    which it was opened: whatever is sent over the next one, the glasses do not play. `speed`: how
    many times faster than in real time they play.
    """

    def __init__(
        self, glasses: GlassesPort, stream: int, speed: float, stop: asyncio.Event
    ) -> None:
        self._glasses = glasses
        self._stream = stream
        self._speed = speed
        self._stop = stop
        self._link = glasses.status().link
        self._index = 0
        self._sent_s = 0.0
        self._began = 0.0

    async def open(self, form: AudioFormat) -> None:
        start = StartAudio(self._stream, form, RATE, FRAME_MS)
        try:
            await self._glasses.request(start, timeout_s=_ANSWER_S)
        except (CommandRefused, CommandTimeout) as e:
            raise CannotSpeak(f"the glasses did not open the stream: {e}") from None
        self._began = asyncio.get_running_loop().time()

    async def feed(self, frames: tuple[bytes, ...]) -> None:
        """Send frames, never more than `AHEAD_S` before they are heard."""
        for at in range(0, len(frames), CHUNK_FRAMES):
            await _pause(self._stop, (self._lead() - AHEAD_S) / self._speed)
            if self._stop.is_set():
                return
            piece = frames[at : at + CHUNK_FRAMES]
            self._check_link()
            await self._glasses.post(AudioChunk(self._stream, self._index, piece))
            self._index += 1
            self._sent_s += len(piece) * FRAME_MS / 1000

    async def end(self) -> int | None:
        """Wait for the last sample, or flush if stopped; return samples played, None if unknown."""
        self._check_link()
        try:
            if not self._stop.is_set():
                timeout_s = max(0.0, self._lead() / self._speed) + _ANSWER_S
                done = await self._until_stopped(EndAudio(self._stream), timeout_s)
                if done is not None:
                    return done.samples
            flush = EndAudio(self._stream, flush=True)
            return (await self._glasses.request(flush, timeout_s=_ANSWER_S)).samples
        except (CommandRefused, CommandTimeout) as e:
            raise CannotSpeak(f"the glasses did not confirm the end: {e}") from None

    def _check_link(self) -> None:
        """Raises `GlassesAway` when the connection was lost, even if the glasses are back."""
        if self._glasses.status().link != self._link:
            raise GlassesAway("the connection was lost while they spoke")

    async def _until_stopped(self, command: EndAudio, timeout_s: float) -> Done | None:
        """The answer to `command`, or None when the wearer wants silence first."""
        async with asyncio.TaskGroup() as both:
            asking = both.create_task(self._try_request(command, timeout_s))
            stopping = both.create_task(self._stop.wait())
            await asyncio.wait({asking, stopping}, return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if not asking.done():
                asking.cancel()
                return None
        answer = asking.result()
        if isinstance(answer, Done):
            return answer
        raise answer

    async def _try_request(self, command: EndAudio, timeout_s: float) -> Done | Exception:
        """The answer or the fault as a value, so that it leaves the task group as itself."""
        try:
            return await self._glasses.request(command, timeout_s=timeout_s)
        except (CommandRefused, CommandTimeout, GlassesAway) as e:
            return e

    def _lead(self) -> float:
        """Seconds of sound that were sent and not heard yet."""
        return self._sent_s - (asyncio.get_running_loop().time() - self._began) * self._speed


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    if seconds > 0:
        with suppress(TimeoutError):
            async with timeout(seconds):
                await stop.wait()


def _speed(capabilities: Capabilities) -> float:
    """How fast these glasses play; only simulated ones play faster than people listen."""
    speed = capabilities.get("speaker.speed", 1.0)
    known = isinstance(speed, int | float) and not isinstance(speed, bool)
    return float(speed) if known and 1 <= speed <= FASTEST else 1.0


class StoppedBy(StrEnum):
    """Who or what stopped a speech."""

    WEARER = "the wearer"
    NEWER = "something newer"
    QUESTION = "a question"
    ANSWERED = "the end of its question"


class SpeechOver(Struct, frozen=True):
    """How a speech ended: what was played (None: nothing), why not, and who stopped it."""

    item: Presentation
    spoken: Spoken | None
    reason: str
    stopped_by: StoppedBy | None
    away: bool = False
    no_voice: bool = False
    """No voice knows a part of it, so trying again does not help."""

    @property
    def unsaid(self) -> bool:
        """Whether it was stopped before the glasses opened a stream: it may be spoken later."""
        return self.spoken is None and self.item.report.state is not Delivery.SENT and not self.away

    @property
    def whole(self) -> bool:
        """Whether all of it was played, to the end."""
        spoken = self.spoken
        if spoken is None or spoken.samples == 0:
            return False
        return not (spoken.skipped or spoken.stopped or self.stopped_by)

    def remark(self) -> str:
        """What there is to say about a speech that was heard."""
        remarks = [f"stopped by {self.stopped_by}"] if self.stopped_by else []
        if self.spoken is not None and self.spoken.skipped:
            total = self.spoken.parts + self.spoken.skipped
            remarks.append(
                f"{self.spoken.skipped} of {total} parts have no sound: {self.spoken.why}"
            )
        return "; ".join(remarks)


class SpeechOutput:
    """Speaks at most one item at a time, while `running`; `over` takes the end of each speech."""

    def __init__(
        self, glasses: GlassesPort, voice: TextToSpeech, over: Callable[[SpeechOver], None]
    ) -> None:
        self._voice = voice
        self._speaker = SpeechPlayer(glasses, voice)
        self._over = over
        self._stop = asyncio.Event()
        self._silent = asyncio.Event()
        self._silent.set()
        self._stopped_by: StoppedBy | None = None
        self.speaking: Presentation | None = None
        self.audible = False
        """Whether the glasses play it: making the first sound may take seconds."""
        self._tasks: asyncio.TaskGroup | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.TaskGroup]:
        """Speak in a group of tasks, which the caller may use too; then close the voice."""
        try:
            async with asyncio.TaskGroup() as self._tasks:
                yield self._tasks
        finally:
            self._tasks = None
            await self._voice.close()

    def why_not(self, capabilities: Capabilities) -> str:
        """Empty when words can be spoken on these glasses, else the first thing that is missing."""
        if not capabilities.has(Hardware.SPEAKER):
            return NO_SPEAKER
        return self._speaker.why_not(capabilities)

    def begin(self, item: Presentation, capabilities: Capabilities, why: list[str]) -> bool:
        """Begin to speak, and report the end through `over`; or add to `why` and return False."""
        if not capabilities.has(Hardware.SPEAKER):
            why.append(NO_SPEAKER)
            return False
        words = not item.rendering.pcm
        reason = self._speaker.why_not(capabilities) if words else self._voice.why_silent()
        if reason or self._tasks is None:
            why.append(reason)
            return False
        if not item.lit and item.rendering.layout is not None:
            picture = item.rendering.layout is LayoutKind.BITMAP_VIEW
            item.downgrade = "image→speech" if picture else "display→speech"
        self._stop, self._stopped_by = asyncio.Event(), None
        self.speaking, item.speech = item, SpeechState.BEGUN
        self._silent.clear()
        self._tasks.create_task(self._speak(item, capabilities, self._stop), name="display.speak")
        return True

    def stop(self, who: StoppedBy) -> None:
        """Stop what is being said; only the first of several counts as having stopped it."""
        self._stopped_by = self._stopped_by or who
        self._stop.set()

    async def silence(self, who: StoppedBy) -> None:
        """Stop what is being said; wait until the glasses are silent (bounded by deadlines)."""
        if self.speaking is not None:
            self.stop(who)
            await self._silent.wait()

    async def _speak(
        self, item: Presentation, capabilities: Capabilities, stop: asyncio.Event
    ) -> None:
        result, reason, away, no_voice, wanted = None, "", False, False, item.rendering

        def started() -> None:
            self.audible = True
            if not item.lit:
                item.say(Delivery.SENT)

        try:
            if wanted.pcm:
                result = await self._speaker.play(
                    wanted.pcm, capabilities, stop=stop, started=started
                )
            else:
                text = wanted.speech or wanted.words
                result = await self._speaker.speak(
                    text, capabilities, stop=stop, started=started, whole=item.asks
                )
        except CannotSpeak as e:
            reason, no_voice = str(e), isinstance(e, NotWhole)
        except GlassesAway:
            reason, away = "glasses away", True
        except BridgeError as e:
            reason = str(e)
        finally:
            self.speaking, self.audible = None, False
            self._silent.set()
        self._over(SpeechOver(item, result, reason, self._stopped_by, away, no_voice))


class InterruptibleSpeech:
    """Implements `SpeechPort`."""

    def __init__(self, speech: SpeechOutput) -> None:
        self._speech = speech

    @property
    def speaking(self) -> bool:
        """See `SpeechPort`."""
        return self._speech.audible

    def stop(self) -> None:
        """See `SpeechPort`. A question that is not heard whole could not be answered."""
        item = self._speech.speaking
        if item is not None and not item.asks:
            self._speech.stop(StoppedBy.WEARER)
