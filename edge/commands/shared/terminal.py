"""What a person types: a line of standard input, which a script may pipe in; or the answer to a
question at this process's own terminal, where text that is piped in, or typed before the question,
is not taken as an answer.
"""

import contextlib
import os
import select
import sys
import termios
import time
import tty
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, Final, Self

from edge.commands.shared.console import plain
from edge.core.words.visible_text import for_terminal
from edge.runtime.durations import duration

MAX_LINE: Final = 256
TTY: Final = "/dev/tty"
LOOK_S: Final = 1.0
"""Seconds between two checks whether the question was answered elsewhere."""
CHOICES: Final[Mapping[str, tuple[bool, str]]] = {
    "y": (True, "once"),
    "yes": (True, "once"),
    "always": (True, "always"),
    "n": (False, "once"),
    "no": (False, "once"),
    "never": (False, "never"),
}
"""Answers that may be typed: (allow, grant)."""
SIXELS: Final = "4"
"""What a terminal that draws sixels has among its attributes."""
ANNOUNCED_S: Final = 0.5
_INDENT: Final = "  "
_FURTHER: Final = "  | "
COLUMNS: Final = 80
_LEAST_ROWS: Final = 5
_MORE: Final = "-- {} more lines; press Enter to read on: "
_PROMPT: Final = "Run it? Type yes, no, always or never, then Enter (Enter alone: not now): "


def typed(timeout_s: float) -> str | None:
    """Read one line of standard input: "" if it is empty, None at the end of the input. Raise
    TimeoutError. It is read byte by byte, so that what follows stays there for the next question.
    """
    fd, end, line = sys.stdin.fileno(), time.monotonic() + timeout_s, b""
    while not line.endswith(b"\n") and len(line) < MAX_LINE:
        if not select.select([fd], [], [], max(0.0, end - time.monotonic()))[0]:
            raise TimeoutError
        byte = os.read(fd, 1)
        if not byte:
            return line.decode("utf-8", "replace").strip() if line else None
        line += byte
    return line.decode("utf-8", "replace").strip()


def draws_sixels() -> bool:
    """Return whether the terminal announces that it draws sixels; it is asked once."""
    terminal = Terminal.open()
    if terminal is None:
        return False
    with terminal:
        return SIXELS in terminal.attributes()


class Terminal:
    """The controlling terminal, opened separately: standard input may be something else."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def open(cls) -> Self | None:
        """Return the terminal, or None if there is none."""
        try:
            return cls(os.open(TTY, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
        except OSError:
            return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def write(self, text: str) -> None:
        os.write(self._fd, plain(text).encode("utf-8", "replace"))

    def ask(self, question: Mapping[str, Any], over: Callable[[], bool]) -> tuple[bool, str] | None:
        """Show a question and return its answer: a value of `CHOICES`, or None for "not now" and
        once it is `over`.

        A question longer than the screen is shown in parts, so that nobody can say yes to text
        that has scrolled out of sight unread.
        """
        size = self._size()
        shown = particulars(question, columns=size.columns)
        part = max(_LEAST_ROWS, size.lines - 1) if size.lines else 0
        while part and len(shown) >= part:
            self.write("\n".join((*shown[:part], "")))
            shown = shown[part:]
            if self._typed(_MORE.format(len(shown)), over) is None:
                return None
        self.write("\n".join((*shown, "")))
        while (line := self._typed(_PROMPT, over)) and line not in CHOICES:
            pass
        return CHOICES[line] if line else None

    def _typed(self, prompt: str, over: Callable[[], bool]) -> str | None:
        """Return a line typed after this prompt was shown; None once the question is over."""
        with contextlib.suppress(termios.error):  # discard what was typed before the question
            termios.tcflush(self._fd, termios.TCIFLUSH)
        self.write(prompt)
        if (line := self._line(over)) is None:
            self.write("\nanswered elsewhere, or expired\n")
        return line

    def attributes(self) -> frozenset[str]:
        """Return the numbers of what the terminal can do, as it says itself (DA1)."""
        before = termios.tcgetattr(self._fd)
        answer, end = b"", time.monotonic() + ANNOUNCED_S
        try:
            tty.setcbreak(self._fd)
            os.write(self._fd, b"\x1b[c")
            while not answer.endswith(b"c") and len(answer) < MAX_LINE:
                if not select.select([self._fd], [], [], max(0.0, end - time.monotonic()))[0]:
                    return frozenset()
                answer += os.read(self._fd, 1)
        finally:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, before)
        found = answer.decode("ascii", "replace").rpartition("\x1b[?")[2]
        return frozenset(found.rstrip("c").split(";"))

    def _size(self) -> os.terminal_size:
        try:
            return os.get_terminal_size(self._fd)
        except OSError:
            return os.terminal_size((COLUMNS, 0))

    def _line(self, over: Callable[[], bool]) -> str | None:
        while not select.select([self._fd], [], [], LOOK_S)[0]:
            if over():
                return None
        return os.read(self._fd, MAX_LINE).decode("utf-8", "replace").strip().lower()


def particulars(question: Mapping[str, Any], *, columns: int = 0) -> list[str]:
    """Return everything that would run, as lines for a person: who asks, and what the wearer is
    shown too.
    """
    lines = [
        f"call       {_text(question.get('call_id'))}",
        f"tool       {_text(question.get('tool'))}  (from {_text(question.get('origin'))})",
        f"asked by   {_text(question.get('asked_by'))}",
    ]
    if isinstance(question.get("left_s"), int | float):
        lines.append(f"open for   {duration(question['left_s'])}")
    shown = question.get("particulars") or ()
    return [
        *lines,
        "",
        *(row for line in shown for row in rows(_text(for_terminal(str(line))), columns)),
        "",
    ]


def rows(line: str, columns: int) -> list[str]:
    """Indent a line and break it for a terminal of so many columns (0: never); continuation rows
    are marked, so that none looks like a line of its own.
    """
    room = max(10, columns - len(_FURTHER) - 1) if columns else 0
    broken, width = [_INDENT], 0
    for ch in line:
        wide = 2 if unicodedata.east_asian_width(ch) in "WF" else 1
        if room and width + wide > room:
            broken.append(_FURTHER)
            width = 0
        broken[-1] += ch
        width += wide
    return broken


def _text(value: Any) -> str:
    return plain(value if value is not None else "")
