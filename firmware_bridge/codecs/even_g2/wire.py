"""Constants and frames of the Even G2 protocol, and `Dialect` for differences between hosts.

Even G2 protocol as documented in captures and sources of i-soxi/even-g2-protocol,
sbirtwistle/even-g2-protocol, lonelyobserver0/Even-G2-RE, Commute773/g2-kit-unofficial,
jimrandomh/faceclaw and g2flash, gpsnmeajp/men-g2-ble-gateway, Mentra-Community/MentraOS,
aaronrau/even-g2-r1-flutter-poc, and the vendor's documents of its app platform. Where they
disagree, captures count first, then hosts that run.
"""

from binascii import crc_hqx
from enum import IntEnum, StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from firmware_bridge.errors import CommandRefused, RemoteViolation, Violation

START: Final = 0xAA
HEAD: Final = 8
CRC_BYTES: Final = 2
REQUEST: Final = 0x20
ANSWER: Final = 0x00
NOTICE: Final = 0x01
MAX_MESSAGE: Final = 16 * 1024
"""Bytes of one message: an image update has about 4200, a file of 100 apps about 9000."""
MAX_OPEN: Final = 8
"""Messages of one sender that may be incomplete."""
_MAX_FRAGMENTS: Final = 255

PACE_S: Final = 0.008
"""Seconds between two packets to one arm, as two hosts keep."""

RATE: Final = 16000
LC3_FRAMES: Final = 5
LC3_FRAME_BYTES: Final = 40
SOUND_BYTES: Final = 205
SOUND_S: Final = 0.05


class Kind(IntEnum):
    """Byte 1 of a packet: who sent it."""

    HOST = 0x21
    GLASSES = 0x12


class Sid(IntEnum):
    """Services: byte 6 of a packet."""

    DASHBOARD = 0x01
    MENU = 0x03
    NOTIFICATIONS = 0x04
    TRANSLATE = 0x05
    PROMPTER = 0x06
    AI = 0x07
    NAVIGATION = 0x08
    SETTINGS = 0x09
    TRANSCRIBE = 0x0A
    CONVERSATE = 0x0B
    QUICK_LIST = 0x0C
    FOREGROUND = 0x0D
    HEALTH = 0x0E
    ONBOARDING = 0x10
    LANGUAGE = 0x20
    TERMINAL = 0x30
    CONFIG = 0x80
    CASE = 0x81
    RING = 0x91
    UPDATE = 0xC0
    UPDATE_END = 0xC3
    FILE = 0xC4
    FILE_DATA = 0xC5
    EXPORT_DATA = 0xC7
    HUB = 0xE0


RAW: Final = range(Sid.UPDATE, Sid.EXPORT_DATA + 1)
"""Services whose messages are no protobuf: firmware, and files in both directions."""


class Cut(StrEnum):
    """How a message is cut into fragments."""

    A = "236"
    """236 bytes of the message, its checksum on top or in a fragment of its own"""
    B = "232"
    """232 bytes, the checksum counted and never split"""
    SPLIT = "232-split"
    """232 bytes, the checksum counted; it may be split over two fragments"""


class Dialect(Struct, frozen=True):
    """What we send where hosts known to work differ; received packets are accepted in every form.

    Defaults: captures of the vendor's app, else what most of the hosts do.
    """

    cut: Cut = Cut.A
    zeros: bool = False
    named: bool = True
    widget: int | None = None
    hub_beat_s: float = 5.0
    hub_beat_body: bool = False
    image_session: bool = True
    image_bytes: int = 4096
    wake_speed: int = 32
    auth: bool = True
    utc: bool = False
    motion_field: int = 22


STOCK: Final = Dialect()


class Manner:
    """How the glasses of one connection are spoken to: in a dialect, until they refuse a message in
    it; then in the other form of each conflict, until they refuse that.
    """

    def __init__(self, first: Dialect) -> None:
        self.dialect = first
        self._other = replace(
            first,
            cut=Cut.A if first.cut is Cut.B else Cut.B,
            zeros=not first.zeros,
            named=not first.named,
            widget=10000 if first.widget is None else None,
            hub_beat_body=not first.hub_beat_body,
            image_session=not first.image_session,
            wake_speed=80 if first.wake_speed == 32 else 32,
        )

    def change(self) -> None:
        """The glasses refused a message whole: they may take its other form."""
        self.dialect, self._other = self._other, self.dialect


def checksum(payload: bytes) -> bytes:
    """CRC-16/CCITT-FALSE, least significant byte first."""
    return crc_hqx(payload, 0xFFFF).to_bytes(CRC_BYTES, "little")


