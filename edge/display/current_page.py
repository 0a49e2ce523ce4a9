"""The page on the lens: which one, until when, its saved scene, and what a prompt does to it."""

from contextlib import suppress
from typing import Final

from edge.display.lens import LensWriter
from edge.display.presentation import Presentation, Told
from edge.display.saved_scene import SavedScenes
from edge.ports import GlassesAway
from edge.runtime.clock import Clock
from firmware_bridge.messages import Done

NEWER: Final = "by something newer"


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

    async def recall(self, told: Told) -> bool:
        """Take up what the last daemon was showing; return whether it ended during a prompt."""
        self.now = await self._scenes.recall(told)
        return self._scenes.asked

    @property
    def covered(self) -> bool:
        return self._covered_at is not None

    def due_at(self) -> float | None:
        """When its page is over (boot clock); None while nobody can read it."""
        return self.now.until if self.now is not None and not self.covered else None

    def outranks(self, act: Presentation) -> bool:
        return self.now is not None and act.rank < self.now.rank

    # ------------------------------------------------------------------ coming and going

    async def lit(self, act: Presentation, done: Done) -> None:
        """The glasses drew its first page."""
        previous, self.now = self.now, act
        if previous is not None and previous is not act:
            previous.supersede(NEWER)
        act.light(done, self._clock.boot())
        await self._scenes.keep(act)

    async def turn(self) -> bool:
        """Go to the next page; False when there is none, or no time for it."""
        act = self.now
        if (
            act is None
            or act.page >= len(act.sheets)
            or (act.leave_at is not None and act.leave_at <= self._clock.boot())
        ):
            return False
        act.turn(self._clock.boot())
        if await self._lens.turn(act.scene, act.sheets, act.page):
            act.seen = max(act.seen, act.page)
            await self._scenes.keep(act)
        return True

    def end(self) -> None:
        """It had its time."""
        act, self.now = self.now, None
        if act is not None and act.speech != "begun":
            act.settle()

    async def dark(self, *, at_once: bool = False) -> None:
        """Darken the lens. The lens before the disk: a gesture's echo must not wait."""
        try:
            await self._lens.clear(at_once=at_once)
        finally:
            await self._scenes.forget()

    async def wipe(self) -> bool:
        """Somebody wants the lens dark: whether it is."""
        previous, self.now = self.now, None
        if previous is not None:
            previous.supersede("the lens was cleared")
        await self.dark()
        return not self._lens.lit

    async def again(self, *, returned: bool = False) -> None:
        """Put the page on the lens again (the same scene, no second rendering), or clear it when
        its time is over.

        `returned`: the glasses just returned; skip it if they were shown something since.
        """
        act, put = self.now, self._lens.restore if returned else self._lens.turn
        if act is not None and act.until > self._clock.boot():
            await put(act.scene, act.sheets, act.page)
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

    async def bare(self) -> None:
        """Let no question be on the lens any more, nor in the note."""
        try:
            if self._lens.scene != (self.now.scene if self.now is not None else ""):
                with suppress(GlassesAway):
                    await self.again()
        finally:
            await (
                self._scenes.forget()
                if self.now is None or self.now.brief
                else self._scenes.keep(self.now)
            )
