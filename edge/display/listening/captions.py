"""Live captions: what is said around the wearer, line by line. Only in memory, and not for long."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from edge.core.words.drawable_text import clean
from edge.core.words.wearer_forms import age
from edge.display.lens import Sheet, canvas_of, in_corner, typeface_of
from edge.display.listening.heard_words import break_words
from edge.ports import GlassesPort
from edge.runtime.clock import Clock
from firmware_bridge.capabilities import Capabilities, Hardware
from firmware_bridge.messages import TextLine, Transcript

SCENE: Final = "captions"
FIRST: Final = "Captions are on…"
LAST: Final = "Captions are off."
REPORTED: Final = ("(captions)",)
"""What reports and events say is on the lens."""
KEPT_S: Final = 300.0
"""Seconds after which what was said is forgotten."""
_MOST: Final = 300
"""Utterances that are kept: one a second."""
_LONGEST: Final = 1000
"""Characters of an utterance, its last ones: 30 s of fast speech have about 600."""
HELD_S: Final = 4.0
"""Seconds for which an earlier page stays although somebody speaks."""


@dataclass(slots=True)
class _Caption:
    text: str
    at: float
    rows: tuple[str, ...] = ()
    """Its text for the glasses `on`."""
    on: Capabilities | None = None


class LiveCaptions:
    """Implements `CaptionPage`. Its newest rows roll up; a tap leads to earlier ones.

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
        self.on = False
        self._left: Callable[[], None] = lambda: None
        self._utterances: deque[_Caption] = deque()
        self._speaking = False
        """Whether the last utterance may still change."""
        self._top = 0
        """The row that is the first on the lens; rows only roll up."""
        self._earlier = 0
        """The row above which the wearer reads, after a tap; 0: the newest rows are shown."""
        self._tapped_at = 0.0

    # ------------------------------------------------------------------ the port

    def why_not(self) -> str:
        """See `CaptionPage`."""
        known = self._glasses.status().capabilities
        has_lens = known is not None and known.has(Hardware.DISPLAY)
        return "" if has_lens else "These glasses have no display."

    def begin(self, left: Callable[[], None]) -> None:
        """See `CaptionPage`."""
        self._left = left
        if not self.on:
            self._forget()
            self.on = True
            self._wake()

    def hear(self, said: Transcript) -> None:
        """See `CaptionPage`."""
        text = " ".join(said.text.split())[-_LONGEST:]
        if not self.on or not (text or self._speaking):
            return
        now = self._clock.boot()
        if self._speaking:
            self._utterances[-1] = _Caption(text, now)
        else:
            self._utterances.append(_Caption(text, now))
        self._speaking = not said.final
        self._drop_old(now)
        if self._earlier and now - self._tapped_at >= HELD_S:
            self._earlier = 0
        self._wake()

    def end(self, why: str = "") -> None:
        """See `CaptionPage`."""
        if self.on:
            self._forget()
            self.on = False
            self._wake()
            if why:
                self._say(why)

    # ------------------------------------------------------------------ what the wearer does

    def go_back(self) -> None:
        """Show the rows before those on the lens; before the oldest come the newest again."""
        known = self._glasses.status().capabilities
        if known is not None:
            self._tapped_at = self._clock.boot()
            self._earlier = self._earlier_top(known) if self._earlier else self._top
            self._wake()

    def leave(self) -> None:
        """The wearer wants no more captions."""
        self.end(LAST)
        self._left()

    # ------------------------------------------------------------------ the page

    def page(self, capabilities: Capabilities) -> Sheet:
        """Return what is on the lens now."""
        rows = [row for each in self._utterances for row in _rows(each, capabilities)]
        if self._earlier:
            return self._earlier_page(rows, capabilities)
        canvas = canvas_of(capabilities)
        if not rows:
            first = clean(FIRST, typeface_of(capabilities).has_glyph).text
            return _sheet([first])
        self._top = max(min(self._top, len(rows) - 1), len(rows) - canvas.lines)
        while _bytes(rows[self._top :]) > canvas.page_bytes and self._top < len(rows) - 1:
            self._top += 1
        return _sheet(rows[self._top :])

    def _earlier_page(self, rows: list[str], capabilities: Capabilities) -> Sheet:
        """Return the rows above row `_earlier`, and in the corner how old they are."""
        top = self._earlier_top(capabilities)
        passed, at = 0, self._clock.boot()
        for each in self._utterances:
            passed += len(_rows(each, capabilities))
            if passed > top:
                at = each.at
                break
        sheet = _sheet(rows[top : self._earlier])
        text = age(self._clock.boot() - at)
        return in_corner(sheet, text, capabilities) or sheet

    def _earlier_top(self, capabilities: Capabilities) -> int:
        """Return the first row of the page above row `_earlier`."""
        canvas = canvas_of(capabilities)
        rows = [row for each in self._utterances for row in _rows(each, capabilities)]
        top = max(0, self._earlier - max(1, canvas.lines - 1))
        while _bytes(rows[top : self._earlier]) > canvas.page_bytes and top < self._earlier - 1:
            top += 1
        return top

    # ------------------------------------------------------------------ memory

    def _drop_old(self, now: float) -> None:
        while self._utterances and (
            now - self._utterances[0].at > KEPT_S or len(self._utterances) > _MOST
        ):
            gone = len(self._utterances.popleft().rows)
            self._top = max(0, self._top - gone)
            self._earlier = max(0, self._earlier - gone)

    def _forget(self) -> None:
        self._utterances.clear()
        self._speaking, self._top, self._earlier = False, 0, 0


def _rows(each: _Caption, capabilities: Capabilities) -> tuple[str, ...]:
    if each.on is not capabilities:
        each.rows, each.on = break_words(each.text, capabilities), capabilities
    return each.rows


def _sheet(rows: list[str]) -> Sheet:
    lines = tuple(TextLine(row, text) for row, text in enumerate(rows))
    return Sheet(lines, reported=REPORTED, rolls=True)


def _bytes(rows: list[str]) -> int:
    return sum(len(row.encode()) + 1 for row in rows)
