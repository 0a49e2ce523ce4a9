"""The page on the lens: which one, until when, what lies under it, its saved scene, and what a
prompt does to it.
"""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from edge.display import page_life
from edge.display.background import Background
from edge.display.lens import LensWriter, Sheet
from edge.display.page_life import LensState, Previous, previous
from edge.display.presentation import NEWER, OnReport, Presentation, SpeechState
from edge.display.queue import ProgressIndicator
from edge.display.recent_results import RecentResults
from edge.display.saved_scene import SavedScenes
from edge.ports import GlassesAway
from edge.runtime.clock import Clock
from firmware_bridge.messages import Done

UNDER_S: Final = 60.0
"""Seconds after which a page under another is old news and does not come back."""
Make = Callable[[Sheet], Awaitable[tuple[Sheet, ...]]]
"""Makes the pages that a sheet `opens`."""
_MARKS: Final = ("Working…", "Working...", "…", "...")
"""What says in the corner that a call works, the longest that fits."""


class CurrentPage:
    """`now` is what the wearer reads, or read before a prompt covered it or the glasses left;
    `under` comes back with the time it has left when `now` is over.

    Methods raise `GlassesAway`.
    """

    def __init__(
        self,
        lens: LensWriter,
        scenes: SavedScenes,
        clock: Clock,
        *,
        progress: ProgressIndicator,
        background: Background,
        make: Make,
    ) -> None:
        self._lens = lens
        self._background = background
        self._make = make
        self._scenes = scenes
        self._clock = clock
        self._progress = progress
        self._covered_at: float | None = None
        self._drawn = Sheet()
        self._behind: tuple[str, Sheet] | None = None
        """The background as it was drawn last, while no page covers it; None: darkness."""
        self.now: Presentation | None = None
        self.under: Presentation | None = None
        self.recent = RecentResults(clock)

    async def recall(self, on_report: OnReport) -> bool:
        """Take up what the last daemon was showing; return whether it ended during a prompt."""
        self.now = await self._scenes.recall(on_report)
        if self.now is not None:
            self.sheets(self.now)
        return self._scenes.asked

    @property
    def dark_since(self) -> float:
        """When the lens was last cleared (boot clock)."""
        return self._lens.dark_since

    @property
    def covered(self) -> bool:
        return self._covered_at is not None

    def has(self, item: Presentation) -> bool:
        """Whether it is on the lens, or comes back to it."""
        return item is self.now or item is self.under

    def state(self) -> LensState:
        """Return the state of the lens by which the table of `page_life` decides."""
        if self.covered:
            return LensState.COVERED
        if self.now is None:
            return self._background.state()
        if self.now.brief:
            return LensState.PROGRESS
        if self.now.recalled:
            return LensState.RECALLED
        read = self.now.reading(self._clock.boot()).long_enough
        return LensState.READ if read else LensState.FRESH

    def due_at(self, *, awaited: bool = False) -> float | None:
        """When something is due for its page (boot clock); None while nobody can read it.
        `awaited`: another result waits until it was there for long enough.
        """
        page = self.now
        if page is None or self.covered:
            return None
        due = [page.until]
        if awaited or self._unsettled(page):
            due.append(page.lit_at + page_life.LEAST_S)
        if page.offered_until is not None:
            due.append(page.offered_until)
        return min(due)

    def _unsettled(self, page: Presentation) -> bool:
        spoken = page.speech is SpeechState.BEGUN
        return not (page.brief or spoken or page.final.done())

    def sheets(self, item: Presentation) -> tuple[Sheet, ...]:
        """Return its pages as they are drawn now: with what a tap does, or that a call works."""
        sheets, number = item.pages, max(1, item.page)
        sheet: Sheet | None = None
        offer = item.rendering.offer
        if offer is not None and number == len(item.sheets):
            sheet = self._lens.with_corner(sheets[number - 1], offer.text)
        elif item.corner:
            sheet = self._lens.with_corner(sheets[number - 1], *item.corner)
        elif self._progress.behind and not item.brief:
            sheet = self._lens.with_corner(sheets[number - 1], *_MARKS)
        self._drawn = self._background.mark(sheets[number - 1] if sheet is None else sheet, item)
        return (*sheets[: number - 1], self._drawn, *sheets[number:])

    # ------------------------------------------------------------------ coming and going

    async def lit(self, item: Presentation, done: Done) -> None:
        """The glasses drew its first page."""
        before, self.now, self._behind = self.now, item, None
        item.light(done, self._clock.boot())
        if before is not None and before is not item:
            self._replaced(before, item)
        if self.under is not None and self.under.scene == item.scene:
            self._cut_under(NEWER)
        self.recent.keep(item)
        await self._scenes.keep(item)

    def _replaced(self, before: Presentation, newcomer: Presentation) -> None:
        """Another has the lens: the page before waits under it, or is over."""
        before.lost_at = now = self._clock.boot()
        newcomer_s = 0.0 if newcomer.brief else newcomer.takes_s
        passing = before.brief or before.recalled
        stays = not passing and before.scene != newcomer.scene
        if stays and previous(before.reading(now), newcomer_s=newcomer_s) is Previous.UNDER:
            self._cut_under(NEWER)
            self.under = before
        else:
            before.cut(NEWER, now)

    def _cut_all(self, reason: str) -> None:
        before, self.now = self.now, None
        if before is not None:
            before.cut(reason, self._clock.boot())
        self._cut_under(reason)

    def _cut_under(self, reason: str) -> None:
        item, self.under = self.under, None
        if item is not None:
            item.cut(reason, self._clock.boot())

    async def turn(self, *, tapped: bool = False) -> bool:
        """Go to the next page; False when there is none, or no time for it. Only a tap leads beyond
        the last one.
        """
        item = self.now
        if item is None or item.page >= len(item.sheets) + len(item.on_tap):
            return False
        if not tapped and (item.page == len(item.sheets) or self._over(item)):
            return False
        item.turn(self._clock.boot())
        await self._open(item)
        if await self._draw(item):
            item.seen = max(item.seen, item.page)
            await self._scenes.keep(item)
        else:
            item.miss_page()
        return True

    async def turn_back(self) -> None:
        """Go to the page before; on the first page nothing happens."""
        item = self.now
        if item is None or item.page <= 1:
            return
        item.turn_back(self._clock.boot())
        if await self._draw(item):
            await self._scenes.keep(item)

    async def _open(self, item: Presentation) -> None:
        """Make the pages to which a tap has led; the page before stays on the lens meanwhile."""
        sheet = item.pages[item.page - 1]
        if sheet.opens is not None:
            item.open(await self._make(sheet), self._clock.boot())

    def _over(self, item: Presentation) -> bool:
        return item.leave_at is not None and item.leave_at <= self._clock.boot()

    async def refresh(self) -> None:
        """Note that the page was there for long enough; draw it again if a mark or an offer came
        or went, or if it is the background and that changed.
        """
        item, now = self.now, self._clock.boot()
        if item is None and self.background_due_s() == 0:
            await self._draw_background()
            if self._behind is None:
                await self._scenes.forget()
        if item is None or self.covered:
            return
        if self._unsettled(item) and item.reading(now).long_enough:
            item.settle()
        if item.offered_until is not None and item.offered_until <= now:
            item.offered_until, item.rendering = None, replace(item.rendering, offer=None)
        before, sheets = self._drawn, self.sheets(item)
        if self._drawn != before:
            await self._lens.turn(item.scene, sheets, item.page)

    def end(self) -> None:
        """It had its time."""
        item, self.now = self.now, None
        if item is not None and item.speech is not SpeechState.BEGUN:
            item.settle()

    async def bring_back(self) -> bool:
        """Show what lay under the page that is over; False if there is nothing worth it."""
        item, self.under = self.under, None
        now = self._clock.boot()
        if item is None or item.lost_at is None:
            return False
        if now - item.lost_at >= UNDER_S or item.reading(now).left_s < page_life.LEAST_S:
            item.cut(NEWER, now)
            return False
        item.return_at(now)
        self.now = item
        await self._draw(item)
        await self._scenes.keep(item)
        return True

    async def _draw(self, item: Presentation) -> bool:
        """Draw the page it is at; return whether the glasses did."""
        drawn = await self._lens.turn(item.scene, self.sheets(item), item.page)
        item.drawn_at = self._clock.boot()
        return drawn

    async def clear(self, *, at_once: bool = False) -> None:
        """Darken the lens, as far as that is possible now. The lens before the disk: a gesture's
        echo must not wait.
        """
        try:
            await self._draw_background(at_once=at_once)
        finally:
            if self._behind is None:
                await self._scenes.forget()

    async def wipe(self) -> bool:
        """Clear the lens on request; return whether nothing but the background is on it."""
        self._cut_all("the lens was cleared")
        await self.clear()
        return not self._lens.lit or self._behind is not None

    # ------------------------------------------------------------------ what is there else

    def background_due_s(self) -> float | None:
        """Seconds until the background can be drawn; None if it is there, or something covers
        it.
        """
        if self.now is not None or self.covered:
            return None
        if self._background.page() == self._behind:
            return self._background.stays_s()
        return self._lens.busy_s() if self._background.can_draw() else None

    async def _draw_background(self, *, at_once: bool = False) -> None:
        """Show what is on the lens while no page is: nothing, captions, or that it listens. The
        next daemon clears it, should this one end meanwhile.
        """
        before, self._behind = self._behind, self._background.page()
        if self._behind is None:
            await self._lens.clear(at_once=at_once)
            return
        if before is None:
            await self._scenes.mark_unknown()
        scene, sheet = self._behind
        await self._lens.turn(scene, (sheet,), 1)

    async def forget(self, reason: str) -> None:
        """Give up every page, also those that could be recalled; the lens stays as it is."""
        self._cut_all(reason)
        self.recent.forget()
        await self._scenes.forget()

    async def forget_saved(self, waiting: Iterable[Presentation]) -> None:
        """Keep no more text of what was shown so far, neither for a restart nor to be recalled;
        `waiting` may come back. The lens stays as it is.
        """
        self.recent.forget()
        for item in (self.now, self.under, *waiting):
            if item is not None and item.lit:
                item.forgotten = True
        if self.covered:
            await self._scenes.cover(self.now)
        elif self.now is None and self._behind is None:
            await self._scenes.forget()
        else:
            await self._scenes.mark_unknown()

    async def stop(self) -> None:
        """The daemon stops: the lens says no more that it listens. A page that it was drawing is
        cleared by the next one, as is what the glasses do not clear now.
        """
        self._background.end()
        dark = self.now is None and not self.covered
        with suppress(GlassesAway):
            if dark and self._lens.lit:
                await self.clear(at_once=True)
            elif not self._lens.cut_off:
                await self._take_mark_off()
        if self._lens.cut_off or (dark and self._lens.lit):
            await self._scenes.mark_unknown()

    async def _take_mark_off(self) -> None:
        """Draw the page as it is now; what was to be drawn may not have come to the lens."""
        item = self.now
        if item is not None and not self.covered and self._lens.scene == item.scene:
            sheets = self.sheets(item)
            if self._drawn != self._lens.sheet:
                await self._lens.turn(item.scene, sheets, item.page)

    async def again(self, *, returned: bool = False) -> None:
        """Put the page on the lens again (the same scene, no second rendering), or clear it when
        its time is over.

        `returned`: the glasses just returned; skip it if they were shown something since.
        """
        item, put = self.now, self._lens.restore if returned else self._lens.turn
        if item is not None and item.until > self._clock.boot():
            await put(item.scene, self.sheets(item), item.page)
            item.drawn_at = self._clock.boot()
            return
        self.end()
        if await self.bring_back():
            return
        if self._lens.lit or self._scenes.leftover or self._background.page() is not None:
            self._scenes.leftover, self._behind = False, None
            await self._draw_background()

    # ------------------------------------------------------------------ under a question

    async def cover(self) -> None:
        """A question goes over it."""
        self._covered_at = self._clock.boot()
        await self._scenes.cover(self.now)

    def uncover(self) -> None:
        """The question is over: its time goes on where it was."""
        if self.now is not None and self._covered_at is not None:
            self.now.hold(self._clock.boot() - self._covered_at)
        self._covered_at = None

    async def remove_prompt(self) -> None:
        """Remove the prompt from the lens and from the saved scene."""
        try:
            if self._lens.scene != self._scene():
                with suppress(GlassesAway):
                    await self.again()
        finally:
            if self.now is None and self._behind is not None:
                await self._scenes.mark_unknown()
            elif self.now is None or self.now.brief:
                await self._scenes.forget()
            else:
                await self._scenes.keep(self.now)

    def _scene(self) -> str:
        """Return what is to be on the lens."""
        if self.now is not None:
            return self.now.scene
        return self._behind[0] if self._behind is not None else ""
