"""The audit log: one JSON line per answered call, in bounded, rotated files of whole lines.

It never makes a caller wait or fail. `logging.handlers` cannot do this: RotatingFileHandler leaves
half a line on a full disk, its mode to the umask, and does not see its file being moved away;
QueueHandler drops the newest, uncounted; a full queue makes QueueListener.stop fail.
"""

import errno
import json
import logging
import math
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count, pairwise
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from edge.runtime.clock import Clock
from tools_cache.api.tool import ErrorCode, Json

_log: Final = logging.getLogger(__name__)

KEYS: Final = (
    "ts",
    "callId",
    "toolId",
    "version",
    "registryVersion",
    "category",
    "mode",
    "turnId",
    "idempotencyKey",
    "argsHash",
    "origin",
    "confidence",
    "route",
    "duration",
    "outcome",
    "ok",
    "errorType",
    "errorCode",
    "reason",
    "delivery",
    "attempts",
    "overBudget",
    "turnOverBudget",
    "defaultsApplied",
    "stages",
)
"""On every line, null where there is nothing to say. `duration` is whole milliseconds;
`confidence`, 0 to 1, says how sure the words of a call by voice were.

Nothing else is written, except `args` where asked for: what is not listed cannot leak.
"""
MAX_TEXT: Final = 255
MAX_ARGS: Final = 8 * 1024
"""Characters of arguments worth a line; of longer ones only the length is written."""
FILE_MODE: Final = 0o640
GATHER_S: Final = 0.05
"""The first line waits so long for more: waking the writer takes longer than making a line."""
_EXACT: Final = 2**63
_BLOCK: Final = 64 * 1024
_encode: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode


class AuditBounds(Struct, frozen=True):
    """How much the log may take on disk and in memory."""

    max_bytes: int = 8 * 1024 * 1024
    """One file: about 14,000 calls of 600 bytes, weeks of use."""
    keep: int = 4
    """Older files beside the current one."""
    waiting_bytes: int = 1024 * 1024
    """Some 1,700 lines that wait for a slow disk; more: the oldest are dropped and counted."""


BOUNDS: Final = AuditBounds()


def filtered_line(apps: Mapping[str, Sequence[str]], count: int) -> dict[str, Json]:
    """Return the record of what these glasses leave out: here one sees why no call came."""
    lacks = "; ".join(f"{package} lacks {', '.join(missing)}" for package, missing in apps.items())
    return {
        "outcome": "tools_filtered",
        "errorCode": ErrorCode.HARDWARE_MISSING.value if count else None,
        "reason": f"{count} apps: {lacks}"[:MAX_TEXT],
    }


