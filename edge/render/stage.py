"""The stage: what the wearer sees and hears, one thing at a time, and the truth about how far it got.

Refuses to know tools, the cloud and the radio. One actor moves everything; all else only puts something into its inbox.
The ladder: image → text → speech → none; a rung counts only when the glasses say that something was drawn or played.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from edge.bus import Listener
from edge.clock import Clock
from edge.core.results import LayoutKind, Rendering, rendering_of
from edge.events import DeliveryChanged, GlassesReady, GlassesSaid
from edge.ports import BusPort, GlassesAway, GlassesPort, NotesPort, Wait
from edge.render.act import BRIEF_RANK, Act
from edge.render.display import CannotShow, Lens, plan
from edge.render.ear import SUPERSEDED, Ear, SpeechOver
from edge.render.scene import Scenes
from edge.render.voice import Voice
from firmware_bridge.capabilities import Capabilities, Hardware
from firmware_bridge.errors import CommandRefused, CommandTimeout, LocalMisuse
from firmware_bridge.messages import Done, Gesture, Gestured
from tools_cache.tool import Delivery, DeliveryReport, Json, ToolResponse

_log: Final = logging.getLogger(__name__)
LIFE_S: Final = 60.0
"""A result that cannot be shown within this time is no answer any more."""
BRIEF_S: Final = 10.0
"""A working mark stays until the result comes, but no longer than this without news."""
INBOX: Final = 64
LATER: Final = 4
"""Results of lower priority that wait for the lens; the oldest goes first, the fifth is superseded."""
_AWAY: Final = "glasses away"
_LAST_WAIT_S: Final = 900.0
"""Bound on waiting for a final word: the longest speech (4,000 characters) takes under five minutes."""


@dataclass(frozen=True, slots=True)
class _Tapped:
    away: bool = False


@dataclass(frozen=True, slots=True)
class _Back:
    """The glasses are there (again)."""


_Item = Act | _Tapped | _Back | SpeechOver


class Stage:
    """Implements `RenderPort`. Nothing moves before `run()`; what is presented meanwhile waits in the inbox."""

    def __init__(
        self, *, glasses: GlassesPort, bus: BusPort, clock: Clock, notes: NotesPort, voice: Voice | None = None,
        life_s: float = LIFE_S, min_gap_s: float = 0.1,
    ) -> None:  # fmt: skip
        self._glasses = glasses
        self._bus = bus
        self._clock = clock
        self._scenes = Scenes(notes, clock)
        self._ear = Ear(glasses, voice or Voice(), self._put)
        self._lens = Lens(glasses, bus, clock, min_gap_s=min_gap_s)
        self._life_s = life_s
        self._inbox: deque[_Item] = deque()
        self._wake = asyncio.Event()
        self._now: Act | None = None
        self._parked: Act | None = None
        self._later: deque[Act] = deque()
        self._words = 0

    # ------------------------------------------------------------------ the port

    async def present(self, call_id: str, response: ToolResponse, *, wait: Wait = Wait.ANSWER) -> DeliveryReport:
        """See `RenderPort`. A second `present` of what is on the lens already is answered, not drawn again."""
        wanted = rendering_of(response)
        if wanted.layout is None and not wanted.speech and not wanted.pcm:
            return DeliveryReport(Delivery.NONE)
        act = self._known(call_id) or self._new(call_id, call_id, wanted, rank=wanted.priority)
        return await self._told(act, wait)

    async def tell(self, text: str, *, scene: str = "", brief: bool = False) -> DeliveryReport:
        """See `RenderPort`. Brief words are for the lens alone: an ear has no use for "working"."""
        self._words += 1
        wanted = Rendering(
            LayoutKind.TEXT_WALL, text, speech=None if brief else text, silent=brief,
            duration_s=BRIEF_S if brief else None,
        )  # fmt: skip
        act = self._new("", scene or f"word-{self._words}", wanted, rank=BRIEF_RANK if brief else 0)
        return await self._told(act, Wait.ANSWER)

    def lens(self) -> Mapping[str, Json]:
        return self._lens.report()

    async def run(self) -> None:
        """Be the actor until cancelled; the scene that was on the lens when the last daemon ended comes back."""
        with self._bus.listen() as heard:
            self._now = await self._scenes.recall(self._report)
            try:
                async with asyncio.TaskGroup() as tasks:
                    self._ear.tasks = tasks
                    tasks.create_task(self._hear(heard), name="stage.hear")
                    if self._glasses.status().ready:
                        self._put(_Back())
                    await self._act()
            finally:
                await self._ear.close()

    def _known(self, call_id: str) -> Act | None:
        shown = (self._now, self._parked, self._ear.speaking, *self._later, *(i for i in self._inbox if isinstance(i, Act)))
        return next((act for act in shown if act is not None and act.call_id == call_id), None)

    def _new(self, call_id: str, name: str, wanted: Rendering, *, rank: int) -> Act:
        life = wanted.duration_s if wanted.duration_s and rank <= BRIEF_RANK else self._life_s
        act = Act(call_id, name, wanted, rank, self._clock.boot() + life, self._report)
        if len(self._inbox) >= INBOX:
            act.say(Delivery.DROPPED, "the stage is overrun", final=True)
        else:
            self._put(act)
        return act

    async def _told(self, act: Act, wait: Wait) -> DeliveryReport:
        """Wait for the word asked for; an actor that does not run cannot keep a caller waiting for ever."""
        future = act.final if wait is Wait.DELIVERY else act.first
        limit = _LAST_WAIT_S if wait is Wait.DELIVERY else self._life_s
        try:
            await asyncio.wait({future}, timeout=limit)
        finally:  # whatever comes after a caller stopped waiting is told on the bus
            if not act.first.done():
                act.first.set_result(act.report)
        return future.result() if future.done() else replace(act.report, reason=act.report.reason or "no news in time")

    def _report(self, call_id: str, report: DeliveryReport) -> None:
        if call_id:
            self._bus.publish(DeliveryChanged(call_id, report))

    def _put(self, item: _Item) -> None:
        self._inbox.append(item)
        self._wake.set()

    # ------------------------------------------------------------------ the actor

    async def _hear(self, heard: Listener) -> None:
        async for happening in heard:
            if isinstance(happening, GlassesReady):
                self._put(_Back())
            elif isinstance(happening, GlassesSaid) and isinstance(happening.event, Gestured):
                self._gesture(happening.event.gesture)

    def _gesture(self, gesture: Gesture) -> None:
        if len(self._inbox) >= INBOX:
            return  # taps beyond the bound would turn pages long after the wearer stopped
        if gesture in (Gesture.TAP, Gesture.BUTTON):
            self._put(_Tapped())
        elif gesture is Gesture.DOUBLE_TAP:
            self._put(_Tapped(away=True))

    async def _act(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._patience()):
                    await self._wake.wait()
            self._wake.clear()
            while self._inbox:
                await self._take(self._inbox.popleft())
            await self._on_time()

    def _patience(self) -> float | None:
        """Seconds until something is due without anybody asking."""
        due = [act.expires_at for act in (self._parked, *self._later) if act] + ([self._now.until] if self._now else [])
        return max(0.0, min(due) - self._clock.boot()) if due else None

    async def _take(self, item: _Item) -> None:
        try:
            match item:
                case Act():
                    await self._enter(item)
                case _Tapped():
                    await self._tapped(leave=item.away)
                case _Back():
                    await self._glasses_back()
                case SpeechOver():
                    await self._spoken(item)
        except GlassesAway:
            _log.debug("stage: the glasses went away meanwhile")
        except Exception:  # noqa: BLE001 - one result that cannot be rendered must not darken all others
            _log.exception("stage: a result could not be rendered")
            if isinstance(item, Act):
                item.settle() if item.lit else item.drop(["it could not be rendered"])

    async def _on_time(self) -> None:
        """Turn pages, clear, give up on what nobody can see any more."""
        now = self._clock.boot()
        if self._parked is not None and self._parked.expires_at <= now:
            act, self._parked = self._parked, None
            act.say(Delivery.DROPPED, _AWAY, final=True)
        for act in [act for act in self._later if act.expires_at <= now]:
            self._later.remove(act)
            act.say(Delivery.EXPIRED, "the lens was busy", final=True)
        if self._now is not None and self._now.until <= now:
            with suppress(GlassesAway):
                await self._next_page()

    # ------------------------------------------------------------------ entering

    async def _enter(self, act: Act) -> None:
        if any(isinstance(newer, Act) and newer.rank >= act.rank for newer in self._inbox):
            act.supersede("by something newer")
            return
        if self._now is not None and act.rank < self._now.rank:
            self._wait_for_lens(act)
            return
        if not act.brief:
            await self._ear.hush(SUPERSEDED)
        await self._perform(act)

    def _wait_for_lens(self, act: Act) -> None:
        if act.brief:
            act.say(Delivery.DROPPED, "a result is being read", final=True)
            return
        if len(self._later) >= LATER:
            self._later.popleft().supersede("by something newer")
        self._later.append(act)
        act.say(Delivery.QUEUED, "something more important is being read")

    async def _perform(self, act: Act) -> None:
        status = self._glasses.status()
        if status.capabilities is None:
            act.say(Delivery.DROPPED, "no glasses", final=True)
        elif not status.ready:
            self._park(act)
        else:
            try:
                await self._climb(act, status.capabilities)
            except GlassesAway:
                self._park(act)

    def _park(self, act: Act) -> None:
        """Keep the newest result for glasses that may come back; brief words are not worth it."""
        if act.brief:
            act.say(Delivery.DROPPED, _AWAY, final=True)
            return
        if act.lit:
            act.settle()  # the wearer had it; the scene comes back by itself
            return
        if self._parked is not None and self._parked is not act:
            self._parked.supersede("by something newer")
        self._parked = act
        act.say(Delivery.QUEUED, _AWAY)

    async def _climb(self, act: Act, capabilities: Capabilities) -> None:
        """Go down the ladder as far as needed: lens first, then the ear."""
        why: list[str] = []
        wanted = act.rendering
        if wanted.layout is LayoutKind.CLEAR_VIEW:
            await self._clear(act, capabilities)
            return
        if wanted.layout is not None:
            await self._lens_rung(act, wanted, capabilities, why)
        heard = (wanted.speech or wanted.pcm or (wanted.words if not act.lit else "")) and not wanted.silent
        if heard and act.speech == "not yet" and self._ear.begin(act, capabilities, why):
            return
        if not act.lit and wanted.layout is None and capabilities.has(Hardware.DISPLAY):
            await self._words_rung(act, capabilities, why)
        if act.lit:
            act.settle()
        else:
            act.drop(why)

    # ------------------------------------------------------------------ the lens

    async def _lens_rung(self, act: Act, wanted: Rendering, capabilities: Capabilities, why: list[str]) -> None:
        try:
            if wanted.layout is LayoutKind.BITMAP_VIEW:  # a large picture takes tenths of a second to decode
                planned = await asyncio.to_thread(plan, wanted, capabilities)
            else:
                planned = plan(wanted, capabilities)
        except CannotShow as e:
            why.append(str(e))
            return
        act.sheets, act.remark = planned.sheets, planned.remark
        act.downgrade = act.downgrade or planned.downgrade
        await self._first_page(act, why)
        if not act.lit and wanted.layout is LayoutKind.BITMAP_VIEW and not planned.downgrade:
            act.downgrade = "image→text"
            words = replace(wanted, layout=LayoutKind.TEXT_WALL)
            await self._lens_rung(act, words, capabilities, why)

    async def _words_rung(self, act: Act, capabilities: Capabilities, why: list[str]) -> None:
        """What cannot be said is written."""
        act.downgrade = "speech→display"
        await self._lens_rung(act, replace(act.rendering, layout=LayoutKind.TEXT_WALL), capabilities, why)

    async def _first_page(self, act: Act, why: list[str]) -> None:
        try:
            done = await self._lens.show(act.scene, act.sheets, 1)
        except (CommandRefused, LocalMisuse) as e:
            why.append(f"the glasses refused the page: {e}")
        except CommandTimeout:
            why.append("the glasses did not confirm the page")
        else:
            if done.drawn == 0:
                why.append("nothing was drawn")
            else:
                await self._lit(act, done)

    async def _lit(self, act: Act, done: Done) -> None:
        previous, self._now = self._now, act
        if previous is not None and previous is not act:
            previous.supersede("by something newer")
        act.light(done, self._clock.boot())
        await self._scenes.keep(act)

    async def _next_page(self) -> None:
        if (act := self._now) is None:
            return
        expired = act.leave_at is not None and act.leave_at <= self._clock.boot()
        if act.page >= len(act.sheets) or expired:
            await self._leave()
            return
        act.turn(self._clock.boot())
        if await self._lens.turn(act.scene, act.sheets, act.page):
            act.seen = max(act.seen, act.page)
            await self._scenes.keep(act)

    async def _leave(self) -> None:
        """The lens has had its time: dark, or the next in line."""
        act, self._now = self._now, None
        if act is not None and act.speech != "begun":
            act.settle()
        await self._scenes.forget()
        if self._later:
            await self._perform(self._later.popleft())
        if self._now is None:
            await self._lens.clear()

    async def _clear(self, act: Act, capabilities: Capabilities) -> None:
        if not capabilities.has(Hardware.DISPLAY):
            act.say(Delivery.NONE, "these glasses have no display", final=True)
            return
        previous, self._now = self._now, None
        if previous is not None:
            previous.supersede("the lens was cleared")
        await self._scenes.forget()
        await self._lens.clear()
        act.say(Delivery.NONE if self._lens.lit else Delivery.ACKNOWLEDGED, final=True)

    async def _tapped(self, *, leave: bool) -> None:
        """A tap first silences, then turns the page, then leaves the last one."""
        if self._ear.speaking is not None:
            self._ear.quiet("the wearer")
        elif self._now is not None:
            await (self._leave() if leave else self._next_page())

    async def _glasses_back(self) -> None:
        """Show what was there: the same scene, so it is no second rendering; or what could not be shown till now."""
        parked, self._parked = self._parked, None
        act = self._now
        if parked is not None:
            await self._perform(parked)
        elif act is not None and act.until > self._clock.boot():
            await self._lens.turn(act.scene, act.sheets, act.page)
        elif self._lens.lit or self._scenes.leftover:
            self._now, self._scenes.leftover = None, False
            await self._lens.clear()

    # ------------------------------------------------------------------ the ear

    async def _spoken(self, over: SpeechOver) -> None:
        act, spoken = over.act, over.spoken
        act.speech = "over"
        if over.stopped_by == SUPERSEDED:
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
            await self._unheard(act, over.reason or "no sample was played")

    async def _unheard(self, act: Act, reason: str) -> None:
        """Speech came to nothing and the lens has nothing yet: the words go there if they can."""
        why = [reason]
        status = self._glasses.status()
        untried = act.rendering.layout is None
        if untried and status.ready and status.capabilities and status.capabilities.has(Hardware.DISPLAY):
            await self._words_rung(act, status.capabilities, why)
        if act.lit:
            act.settle()
        else:
            act.drop(why)
