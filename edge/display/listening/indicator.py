"""Says on the lens that the microphone is on: as a page where it would be dark, else as a mark on
the page that is there.
"""

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from edge.core.words.drawable_text import clean
from edge.display.lens import Sheet, canvas_of, in_corner, typeface_of
from edge.display.listening.heard_words import break_words
from firmware_bridge.capabilities import Capabilities
from firmware_bridge.messages import TextLine

SCENE: Final = "listening"
HEADING: Final = "Listening…"
_MARKS: Final = ("Listening…", "Listening...", "mic")
"""What says it in a corner, the longest that fits."""
ANSWER_S: Final = 0.5
"""A tool of this machine answers sooner; darkness in between would be a flash. The heading stays as
long: to draw the words without it would hold up the answer by the pause that a panel needs.
"""
_MOST: Final = 600
"""Characters of the words so far: the last ones."""


class ListeningIndicator:
    """Implements `ListeningMark`. `wake` says that the lens is to be looked at."""

    def __init__(self, wake: Callable[[], None], now: Callable[[], float]) -> None:
        self._wake = wake
        self._now = now
        self._dark_at = float("-inf")
        self.on = False
        self.on_since = 0.0
        """When the microphone went on last (boot clock)."""
        self._words = ""

    def show(self, text: str = "") -> None:
        """See `ListeningMark`."""
        self._set(on=True, words=" ".join(text.split())[-_MOST:])

    def clear(self, *, answered: bool = False) -> None:
        """See `ListeningMark`."""
        if self.on:
            self._dark_at = self._now() + ANSWER_S if answered else float("-inf")
        self._set(on=False, words=self._words if answered else "")

    @property
    def stays_s(self) -> float:
        """Seconds for which its page stays although the microphone is off; 0: it does not."""
        return 0.0 if self.on else max(0.0, self._dark_at - self._now())

    def _set(self, *, on: bool, words: str) -> None:
        if on and not self.on:
            self.on_since = self._now()
        if (on, words) != (self.on, self._words):
            self.on, self._words = on, words
            self._wake()

    def page(self, capabilities: Capabilities) -> Sheet:
        """Return the page for a lens that would be dark: the words so far under the heading, the
        last of them if there are too many.
        """
        canvas = canvas_of(capabilities)
        heading = clean(HEADING, typeface_of(capabilities).has_glyph).text
        rows = [heading, *self._last_rows(capabilities, canvas.lines - 1)]
        while len(rows) > 2 and sum(len(row.encode()) + 1 for row in rows) > canvas.page_bytes:
            del rows[1]
        lines = tuple(TextLine(row, text) for row, text in enumerate(rows))
        return Sheet(lines, reported=(heading,))

    def mark(
        self, sheet: Sheet, capabilities: Capabilities, *, brief: bool, alarm: bool, gives_way: bool
    ) -> Sheet:
        """Return a page that says so too: under a brief one the words so far; where the page has no
        room, its last row is shortened, or a picture that `gives_way` is replaced. An alarm is left
        as it is.
        """
        if brief:
            sheet = self._with_words(sheet, capabilities)
        for text in _MARKS:
            if (marked := in_corner(sheet, text, capabilities)) is not None:
                said = marked.reported
                return marked if said is None else replace(marked, reported=(*said, text))
        if alarm:
            return sheet
        if (shortened := _shorten(sheet, capabilities)) is not None:
            return shortened
        return replace(self.page(capabilities), dwell_s=sheet.dwell_s) if gives_way else sheet

    def _with_words(self, sheet: Sheet, capabilities: Capabilities) -> Sheet:
        """Put the last row of the words above the last row of the lens, if that is free."""
        row = canvas_of(capabilities).lines - 2
        last = self._last_rows(capabilities, 1)
        if not last or sheet.tiles or any(line.row >= row for line in sheet.lines):
            return sheet
        lines = (*sheet.lines, TextLine(row, last[0]))
        return replace(sheet, lines=lines, reported=sheet.rows)

    def _last_rows(self, capabilities: Capabilities, most: int) -> tuple[str, ...]:
        rows = break_words(self._words, capabilities) if self._words else ()
        return rows[-most:] if most > 0 else ()


def _shorten(sheet: Sheet, capabilities: Capabilities) -> Sheet | None:
    """Shorten the longest text of the last row until the mark has room; None where there is no such
    text.
    """
    row = canvas_of(capabilities).lines - 1
    there = [line for line in sheet.lines if line.row == row]
    if not there:
        return None
    longest = max(there, key=lambda line: len(line.text))
    for cut in range(len(longest.text) - 1, 0, -1):
        text = clean(f"{longest.text[:cut].rstrip()}…", typeface_of(capabilities).has_glyph).text
        shorter = replace(longest, text=text)
        lines = tuple(shorter if line is longest else line for line in sheet.lines)
        for mark in _MARKS:
            marked = in_corner(replace(sheet, lines=lines), mark, capabilities)
            if marked is not None:
                return marked
    return None
