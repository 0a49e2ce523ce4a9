"""The output of a command: text, tables, colour, JSON, errors. Imports nothing heavy.

Text from other sources is escaped here, so that it cannot move the terminal's cursor.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TextIO

from edge.runtime.errors import UserError

_COLOURS: Final = {"red": 31, "green": 32, "yellow": 33, "dim": 2, "bold": 1}
_PAINTED: Final = re.compile(r"(\x1b\[\d{1,2}m)")
"""What `Screen.paint` writes: a colour, the only escape sequence that is let through."""


class Screen:
    """The output of one command. In JSON mode stdout carries JSON only, errors included."""

    def __init__(self, out: TextIO, err: TextIO, env: Mapping[str, str], *, as_json: bool) -> None:
        self._out = out
        self._err = err
        self.as_json = as_json
        smart = env.get("TERM") != "dumb"
        allowed = smart and not env.get("NO_COLOR")
        self.terminal = out.isatty()
        self.live = smart and self.terminal and err.isatty() and not as_json
        """Whether a person watches: a line of stderr can be shown for a moment and erased again."""
        self._colour = allowed and self.terminal
        self._colour_err = allowed and err.isatty()
        self.ascii = "utf" not in (out.encoding or "").lower()
        self.width = columns(100) if self.terminal else 0

    def line(self, text: str = "") -> None:
        """Write one line for a person."""
        self._out.write(self._fit(harmless(text)) + "\n")

    def picture(self, sequence: str) -> None:
        """Write an escape sequence of our own that draws a picture."""
        self._out.write(sequence + "\n")

    def clear(self) -> None:
        """Clear a terminal; in other outputs the pictures follow one another."""
        if self._colour:
            self._out.write("\x1b[H\x1b[2J")

    def flush(self) -> None:
        self._out.flush()

    def json(self, document: Any, *, lines: bool = False) -> None:
        """Write one JSON document; with `lines` on a single line."""
        indent = 2 if self.terminal and not lines else None
        self._out.write(json_text(document, only_ascii=self.ascii, indent=indent) + "\n")
        if lines:
            self._out.flush()

    def result(self, document: Any, *lines: str) -> int:
        """Write what was done, as JSON or as lines for a person; return the exit code 0."""
        if self.as_json:
            self.json(document)
        else:
            for line in lines:
                self.line(line)
            self.flush()
        return 0

    def progress(self, text: str) -> None:
        """Write a line for a person at once; nothing in JSON mode."""
        if not self.as_json:
            self.line(text)
            self.flush()

    def note(self, text: str) -> None:
        """Write a note to stderr."""
        self._err.write(plain(text) + "\n")
        self._err.flush()

    def overwrite(self, text: str) -> None:
        """Replace what this wrote last, on the same line of stderr; "" erases it. Only where `live`
        is true.
        """
        shown = fitting(plain(text).replace("\n", " "), max(1, self.width - 1))
        self._err.write("\r\x1b[K" + self._fit(shown))
        self._err.flush()

    def prompt(self, question: str) -> None:
        """Write a question to stderr; the answer is typed on the same line."""
        self._err.write(plain(question))
        self._err.flush()

    def error(self, error: UserError) -> None:
        """Write what is wrong and what to do next."""
        if self.as_json:
            self.json({"error": {"code": error.code, "message": error.message, "fix": error.fix}})
            self._out.flush()
            return
        head = "\x1b[31merror:\x1b[0m" if self._colour_err else "error:"
        self._err.write(
            f"{head} {plain(error.message)}\n"
            + (f"next:  {plain(error.fix)}\n" if error.fix else "")
        )

    def paint(self, text: str, colour: str) -> str:
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self._colour and colour else text

    def table(self, rows: Sequence[Sequence[str]], *, indent: str = "") -> None:
        """Write aligned columns; the last one is cut at the width of the terminal."""
        cells = [[plain(cell).replace("\n", " ") for cell in row] for row in rows]
        widths = (
            [max(len(row[i]) for row in cells) for i in range(len(cells[0]) - 1)] if cells else []
        )
        for row in cells:
            text = (
                indent
                + "".join(f"{cell:<{w}}  " for cell, w in zip(row, widths, strict=False))
                + row[-1]
            )
            self.line(cut(text, self.width).rstrip())

    def _fit(self, text: str) -> str:
        return text.encode("ascii", "replace").decode() if self.ascii else text


def os_problem(error: OSError) -> str:
    """Return what failed as text: which file, and why."""
    if isinstance(error, FileExistsError | NotADirectoryError) and error.filename:
        return f"{error.filename}: is a file, but a folder is needed"
    return (
        f"{error.filename}: {(error.strerror or '').lower() or error}"
        if error.filename
        else str(error)
    )


def plain(text: object) -> str:
    """Return the text with control characters, other than line ends, as visible escapes."""
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode()
        for c in str(text)
    )


def harmless(text: str) -> str:
    """Escape as `plain` does, but keep colours."""
    if text.isprintable():
        return text
    return "".join(
        part if number % 2 else plain(part) for number, part in enumerate(_PAINTED.split(text))
    )


def json_text(value: Any, *, only_ascii: bool = False, indent: int | None = None) -> str:
    """Return JSON in which every unprintable character is an escape, so that it can neither move
    the cursor nor change the direction of writing.
    """
    text = json.dumps(value, ensure_ascii=only_ascii, indent=indent)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def cut(text: str, width: int) -> str:
    """Shorten to a width; 0 means unlimited."""
    return text if not width or len(text) <= width else text[: width - 1] + "…"


def fitting(text: str, columns: int) -> str:
    """Shorten a text to so many columns of a terminal, where some characters take two or none."""
    taken = 0
    for at, ch in enumerate(text):
        taken += columns_of(ch)
        if taken > columns:
            return text[:at]
    return text


def columns_of(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    import unicodedata  # noqa: PLC0415 - only a terminal has columns

    return sum(
        1 + (unicodedata.east_asian_width(ch) in "WF")
        for ch in text
        if unicodedata.category(ch) not in ("Mn", "Me", "Cf")
    )


def for_people(value: Any) -> str:
    """Return any JSON value for a person: text as it is, the rest as indented JSON."""
    return plain(value if isinstance(value, str) else json_text(value, indent=2))


def columns(unknown: int) -> int:
    """Return the width of the terminal, as shutil does: that imports three compression libraries.
    `unknown`: without a terminal.
    """
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    out = sys.__stdout__
    try:
        return (os.get_terminal_size(out.fileno()).columns if out is not None else 0) or unknown
    except (ValueError, OSError):
        return unknown


def announcer(screen: Screen, what: str) -> Callable[[Mapping[str, Any]], None]:
    """Return the function that a simulator or a cloud calls when it is up: it writes where it can
    be reached, as one JSON line for programs or one short line for people.
    """

    def announce(facts: Mapping[str, Any]) -> None:
        if screen.as_json:
            screen.json(dict(facts), lines=True)
            return
        shown = (key for key in facts if key != "event" and facts[key] not in (None, ""))
        where = ", ".join(f"{key} {plain(facts[key])}" for key in shown)
        screen.progress(f"{what} is up: {where} (Ctrl-C ends it)")

    return announce
