"""What the lens shows while no page is on it: nothing, that the microphone is on, or captions."""

from edge.display.lens import Sheet
from edge.display.listening import captions, indicator
from edge.display.listening.captions import Captions
from edge.display.listening.indicator import ListeningIndicator
from edge.display.page_life import LensState
from edge.display.presentation import Presentation
from edge.ports import GlassesPort
from firmware_bridge.capabilities import Capabilities, Hardware


class Background:
    """Also marks the pages that are on it: while the microphone is on, the lens says so."""

    def __init__(
        self, glasses: GlassesPort, listening: ListeningIndicator, captioned: Captions
    ) -> None:
        self._glasses = glasses
        self._indicator = listening
        self._captions = captioned

    def state(self) -> LensState:
        if self._captions.on:
            return LensState.CAPTIONS
        return LensState.LISTENING if self._indicator.on else LensState.DARK

    def page(self) -> tuple[str, Sheet] | None:
        """Return its scene and page; None for darkness."""
        known = self._lens()
        if known is None:
            return None
        if not (self._captions.on or self._indicator.on or self._indicator.stays_s):
            return None
        if self._captions.on:
            return captions.SCENE, self._captions.page(known)
        return indicator.SCENE, self._indicator.page(known)

    def stays_s(self) -> float | None:
        """Return for how long the page is still there although nothing needs it; None: it is not,
        or is needed.
        """
        return self._indicator.stays_s or None

    def end(self) -> None:
        """Nothing listens any more."""
        self._captions.end()
        self._indicator.clear()

    def can_draw(self) -> bool:
        return self._glasses.status().ready and self._lens() is not None

    def mark(self, sheet: Sheet, item: Presentation) -> Sheet:
        """Say on another page that the microphone is on."""
        known = self._lens()
        if known is None or not (self._indicator.on or self._captions.on):
            return sheet
        alarm = not (item.call_id or item.brief or item.recalled)
        # who asks for a picture while the microphone is on was told that it is
        before = item.lit and item.lit_at < self._indicator.on_since
        gives_way = self._indicator.on and before
        return self._indicator.mark(
            sheet, known, brief=item.brief, alarm=alarm, gives_way=gives_way
        )

    def _lens(self) -> Capabilities | None:
        known = self._glasses.status().capabilities
        return known if known is not None and known.has(Hardware.DISPLAY) else None
