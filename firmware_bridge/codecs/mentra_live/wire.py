"""Mentra Live: the frames of its Bluetooth chip ("K900"). UUIDs and names are in `model.py`.

Sources: J25 AugmentOS of July 2025 (`MentraLiveSGC.java`, `K900ProtocolUtils.java`,
`K900BluetoothManager.java`), M26 MentraOS of March 2026 (the same, and `MessageChunker.java`), NEW
later MentraOS, DOC the command reference of MentraOS' `asg_client`, which runs on the glasses.

A frame is `23 23 | type | length 2 | payload | 24 24`. Phones write the length little-endian,
glasses send it big-endian (J25, M26); later builds send it little-endian (NEW): a reader takes the
order for which the end is where it should be. Notifications have at most 253 bytes, so frames are
joined from several.
"""

import struct
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final, Literal

from msgspec import Struct

from firmware_bridge.errors import RemoteViolation, Violation

FILES: Final = "files"
TO_FILES: Final = "to_files"
MICROPHONE: Final = "microphone"
SPEAKER: Final = "speaker"
"""Names of the channels: file packets, what a phone writes about them, sound of the microphone,
sound to the speaker.
"""

MTU: Final = 512
CHIP_MTU: Final = 256
"""The ATT MTU that glasses are told: their chip cuts notifications at 253 bytes (M26)."""
MAX_NOTIFICATION: Final = 253
MAX_JSON: Final = 512
"""Bytes of one JSON payload (NEW), and of the receiver's buffer in the glasses (J25)."""
FILE_PACK: Final = 400
MAX_FILE_PACK: Final = 800
"""Bytes of data in one file packet: at most 400 over GATT (M26); 474 and 800 in NEW."""
FILE_OVERHEAD: Final = 32
BATCHED: Final = 0x01
"""Flag of a file packet: the phone shall say which packet it expects next (NEW)."""
BATCH: Final = 8
"""Packets after which it says so."""
STALL_S: Final = 1.0
"""Seconds after which the rest of a frame does not come any more: a notification was lost."""

ByteOrder = Literal["little", "big"]
_START: Final = b"##"
_END: Final = b"$$"
_HEAD: Final = 5
_FILE_HEAD: Final = struct.Struct(">HHI16sH")
_FILE_DATA_AT: Final = 3 + _FILE_HEAD.size
_FRAGMENT: Final = struct.Struct("<BHBBH")
FIRST, LAST, WAKE, HANDSHAKE, WANTS_ACK = 0x01, 0x02, 0x04, 0x08, 0x10
"""Flags of a fragment."""
MAX_FRAGMENT: Final = 480


class Kind(IntEnum):
    """The type of a frame."""

    JSON = 0x30
    PHOTO = 0x31
    VIDEO = 0x32
    MUSIC = 0x33
    AUDIO = 0x34
    DATA = 0x35
    BINARY = 0x40
    """A fragment of a message, in later builds (NEW)"""


class FilePacket(Struct, frozen=True):
    """One packet of a file; numbers on the wire are big-endian."""

    kind: Kind
    index: int
    file_size: int
    name: str
    data: bytes
    flags: int = 0

    def pack(self) -> bytes:
        """Return the frame: header, data, sum of the data modulo 256."""
        head = _FILE_HEAD.pack(
            len(self.data), self.index, self.file_size, self.name.encode(), self.flags
        )
        check = bytes((sum(self.data) & 0xFF,))
        return b"".join((_START, bytes((self.kind,)), head, self.data, check, _END))


class Fragment(Struct, frozen=True):
    """One fragment of a message of later builds ("v2"); numbers on the wire are little-endian."""

    message: int
    index: int
    count: int
    payload: bytes
    flags: int = 0

    def pack(self) -> bytes:
        """Return the frame."""
        inner = _FRAGMENT.pack(self.flags, self.message, self.index, self.count, len(self.payload))
        body = inner + self.payload
        kind, size = bytes((Kind.BINARY,)), len(body).to_bytes(2, "little")
        return b"".join((_START, kind, size, body, _END))


Frame = bytes | FilePacket | Fragment
"""A JSON payload, a file packet or a fragment."""


def json_frame(payload: bytes, order: ByteOrder) -> bytes:
    """Return the frame of a JSON payload; its size was checked by the caller."""
    return b"".join((_START, bytes((Kind.JSON,)), len(payload).to_bytes(2, order), payload, _END))


