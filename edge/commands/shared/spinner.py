"""A line on a terminal that says what a command waits for, and is erased afterwards."""

import contextlib
import threading
import time
from types import TracebackType
from typing import Final, Self

from edge.commands.shared.console import Screen
from edge.runtime.durations import duration

FIRST_S: Final = 0.3
"""What takes no longer shows nothing."""
REDRAW_S: Final = 0.125
FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
ASCII_FRAMES: Final = "|/-\\"


class Spinner:
    """Shown while the `with` block runs, on a terminal only. A thread draws it, because the block
    waits for the daemon.
    """

    def __init__(self, screen: Screen, title: str) -> None:
        self._screen = screen
        self._title = title
        self._text = ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._draw, daemon=True)

    def __enter__(self) -> Self:
        if self._screen.live:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._screen.live:
            self._thread.join()

    def say(self, text: str) -> None:
        """Show this progress from now on."""
        self._text = text

    def _draw(self) -> None:
        began, frames = time.monotonic(), ASCII_FRAMES if self._screen.ascii else FRAMES
        if self._over.wait(FIRST_S):
            return
        number = 0
        with contextlib.suppress(OSError, ValueError):  # the terminal was closed
            while not self._over.is_set():
                waited = duration(time.monotonic() - began)
                parts = (f"{frames[number % len(frames)]} {self._title}", self._text, waited)
                self._screen.overwrite(" · ".join(filter(None, parts)))
                number += 1
                self._over.wait(REDRAW_S)
            self._screen.overwrite("")
