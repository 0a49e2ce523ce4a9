"""Recordings as files: a header line, then a line for all that passed, as JSON."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from firmware_bridge.files import write_atomic
from firmware_bridge.recording.lines import Header, Line

MAX_BYTES: Final = 8 * 1024 * 1024
"""Of a file: an hour of pages, or four minutes of sound that is left in."""
MAX_ZEROS: Final = 4 * 1024 * 1024


_Kind = TypeVar("_Kind", Header, Line)


class BadRecording(ValueError):
    """A file that is no recording; the text names the line, the problem, and what to do."""


class Recording(Struct, frozen=True):
    """One file."""

    header: Header
    lines: tuple[Line, ...]

    def sessions(self) -> Iterator[tuple[Line, ...]]:
        """Yield the lines of each connection, from its beginning on."""
        starts = [at for at, line in enumerate(self.lines) if line.session]
        for start, end in zip(starts, [*starts[1:], len(self.lines)], strict=True):
            yield self.lines[start:end]


def write(path: Path, recording: Recording) -> None:
    """Write a file that only its owner can read, in one step. Raise OSError."""
    encoded = (msgspec.json.encode(each) for each in (recording.header, *recording.lines))
    write_atomic(path, b"\n".join(encoded) + b"\n")


def read(path: Path) -> Recording:
    """Read a file. Raise `BadRecording`, OSError."""
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise BadRecording(f"{path}: more than {MAX_BYTES} bytes; record a shorter session")
    first, *rest = data.splitlines() or [b""]
    header = _decode(path, 1, first, Header)
    decoded = tuple(
        _decode(path, number, line, Line) for number, line in enumerate(rest, 2) if line.strip()
    )
    return Recording(header, decoded)


def _decode(path: Path, number: int, line: bytes, kind: type[_Kind]) -> _Kind:
    try:
        decoded = msgspec.json.decode(line, type=kind)
        if isinstance(decoded, Line):
            _check(decoded)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        fix = "make a new one: glassd record FILE"
        raise BadRecording(f"{path}, line {number}: {error}; {fix}") from None
    return decoded


def _check(line: Line) -> None:
    """Raise `ValueError` for values that no recording has."""
    if not 0 <= line.zeros <= MAX_ZEROS:
        raise ValueError(f"zeros: {line.zeros}; 0 to {MAX_ZEROS} are allowed")
    line.content  # noqa: B018 - raises if it is no hex
    if line.is_packet and not line.to:
        raise ValueError("to: missing; a packet goes to glasses or to glassd")
    if not 0 <= line.at < 1e9:
        raise ValueError(f"at: {line.at}; seconds since the first line are needed")
