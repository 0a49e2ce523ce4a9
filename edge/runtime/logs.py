"""The form of log lines: one event a line, `key=value` extras, journald's priorities.

Nothing secret, and nothing that moves a cursor, gets through.
"""

import logging
import os
import re
import sys
from collections.abc import Mapping
from typing import Any, Final, TextIO

MAX_REMOTE: Final = 200
"""Characters of somebody else's text worth a log line."""
MAX_LINE: Final = 4000

_PRIORITY: Final = (
    (logging.CRITICAL, 2),
    (logging.ERROR, 3),
    (logging.WARNING, 4),
    (logging.INFO, 6),
)
_DEBUG_PRIORITY: Final = 7
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_SECRET_PAIR: Final = re.compile(
    r"(?i)\b(password|passwd|passkey|pin|secret|token|api[-_]?key|authorization)\b(['\"]?\s*[=:]\s*['\"]?)((?:bearer|basic)\s+)?[^\s'\",;}]+"
)
_BEARER: Final = re.compile(r"(?i)\b(bearer)\s+[A-Za-z0-9._~+/=-]{8,}")
_USERINFO: Final = re.compile(r"(://)[^/\s@:]*:[^/\s@]+@")
_NOISY: Final = ("bleak", "bumble", "httpx", "httpcore", "mqtt", "asyncio")
"""Libraries whose INFO is a packet dump; they speak from WARNING on, unless we debug."""


def clean(text: object, limit: int = MAX_REMOTE) -> str:
    """Make somebody else's text fit for a log line: one line, printable, short."""
    start = str(text)[: limit + 1]
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in start)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


class Redactor:
    """Removes secrets from lines: those made known here, and what looks like one."""

    def __init__(self) -> None:
        self._known: tuple[str, ...] = ()

    def hide(self, secret: str | None) -> None:
        """Never log this text. Texts under 4 characters would hide ordinary words: ignored."""
        if secret and len(secret) >= 4 and secret not in self._known:
            # The longest first: of a secret that begins like another one no end may be left.
            self._known = tuple(sorted((*self._known, secret), key=len, reverse=True))

    def __call__(self, line: str) -> str:
        for secret in self._known:
            line = line.replace(secret, "***")
        line = _SECRET_PAIR.sub(r"\1\2\3***", line)
        return _USERINFO.sub(r"\1***@", _BEARER.sub(r"\1 ***", line))


class LineFormatter(logging.Formatter):
    """`logger: message key=value`, after the time on a terminal or a priority for journald."""

    def __init__(self, redact: Redactor, *, journal: bool) -> None:
        super().__init__(datefmt="%H:%M:%S")
        self._redact = redact
        self._journal = journal

    def format(self, record: logging.LogRecord) -> str:
        """Lines of a traceback stay lines; every other line end is written as an escape."""
        line = f"{record.name}: {clean(record.getMessage(), MAX_LINE)}{_extras(record)}"
        if not self._journal:
            line = f"{self.formatTime(record, self.datefmt)} {record.levelname:<7} {line}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        line = self._redact(line)
        if not self._journal:
            return line
        mark = f"<{priority(record.levelno)}>"
        return "\n".join(mark + part for part in line.split("\n"))


def priority(level: int) -> int:
    """Return syslog's number for a level."""
    return next((p for floor, p in _PRIORITY if level >= floor), _DEBUG_PRIORITY)


def _extras(record: logging.LogRecord) -> str:
    extras = {k: v for k, v in vars(record).items() if k not in _STANDARD and not k.startswith("_")}
    return "".join(f" {key}={_value(value)}" for key, value in extras.items())


def _value(value: Any) -> str:
    text = clean(value)
    return f'"{text}"' if not text or any(c in text for c in ' "=') else text


def is_journal(stream: TextIO, env: Mapping[str, str]) -> bool:
    """Return whether this stream is journald's (`$JOURNAL_STREAM` = device:inode)."""
    try:
        found = os.fstat(stream.fileno())
    except (OSError, ValueError, AttributeError):
        return False
    return env.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"


def set_up(level: str, env: Mapping[str, str], *, stream: TextIO | None = None) -> Redactor:
    """Send all logging to stderr in our form; return the redactor that secrets are given to."""
    out = sys.stderr if stream is None else stream
    redact = Redactor()
    handler = logging.StreamHandler(out)
    handler.setFormatter(LineFormatter(redact, journal=is_journal(out, env)))
    logging.getLogger().handlers[:] = [handler]
    set_level(level)
    return redact


def set_level(level: str) -> None:
    """Log from this level on."""
    logging.getLogger().setLevel(level.upper())
    for name in _NOISY:
        # The link logs once a cycle what bleak warns of.
        quiet = logging.ERROR if name == "bleak" else logging.WARNING
        logging.getLogger(name).setLevel(logging.NOTSET if level == "debug" else quiet)