class AuditLog:
    """Call it with a record (keys of `KEYS`, and `args`), from any thread; it never waits or
    raises.

    `open` starts the writer, which first mends a line that a crash tore; `close` writes what waits.
    A kill costs the lines of the last moment (`GATHER_S`), never the file's shape.
    """

    def __init__(
        self, path: Path, *, clock: Clock, bounds: AuditBounds = BOUNDS, with_args: bool = False
    ) -> None:
        self._file = _File(path, bounds, self._note)
        self._clock = clock
        self._with_args = with_args
        self._waiting_bytes = bounds.waiting_bytes
        self._lines: deque[bytes] = deque()
        self._waiting = 0
        self._unreported = 0
        self._changed = threading.Condition()
        self._idle = False
        self._closing = False
        self._failing = False
        self._thread: threading.Thread | None = None
        self.trouble = ""
        """Why the last line could not be written; empty while lines are written."""
        self.lost = 0
        """Lines that were not written since the start, whatever the reason."""

    def __call__(self, record: Mapping[str, Json]) -> None:
        try:
            line = self._line(record)
        except Exception as e:  # noqa: BLE001 - whatever a record is, the call goes on
            line = self._note(unserialisable=["record"], reason=type(e).__name__)
        with self._changed:
            first = not self._unreported and not self._failing
            lost = self._queue(line)
            if self._idle:
                self._idle = False
                self._changed.notify()
        if lost and first:
            why = "its disk is too slow, lines are lost, the oldest first"
            why = "it is closed" if self._closing else why
            _log.warning("the audit log %s: %s", self._file.path, why)

    def _queue(self, line: bytes) -> int:
        """Add a line; return how many were dropped for it."""
        if self._closing:
            return self._count_lost(1)
        self._lines.append(line)
        self._waiting += len(line)
        before = self.lost
        while self._waiting > self._waiting_bytes:
            self._waiting -= len(self._lines.popleft())
            self._count_lost(1)
        return self.lost - before

    def open(self) -> None:
        """Start writing. Once."""
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        self._thread.start()

    def close(self, timeout_s: float = 2.0) -> None:
        """Write what waits, within this time; later records are lost. Safe to call again."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is None:
            return
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            why = "the audit log is not written to its end: %d lines wait for a slow disk"
            _log.warning(why, len(self._lines))

    # -------------------------------------------------------------- the writer thread

    def _run(self) -> None:
        self._attempt(self._file.take)
        while True:
            with self._changed:
                if not (self._lines or self._closing):
                    self._rest()
                line = self._lines.popleft() if self._lines else b""
                self._waiting -= len(line)
            reported = self._report_lost()
            if not line:
                break
            if not (reported and self._attempt(self._file.append, line)):
                with self._changed:
                    self._count_lost(1)
        self._file.close()

    def _rest(self) -> None:
        """Wait until there are lines, and a moment for more; `close` ends it."""
        self._idle = True
        while not (self._lines or self._closing):
            self._changed.wait()
        self._idle = False
        self._changed.wait_for(lambda: self._closing, GATHER_S)

    def _report_lost(self) -> bool:
        """Write how many lines are missing here; False when not even that can be written."""
        with self._changed:
            lost = self._unreported
        if not lost:
            return True
        if not self._attempt(self._file.append, self._note(lost=lost)):
            return False
        with self._changed:
            self._unreported -= lost
        _log.info("the audit log %s is written again; %d lines were lost", self._file.path, lost)
        return True

    def _attempt(self, do: Callable[..., object], *args: bytes) -> bool:
        try:
            do(*args)
        except Exception as e:  # noqa: BLE001 - the log's trouble costs its lines and nothing else
            level = logging.DEBUG if self._failing else logging.WARNING
            self._failing = True
            self.trouble = f"the audit log {self._file.path}: {getattr(e, 'strerror', None) or e}"
            self._file.close()  # what is opened again is mended
            why = "the audit log %s cannot be written, lines are lost until it can: %s"
            _log.log(level, why, self._file.path, e)
            return False
        if self._failing:
            _log.info("the audit log %s can be written again", self._file.path)
        self._failing, self.trouble = False, ""
        return True

    def _count_lost(self, lines: int) -> int:
        self.lost += lines
        self._unreported += lines
        return lines

    # -------------------------------------------------------------- lines

    def _line(self, record: Mapping[str, Json]) -> bytes:
        fields: dict[str, Any] = dict.fromkeys(KEYS)
        bad = []
        fields["ts"] = self._now()
        for key in KEYS[1:]:
            value = record.get(key)
            if value is None or (type(value) is str and len(value) <= MAX_TEXT):
                fields[key] = value  # as most are
                continue
            try:
                fields[key] = _plain(value)
            except (TypeError, ValueError):
                bad.append(key)
        if isinstance(fields["duration"], float):
            fields["duration"] = round(fields["duration"])
        more: dict[str, Any] = {}
        if self._with_args and "args" in record:
            try:
                more["args"] = _arguments(record["args"])
            except (TypeError, ValueError, RecursionError):
                bad.append("args")
        if bad:
            more["unserialisable"] = bad
        return _encoded({**fields, **more})

    def _note(self, **values: Any) -> bytes:
        """Return a line about the log itself; it has every key, too."""
        return _encoded({**dict.fromkeys(KEYS), "ts": self._now(), **values})

    def _now(self) -> str | None:
        try:
            moment = datetime.fromtimestamp(self._clock.wall(), UTC)
        except (OverflowError, ValueError, OSError):
            return None
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _encoded(fields: Mapping[str, Any]) -> bytes:
    """One line, ASCII: no control character and no half a character gets through."""
    return _encode(fields).encode("ascii") + b"\n"


def _plain(value: Any, *, inner: bool = False) -> Any:
    """Bound a value for a line; a mapping may have one level. Raise TypeError, ValueError."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value[:MAX_TEXT]
    if isinstance(value, int) and -_EXACT <= value < _EXACT:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, Mapping) and not inner and len(value) <= 8:
        return {str(key)[:MAX_TEXT]: _plain(part, inner=True) for key, part in value.items()}
    raise TypeError(f"a {type(value).__name__} is not for a line")


