"""Shows and speaks results one at a time, and reports how far each delivery got.

One actor task moves everything; all else only adds to its inbox. A prompt covers everything else:
what it covers comes back after it, what arrives meanwhile waits.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from edge.core.results import LayoutKind, Rendering, TapOffer, rendering_of
from edge.core.words.wearer_forms import Writer
from edge.display.background import Background
from edge.display.current_page import CurrentPage
from edge.display.drawn_text import DrawnText
from edge.display.fallback import Fallback
from edge.display.lens import LensWriter, Sheet
from edge.display.lens_plan import Code, Fit, draw_ahead, fit_ahead, no_code, open_sheet, unfitted
from edge.display.page_life import Action, PageEvent, act
from edge.display.presentation import BRIEF_RANK, LIFE_S, NEWER, Presentation
from edge.display.prompts import Prompter
from edge.display.queue import DisplayQueue, ProgressIndicator
from edge.display.saved_scene import SavedScenes
from edge.display.stage import Stage
from edge.display.voice.speech import InterruptibleSpeech, SpeechOutput, SpeechOver
from edge.display.voice.tts import TextToSpeech
from edge.display.wording import Wording
from edge.ports import Chosen, GlassesAway, GlassesPort, Question, Wait
from edge.runtime.bus import Bus, Listener
from edge.runtime.clock import Clock
from edge.runtime.deadlines import Within, unwatched
from edge.runtime.events import CallOff, DeliveryChanged, GlassesReady, GlassesSaid, GlassesUnpaired
from edge.storage.notes import Notes
from firmware_bridge.capabilities import Hardware
from firmware_bridge.deadlines import timeout
from firmware_bridge.messages import Answer, Gesture, Gestured, Transcript, UncertainTap
from firmware_bridge.sides import Side
from tools_cache.api.tool import Delivery, DeliveryReport, Json, ToolResponse

if TYPE_CHECKING:
    from edge.display.listening.captions import LiveCaptions
    from edge.display.listening.indicator import ListeningIndicator
    from edge.listening_ports import ListeningPort

_log: Final = logging.getLogger(__name__)
DRAW_S: Final = 300.0
"""Seconds the watchdog allows for one drawing; each of its requests has a deadline of seconds."""
BRIEF_S: Final = 10.0
"""Seconds for which progress stays on the lens without news of its call."""
NEWS_S: Final = 3.0
"""Seconds for which the end of captions is said."""
INBOX: Final = 64
_SCENE_BYTES: Final = 120
"""Bytes of a scene's name; glasses take 128."""
_LAST_WAIT_S: Final = 900.0
"""Seconds to wait for a final report; the longest speech takes under five minutes."""


class _Cancelled(Struct, frozen=True):
    """The wearer cancelled this call."""

    call_id: str


class _Ended(Struct, frozen=True):
    """This call is over."""

    call_id: str


class _Back(Struct, frozen=True):
    """The glasses are there (again)."""


class _Unpaired(Struct, frozen=True):
    """Others may wear the next glasses."""


