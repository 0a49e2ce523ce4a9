"""Mentra Display ("Nex"): packets and messages. UUIDs and names are in `model.py`.

Sources: M26 MentraOS of March 2026 (`MentraNex.kt`, `NexSGCUtils.kt`, `mcu_client/*.proto`), SPEC
its `firmware_spec_protobuf.md`, N later MentraOS (PR #3069).

One characteristic value is one packet; its first byte says what it is. Protobuf messages come after
02, from later phones in fragments (`02 number total index`); 01 is JSON of an older specification
(`legacy.py`). Of the schemas, B (version 2) has field numbers of its own for sensors, and its texts
no font; A is the older reference firmware's. A' is A with glasses that ping: the same for us.
"""

from enum import IntEnum, StrEnum
from typing import Final

from msgspec import Struct

from firmware_bridge import protobuf
from firmware_bridge.errors import CommandRefused, RemoteViolation, Violation
from firmware_bridge.protobuf import Message

JSON: Final = 0x01
PROTOBUF: Final = 0x02
WHITELIST: Final = 0x04
HOME: Final = 0x18
"""What phones also send, inherited from the Even G1."""
SOUND: Final = 0xA0
PICTURE: Final = 0xB0
FRAME: Final = 40
"""Bytes of LC3 in 10 ms: 16 kHz, 32 kbit/s."""
MIC_ID: Final = 1
"""By SPEC the second byte of sound is this stream id; by M26 a number that runs from 0 to 255."""
MAX_FRAGMENTS: Final = 255
MAX_CHUNKS: Final = 256
PICTURE_HEAD: Final = 4
TEXT_COLOUR, TEXT_SIZE, TEXT_X, TEXT_Y = 10000, 48, 20, 260
"""What the applications send with every text (M26)."""
WIDTH: Final = 500
HEIGHT: Final = 220
"""The canvas of pictures (M26)."""
LINES: Final = 4
"""Rows of 48 pixels on it."""


class ToGlasses(IntEnum):
    """Fields of PhoneToGlasses, schema B; `Schema` has those that differ in A."""

    MSG_ID = 1
    DISCONNECT = 10
    BATTERY = 11
    INFO = 12
    HEAD_POSITION = 14
    HEAD_UP_ANGLE = 15
    PONG = 16
    MICROPHONE = 20
    VAD_ENABLED = 23
    VAD_CONFIG = 24
    VAD_STATUS = 25
    TEXT = 30
    IMAGE = 31
    CACHE_IMAGE = 32
    CACHED_IMAGE = 33
    CLEAR_CACHED_IMAGE = 34
    SCROLLING_TEXT = 35
    POWER = 36
    BRIGHTNESS = 37
    AUTO_BRIGHTNESS = 38
    LINE = 40
    RECT = 41
    CIRCLE = 42
    COMMIT = 43
    DISTANCE = 44
    HEIGHT = 45
    CLEAR = 46
    CACHE_DASHBOARD = 47
    CLEAR_DASHBOARD = 48
    DASHBOARD_TRIGGER = 49
    QUEUE_STATUS = 51
    BATCH = 52
    MOTION_ON = 55
    MOTION = 56
    MOTION_STREAM = 57
    GESTURE = 58
    RESTART = 60
    FACTORY_RESET = 61
    VERSION = 70


OLD_MOTION_ON: Final = 50
OLD_MOTION: Final = 51
"""The fields of the motion sensor in schema A; 51 is something else in B."""
OLD_GESTURE: Final = 53
"""The field of head gestures in schema A."""


class ToPhone(IntEnum):
    """Fields of GlassesToPhone."""

    BATTERY = 10
    CHARGING = 11
    INFO = 12
    HEAD_POSITION = 13
    HEAD_UP_ANGLE = 14
    PING = 15
    VAD = 20
    VAD_ENABLED = 21
    VAD_CONFIGURED = 22
    VAD_STATUS = 23
    IMAGE_DONE = 30
    QUEUE = 31
    MOTION = 40
    BUTTON = 41
    GESTURE = 42
    DASHBOARD = 43
    VERSION = 70


