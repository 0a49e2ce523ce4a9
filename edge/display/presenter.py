"""Shows and speaks results one at a time, and reports how far each delivery got.

One actor task moves everything; all else only adds to its inbox. A prompt covers everything else:
what it covers comes back after it, what arrives meanwhile waits.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from edge.core.results import LayoutKind, Rendering, rendering_of
from edge.core.words.wearer_forms import Writer
from edge.display.current_page import CurrentPage
from edge.display.drawn_text import DrawnText
from edge.display.fallback import Fallback
from edge.display.lens import LensWriter
from edge.display.presentation import BRIEF_RANK, NEWER, Presentation, SpeechState
from edge.display.prompts import Prompter
from edge.display.queue import DisplayQueue, ProgressIndicator
from edge.display.saved_scene import SavedScenes
from edge.display.voice.speech import SpeechOutput, SpeechOver, StoppedBy
from edge.display.voice.tts import TextToSpeech
from edge.display.wording import Wording
from edge.ports import GlassesAway, GlassesPort, Question, Wait
from edge.runtime.bus import Bus, Listener
from edge.runtime.clock import Clock
from edge.runtime.deadlines import Within, unwatched
from edge.runtime.events import CallOff, DeliveryChanged, GlassesReady, GlassesSaid
from edge.storage.notes import Notes
from firmware_bridge.capabilities import Capabilities, Hardware
from firmware_bridge.deadlines import timeout
from firmware_bridge.messages import Answer, Gesture, Gestured
from tools_cache.api.tool import Delivery, DeliveryReport, Json, ToolResponse

_log: Final = logging.getLogger(__name__)
DRAW_S: Final = 300.0
"""Seconds the watchdog allows for one drawing; each of its requests has a deadline of seconds."""
LIFE_S: Final = 60.0
"""Seconds after which a result that could not be shown is no answer any more."""
BRIEF_S: Final = 10.0
"""Seconds for which progress stays on the lens without news of its call."""
INBOX: Final = 64
_ASKED: Final = "a question is open"
_LAST_WAIT_S: Final = 900.0
"""Seconds to wait for a final report; the longest speech takes under five minutes."""


@dataclass(frozen=True, slots=True)
class _Tapped:
    away: bool = False


@dataclass(frozen=True, slots=True)
class _Cancelled:
    """The wearer cancelled this call."""

    call_id: str


@dataclass(frozen=True, slots=True)
class _Back:
    """The glasses are there (again)."""


_Input = Presentation | _Tapped | _Cancelled | _Back | SpeechOver


class Presenter:
    """Implements `RenderPort` and `AskPort`. Until `run()`, what comes waits in the inbox."""

    def __init__(
        self,
        *,
        glasses: GlassesPort,
        bus: Bus,
        clock: Clock,
        notes: Notes,
        voice: TextToSpeech | None = None,
        drawn: DrawnText | None = None,
        writer: Callable[[], Writer] = Writer,
        life_s: float = LIFE_S,
        min_gap_s: float = 0.1,
        within: Within = unwatched,
    ) -> None:
        self._within = within
        self._wording = Wording(writer)
        self._glasses = glasses
        self._bus = bus
        self._clock = clock
        self._wake = asyncio.Event()
        self._speech = SpeechOutput(glasses, voice or TextToSpeech(), self._put)
        self._lens = LensWriter(glasses, bus, clock, min_gap_s=min_gap_s)
        self._current = CurrentPage(self._lens, SavedScenes(notes, clock), clock)
        self._drawn = drawn or DrawnText()
        self._fallback = Fallback(self._lens, self._speech, self._drawn, self._current.lit)
        self._prompter = Prompter(
            glasses, self._lens, self._speech, clock, self._wake.set, drawn=self._drawn
        )
        self.side_commands = self._prompter.side_commands
        self._progress = ProgressIndicator()
        self._queue = DisplayQueue()
        self._life_s = life_s
        self._inbox: deque[_Input] = deque()
        self._texts = 0

    # ------------------------------------------------------------------ the ports

    async def present(
        self,
        call_id: str,
        response: ToolResponse,
        *,
        wait: Wait = Wait.ANSWER,
        name: str = "",
    ) -> DeliveryReport:
        """See `RenderPort`. Presenting again what is on the lens already does not draw it again."""
        self._progress.over(call_id)
        writer = self._wording.writer()
        wanted = await self._wording.apply(rendering_of(response, name=name, writer=writer))
        if wanted.layout is None and not wanted.speech and not wanted.pcm:
            return DeliveryReport(Delivery.NONE)
        item = self._known(call_id) or self._new(call_id, call_id, wanted, rank=wanted.priority)
        return await self._wait_for_report(item, wait)

    async def tell(
        self, text: str, *, scene: str = "", call_id: str = "", brief: bool = False
    ) -> DeliveryReport:
        """See `RenderPort`. Brief texts are never spoken."""
        if brief and self._progress.is_cancelled(call_id):
            return DeliveryReport(Delivery.DROPPED, "called off by the wearer")
        self._texts += 1
        wanted = await self._wording.apply(
            Rendering(
                LayoutKind.TEXT_WALL,
                text,
                speech=None if brief else text,
                silent=brief,
                duration_s=BRIEF_S if brief else None,
            )
        )
        name = f"{call_id}/word" if call_id else scene or f"word-{self._texts}"
        item = self._new("", name, wanted, rank=BRIEF_RANK if brief else 0, progress_of=call_id)
        return await self._wait_for_report(item, Wait.ANSWER)

    async def ask(self, question: Question) -> Answer:
        """See `AskPort`."""
        return await self._prompter.ask(question)

    def lens(self, *, exact: bool = False) -> Mapping[str, Json]:
        return self._lens.report(exact=exact)

    async def run(self) -> None:
        """Be the actor until cancelled; first restore the scene that the last daemon showed."""
        with self._bus.listen(calls=False) as heard:
            self._prompter.stray = await self._current.recall(self._report) or self._prompter.stray
            async with self._speech.running() as tasks:
                tasks.create_task(self._listen(heard), name="display.listen")
                if self._glasses.status().ready:
                    self._put(_Back())
                try:
                    await self._work()
                finally:
                    await self._drawn.close()

    def _known(self, call_id: str) -> Presentation | None:
        shown = (
            self._current.now,
            self._speech.speaking,
            *self._queue,
            *(i for i in self._inbox if isinstance(i, Presentation)),
        )
        return next((item for item in shown if item is not None and item.call_id == call_id), None)

    def _new(
        self, call_id: str, name: str, wanted: Rendering, *, rank: int, progress_of: str = ""
    ) -> Presentation:
        life = wanted.duration_s if wanted.duration_s and rank <= BRIEF_RANK else self._life_s
        expires_at = self._clock.boot() + life
        item = Presentation(
            call_id, name, wanted, rank, expires_at, self._report, progress_of=progress_of
        )
        if item.brief:
            self._progress.put(item)
            self._wake.set()
        elif len(self._inbox) >= INBOX:
            item.say(Delivery.DROPPED, "the display is overrun", final=True)
        else:
            self._put(item)
        return item

    async def _wait_for_report(self, item: Presentation, wait: Wait) -> DeliveryReport:
        """Wait for the report asked for, with a deadline even if the actor does not run."""
        future = item.final if wait is Wait.DELIVERY else item.first
        limit = _LAST_WAIT_S if wait is Wait.DELIVERY else self._life_s
        try:
            await asyncio.wait({future}, timeout=limit)
        finally:  # what comes after a caller stopped waiting is published on the bus
            if not item.first.done():
                item.first.set_result(item.report)
        if future.done():
            return future.result()
        return replace(item.report, reason=item.report.reason or "no news in time")

    def _report(self, call_id: str, report: DeliveryReport) -> None:
        if call_id:
            self._bus.publish(DeliveryChanged(call_id, report))

    def _put(self, item: _Input) -> None:
        self._inbox.append(item)
        self._wake.set()

    # ------------------------------------------------------------------ what the wearer does

    async def _listen(self, events: Listener) -> None:
        async for event in events:
            if isinstance(event, GlassesReady):
                self._put(_Back())
            elif isinstance(event, GlassesSaid) and isinstance(event.event, Gestured):
                self._gesture(event.event.gesture)
            elif isinstance(event, GlassesSaid):
                self._prompter.receive(event.event)

    def _gesture(self, gesture: Gesture) -> None:
        if self._prompter.take_gesture(gesture):
            return
        if call_id := self._call_to_cancel(gesture):
            self._progress.cancel(call_id)
            self._bus.publish(CallOff(call_id, "the wearer"))
            self._put(_Cancelled(call_id))
        elif len(self._inbox) >= INBOX:
            return  # taps beyond the bound would turn pages long after the wearer stopped
        elif gesture in (Gesture.TAP, Gesture.BUTTON):
            self._put(_Tapped())
        elif gesture is Gesture.DOUBLE_TAP:
            self._put(_Tapped(away=True))

    def _call_to_cancel(self, gesture: Gesture) -> str:
        """The call whose progress a gesture cancels; "" when it means something else."""
        if self._has_lens():
            now = self._current.now
            brief = now is not None and now.brief and gesture is Gesture.DOUBLE_TAP
            return now.progress_of if now is not None and brief else ""
        cancels = gesture in (Gesture.DOUBLE_TAP, Gesture.BUTTON_LONG)
        return self._progress.awaited(self._clock.boot()) if cancels else ""

    def _has_lens(self) -> bool:
        known = self._glasses.status().capabilities
        return known is None or known.has(Hardware.DISPLAY)

    # ------------------------------------------------------------------ the actor

    async def _work(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with timeout(self._patience()):
                    await self._wake.wait()
            self._wake.clear()
            while self._inbox:
                with self._within(DRAW_S, "display: drawing"):
                    await self._take(self._inbox.popleft())
            with self._within(DRAW_S, "display: turning the page"):
                await self._on_time()

    def _patience(self) -> float | None:
        """Seconds until something is due by time."""
        due = [
            self._current.due_at(),
            self._prompter.due_at(),
            *(item.expires_at for item in self._queue),
        ]
        now = self._clock.boot()
        left = [max(0.0, at - now) for at in due if at is not None]
        if self._progress.waiting is not None:
            left.append(self._lens.busy_s())
        return min(left, default=None)

    async def _take(self, item: _Input) -> None:
        try:
            match item:
                case Presentation():
                    await self._enter(item)
                case _Tapped():
                    await self._tapped(leave=item.away)
                case _Cancelled():
                    await self._remove_progress(item.call_id)
                case _Back():
                    await self._glasses_back()
                case SpeechOver():
                    await self._speech_ended(item)
        except GlassesAway:
            _log.debug("display: the glasses went away meanwhile")
        except Exception:  # noqa: BLE001 - one result that cannot be rendered must not darken all others
            _log.exception("display: a result could not be rendered")
            if isinstance(item, Presentation):
                item.settle() if item.lit else item.drop(["it could not be rendered"])

    async def _on_time(self) -> None:
        """Do what is due by time: next question, next page, next in the queue, newest progress."""
        self._queue.give_up(self._clock.boot())
        with suppress(GlassesAway):
            await self._question()
            if self._is_due(self._current.due_at()):
                await self._next_page()
            await self._next_in_line()
        free = self._current.covered or not self._lens.busy_s()
        if self._progress.waiting is not None and not self._inbox and free:
            await self._show_progress()

    def _is_due(self, at: float | None) -> bool:
        return at is not None and at <= self._clock.boot()

    async def _next_in_line(self) -> None:
        """Where nothing is on the lens (or there is none), show the next item of the queue."""
        reading = self._current.now is not None or self._current.covered
        busy = reading or self._speech.speaking is not None
        if self._queue.first is not None and not busy and self._glasses.status().ready:
            await self._perform(self._queue.pop())

    async def _show_progress(self) -> None:
        """Show the newest brief text: the panel is free, and nothing more important is there."""
        if (item := self._progress.take()) is None:
            return
        if not self._has_lens():
            self._progress.unseen(item.progress_of, self._clock.boot() + BRIEF_S)
        await self._take(item)

    # ------------------------------------------------------------------ questions

    async def _question(self) -> None:
        """Show the question whose turn it is; after the last one, restore what it covered."""
        await self._prompter.tidy()
        if self._is_due(self._prompter.due_at()):
            # silence first: a tap that was to stop the voice must not answer
            if not self._current.covered:
                await self._speech.silence(StoppedBy.QUESTION)
                await self._current.cover()
            await self._prompter.put()
        elif self._current.covered and not self._prompter.active:
            self._current.uncover()
            if self._glasses.status().ready:
                await self._after_question()

    async def _after_question(self) -> None:
        """Bring back what was there, unless something newer has waited."""
        self._queue.unpark()
        first = self._queue.first
        if first is not None and not self._current.outranks(first):
            await self._perform(self._queue.pop())
        await self._current.remove_prompt()

    # ------------------------------------------------------------------ entering

    async def _enter(self, item: Presentation) -> None:
        if self._current.covered or self._is_due(self._prompter.due_at()):
            self._wait_for_lens(item, _ASKED)
            return
        if any(
            isinstance(newer, Presentation) and newer.rank >= item.rank for newer in self._inbox
        ):
            item.supersede(NEWER)
            return
        if self._current.outranks(item):
            what = "a result" if item.brief else "something more important"
            self._wait_for_lens(item, f"{what} is being read")
            return
        if not item.brief:
            await self._speech.silence(StoppedBy.NEWER)
        await self._perform(item)

    def _wait_for_lens(self, item: Presentation, why: str) -> None:
        self._queue.wait(item, why, at_least_until=self._prompter.over_by + self._life_s)

    async def _perform(self, item: Presentation) -> None:
        status = self._glasses.status()
        if status.capabilities is None:
            item.say(Delivery.DROPPED, "no glasses", final=True)
        elif not status.ready:
            self._queue.park(item)
        else:
            try:
                if item.rendering.layout is LayoutKind.CLEAR_VIEW:
                    await self._clear(item, status.capabilities)
                else:
                    await self._fallback.present(item, status.capabilities)
            except GlassesAway:
                self._queue.park(item)

    # ------------------------------------------------------------------ the lens

    async def _next_page(self) -> None:
        if not await self._current.turn():
            await self._leave()

    async def _leave(self, *, at_once: bool = False) -> None:
        """The lens has had its time: dark, or the next in line."""
        self._current.end()
        if self._queue.first is not None:
            await self._perform(self._queue.pop())
        if self._current.now is None:
            await self._current.clear(at_once=at_once)

    async def _remove_progress(self, call_id: str) -> None:
        """Remove progress at once, before its call has ended; a prompt has removed it already."""
        if self._current.now is not None and self._current.now.progress_of == call_id:
            self._current.end() if self._current.covered else await self._leave(at_once=True)

    async def _clear(self, item: Presentation, capabilities: Capabilities) -> None:
        if not capabilities.has(Hardware.DISPLAY):
            item.say(Delivery.NONE, "these glasses have no display", final=True)
        else:
            cleared = await self._current.wipe()
            item.say(Delivery.ACKNOWLEDGED if cleared else Delivery.NONE, final=True)

    async def _tapped(self, *, leave: bool) -> None:
        """A tap first silences, then turns the page, then leaves the last one."""
        if self._speech.speaking is not None:
            self._speech.stop(StoppedBy.WEARER)
        elif self._current.now is not None and not self._current.covered:
            await (self._leave() if leave else self._next_page())

    async def _glasses_back(self) -> None:
        """A question that waits comes first; what else was there comes after it."""
        self._prompter.connected()
        if self._prompter.active or self._prompter.due_at() is not None:
            return
        if self._prompter.stray:
            await self._prompter.end_prompt()
        parked = self._queue.take_parked()
        await (self._current.again(returned=True) if parked is None else self._perform(parked))

    # ------------------------------------------------------------------ speech

    async def _speech_ended(self, over: SpeechOver) -> None:
        item, spoken = over.item, over.spoken
        if item.asks:
            self._prompter.speech_ended(over)
            return
        item.speech = SpeechState.OVER
        if over.stopped_by is StoppedBy.QUESTION and over.unsaid and not item.lit:
            item.speech = SpeechState.NOT_BEGUN
            self._wait_for_lens(item, _ASKED)
        elif over.stopped_by is StoppedBy.NEWER:
            item.supersede(NEWER)
        elif spoken is not None and spoken.samples:
            item.say(Delivery.SPOKEN, over.remark(), final=True)
        elif item.lit:
            if over.reason:
                _log.info("shown, but not spoken: %s", over.reason)
            item.settle()
        elif over.away or over.stopped_by:
            item.say(Delivery.DROPPED, over.reason or f"stopped by {over.stopped_by}", final=True)
        else:
            reason = over.reason or "no sample was played"
            await self._fallback.replace_speech(item, reason, self._glasses.status())
