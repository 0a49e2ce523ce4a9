"""What the lens shows while no page is on it: nothing, that the microphone is on, or captions."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from edge.display.lens import Sheet
from edge.display.page_life import LensState
from edge.display.presentation import Presentation
from edge.ports import GlassesPort
from edge.runtime.clock import Clock

if TYPE_CHECKING:
    from edge.display.listening.pages import ListeningPages


class Background:
    """Nothing until something listens: most daemons never do.

    `wake` says that the lens is to be looked at; `say` shows a short text.
    """

    def __init__(
        self,
        glasses: GlassesPort,
        clock: Clock,
        wake: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:
        self._glasses = glasses
        self._clock = clock
        self._wake = wake
        self._say = say
        self._pages: ListeningPages | None = None

    @property
    def listening(self) -> "ListeningPages":
        """Return what listening shows; it is made at its first use."""
        if self._pages is None:
            from edge.display.listening.pages import ListeningPages  # noqa: PLC0415 - only a daemon that listens needs it

            self._pages = ListeningPages(self._glasses, self._clock, self._wake, self._say)
        return self._pages

    def state(self) -> LensState:
        return LensState.DARK if self._pages is None else self._pages.state()

    def page(self) -> tuple[str, Sheet] | None:
        """Return its scene and page; None for darkness."""
        return None if self._pages is None else self._pages.page()

    def stays_s(self) -> float | None:
        """Return for how long the page is still there although nothing needs it; None: it is not,
        or is needed.
        """
        return None if self._pages is None else self._pages.stays_s()

    def end(self) -> None:
        """Nothing listens any more."""
        if self._pages is not None:
            self._pages.end()

    def can_draw(self) -> bool:
        return self._pages is not None and self._pages.can_draw()

    def mark(self, sheet: Sheet, item: Presentation) -> Sheet:
        """Say on another page that the microphone is on."""
        return sheet if self._pages is None else self._pages.mark(sheet, item)