ONLY_B: Final = (
    ToPhone.VAD_ENABLED,
    ToPhone.VAD_CONFIGURED,
    ToPhone.VAD_STATUS,
    ToPhone.QUEUE,
    ToPhone.DASHBOARD,
    ToPhone.VERSION,
)
"""Fields of GlassesToPhone that no other schema has."""


class Schema(StrEnum):
    """Which of the schemas the firmware was built with."""

    A = "A"
    B = "B"


class Framing(StrEnum):
    """How messages to the glasses are sent: whole, in fragments with a head, or as JSON."""

    WHOLE = "whole"
    FRAGMENTS = "fragments"
    JSON = "json"


class Dialect(Struct, frozen=True):
    """What one firmware says and understands."""

    schema: Schema = Schema.B
    prime: bool = False
    framing: Framing = Framing.WHOLE
    numbered: bool = True
    checked: bool = False
    queued: bool = True
    motion: bool = False


STOCK: Final = Dialect()


def encode(fields: protobuf.Fields) -> bytes:
    """Encode a message as both ends do: numbers that are 0 are left out."""
    return protobuf.encode(fields, zeros=False)


def packets(message: bytes, framing: Framing, number: int, max_packet: int) -> list[bytes]:
    """Return a message as packets. Raises `CommandRefused` if it does not fit."""
    if framing is Framing.WHOLE:
        if len(message) + 1 > max_packet:
            detail = f"a message of {len(message)} bytes; {max_packet - 1} fit a packet"
            raise CommandRefused("too_big", detail)
        return [bytes((PROTOBUF,)) + message]
    room = max_packet - 4
    pieces = [message[at : at + room] for at in range(0, len(message), room)] or [b""]
    if len(pieces) > MAX_FRAGMENTS:
        raise CommandRefused("too_big", f"a message of {len(message)} bytes")
    head = PROTOBUF, number % 256, len(pieces)
    return [bytes((*head, at)) + piece for at, piece in enumerate(pieces)]


def text_message(text: str, schema: Schema) -> bytes:
    """Return DisplayText; in schema A a font stands before the place."""
    shape = (TEXT_X, TEXT_Y, TEXT_SIZE)
    first = 3 if schema is Schema.B else 4
    places = dict(enumerate(shape, first))
    return encode({ToGlasses.TEXT: encode({1: text, 2: TEXT_COLOUR, **places})})


def motion_fields(schema: Schema) -> tuple[int, int]:
    """Return the fields that switch the motion sensor and ask it once."""
    old = schema is Schema.A
    return (OLD_MOTION_ON, OLD_MOTION) if old else (ToGlasses.MOTION_ON, ToGlasses.MOTION)


def read_text(body: Message, schema: Schema, *, scrolling: bool) -> tuple[str, int, int]:
    """Return text, size and y of DisplayText, or of DisplayScrollingText."""
    shift = 0 if schema is Schema.B else 1
    size_at = 10 if scrolling else 5
    return body.text(1), body.integer(size_at + shift), body.integer(4 + shift)


def crc16(data: bytes) -> bytes:
    """Return the CRC-16 (polynomial 1021, from FFFF) of an older firmware's picture chunks."""
    crc = 0xFFFF
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1
        crc &= 0xFFFF
    return crc.to_bytes(2, "big")


def chunk(stream: int, index: int, data: bytes, *, checked: bool) -> bytes:
    """Return one packet of a picture."""
    body = bytes((index,)) + data
    return bytes((PICTURE,)) + stream.to_bytes(2, "big") + (crc16(body) if checked else b"") + body


def read_chunk(packet: bytes, *, checked: bool) -> tuple[int, int, bytes]:
    """Return stream, index and data. Raises `RemoteViolation`."""
    head = PICTURE_HEAD + 2 * checked
    if len(packet) <= head:
        raise RemoteViolation(Violation.TRUNCATED, f"a picture chunk of {len(packet)} bytes")
    body = packet[head - 1 :]
    if checked and packet[3:5] != crc16(body):
        raise RemoteViolation(Violation.BAD_MESSAGE, "a picture chunk with a wrong checksum")
    return int.from_bytes(packet[1:3], "big"), body[0], body[1:]
