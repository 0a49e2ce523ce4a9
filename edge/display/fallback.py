"""How one item is shown: image → text → speech → none, until something is drawn or spoken."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from edge.core.results import LayoutKind, Rendering
from edge.display.lens import CannotShow, LensWriter, plan
from edge.display.presentation import Presentation
from edge.display.speech_output import SpeechOutput
from edge.ports import GlassesStatus
from firmware_bridge.capabilities import Capabilities, Hardware
from firmware_bridge.errors import CommandRefused, CommandTimeout, LocalMisuse
from firmware_bridge.messages import Done

Lit = Callable[[Presentation, Done], Awaitable[None]]
"""Called when the glasses acknowledged an act's first page and drew something of it."""
REFUSALS: Final = (CommandRefused, CommandTimeout, LocalMisuse)
"""How glasses that are there do not take a page."""


class Fallback:
    """Raises `GlassesAway` wherever the glasses leave."""

    def __init__(self, lens: LensWriter, ear: SpeechOutput, lit: Lit) -> None:
        self._lens = lens
        self._ear = ear
        self._lit = lit

    async def climb(self, act: Presentation, capabilities: Capabilities) -> None:
        """Go down the ladder as far as needed: lens first, then the ear."""
        why: list[str] = []
        wanted = act.rendering
        if wanted.layout is not None:
            await self._lens_rung(act, wanted, capabilities, why)
        heard = (
            wanted.speech or wanted.pcm or (wanted.words if not act.lit else "")
        ) and not wanted.silent
        if heard and act.speech == "not yet" and self._ear.begin(act, capabilities, why):
            return
        if not act.lit and wanted.layout is None and capabilities.has(Hardware.DISPLAY):
            await self._words_rung(act, capabilities, why)
        _end(act, why)

    async def unheard(self, act: Presentation, reason: str, status: GlassesStatus) -> None:
        """Speech came to nothing and the lens has nothing yet: the words go there if they can."""
        why = [reason]
        untried = act.rendering.layout is None
        if (
            untried
            and status.ready
            and status.capabilities
            and status.capabilities.has(Hardware.DISPLAY)
        ):
            await self._words_rung(act, status.capabilities, why)
        _end(act, why)

    async def _lens_rung(
        self, act: Presentation, wanted: Rendering, capabilities: Capabilities, why: list[str]
    ) -> None:
        try:
            # a large picture takes tenths of a second to decode
            if wanted.layout is LayoutKind.BITMAP_VIEW:
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

    async def _words_rung(
        self, act: Presentation, capabilities: Capabilities, why: list[str]
    ) -> None:
        """What cannot be said is written."""
        act.downgrade = "speech→display"
        await self._lens_rung(
            act, replace(act.rendering, layout=LayoutKind.TEXT_WALL), capabilities, why
        )

    async def _first_page(self, act: Presentation, why: list[str]) -> None:
        try:
            done = await self._lens.show(act.scene, act.sheets, 1)
        except CommandTimeout:
            why.append("the glasses did not confirm the page")
        except REFUSALS as e:
            why.append(f"the glasses refused the page: {e}")
        else:
            if done.drawn == 0:
                why.append("nothing was drawn")
            else:
                await self._lit(act, done)


def _end(act: Presentation, why: list[str]) -> None:
    if act.lit:
        act.settle()
    else:
        act.drop(why)