class FrameReader:
    """Joins notifications or writes to frames. What belongs to no frame is skipped and counted."""

    def __init__(self, *orders: ByteOrder) -> None:
        self._orders = orders
        self._buffer = bytearray()
        self._heard_at = 0.0
        self.skipped = 0
        """Bytes that belonged to no frame, since this was last set to 0."""

    def add(self, data: bytes, now: float) -> list[Frame]:
        """Return the frames that are complete now."""
        late = now - self._heard_at > STALL_S
        if self._buffer and (late or _measure_json(data, self._orders) == len(data)):
            self.skipped += len(self._buffer)
            self._buffer.clear()
        self._heard_at = now
        self._buffer += data
        found: list[Frame] = []
        while (size := self._next_size()) > 0:
            found.append(_parse(bytes(self._buffer[:size])))
            del self._buffer[:size]
        return found

    def feed(
        self, data: bytes, now: float, take: Callable[[Frame, float], None], *, lenient: bool
    ) -> None:
        """Give each complete frame to `take`. Raises the last `RemoteViolation` of it, or one for
        skipped bytes; `lenient`: these are expected.
        """
        violation: RemoteViolation | None = None
        for frame in self.add(data, now):
            try:
                take(frame, now)
            except RemoteViolation as bad:
                violation = bad
        skipped, self.skipped = self.skipped, 0
        if violation is not None:
            raise violation
        if skipped and not lenient:
            raise RemoteViolation(Violation.UNKNOWN_FRAME, f"{skipped} bytes outside any frame")

    def _next_size(self) -> int:
        """Skip to the next frame and return its size; 0 if it is not whole yet."""
        buffer = self._buffer
        while True:
            at = buffer.find(_START)
            if at < 0:
                at = len(buffer) - buffer.endswith(_START[:1])
            self.skipped += at
            del buffer[:at]
            if len(buffer) <= len(_START):
                return 0
            measure = _MEASURES.get(buffer[2], _measure_file)
            if (size := measure(buffer, self._orders)) >= 0:
                return size
            self.skipped += 1
            del buffer[:1]


def _measure_json(data: bytes | bytearray, orders: tuple[ByteOrder, ...]) -> int:
    """Return the size of the JSON frame at the beginning; 0: not whole; -1: it is none."""
    if len(data) < _HEAD:
        return 0
    if data[:3] != _START + bytes((Kind.JSON,)):
        return -1
    partial = False
    for size in sorted({int.from_bytes(data[3:_HEAD], order) for order in orders}):
        end = _HEAD + size
        if not 0 < size <= MAX_JSON:
            continue
        if len(data) < end + len(_END):
            partial = True
        elif data[end : end + len(_END)] == _END:
            return end + len(_END)
    return 0 if partial else -1


def _measure_file(data: bytes | bytearray, _orders: tuple[ByteOrder, ...]) -> int:
    """Return the size of the file packet at the beginning; 0: not whole; -1: it is none."""
    if not Kind.PHOTO <= data[2] <= Kind.DATA:
        return -1
    if len(data) < _HEAD:
        return 0
    size = int.from_bytes(data[3:_HEAD], "big")
    if not 0 < size <= MAX_FILE_PACK:
        return -1
    if len(data) < size + FILE_OVERHEAD:
        return 0
    end = _FILE_DATA_AT + size
    good = data[end] == sum(data[_FILE_DATA_AT:end]) & 0xFF
    return size + FILE_OVERHEAD if good and data[end + 1 : end + 3] == _END else -1


def _measure_fragment(data: bytes | bytearray, _orders: tuple[ByteOrder, ...]) -> int:
    """Return the size of the fragment at the beginning; 0: not whole; -1: it is none."""
    head = _HEAD + _FRAGMENT.size
    if len(data) < head:
        return 0
    _, _, index, count, size = _FRAGMENT.unpack_from(data, _HEAD)
    whole = int.from_bytes(data[3:_HEAD], "little") == _FRAGMENT.size + size
    if not whole or size > MAX_FRAGMENT or index >= count:
        return -1
    end = head + size
    if len(data) < end + len(_END):
        return 0
    return end + len(_END) if data[end : end + len(_END)] == _END else -1


_Measure = Callable[[bytes | bytearray, tuple[ByteOrder, ...]], int]
_MEASURES: Final[Mapping[int, _Measure]] = {
    Kind.JSON: _measure_json,
    Kind.BINARY: _measure_fragment,
}


def _parse(frame: bytes) -> Frame:
    kind = Kind(frame[2])
    if kind is Kind.JSON:
        return frame[_HEAD : -len(_END)]
    if kind is Kind.BINARY:
        flags, message, at, count, _ = _FRAGMENT.unpack_from(frame, _HEAD)
        payload = frame[_HEAD + _FRAGMENT.size : -len(_END)]
        return Fragment(message, at, count, payload, flags)
    _, index, file_size, name, flags = _FILE_HEAD.unpack_from(frame, 3)
    text = name.rstrip(b"\0").decode("ascii", "replace")
    return FilePacket(kind, index, file_size, text, frame[_FILE_DATA_AT:-3], flags)


def pack_size(mtu: int) -> int:
    """Return the data bytes of one file packet over this ATT MTU (M26): never below 100."""
    return max(100, min(FILE_PACK, mtu - 3 - FILE_OVERHEAD))


def cut(frame: bytes, size: int) -> list[bytes]:
    """Return a frame as packets of at most `size` bytes."""
    return [frame[at : at + size] for at in range(0, len(frame), size)]


def refuse(detail: str) -> RemoteViolation:
    return RemoteViolation(Violation.BAD_MESSAGE, detail)