def cut(
    payload: bytes,
    kind: Kind,
    seq: int,
    sid: int,
    flag: int,
    *,
    max_packet: int,
    way: Cut = Cut.A,
) -> list[bytes]:
    """Return the packets of one message. Raises `CommandRefused` if it needs too many."""
    room = min(236 if way is Cut.A else 232, max_packet - HEAD)
    whole = payload + checksum(payload)
    bodies = [whole[at : at + room] for at in range(0, len(whole), room)]
    if way is not Cut.SPLIT and len(bodies[-1]) < CRC_BYTES:
        bodies[-2:] = [bodies[-2][:-1], whole[-CRC_BYTES:]]
    if len(bodies) > _MAX_FRAGMENTS:
        most = _MAX_FRAGMENTS * room - CRC_BYTES
        raise CommandRefused("too_big", f"{len(payload)} bytes; {most} fit at this MTU")
    return [
        bytes((START, kind, seq & 0xFF, len(body), len(bodies), index, sid, flag)) + body
        for index, body in enumerate(bodies, 1)
    ]


def nak(seq: int, sid: int, result: int = 1) -> bytes:
    """Return the refusal of a message that arrived damaged."""
    return bytes((START, Kind.GLASSES, seq, 0, 1, 1, sid, result << 1))


class Received(Struct, frozen=True):
    """A whole message. `payload` is None for a refusal without contents."""

    seq: int
    sid: int
    flag: int
    payload: bytes | None

    @property
    def result(self) -> int:
        """Result code: 0 is fine."""
        return self.flag >> 1 & 0x0F


class BadChecksum(RemoteViolation):
    """A message arrived damaged: `seq` and `sid` name it."""

    def __init__(self, seq: int, sid: int) -> None:
        super().__init__(Violation.BAD_MESSAGE, f"service {sid:02X}: wrong checksum")
        self.seq = seq
        self.sid = sid


class Joiner:
    """Joins the fragments of one sender's messages, by service and sequence number.

    Doubled fragments are ignored, and doubled messages of glasses; a host may repeat itself. The
    order of fragments does not matter, nor do bytes after those that are announced.
    """

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._open: dict[tuple[int, int, int], dict[int, bytes]] = {}
        self._last: tuple[tuple[int, int, int], bytes] | None = None

    def add(self, packet: bytes) -> Received | None:
        """Add a packet; return the message when it is complete. Raises `RemoteViolation`."""
        if len(packet) < HEAD:
            raise RemoteViolation(Violation.TRUNCATED, f"a packet of {len(packet)} bytes")
        start, kind, seq, size, total, index, sid, flag = packet[:HEAD]
        if (start, kind) != (START, self._kind):
            raise RemoteViolation(Violation.UNKNOWN_FRAME, f"a packet {start:02X} {kind:02X}")
        if size > len(packet) - HEAD:
            detail = f"{len(packet) - HEAD} bytes where {size} are announced"
            raise RemoteViolation(Violation.TRUNCATED, detail)
        if size == 0:
            return Received(seq, sid, flag, None)
        if not 1 <= index <= total:
            raise RemoteViolation(Violation.BAD_ORDER, f"fragment {index} of {total}")
        whole = self._add((sid, seq, total), index, packet[HEAD : HEAD + size])
        return None if whole is None else Received(seq, sid, flag, whole)

    def _add(self, key: tuple[int, int, int], index: int, body: bytes) -> bytes | None:
        """Add a fragment of message `key` (service, number, fragments)."""
        sid, seq, total = key
        if self._last is not None and total > 1 and key == self._last[0]:
            return None  # a late double of a part of it
        self._make_room(key)
        parts = self._open.setdefault(key, {})
        parts[index] = body
        if sum(map(len, parts.values())) > MAX_MESSAGE + CRC_BYTES:
            del self._open[key]
            raise RemoteViolation(Violation.OVERSIZED, f"more than {MAX_MESSAGE} bytes")
        if len(parts) < total:
            return None
        del self._open[key]
        whole = b"".join(parts[at] for at in range(1, total + 1))
        payload = whole[:-CRC_BYTES]
        if checksum(payload) != whole[-CRC_BYTES:]:
            raise BadChecksum(seq, sid)
        if self._last == (key, whole) and (total > 1 or self._kind is Kind.GLASSES):
            return None
        self._last = (key, whole)
        return payload

    def _make_room(self, key: tuple[int, int, int]) -> None:
        """Drop the oldest incomplete message, and one with this number that had another length."""
        for old in [old for old in self._open if old[:2] == key[:2] and old != key]:
            del self._open[old]
        if key not in self._open and len(self._open) >= MAX_OPEN:
            del self._open[next(iter(self._open))]
