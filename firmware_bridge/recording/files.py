"""Recordings as files: a header line, then a line for all that passed, as JSON."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from firmware_bridge.files import write_atomic
from firmware_bridge.packets import MIN_PACKET
from firmware_bridge.recording.lines import Header, Line

MAX_BYTES: Final = 8 * 1024 * 1024
"""Of a file: an hour of pages, or four minutes of sound that is left in."""
VERSION: Final = 1
MTUS: Final = range(23, 518)
"""ATT MTUs that there are (Core spec, vol 3, part F)."""
LARGEST: Final = MTUS.stop - 1 - 3
"""Bytes of a packet at the largest of them."""
_FIX: Final = "correct this line, or take it out; or make a new one: glassd record FILE"
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
"""Some editors put it at the beginning of a file."""

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
    first, *rest = data.removeprefix(_BYTE_ORDER_MARK).splitlines() or [b""]
    header = _read_header(path, first)
    decoded = tuple(
        _decode(path, number, line, Line) for number, line in enumerate(rest, 2) if line.strip()
    )
    if not decoded or not decoded[0].session:
        problem = f"{path}: no connection begins in line 2 ('session')"
        raise BadRecording(f"{problem}; make a new one: glassd record FILE")
    return Recording(header, decoded)


def _read_header(path: Path, line: bytes) -> Header:
    """Read the first line; of another version, say which."""
    try:
        found: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = None
    version = found.get("glassd_recording") if isinstance(found, dict) else None
    if version is None:
        raise BadRecording(f"{path} is no recording of glassd; make one: glassd record FILE")
    if version != VERSION:
        problem = f"{path}: a recording of version {version!r:.20}; this glassd reads {VERSION}"
        raise BadRecording(f"{problem}: use the glassd that made it, or a newer one")
    return _decode(path, 1, line, Header)


def _decode(path: Path, number: int, line: bytes, kind: type[_Kind]) -> _Kind:
    try:
        decoded = msgspec.json.decode(line, type=kind)
        if isinstance(decoded, Line):
            _check(decoded)
        else:
            _need_mtu(decoded.mtu)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise BadRecording(f"{path}, line {number}: {error}; {_FIX}") from None
    return decoded


def _need_mtu(mtu: int) -> None:
    if mtu not in MTUS:
        raise ValueError(f"mtu: {mtu}; {MTUS.start} to {MTUS.stop - 1} are allowed")


def _check(line: Line) -> None:
    """Raise `ValueError` for values that no recording has."""
    if not 0 <= line.zeros <= LARGEST:
        raise ValueError(f"zeros: {line.zeros}; 0 to {LARGEST} are allowed")
    if len(line.content) > LARGEST:
        raise ValueError(f"data: a packet has at most {LARGEST} bytes")
    for name, size in (("session", line.session), ("packet_size", line.packet_size)):
        if size and not MIN_PACKET <= size <= LARGEST:
            raise ValueError(f"{name}: {size}; {MIN_PACKET} to {LARGEST} are allowed")
    if line.is_packet and not line.to:
        raise ValueError("to: missing; a packet goes to glasses or to glassd")
    if not 0 <= line.at < 1e9:
        raise ValueError(f"at: {line.at}; seconds since the first line are needed")
