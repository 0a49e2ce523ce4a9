"""What the lens shows of listening: a page where it would be dark, and a mark on other pages."""

from collections.abc import Callable

from edge.display.lens import Sheet
from edge.display.listening import captions, indicator
from edge.display.listening.captions import LiveCaptions
from edge.display.listening.indicator import ListeningIndicator
from edge.display.page_life import LensState
from edge.display.presentation import Presentation
from edge.ports import GlassesPort
from edge.runtime.clock import Clock
from firmware_bridge.capabilities import Capabilities, Hardware


class ListeningPages:
    """See `Background`, which makes it."""

    def __init__(
        self,
        glasses: GlassesPort,
        clock: Clock,
        wake: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:
        self._glasses = glasses
        self.indicator = ListeningIndicator(wake, clock.boot)
        self.captions = LiveCaptions(glasses, clock, wake, say)

    def state(self) -> LensState:
        if self.captions.on:
            return LensState.CAPTIONS
        return LensState.LISTENING if self.indicator.on else LensState.DARK

    def page(self) -> tuple[str, Sheet] | None:
        """See `Background`."""
        known = self._lens()
        if known is None:
            return None
        if not (self.captions.on or self.indicator.on or self.indicator.stays_s):
            return None
        if self.captions.on:
            return captions.SCENE, self.captions.page(known)
        return indicator.SCENE, self.indicator.page(known)

    def stays_s(self) -> float | None:
        """See `Background`."""
        return self.indicator.stays_s or None

    def end(self) -> None:
        """See `Background`."""
        self.captions.end()
        self.indicator.clear()

    def can_draw(self) -> bool:
        return self._glasses.status().ready and self._lens() is not None

    def mark(self, sheet: Sheet, item: Presentation) -> Sheet:
        """See `Background`."""
        known = self._lens()
        if known is None or not (self.indicator.on or self.captions.on):
            return sheet
        alarm = not (item.call_id or item.brief or item.recalled)
        # a picture that is asked for while the microphone is on stays: the lens said so before
        before = item.lit and item.lit_at < self.indicator.on_since
        gives_way = self.indicator.on and before
        return self.indicator.mark(sheet, known, brief=item.brief, alarm=alarm, gives_way=gives_way)

    def _lens(self) -> Capabilities | None:
        known = self._glasses.status().capabilities
        return known if known is not None and known.has(Hardware.DISPLAY) else None