_Input = Presentation | PageEvent | _Cancelled | _Ended | _Back | _Unpaired | SpeechOver
"""A page event is a gesture."""


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
        code: Code = no_code,
        fit: Fit = unfitted,
        min_gap_s: float = 0.1,
        within: Within = unwatched,
        listens: "Callable[[], ListeningPort | None]" = lambda: None,
    ) -> None:
        self._within = within
        self._listens = listens
        self._wording = Wording(writer)
        self._glasses = glasses
        self._bus = bus
        self._clock = clock
        self._wake = asyncio.Event()
        self._speech = SpeechOutput(glasses, voice or TextToSpeech(), self._put)
        self.speech = InterruptibleSpeech(self._speech)
        self._lens = LensWriter(glasses, bus, clock, min_gap_s=min_gap_s)
        self._drawn = drawn or DrawnText()
        self._progress = ProgressIndicator()
        self._resting = False
        """Whether the actor waits for something to do."""
        self._code = code
        self._fit = fit
        self._background = Background(glasses, clock, self._wake.set, self._say_briefly)
        self._current = self._make_current_page(SavedScenes(notes, clock))
        self._prompter = self._make_prompter()
        self.side_commands = self._prompter.side_commands
        self._queue = DisplayQueue()
        self._stage = Stage(
            glasses=glasses,
            bus=bus,
            clock=clock,
            current=self._current,
            fallback=Fallback(self._lens, self._speech, self._drawn, self._current, fit),
            prompter=self._prompter,
            speech=self._speech,
            queue=self._queue,
            progress=self._progress,
            background=self._background,
            report=self._report,
        )
        self._turn = asyncio.Lock()
        """Held while a text is prepared, so that texts reach the lens in the order they came."""
        self._running = False
        self._inbox: deque[_Input] = deque()
        self._texts = 0

    def _make_prompter(self) -> Prompter:
        return Prompter(
            self._glasses,
            self._lens,
            self._speech,
            self._clock,
            self._wake.set,
            drawn=self._drawn,
            listens=self._listens,
        )

    def _make_current_page(self, scenes: SavedScenes) -> CurrentPage:
        return CurrentPage(
            self._lens,
            scenes,
            self._clock,
            progress=self._progress,
            background=self._background,
            make=self._open,
        )

    async def _open(self, sheet: Sheet) -> tuple[Sheet, ...]:
        """Make what a tap asks for."""
        known = self._glasses.status().capabilities
        return await open_sheet(sheet, known, self._drawn, self._code, self._fit)

    # ------------------------------------------------------------------ the ports

    async def present(
        self,
        call_id: str,
        response: ToolResponse,
        *,
        wait: Wait = Wait.ANSWER,
        name: str = "",
        offer: TapOffer | None = None,
    ) -> DeliveryReport:
        """See `RenderPort`. Presenting again what is on the lens already does not draw it again."""
        async with self._turn:
            made = rendering_of(response, name=name, writer=self._wording.writer())
            wanted = replace(await self._prepared(made), offer=offer)
            self._progress.over(call_id)
            if wanted.layout is None and not wanted.speech and not wanted.pcm:
                return DeliveryReport(Delivery.NONE)
            scene = _scene_of(wanted) or call_id
            item = self._known(call_id) or self._new(call_id, scene, wanted, rank=wanted.priority)
        return await self._wait_for_report(item, wait)

    async def tell(
        self,
        text: str,
        *,
        scene: str = "",
        call_id: str = "",
        brief: bool = False,
        mark: bool = False,
        until_shown: bool = False,
    ) -> DeliveryReport:
        """See `RenderPort`. Brief texts are never spoken."""
        made = Rendering(
            LayoutKind.TEXT_WALL,
            text,
            speech=None if brief else text,
            silent=brief,
            duration_s=BRIEF_S if brief else None,
        )
        async with self._turn:
            wanted = await self._prepared(made)
            if brief and self._progress.is_cancelled(call_id):
                return DeliveryReport(Delivery.DROPPED, "called off by the wearer")
            self._texts += 1
            name = f"{call_id}/word" if call_id else scene or f"word-{self._texts}"
            rank = BRIEF_RANK if brief else 0
            item = self._new("", name, wanted, rank=rank, progress_of=call_id)
            item.mark, item.until_shown = mark, until_shown
        return await self._wait_for_report(item, Wait.ANSWER)

    def _say_briefly(self, text: str) -> None:
        """Show a short text that is about what is no longer on the lens."""
        made = Rendering(LayoutKind.TEXT_WALL, text, silent=True, duration_s=NEWS_S)
        self._new("", "news", made, rank=BRIEF_RANK)

    async def _prepared(self, made: Rendering) -> Rendering:
        """Return it in the wearer's words, its picture made for the lens, and draw ahead what the
        glasses cannot write: while the actor draws, nothing else can happen on the lens.
        """
        wanted = await self._wording.apply(made)
        if self._running:  # else nobody would end the child that draws
            known = self._glasses.status().capabilities
            wanted = await fit_ahead(wanted, known, self._fit)
            await draw_ahead(wanted, known, self._drawn)
        return wanted

    def ended(self, call_id: str) -> None:
        """See `RenderPort`."""
        waited, page = self._progress.over(call_id), self._current.now
        shown = page is not None and page.progress_of == call_id
        if self._resting and not (waited or shown or self._inbox):
            return  # nothing of it is on the lens or on its way there, as after nearly every call
        if len(self._inbox) < INBOX:
            self._put(_Ended(call_id))

    async def forget_saved(self) -> None:
        """Keep no more text of what was shown so far; the lens stays as it is."""
        await self._current.forget_saved(self._queue)

    async def ask(self, question: Question) -> Answer:
        """See `AskPort`."""
        answer = await self._prompter.ask(replace(question, choices=()))
        assert isinstance(answer, Answer), "only a choice is chosen"
        return answer

    async def choose(self, question: Question) -> Answer | Chosen:
        """See `AskPort`."""
        return await self._prompter.ask(question)

    def answer_by_words(self, said: Transcript) -> bool:
        """Take what the wearer said while a question is open; False if it is no answer to it."""
        return self._prompter.answer_by_words(said)

    @property
    def listening_mark(self) -> "ListeningIndicator":
        """Return what says that the microphone is on."""
        return self._background.listening.indicator

    @property
    def captions(self) -> "LiveCaptions":
        """Return the page of captions."""
        return self._background.listening.captions

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
                self._running = True
                try:
                    await self._work()
                except asyncio.CancelledError:
                    await self._current.stop()
                    raise
                finally:
                    self._running = False
                    await self._drawn.close()

    def _known(self, call_id: str) -> Presentation | None:
        shown = (
            self._current.now,
            self._current.under,
            self._speech.speaking,
            *self._queue,
            *(i for i in self._inbox if isinstance(i, Presentation)),
        )
        return next((item for item in shown if item is not None and item.call_id == call_id), None)

    def _new(
        self, call_id: str, name: str, wanted: Rendering, *, rank: int, progress_of: str = ""
    ) -> Presentation:
        life = wanted.duration_s if wanted.duration_s and rank <= BRIEF_RANK else LIFE_S
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
        limit = _LAST_WAIT_S if wait is Wait.DELIVERY else LIFE_S
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
            elif isinstance(event, GlassesUnpaired):
                self._put(_Unpaired())
            elif isinstance(event, GlassesSaid) and isinstance(event.event, Gestured):
                self._gesture(event.event.gesture, event.event.side)
            elif isinstance(event, GlassesSaid) and isinstance(event.event, UncertainTap):
                self._turn_page(event.event.side)
            elif isinstance(event, GlassesSaid):
                self._prompter.receive(event.event)

    def _turn_page(self, side: Side) -> None:
        """A tap that may be the one before, reported late: good enough for a page, nothing else."""
        page = self._current.now
        asked = self._current.covered or self._prompter.active
        if page is None or page.brief or page.offers or asked or len(self._inbox) >= INBOX:
            return
        self._put(PageEvent.BACK if side is Side.LEFT else PageEvent.TAP)

    def _gesture(self, gesture: Gesture, side: Side | None) -> None:
        if self._prompter.take_gesture(gesture):
            return
        event = _page_event(gesture, side)
        if call_id := self._call_to_cancel(gesture):
            self._progress.cancel(call_id)
            self._bus.publish(CallOff(call_id, "the wearer"))
            self._put(_Cancelled(call_id))
        elif event is None or not self._stage.uses(event):
            if (listens := self._listens()) is not None:
                listens.unused_gesture(gesture, side)
        elif len(self._inbox) < INBOX:  # more taps would turn pages long after the wearer stopped
            self._put(event)

    def _call_to_cancel(self, gesture: Gesture) -> str:
        """The call whose progress a gesture cancels; "" when it means something else."""
        if not self._has_lens():
            cancels = gesture in (Gesture.DOUBLE_TAP, Gesture.BUTTON_LONG)
            return self._progress.awaited(self._clock.boot()) if cancels else ""
        now, state = self._current.now, self._current.state()
        cancels = gesture is Gesture.DOUBLE_TAP and act(state, PageEvent.LEAVE) is Action.CANCEL
        return now.progress_of if now is not None and cancels else ""

    def _has_lens(self) -> bool:
        known = self._glasses.status().capabilities
        return known is None or known.has(Hardware.DISPLAY)

    # ------------------------------------------------------------------ the actor

    async def _work(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with timeout(self._patience_s()):
                    self._resting = True
                    await self._wake.wait()
            self._resting = False
            self._wake.clear()
            while self._inbox:
                with self._within(DRAW_S, "display: drawing"):
                    await self._take(self._inbox.popleft())
            with self._within(DRAW_S, "display: turning the page"):
                await self._stage.on_time()
                if self._progress.waiting is not None and not self._inbox and not self._busy_s():
                    await self._show_progress()

    def _patience_s(self) -> float | None:
        """Seconds until something is due."""
        waits = [self._busy_s()] if self._progress.waiting is not None else []
        due = self._stage.patience()
        return min([*waits, *([] if due is None else [due])], default=None)

    def _busy_s(self) -> float:
        """Seconds until the panel takes progress; under a question none is drawn."""
        return 0.0 if self._current.covered else self._lens.busy_s()

    async def _take(self, item: _Input) -> None:
        try:
            match item:
                case Presentation() if self._has_newer(item):
                    item.supersede(NEWER)
                case Presentation():
                    await self._stage.enter(item)
                case PageEvent():
                    await self._stage.gestured(item)
                case _Cancelled():
                    await self._stage.remove_progress(item.call_id, at_once=True)
                case _Ended():
                    await self._stage.remove_progress(item.call_id)
                case _Back():
                    await self._stage.glasses_back()
                case _Unpaired():
                    await self._stage.forget()
                case SpeechOver():
                    await self._stage.speech_ended(item)
        except GlassesAway:
            _log.debug("display: the glasses went away meanwhile")
        except Exception:  # noqa: BLE001 - one result that cannot be rendered must not darken all others
            _log.exception("display: a result could not be rendered")
            if isinstance(item, Presentation):
                item.fail()

    def _has_newer(self, item: Presentation) -> bool:
        """Whether a newer version of it has come meanwhile."""
        return any(isinstance(x, Presentation) and x.scene == item.scene for x in self._inbox)

    async def _show_progress(self) -> None:
        """Show the newest brief text: the panel is free, and nothing more important is there."""
        if (item := self._progress.take()) is None:
            return
        if not self._has_lens():
            self._progress.unseen(item.progress_of, self._clock.boot() + BRIEF_S)
        await self._take(item)


def _page_event(gesture: Gesture, side: Side | None) -> PageEvent | None:
    """Return what a gesture does to a page; None if that is nothing on any page."""
    if gesture is Gesture.TAP and side is Side.LEFT:
        return PageEvent.BACK
    if gesture in (Gesture.TAP, Gesture.BUTTON):
        return PageEvent.TAP
    return PageEvent.LEAVE if gesture is Gesture.DOUBLE_TAP else None


def _scene_of(wanted: Rendering) -> str:
    """Return the name of a result's own scene, as long as glasses take it; "" if it has none."""
    name = f"scene/{wanted.scene}" if wanted.scene else ""
    return name.encode()[:_SCENE_BYTES].decode(errors="ignore")