def _arguments(args: Any) -> Any:
    text = _encode(args)
    return {"omittedCharacters": len(text)} if len(text) > MAX_ARGS else json.loads(text)


class _File:
    """The file and its older ones `.1` … `.N`. Every line is one write; it stays whole or goes."""

    def __init__(self, path: Path, bounds: AuditBounds, note: Callable[..., bytes]) -> None:
        self.path = path
        self._max_bytes = bounds.max_bytes
        self._keep = bounds.keep
        self._note = note
        self._fd = -1
        self._identity = (0, 0)

    def append(self, line: bytes) -> None:
        """Raise OSError; then nothing of the line stays."""
        size = self.take()
        if size and size + len(line) > self._max_bytes:
            self._rotate()
            size = self.take()
        self._write(line, size)

    def _write(self, line: bytes, size: int) -> None:
        if os.write(self._fd, line) < len(line):
            os.ftruncate(self._fd, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def take(self) -> int:
        """Open the file that has our name now, unless it is open; return its size."""
        with suppress(FileNotFoundError):
            found = self.path.stat()
            if self._fd >= 0 and (found.st_dev, found.st_ino) == self._identity:
                return found.st_size
        self.close()
        self._fd = _open(self.path)
        held = os.fstat(self._fd)
        self._identity = held.st_dev, held.st_ino
        self._mend(held.st_size)
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with suppress(OSError):  # closed it is all the same
                os.close(fd)

    def _rotate(self) -> None:
        """Oldest first, so that a crash between two steps leaves a gap and loses nothing."""
        self.close()
        names = [self.path, *(self._older(n) for n in range(1, self._keep + 1))]
        for younger, older in reversed(list(pairwise(names))):
            with suppress(FileNotFoundError):
                younger.replace(older)
        if not self._keep:
            self.path.unlink(missing_ok=True)
        for n in count(self._keep + 1):  # from a time when more were kept
            if not self._older(n).exists():
                return
            self._older(n).unlink()

    def _older(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")

    def _mend(self, size: int) -> None:
        """End a last line that was cut short: if whole, with its line end, else as a note."""
        start = _last_line(self._fd, size)
        if start == size:
            return
        rest = os.pread(self._fd, min(size - start, _BLOCK), start)
        if size - start <= _BLOCK and _is_record(rest):
            os.write(self._fd, b"\n")
            return
        why = "the last line of the audit log %s was cut short, by a crash; it is marked as torn"
        _log.warning(why, self.path)
        os.ftruncate(self._fd, start)
        self._write(self._note(torn=rest[:MAX_TEXT].decode("utf-8", "replace")), start)


def _open(path: Path) -> int:
    """Open or create for appending; the mode is set explicitly: a service has umask 0077."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        for directory in reversed([p for p in path.parents if not p.exists()]):
            directory.mkdir(mode=0o700, exist_ok=True)
    fd = os.open(path, flags | os.O_CREAT, FILE_MODE)
    os.fchmod(fd, FILE_MODE)
    return fd


def _last_line(fd: int, size: int) -> int:
    """Find where the bytes behind the last line end begin; `size` when there are none."""
    end = size
    while end > 0:
        begin = max(0, end - _BLOCK)
        found = os.pread(fd, end - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0


def _is_record(text: bytes) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
