"""How one item is shown: image → text → speech → none, until something is drawn or spoken."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from edge.core.results import LayoutKind, Rendering
from edge.display.drawn_text import DrawnText
from edge.display.lens import CannotShow, LensWriter
from edge.display.lens_plan import plan
from edge.display.presentation import Presentation, SpeechState
from edge.display.voice.speech import SpeechOutput
from edge.ports import GlassesStatus
from firmware_bridge.capabilities import Capabilities, Hardware
from firmware_bridge.errors import CommandRefused, CommandTimeout, LocalMisuse
from firmware_bridge.messages import Done

Lit = Callable[[Presentation, Done], Awaitable[None]]
"""Called when the glasses acknowledged an item's first page and drew something of it."""
REFUSALS: Final = (CommandRefused, CommandTimeout, LocalMisuse)
"""How glasses that are there do not take a page."""


class Fallback:
    """Raises `GlassesAway` wherever the glasses leave."""

    def __init__(self, lens: LensWriter, speech: SpeechOutput, drawn: DrawnText, lit: Lit) -> None:
        self._lens = lens
        self._drawn = drawn
        self._speech = speech
        self._lit = lit

    async def present(self, item: Presentation, capabilities: Capabilities) -> None:
        """Show it on the lens, else speak it, else show its words."""
        why: list[str] = []
        wanted = item.rendering
        if wanted.layout is not None:
            await self._show(item, wanted, capabilities, why)
        sound = wanted.speech or wanted.pcm or (wanted.words if not item.lit else "")
        speak = sound and not wanted.silent and item.speech is SpeechState.NOT_BEGUN
        if speak and self._speech.begin(item, capabilities, why):
            return
        if not item.lit and wanted.layout is None and capabilities.has(Hardware.DISPLAY):
            await self._show_words(item, capabilities, why)
        _end(item, why)

    async def replace_speech(self, item: Presentation, reason: str, status: GlassesStatus) -> None:
        """Speech came to nothing and the lens has nothing yet: the words go there if they can."""
        why, known = [reason], status.capabilities
        untried = item.rendering.layout is None and status.ready
        if untried and known and known.has(Hardware.DISPLAY):
            await self._show_words(item, known, why)
        _end(item, why)

    async def _show(
        self, item: Presentation, wanted: Rendering, capabilities: Capabilities, why: list[str]
    ) -> None:
        try:
            planned = await plan(wanted, capabilities, self._drawn)
        except CannotShow as e:
            why.append(str(e))
            return
        item.sheets, item.remark, item.lost = planned.sheets, planned.remark, planned.lost
        item.downgrade = item.downgrade or planned.downgrade
        await self._first_page(item, why)
        if not item.lit and wanted.layout is LayoutKind.BITMAP_VIEW and not planned.downgrade:
            item.downgrade = "image→text"
            words = replace(wanted, layout=LayoutKind.TEXT_WALL)
            await self._show(item, words, capabilities, why)

    async def _show_words(
        self, item: Presentation, capabilities: Capabilities, why: list[str]
    ) -> None:
        """Write what cannot be spoken."""
        item.downgrade = "speech→display"
        words = replace(item.rendering, layout=LayoutKind.TEXT_WALL)
        await self._show(item, words, capabilities, why)

    async def _first_page(self, item: Presentation, why: list[str]) -> None:
        try:
            done = await self._lens.show(item.scene, item.sheets, 1)
        except CommandTimeout:
            why.append("the glasses did not confirm the page")
        except REFUSALS as e:
            why.append(f"the glasses refused the page: {e}")
        else:
            if done.drawn == 0:
                why.append("nothing was drawn")
            else:
                await self._lit(item, done)


def _end(item: Presentation, why: list[str]) -> None:
    if item.lit:
        item.settle()
    else:
        item.drop(why)
