"""The page on the lens: which one, until when, its saved scene, and what a prompt does to it."""

from contextlib import suppress

from edge.display.lens import LensWriter
from edge.display.presentation import NEWER, OnReport, Presentation, SpeechState
from edge.display.saved_scene import SavedScenes
from edge.ports import GlassesAway
from edge.runtime.clock import Clock
from firmware_bridge.messages import Done


class CurrentPage:
    """`now` is what the wearer reads, or read before a prompt covered it or the glasses left.

    Methods raise `GlassesAway`.
    """

    def __init__(self, lens: LensWriter, scenes: SavedScenes, clock: Clock) -> None:
        self._lens = lens
        self._scenes = scenes
        self._clock = clock
        self._covered_at: float | None = None
        self.now: Presentation | None = None

    async def recall(self, on_report: OnReport) -> bool:
        """Take up what the last daemon was showing; return whether it ended during a prompt."""
        self.now = await self._scenes.recall(on_report)
        return self._scenes.asked

    @property
    def covered(self) -> bool:
        return self._covered_at is not None

    def due_at(self) -> float | None:
        """When its page is over (boot clock); None while nobody can read it."""
        return self.now.until if self.now is not None and not self.covered else None

    def outranks(self, item: Presentation) -> bool:
        return self.now is not None and item.rank < self.now.rank

    # ------------------------------------------------------------------ coming and going

    async def lit(self, item: Presentation, done: Done) -> None:
        """The glasses drew its first page."""
        previous, self.now = self.now, item
        if previous is not None and previous is not item:
            previous.supersede(NEWER)
        item.light(done, self._clock.boot())
        await self._scenes.keep(item)

    async def turn(self) -> bool:
        """Go to the next page; False when there is none, or no time for it."""
        item = self.now
        if (
            item is None
            or item.page >= len(item.sheets)
            or (item.leave_at is not None and item.leave_at <= self._clock.boot())
        ):
            return False
        item.turn(self._clock.boot())
        if await self._lens.turn(item.scene, item.sheets, item.page):
            item.seen = max(item.seen, item.page)
            await self._scenes.keep(item)
        return True

    def end(self) -> None:
        """It had its time."""
        item, self.now = self.now, None
        if item is not None and item.speech is not SpeechState.BEGUN:
            item.settle()

    async def clear(self, *, at_once: bool = False) -> None:
        """Darken the lens. The lens before the disk: a gesture's echo must not wait."""
        try:
            await self._lens.clear(at_once=at_once)
        finally:
            await self._scenes.forget()

    async def wipe(self) -> bool:
        """Clear the lens on request; return whether it is dark."""
        previous, self.now = self.now, None
        if previous is not None:
            previous.supersede("the lens was cleared")
        await self.clear()
        return not self._lens.lit

    async def again(self, *, returned: bool = False) -> None:
        """Put the page on the lens again (the same scene, no second rendering), or clear it when
        its time is over.

        `returned`: the glasses just returned; skip it if they were shown something since.
        """
        item, put = self.now, self._lens.restore if returned else self._lens.turn
        if item is not None and item.until > self._clock.boot():
            await put(item.scene, item.sheets, item.page)
        elif self._lens.lit or self._scenes.leftover:
            self.end()
            self._scenes.leftover = False
            await self._lens.clear()

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
            if self._lens.scene != (self.now.scene if self.now is not None else ""):
                with suppress(GlassesAway):
                    await self.again()
        finally:
            if self.now is None or self.now.brief:
                await self._scenes.forget()
            else:
                await self._scenes.keep(self.now)
