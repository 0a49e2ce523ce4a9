"""Shows and speaks results one at a time, and reports how far each delivery got.

One actor task moves everything; all else only adds to its inbox. A prompt covers everything else:
what it covers comes back after it, what arrives meanwhile waits.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from edge.core.results import LayoutKind, Rendering, rendering_of
from edge.display.current_page import CurrentPage
from edge.display.fallback import Fallback
from edge.display.lens import LensWriter
from edge.display.presentation import BRIEF_RANK, Presentation
from edge.display.progress import ProgressIndicator, call_of
from edge.display.prompts import Prompter
from edge.display.queue import DisplayQueue
from edge.display.saved_scene import SavedScenes
from edge.display.speech_output import QUESTION, SUPERSEDED, SpeechOutput, SpeechOver
from edge.display.tts import TextToSpeech
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
# the watchdog waits this long for one drawing; each of its requests has a deadline of seconds
ACT_S: Final = 300.0
LIFE_S: Final = 60.0  # a result that cannot be shown within this time is no answer any more
BRIEF_S: Final = 10.0
"""A working mark stays until the result comes, but no longer than this without news."""
INBOX: Final = 64
_ASKED: Final = "a question is open"
_LAST_WAIT_S: Final = 900.0
"""Seconds to wait for a final report; the longest speech takes under five minutes."""


@dataclass(frozen=True, slots=True)
class _Tapped:
    away: bool = False


@dataclass(frozen=True, slots=True)
class _Off:
    """The wearer called off what this mark stands for."""

    scene: str


@dataclass(frozen=True, slots=True)
class _Back:
    """The glasses are there (again)."""


_Item = Presentation | _Tapped | _Off | _Back | SpeechOver


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
        life_s: float = LIFE_S,
        min_gap_s: float = 0.1,
        within: Within = unwatched,
    ) -> None:
        self._within = within
        self._glasses = glasses
        self._bus = bus
        self._clock = clock
        self._wake = asyncio.Event()
        self._ear = SpeechOutput(glasses, voice or TextToSpeech(), self._put)
        self._lens = LensWriter(glasses, bus, clock, min_gap_s=min_gap_s)
        self._reading = CurrentPage(self._lens, SavedScenes(notes, clock), clock)
        self._ladder = Fallback(self._lens, self._ear, self._reading.lit)
        self._asker = Prompter(glasses, self._lens, self._ear, clock, self._wake.set)
        self.beside = self._asker.beside
        self._marks = ProgressIndicator()
        self._line = DisplayQueue()
        self._life_s = life_s
        self._inbox: deque[_Item] = deque()
        self._words = 0

    # ------------------------------------------------------------------ the ports

    async def present(
        self, call_id: str, response: ToolResponse, *, wait: Wait = Wait.ANSWER
    ) -> DeliveryReport:
        """See `RenderPort`. Presenting again what is on the lens already does not draw it again."""
        self._marks.over(call_id)
        wanted = rendering_of(response)
        if wanted.layout is None and not wanted.speech and not wanted.pcm:
            return DeliveryReport(Delivery.NONE)
        act = self._known(call_id) or self._new(call_id, call_id, wanted, rank=wanted.priority)
        return await self._told(act, wait)

    async def tell(self, text: str, *, scene: str = "", brief: bool = False) -> DeliveryReport:
        """See `RenderPort`. Brief words are for the lens alone: an ear has no use for "working"."""
        if brief and self._marks.is_off(scene):
            return DeliveryReport(Delivery.DROPPED, "called off by the wearer")
        self._words += 1
        wanted = Rendering(
            LayoutKind.TEXT_WALL,
            text,
            speech=None if brief else text,
            silent=brief,
            duration_s=BRIEF_S if brief else None,
        )
        return await self._told(
            self._new("", scene or f"word-{self._words}", wanted, rank=BRIEF_RANK if brief else 0),
            Wait.ANSWER,
        )

    async def ask(self, question: Question) -> Answer:
        """See `AskPort`."""
        return await self._asker.ask(question)

    def lens(self, *, exact: bool = False) -> Mapping[str, Json]:
        return self._lens.report(exact=exact)

    async def run(self) -> None:
        """Be the actor until cancelled; first restore the scene that the last daemon showed."""
        with self._bus.listen(calls=False) as heard:
            self._asker.stray = await self._reading.recall(self._report) or self._asker.stray
            try:
                async with asyncio.TaskGroup() as tasks:
                    self._ear.tasks = tasks
                    tasks.create_task(self._hear(heard), name="stage.hear")
                    if self._glasses.status().ready:
                        self._put(_Back())
                    await self._act()
            finally:
                await self._ear.close()

    def _known(self, call_id: str) -> Presentation | None:
        shown = (
            self._reading.now,
            self._ear.speaking,
            *self._line,
            *(i for i in self._inbox if isinstance(i, Presentation)),
        )
        return next((act for act in shown if act is not None and act.call_id == call_id), None)

    def _new(self, call_id: str, name: str, wanted: Rendering, *, rank: int) -> Presentation:
        life = wanted.duration_s if wanted.duration_s and rank <= BRIEF_RANK else self._life_s
        act = Presentation(call_id, name, wanted, rank, self._clock.boot() + life, self._report)
        if act.brief:
            self._marks.put(act)
            self._wake.set()
        elif len(self._inbox) >= INBOX:
            act.say(Delivery.DROPPED, "the stage is overrun", final=True)
        else:
            self._put(act)
        return act

    async def _told(self, act: Presentation, wait: Wait) -> DeliveryReport:
        """Wait for the report asked for, with a deadline even if the actor does not run."""
        future = act.final if wait is Wait.DELIVERY else act.first
        limit = _LAST_WAIT_S if wait is Wait.DELIVERY else self._life_s
        try:
            await asyncio.wait({future}, timeout=limit)
        finally:  # whatever comes after a caller stopped waiting is told on the bus
            if not act.first.done():
                act.first.set_result(act.report)
        return (
            future.result()
            if future.done()
            else replace(act.report, reason=act.report.reason or "no news in time")
        )

    def _report(self, call_id: str, report: DeliveryReport) -> None:
        if call_id:
            self._bus.publish(DeliveryChanged(call_id, report))

    def _put(self, item: _Item) -> None:
        self._inbox.append(item)
        self._wake.set()

    # ------------------------------------------------------------------ what the wearer does

    async def _hear(self, heard: Listener) -> None:
        async for happening in heard:
            if isinstance(happening, GlassesReady):
                self._put(_Back())
            elif isinstance(happening, GlassesSaid) and isinstance(happening.event, Gestured):
                self._gesture(happening.event.gesture)
            elif isinstance(happening, GlassesSaid):
                self._asker.told(happening.event)

    def _gesture(self, gesture: Gesture) -> None:
        if self._asker.gestured(gesture):
            return
        if mark := self._mark_for(gesture):
            self._marks.call_off(mark)
            self._bus.publish(CallOff(call_of(mark), "the wearer"))
            self._put(_Off(mark))
        elif len(self._inbox) >= INBOX:
            return  # taps beyond the bound would turn pages long after the wearer stopped
        elif gesture in (Gesture.TAP, Gesture.BUTTON):
            self._put(_Tapped())
        elif gesture is Gesture.DOUBLE_TAP:
            self._put(_Tapped(away=True))

    def _mark_for(self, gesture: Gesture) -> str:
        """The call whose progress a gesture cancels; "" when it means something else."""
        if self._has_lens():
            now = self._reading.now
            mark = now.scene if now is not None and now.brief else ""
            return mark if gesture is Gesture.DOUBLE_TAP and call_of(mark) else ""
        return (
            self._marks.awaited(self._clock.boot())
            if gesture in (Gesture.DOUBLE_TAP, Gesture.BUTTON_LONG)
            else ""
        )

    def _has_lens(self) -> bool:
        return (record := self._glasses.status().capabilities) is None or record.has(
            Hardware.DISPLAY
        )

    # ------------------------------------------------------------------ the actor

    async def _act(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with timeout(self._patience()):
                    await self._wake.wait()
            self._wake.clear()
            while self._inbox:
                with self._within(ACT_S, "stage: drawing"):
                    await self._take(self._inbox.popleft())
            with self._within(ACT_S, "stage: turning the page"):
                await self._on_time()

    def _patience(self) -> float | None:
        """Seconds until something is due without anybody asking."""
        due = [
            self._reading.due_at(),
            self._asker.due_at(),
            *(act.expires_at for act in self._line),
        ]
        now = self._clock.boot()
        left = [max(0.0, at - now) for at in due if at is not None]
        if self._marks.waiting is not None:
            left.append(self._lens.busy_s())
        return min(left, default=None)

    async def _take(self, item: _Item) -> None:
        try:
            match item:
                case Presentation():
                    await self._enter(item)
                case _Tapped():
                    await self._tapped(leave=item.away)
                case _Off():
                    await self._called_off(item.scene)
                case _Back():
                    await self._glasses_back()
                case SpeechOver():
                    await self._spoken(item)
        except GlassesAway:
            _log.debug("stage: the glasses went away meanwhile")
        except Exception:  # noqa: BLE001 - one result that cannot be rendered must not darken all others
            _log.exception("stage: a result could not be rendered")
            if isinstance(item, Presentation):
                item.settle() if item.lit else item.drop(["it could not be rendered"])

    async def _on_time(self) -> None:
        """Do what is due by time: next question, next page, next in the queue, newest progress."""
        self._line.give_up(self._clock.boot())
        with suppress(GlassesAway):
            await self._question()
            if self._is_due(self._reading.due_at()):
                await self._next_page()
            await self._next_in_line()
        if (
            self._marks.waiting is not None
            and not self._inbox
            and (self._reading.covered or not self._lens.busy_s())
        ):
            await self._mark()

    def _is_due(self, at: float | None) -> bool:
        return at is not None and at <= self._clock.boot()

    async def _next_in_line(self) -> None:
        """Where nothing is on the lens (or there is none), show the next item of the queue."""
        reading = (
            self._reading.now is not None or self._reading.covered or self._ear.speaking is not None
        )
        if self._line.first is not None and not reading and self._glasses.status().ready:
            await self._perform(self._line.pop())

    async def _mark(self) -> None:
        """Show the newest brief word: the panel is free, and nothing of more weight is there."""
        if (act := self._marks.take()) is None:
            return
        if not self._has_lens():
            self._marks.unseen(act.scene, self._clock.boot() + BRIEF_S)
        await self._take(act)

    # ------------------------------------------------------------------ questions

    async def _question(self) -> None:
        """Show the question whose turn it is; after the last one, restore what it covered."""
        await self._asker.tidy()
        if self._is_due(self._asker.due_at()):
            # silence first: a tap that was to stop the voice must not answer
            if not self._reading.covered:
                await self._ear.hush(QUESTION)
                await self._reading.cover()
            await self._asker.put()
        elif self._reading.covered and not self._asker.asking:
            self._reading.uncover()
            if self._glasses.status().ready:
                await self._after_question()

    async def _after_question(self) -> None:
        """Bring back what was there, unless something newer has waited."""
        self._line.unpark()
        first = self._line.first
        if first is not None and not self._reading.outranks(first):
            await self._perform(self._line.pop())
        await self._reading.bare()

    # ------------------------------------------------------------------ entering

    async def _enter(self, act: Presentation) -> None:
        if self._reading.covered or self._is_due(self._asker.due_at()):
            self._wait_for_lens(act, _ASKED)
            return
        if any(isinstance(newer, Presentation) and newer.rank >= act.rank for newer in self._inbox):
            act.supersede("by something newer")
            return
        if self._reading.outranks(act):
            self._wait_for_lens(
                act,
                "a result is being read" if act.brief else "something more important is being read",
            )
            return
        if not act.brief:
            await self._ear.hush(SUPERSEDED)
        await self._perform(act)

    def _wait_for_lens(self, act: Presentation, why: str) -> None:
        self._line.wait(act, why, at_least_until=self._asker.over_by + self._life_s)

    async def _perform(self, act: Presentation) -> None:
        status = self._glasses.status()
        if status.capabilities is None:
            act.say(Delivery.DROPPED, "no glasses", final=True)
        elif not status.ready:
            self._line.park(act)
        else:
            try:
                if act.rendering.layout is LayoutKind.CLEAR_VIEW:
                    await self._clear(act, status.capabilities)
                else:
                    await self._ladder.climb(act, status.capabilities)
            except GlassesAway:
                self._line.park(act)

    # ------------------------------------------------------------------ the lens

    async def _next_page(self) -> None:
        if not await self._reading.turn():
            await self._leave()

    async def _leave(self, *, at_once: bool = False) -> None:
        """The lens has had its time: dark, or the next in line."""
        self._reading.end()
        if self._line.first is not None:
            await self._perform(self._line.pop())
        if self._reading.now is None:
            await self._reading.dark(at_once=at_once)

    async def _called_off(self, mark: str) -> None:
        """Remove progress at once, before its call has ended; a prompt has removed it already."""
        if self._reading.now is not None and self._reading.now.scene == mark:
            self._reading.end() if self._reading.covered else await self._leave(at_once=True)

    async def _clear(self, act: Presentation, capabilities: Capabilities) -> None:
        if not capabilities.has(Hardware.DISPLAY):
            act.say(Delivery.NONE, "these glasses have no display", final=True)
        else:
            act.say(
                Delivery.ACKNOWLEDGED if await self._reading.wipe() else Delivery.NONE, final=True
            )

    async def _tapped(self, *, leave: bool) -> None:
        """A tap first silences, then turns the page, then leaves the last one."""
        if self._ear.speaking is not None:
            self._ear.quiet("the wearer")
        elif self._reading.now is not None and not self._reading.covered:
            await (self._leave() if leave else self._next_page())

    async def _glasses_back(self) -> None:
        """A question that waits comes first; what else was there comes after it."""
        self._asker.connected()
        if self._asker.asking or self._asker.due_at() is not None:
            return
        if self._asker.stray:
            await self._asker.end_prompt()
        parked = self._line.take_parked()
        await (self._reading.again(returned=True) if parked is None else self._perform(parked))

    # ------------------------------------------------------------------ the ear

    async def _spoken(self, over: SpeechOver) -> None:
        act, spoken = over.act, over.spoken
        if act.asks:
            self._asker.spoken(over)
            return
        act.speech = "over"
        if over.stopped_by == QUESTION and over.unsaid and not act.lit:
            act.speech = "not yet"
            self._wait_for_lens(act, _ASKED)
        elif over.stopped_by == SUPERSEDED:
            act.supersede("by something newer")
        elif spoken is not None and spoken.samples:
            act.say(Delivery.SPOKEN, over.remark(), final=True)
        elif act.lit:
            if over.reason:
                _log.info("shown, but not spoken: %s", over.reason)
            act.settle()
        elif over.away or over.stopped_by:
            act.say(Delivery.DROPPED, over.reason or f"stopped by {over.stopped_by}", final=True)
        else:
            await self._ladder.unheard(
                act, over.reason or "no sample was played", self._glasses.status()
            )
