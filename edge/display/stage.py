"""What is on the stage: carries out what the table of `page_life` says about page and voice."""

import logging
from contextlib import suppress
from typing import Final

from edge.core.results import LayoutKind, Rendering
from edge.display.background import Background
from edge.display.current_page import CurrentPage
from edge.display.fallback import Fallback
from edge.display.open_prompt import OpenPrompt
from edge.display.page_life import Action, LensState, PageEvent, act, arrival
from edge.display.presentation import BRIEF_RANK, LIFE_S, NEWER, OnReport, Presentation, SpeechState
from edge.display.prompts import TOO_SOON_S, Prompter
from edge.display.queue import DisplayQueue, ProgressIndicator
from edge.display.voice.speech import SpeechOutput, SpeechOver, StoppedBy
from edge.ports import GlassesAway, GlassesPort
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import OfferTaken
from firmware_bridge.capabilities import Capabilities, Hardware
from tools_cache.api.tool import Delivery

_log: Final = logging.getLogger(__name__)
REFUSED_S: Final = 3.0
"""Seconds for which the answer to a no stays."""
_ASKED: Final = "a question is open"
_UNCOUNTED: Final = "the glasses do not say whether they played it"
_UNPAIRED: Final = "the glasses were unpaired"


class Stage:
    """Its methods are called by the one task of `Presenter`, which alone draws and speaks."""

    def __init__(
        self,
        *,
        glasses: GlassesPort,
        bus: Bus,
        clock: Clock,
        current: CurrentPage,
        fallback: Fallback,
        prompter: Prompter,
        speech: SpeechOutput,
        queue: DisplayQueue,
        progress: ProgressIndicator,
        background: Background,
        report: OnReport,
    ) -> None:
        self._glasses = glasses
        self._bus = bus
        self._clock = clock
        self._current = current
        self._fallback = fallback
        self._prompter = prompter
        self._speech = speech
        self._queue = queue
        self._progress = progress
        self._background = background
        self._report = report

    # ------------------------------------------------------------------ by time

    def patience(self) -> float | None:
        """Seconds until something is due by time."""
        due = [
            self._current.due_at(awaited=self._ripens()),
            self._prompter.due_at(),
            *(item.expires_at for item in self._queue),
        ]
        now = self._clock.boot()
        waits = [max(0.0, at - now) for at in due if at is not None]
        background_s = self._current.background_due_s()
        return min(waits if background_s is None else [*waits, background_s], default=None)

    async def on_time(self) -> None:
        """Do what is due by time: next question, next page, next in the queue."""
        self._queue.give_up(self._clock.boot())
        with suppress(GlassesAway):
            await self._question()
            await self._current.refresh()
            if self._current.now is not None and self._is_due(self._current.now.until):
                await self._happen(PageEvent.TIME_OVER)
            if self._ripens():
                await self._happen(PageEvent.RIPE)
            await self._next_in_line()

    def _is_due(self, at: float | None) -> bool:
        return at is not None and at <= self._clock.boot()

    def _ripens(self) -> bool:
        """Whether a result waits that may have the lens once its page was there for long enough."""
        first, page = self._queue.first, self._current.now
        if first is None or page is None or page.brief or not self._glasses.status().ready:
            return False
        return arrival(first.rank, page.rank) is not PageEvent.LOWER

    async def _next_in_line(self) -> None:
        """Where nothing is on the lens (or there is none), show the next item of the queue."""
        page = self._current.now is not None or self._current.covered
        busy = page or self._speech.speaking is not None
        if self._queue.first is not None and not busy and self._glasses.status().ready:
            await self._show(self._queue.pop())

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
            ended = self._prompter.take_ended()
            if self._glasses.status().ready:
                await self._after_question(ended)

    async def _after_question(self, ended: OpenPrompt | None) -> None:
        """Say what follows from the answer, or bring back what was there, unless something newer
        has waited.
        """
        self._queue.why = ""
        self._queue.unpark()
        first, now = self._queue.first, self._current.now
        echo = self._echo(ended) if ended is not None else None
        if first is not None and (echo or now is None or first.rank >= now.rank):
            if echo is not None:
                self._progress.wait_behind(echo)
            await self._show(self._queue.pop())
        elif echo is not None:
            await self._show(echo)
        await self._current.remove_prompt()

    def _echo(self, ended: OpenPrompt) -> Presentation | None:
        """What the wearer reads after an answer: that the call runs, or that it does not."""
        question, accepted = ended.question, ended.accepted
        if not ended.echo or (accepted and self._progress.is_over(question.call_id)):
            return None
        stays_s = LIFE_S if accepted else REFUSED_S
        shown = Rendering(LayoutKind.TEXT_WALL, ended.echo, silent=True, duration_s=stays_s)
        name, call_id = f"{question.scene}/answer", question.call_id if accepted else ""
        return Presentation("", name, shown, BRIEF_RANK, 0.0, self._report, progress_of=call_id)

    # ------------------------------------------------------------------ what happens to the lens

    async def enter(self, item: Presentation) -> None:
        page = self._current.now
        if item.brief:
            event = PageEvent.MARK if item.mark else PageEvent.PROGRESS
        else:
            same = page is not None and page.scene == item.scene
            event = arrival(item.rank, page.rank if page is not None else None, same=same)
            if event is PageEvent.EQUAL and item.rendering.layout is LayoutKind.CLEAR_VIEW:
                event = PageEvent.HIGHER  # darkness that was asked for is no page to wait for
        asked = self._current.covered or self._is_due(self._prompter.due_at())
        self._queue.why = _ASKED if asked else ""
        await self._happen(event, item, state=LensState.COVERED if asked else None)

    async def _happen(
        self, event: PageEvent, item: Presentation | None = None, *, state: LensState | None = None
    ) -> None:
        """Do what the table of `page_life` says; `item` is what arrives."""
        match act(state or self._current.state(), event):
            case Action.SHOW:
                await self._show(self._queue.pop() if item is None else item)
            case Action.WAIT if item is not None:
                until = self._prompter.over_by + LIFE_S
                self._queue.wait(item, at_least_until=until)
            case Action.CORNER if item is not None:
                self._progress.wait_behind(item)
                await self._current.refresh()
            case Action.NEXT_PAGE:
                if not await self._current.turn(tapped=event is PageEvent.TAP):
                    await self._leave()
            case Action.PREVIOUS_PAGE:
                await self._current.turn_back()
            case Action.RECALL:
                await self._recall()
            case Action.EARLIER:
                self._background.listening.captions.go_back()
            case Action.NO_CAPTIONS:
                self._background.listening.captions.leave()
            case Action.END | Action.CANCEL:  # the call was cancelled when the wearer tapped
                await self._leave()
            case _ if item is not None:
                item.say(Delivery.DROPPED, self._queue.why or "other progress is shown", final=True)

    async def _recall(self) -> None:
        """Show the newest of the last results again; after the last page of a recalled one the one
        before it.
        """
        page = self._current.now
        if page is None and not self._can_recall():
            return
        if page is not None and await self._current.turn(tapped=True):
            return
        item = self._current.recent.before(page.recalled if page else 0, self._report)
        if item is not None:
            await self._show(item)
        elif page is not None:
            await self._leave()

    def uses(self, event: PageEvent) -> bool:
        """Return whether a gesture does something now, or was meant for what was there a moment
        ago.
        """
        state = self._current.state()
        if state is LensState.COVERED or self._speech.speaking is not None:
            return True
        if state is LensState.DARK and self._lens_just_went_dark():
            return True
        action = act(state, event)
        if action is Action.RECALL and state is LensState.DARK:
            return self._can_recall()
        return action is not Action.NOTHING

    def _can_recall(self) -> bool:
        """Return whether a tap on the dark lens brings a result back."""
        status = self._glasses.status()
        if not status.ready or status.unseen or self._lens_just_went_dark():
            return False
        has_lens = status.capabilities is not None and status.capabilities.has(Hardware.DISPLAY)
        return has_lens and self._current.recent.has_any()

    def _lens_just_went_dark(self) -> bool:
        """Whether a tap may still be meant for the page that was there."""
        return self._clock.boot() - self._current.dark_since < TOO_SOON_S

    async def _show(self, item: Presentation) -> None:
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
            except Exception:  # noqa: BLE001 - one result that cannot be rendered must not darken all others
                _log.exception("display: a result could not be rendered")
                item.fail()

    # ------------------------------------------------------------------ the lens

    async def _leave(self, *, at_once: bool = False) -> None:
        """The page is over: the next in line, else progress, else what lay under it, else dark."""
        self._current.end()
        if self._queue.first is not None:
            await self._show(self._queue.pop())
        elif (progress := self._progress.next_behind()) is not None:
            await self._show(progress)
        if self._current.now is None and not await self._current.bring_back():
            await self._current.clear(at_once=at_once)

    async def remove_progress(self, call_id: str, *, at_once: bool = False) -> None:
        """Remove the progress of a call that is over; a prompt has removed it already."""
        if self._current.now is not None and self._current.now.progress_of == call_id:
            if self._current.covered:
                self._current.end()
            else:
                await self._leave(at_once=at_once)

    async def _clear(self, item: Presentation, capabilities: Capabilities) -> None:
        if not capabilities.has(Hardware.DISPLAY):
            item.say(Delivery.NONE, "these glasses have no display", final=True)
        else:
            cleared = await self._current.wipe()
            item.say(Delivery.ACKNOWLEDGED if cleared else Delivery.NONE, final=True)

    async def gestured(self, event: PageEvent) -> None:
        """A tap takes what the page offers; else it first silences, then turns the page, then
        leaves the last one.
        """
        page = None if self._current.covered else self._current.now
        first = page is not None and page.page <= 1
        takes = event is PageEvent.TAP or (event is PageEvent.BACK and first)
        if takes and page is not None and page.offers:
            if page.offered_for_s(self._clock.boot()) >= TOO_SOON_S:
                self._bus.publish(OfferTaken(page.call_id))
                self._speech.stop(StoppedBy.WEARER)
                await self._leave()
            return
        if self._speech.speaking is not None:
            self._speech.stop(StoppedBy.WEARER)
            return
        if page is not None:
            page.tapped = True
        await self._happen(event)

    async def glasses_back(self) -> None:
        """A question that waits comes first; what else was there comes after it."""
        self._prompter.connected()
        if self._prompter.active or self._prompter.due_at() is not None:
            return
        if self._prompter.stray:
            await self._prompter.end_prompt()
        parked = self._queue.take_parked()
        await (self._current.again(returned=True) if parked is None else self._show(parked))

    async def forget(self) -> None:
        """Give up all that was shown, or waits to be: it is not for who wears the next glasses."""
        if self._background.state() is LensState.CAPTIONS:
            self._background.listening.captions.leave()
        self._queue.forget(_UNPAIRED)
        await self._current.forget(_UNPAIRED)

    # ------------------------------------------------------------------ speech

    async def speech_ended(self, over: SpeechOver) -> None:
        item, spoken = over.item, over.spoken
        if item.asks:
            self._prompter.speech_ended(over)
            return
        item.speech = SpeechState.OVER
        if over.stopped_by is StoppedBy.QUESTION and over.unsaid and not item.lit:
            item.speech = SpeechState.NOT_BEGUN
            self._queue.why = _ASKED
            self._queue.wait(item, at_least_until=self._prompter.over_by + LIFE_S)
        elif over.stopped_by is StoppedBy.NEWER:
            if not self._current.has(item):
                item.cut(NEWER, self._clock.boot())
        elif spoken is not None and spoken.samples and spoken.skipped and not over.stopped_by:
            await self._fallback.complete_speech(item, over.remark(), self._glasses.status())
        elif spoken is not None and spoken.samples:
            item.say(Delivery.SPOKEN, over.remark(), final=True)
        elif item.lit:
            if over.reason:
                _log.info("shown, but not spoken: %s", over.reason)
            if item.lost_at is None and item is not self._current.now:
                item.settle()  # the wearer left it, or its time was over
            elif not self._current.has(item):
                item.cut(NEWER, self._clock.boot())
        elif spoken is not None and spoken.samples is None:
            item.say(Delivery.SENT, over.remark() or _UNCOUNTED, final=True)
        elif over.away or over.stopped_by:
            item.say(Delivery.DROPPED, over.reason or f"stopped by {over.stopped_by}", final=True)
        else:
            reason = over.reason or "no sample was played"
            await self._fallback.replace_speech(item, reason, self._glasses.status())
