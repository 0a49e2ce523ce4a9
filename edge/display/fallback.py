"""How one item is shown: image → text → speech → none, until something is drawn or spoken."""

from contextlib import suppress
from dataclasses import replace
from typing import Final

from edge.core.readability import TextRoute, choose_route, is_mostly_lost
from edge.core.results import LayoutKind, Rendering
from edge.core.words.latin_letters import to_latin
from edge.display.current_page import CurrentPage
from edge.display.drawn_text import DrawnText
from edge.display.lens import CannotShow, LensWriter, Sheet
from edge.display.lens_plan import Fit, LensPlan, plan, unfitted
from edge.display.presentation import Presentation, SpeechState
from edge.display.voice.speech import NO_SPEAKER, SpeechOutput, StoppedBy
from edge.ports import GlassesStatus
from firmware_bridge.capabilities import Capabilities, Hardware
from firmware_bridge.errors import CommandRefused, CommandTimeout, LocalMisuse
from tools_cache.api.tool import Delivery

REFUSALS: Final = (CommandRefused, CommandTimeout, LocalMisuse)
"""How glasses that are there do not take a page."""


class Fallback:
    """Raises `GlassesAway` wherever the glasses leave."""

    def __init__(
        self,
        lens: LensWriter,
        speech: SpeechOutput,
        drawn: DrawnText,
        current: CurrentPage,
        fit: Fit = unfitted,
    ) -> None:
        self._lens = lens
        self._drawn = drawn
        self._fit = fit
        self._speech = speech
        self._current = current

    async def present(self, item: Presentation, capabilities: Capabilities) -> None:
        """Show it on the lens, else speak it, else show its words."""
        why: list[str] = []
        wanted = item.rendering
        if wanted.layout is not None:
            await self._show(item, wanted, capabilities, why)
        sound = wanted.speech or wanted.pcm or (wanted.words if not item.lit else "")
        if sound and not wanted.silent and item.speech is SpeechState.NOT_BEGUN:
            await self._speech.silence(StoppedBy.NEWER)  # two voices at once are no speech
            if self._speech.begin(item, capabilities, why):
                return
        if not item.lit and wanted.layout is None and capabilities.has(Hardware.DISPLAY):
            await self._show_words(item, capabilities, why)
        _end(item, why)

    async def replace_speech(self, item: Presentation, reason: str, status: GlassesStatus) -> None:
        """Speech came to nothing and the lens has nothing yet: the words go there if they can."""
        why = [reason]
        await self._show_instead(item, why, status)
        _end(item, why)

    async def complete_speech(self, item: Presentation, reason: str, status: GlassesStatus) -> None:
        """A part of it had no sound: all of its words go to the lens if they can."""
        await self._show_instead(item, [reason], status)
        if item.lit:
            item.settle()
        else:
            item.downgrade = ""
            item.say(Delivery.SPOKEN, reason, final=True)

    async def _show_instead(
        self, item: Presentation, why: list[str], status: GlassesStatus
    ) -> None:
        known = status.capabilities
        untried = (item.rendering.layout is None or item.lost) and status.ready
        if untried and known and known.has(Hardware.DISPLAY):
            await self._show_words(item, known, why)

    async def _show(
        self, item: Presentation, wanted: Rendering, capabilities: Capabilities, why: list[str]
    ) -> None:
        try:
            planned = await plan(wanted, capabilities, self._drawn, self._fit)
        except CannotShow as e:
            why.append(str(e))
            return
        item.lost = planned.lost
        if planned.lost:
            readable = await self._readable(item, wanted, planned, capabilities)
            if readable is None:
                why.append(planned.remark)
                return
            planned = readable
        item.sheets, item.on_tap, item.remark = planned.sheets, planned.on_tap, planned.remark
        if wanted.offer and self._lens.with_corner(item.sheets[-1], wanted.offer.text) is None:
            item.sheets += (Sheet(dwell_s=wanted.offer.for_s),)
        item.downgrade = item.downgrade or planned.downgrade
        await self._first_page(item, why)
        if not item.lit and wanted.layout is LayoutKind.BITMAP_VIEW and not planned.downgrade:
            item.downgrade = "image→text"
            words = replace(wanted, layout=LayoutKind.TEXT_WALL)
            await self._show(item, words, capabilities, why)

    async def _readable(
        self,
        item: Presentation,
        wanted: Rendering,
        planned: LensPlan,
        capabilities: Capabilities,
    ) -> LensPlan | None:
        """Return how a text with lost characters goes to the lens, if at all: as it is, or with
        Latin letters in their place.
        """
        may_speak = not wanted.silent and item.speech is SpeechState.NOT_BEGUN
        has_voice = may_speak and not self._speech.why_not(capabilities)
        route, readable = await make_readable(
            wanted, planned, capabilities, self._drawn, has_voice=has_voice
        )
        if route is TextRoute.LATIN:
            item.downgrade = "script→latin"
        return readable

    async def _show_words(
        self, item: Presentation, capabilities: Capabilities, why: list[str]
    ) -> None:
        """Write what cannot be spoken."""
        item.downgrade = "speech→display"
        item.unspoken = "; ".join(reason for reason in why if reason != NO_SPEAKER)
        words = replace(item.rendering, layout=LayoutKind.TEXT_WALL)
        await self._show(item, words, capabilities, why)

    async def _first_page(self, item: Presentation, why: list[str]) -> None:
        try:
            done = await self._lens.show(item.scene, self._current.sheets(item), 1)
        except CommandTimeout:
            why.append("the glasses did not confirm the page")
        except REFUSALS as e:
            why.append(f"the glasses refused the page: {e}")
        else:
            if done.drawn == 0:
                why.append("nothing was drawn")
            else:
                await self._current.lit(item, done)


async def make_readable(
    wanted: Rendering,
    planned: LensPlan,
    capabilities: Capabilities,
    drawn: DrawnText,
    *,
    has_voice: bool,
) -> tuple[TextRoute, LensPlan | None]:
    """Return which way a text with lost characters goes, and what of it goes to the lens: with
    Latin letters in their place, as it is if that is no help, or nothing of what is mostly lost.
    """
    if choose_route(wanted.words, planned.lost, has_voice=has_voice) is TextRoute.SPEECH:
        return TextRoute.SPEECH, None
    with suppress(ImportError, CannotShow):  # the library may be missing
        latin = _spelled(wanted, planned.lost)
        made = await plan(latin, capabilities, drawn)
        if latin != wanted and not is_mostly_lost(latin.words, made.lost):
            return TextRoute.LATIN, replace(made, lost=planned.lost, remark=planned.remark)
    mostly = is_mostly_lost(wanted.words, planned.lost)
    return TextRoute.DISPLAY, None if mostly else planned


def _spelled(wanted: Rendering, lost: tuple[str, ...]) -> Rendering:
    """Return it with Latin letters in place of what is lost. Raises ImportError."""
    missing = frozenset("".join(lost))
    whole = "" if wanted.pages else wanted.words
    text, first, second, *pages = (
        to_latin(part, lambda ch: ch not in missing)
        for part in (whole, wanted.first, wanted.second, *wanted.pages)
    )
    return replace(wanted, text=text, first=first, second=second, pages=tuple(pages))


def _end(item: Presentation, why: list[str]) -> None:
    """Drop what was neither shown nor spoken; how long a page stays decides what became of it."""
    if not item.lit:
        item.drop(why)
