"""Constants of the Even G1 protocol: UUIDs, opcodes, names, generic answers, and `Dialect` for
differences between hosts.

Even G1 protocol as documented in the sources of even-realities/EvenDemoApp (the vendor's demo), its
community wiki (JohnRThomas/EvenDemoApp), emingenc/even_glasses, meyskens/fahrplan,
rodrigofalvarez/g1-basis-android, AugmentOS/MentraOS, and Gadgetbridge. Where they disagree, the
vendor's demo counts first, then hosts tested on hardware.
"""

import re
import struct
from enum import IntEnum, StrEnum
from typing import Final

from msgspec import Struct

from firmware_bridge.errors import CommandRefused, RemoteViolation, Violation
from firmware_bridge.messages import DoubleTap
from firmware_bridge.sides import Side

SERVICE_UUID: Final = "6e400001-b5a3-f393-e0a9-e50e24dcca9e"
RX_UUID: Final = "6e400002-b5a3-f393-e0a9-e50e24dcca9e"
TX_UUID: Final = "6e400003-b5a3-f393-e0a9-e50e24dcca9e"

ACCEPTED: Final = 0xC9
REFUSED: Final = 0xCA
CONTINUE: Final = 0xCB
PADDED: Final = 20
"""Bytes of a generic answer in every capture."""
SHUT_DOWN_S: Final = 32.0
"""Seconds after the last received packet until an arm disconnects (observed: 30 to 32 s)."""

SUPERVISION_S: Final = 8.0
"""Seconds of the observed supervision timeout: what a link delays longer is never delivered."""

LINES: Final = 5
PAGE_BYTES: Final = 390
"""Of a page's text, line ends included: the smallest that every host stays under."""
TEXT_WIDTH: Final = 488
WIDTH: Final = 576
HEIGHT: Final = 136
MAP_WIDTH: Final = 296
"""Of the map on the dashboard: what 28 captured packets of 180 bytes hold."""

LC3_FRAMES: Final = 10
LC3_FRAME_BYTES: Final = 20
RATE: Final = 16000


class Op(IntEnum):
    """Byte 0 of a packet."""

    BRIGHTNESS = 0x01
    SILENT = 0x03
    WHITELIST = 0x04
    DASHBOARD = 0x06
    HEAD_UP_ACTION = 0x08
    NAVIGATION = 0x0A
    HEAD_UP_ANGLE = 0x0B
    TRANSLATED = 0x0D
    MICROPHONE = 0x0E
    ORIGINAL = 0x0F
    CALIBRATE = 0x10
    PICTURE = 0x15
    PICTURE_CRC = 0x16
    EXIT = 0x18
    LANGUAGES = 0x1C
    NOTE = 0x1E
    PICTURE_END = 0x20
    VOICE_NOTES = 0x21
    LOOKED_UP = 0x22
    SYSTEM = 0x23
    HEARTBEAT = 0x25
    SETTINGS = 0x26
    WEAR = 0x27
    BRIGHTNESS_GET = 0x29
    SILENT_GET = 0x2B
    BATTERY = 0x2C
    ANGLE_GET = 0x32
    LENS_SERIAL = 0x33
    SERIAL = 0x34
    CHANNEL_GET = 0x35
    PENDING_GET = 0x36
    UPTIME = 0x37
    RUNNING_APP = 0x39
    WEAR_GET = 0x3A
    DEPTH_GET = 0x3B
    NOTIFICATIONS_GET = 0x3C
    LANGUAGE = 0x3D
    USAGE = 0x3E
    NOTIFICATION = 0x4B
    NOTIFICATION_CLEAR = 0x4C
    MTU = 0x4D
    TEXT = 0x4E
    NOTIFICATIONS_SET = 0x4F
    ECHO = 0x50
    FIRMWARE = 0x6E
    """The first letter of the firmware text, which comes without an opcode."""
    SOUND = 0xF1
    FIRST = 0xF4
    EVENT = 0xF5


class Sub(IntEnum):
    """Byte 1 of an event F5."""

    DOUBLE_TAP = 0x00
    TAP = 0x01
    HEAD_UP = 0x02
    HEAD_DOWN = 0x03
    SILENT_ON = 0x04
    SILENT_OFF = 0x05
    WORN = 0x06
    NOT_WORN = 0x07
    CASE_OPEN = 0x08
    CHARGING = 0x09
    BATTERY = 0x0A
    CASE_CLOSED = 0x0B
    CASE_CHARGING = 0x0E
    CASE_BATTERY = 0x0F
    RIGHT_LONG_PRESS_OVER = 0x12
    LONG_PRESS = 0x17
    LONG_PRESS_OVER = 0x18
    DASHBOARD_OPENED = 0x1E
    DASHBOARD_CLOSED = 0x1F
    BOUND_DOUBLE_TAP = 0x20


class TextStatus(IntEnum):
    """Byte `newscreen` of a text packet: high nibble is the status, low nibble 1 is new content."""

    ANSWER = 0x31
    ANSWER_OVER = 0x41
    TURNED = 0x51
    NETWORK_ERROR = 0x61
    PLAIN = 0x71
    SHOWING = 0x30
    SHOWING_OVER = 0x40


class BatteryForm(StrEnum):
    """Form of the answer to 2C: one arm's charge after 66, or both arms' after the frame letter."""

    ONE = "A"
    BOTH = "B"


class KeyCase(StrEnum):
    """Spelling of the whitelist's keys."""

    SNAKE = "snake"
    CAPITAL = "capital"

    def spell(self, key: str) -> str:
        capital = "_".join(part.capitalize() for part in key.split("_"))
        return capital if self is KeyCase.CAPITAL else key


POSITION: Final = 0x02
LONG_PRESS: Final = 0x07
LISTENS_LOOKING_UP: Final = 0x08
"""Sub-commands of 26."""
DOUBLE_TAP: Final = frozenset({0x04, 0x05})
"""Sub-commands of 26: by its source one of them, see the conflict."""
DOUBLE_TAP_ACTIONS: Final = {
    DoubleTap.NOTHING: 0,
    DoubleTap.TRANSLATE: 2,
    DoubleTap.TELEPROMPTER: 3,
    DoubleTap.DASHBOARD: 4,
    DoubleTap.TRANSCRIBE: 5,
}
HEAD_UP_BOTH: Final = 0x04
"""Sub-command of 08: for both arms; 03 is for the one that gets it."""
HEAD_UP_DASHBOARD: Final = 0x00
HEAD_UP_NOTHING: Final = 0x02
RESTART: Final = b"\x23\x72"

_BOTH: Final = (Side.LEFT, Side.RIGHT)


class Dialect(Struct, frozen=True):
    """What we send where hosts known to work differ; received packets are accepted in every form.

    Defaults: the vendor's own demo where it specifies anything, else hosts tested on hardware.
    """

    first: bytes = b"\xf4\x01"
    heartbeat_swapped: bool = False
    text_status: tuple[TextStatus, ...] = (TextStatus.PLAIN,)
    page_base: int = 1
    text_chunk: int = 191
    microphone: Side = Side.RIGHT
    brightness_top: int = 0x2A
    brightness_sides: tuple[Side, ...] = _BOTH
    silent_long: bool = False
    battery_ask: bytes = b"\x2c\x01"
    battery_form: BatteryForm = BatteryForm.ONE
    crc_echoed: bool = True
    twelve_hour: int = 1
    inverted: bool = False
    whitelist_chunk: int = 177
    whitelist_ended: bool = False
    whitelist_case: KeyCase = KeyCase.SNAKE
    notification_numbered: bool = True
    notification_id: int = 0
    notification_action: bool = False
    notification_type: bool = False
    notification_dated: bool = False
    notification_sides: tuple[Side, ...] = (Side.LEFT,)
    notification_ms: bool = False
    debug_off: int = 0xC1
    double_tap_sub: int = 0x05
    serial_padded: bool = True
    functions_answered: bool = True
    case_padded: bool = True


STOCK: Final = Dialect()

_NAME: Final = re.compile(r"(?:Even )?G1_([^_]{1,8})_([LR])_([^_]{1,16})", re.ASCII)
_LETTERS: Final = {"L": Side.LEFT, "R": Side.RIGHT}


def arm_of(name: str) -> tuple[str, Side] | None:
    """Return (pair id, side) of an advertised name: the arms share the channel, not the suffix."""
    found = _NAME.fullmatch(name)
    return None if found is None else (f"G1_{found[1]}", _LETTERS[found[2]])


def name_of(channel: int, side: Side, address: str) -> str:
    """Return an arm's advertised name: the strictest host needs four fields."""
    return f"Even G1_{channel}_{side[0].upper()}_{address.replace(':', '')[-6:].upper()}"


CHUNKED: Final[dict[int, tuple[int, int, int]]] = {
    Op.WHITELIST: (1, 2, 3),
    Op.NOTIFICATION: (2, 3, 4),
    Op.TEXT: (2, 3, 9),
}
"""Opcode of a message of several packets → where these carry their number, index and data."""
_MOST_PACKETS: Final = 255


def split(data: bytes, room: int, what: str) -> list[bytes]:
    """Cut data into the pieces of one message. Raises `CommandRefused` for too many."""
    pieces = [data[at : at + room] for at in range(0, len(data), room)]
    if len(pieces) > _MOST_PACKETS:
        most = _MOST_PACKETS * room
        raise CommandRefused("too_big", f"{len(data)} bytes of {what}; {most} fit at this MTU")
    return pieces


class Joiner:
    """Joins the packets of one opcode's messages, duplicates included.

    Packet 0, or a packet with another head (number, packet count), starts a new message.
    """

    def __init__(self, op: Op) -> None:
        self._where = CHUNKED[op]
        self._head = b""
        self._pieces: dict[int, bytes] = {}

    def add(self, packet: bytes) -> bytes | None:
        """Add a packet; return the data when complete, else None. Raises `RemoteViolation`."""
        total_at, index_at, data_at = self._where
        if len(packet) < data_at:
            raise RemoteViolation(Violation.TRUNCATED, f"{packet[0]:02X} of {len(packet)} bytes")
        head, total, index = packet[:index_at], packet[total_at], packet[index_at]
        if not index < total:
            raise RemoteViolation(
                Violation.BAD_ORDER, f"{packet[0]:02X}: packet {index} of {total}"
            )
        if head != self._head or index == 0:
            self._head, self._pieces = head, {}
        self._pieces[index] = packet[data_at:]
        if len(self._pieces) < total or index != total - 1:
            return None
        return b"".join(self._pieces[at] for at in range(total))


def padded(*values: int) -> bytes:
    """Return a generic answer, padded like every captured one."""
    return bytes(values).ljust(PADDED, b"\0")


def heartbeat(beat: int, dialect: Dialect = STOCK) -> bytes:
    """`25 06 00 s 04 s`, or with s in the length's high byte, as one host does. s is never FF."""
    s = beat % 255
    high, low = (s, 0) if dialect.heartbeat_swapped else (0, s)
    return bytes((Op.HEARTBEAT, 6, high, low, 4, s))


def brightness(level: int | None, dialect: Dialect = STOCK, *, auto: bool = False) -> bytes:
    """`01 level auto`; with `auto` alone the sensor starts from the middle."""
    percent = 50 if level is None else level
    return bytes((Op.BRIGHTNESS, (percent * dialect.brightness_top + 50) // 100, auto))


def percent_of(level: int, top: int) -> int:
    """Inverse of the scale above, for glasses with maximum `top`; higher levels count as full."""
    return min(100, (level * 100 + top // 2) // top)


def silent(dialect: Dialect = STOCK, *, on: bool) -> bytes:
    return bytes((Op.SILENT, 0x0C if on else 0x0A)) + (b"\0" if dialect.silent_long else b"")


def double_tap(action: int, number: int, dialect: Dialect = STOCK) -> bytes:
    """`26 06 00 seq sub action`; sub is 05 in its source's list and 04 in the packet next to it."""
    return bytes((Op.SETTINGS, 6, 0, number & 0xFF, dialect.double_tap_sub, action))


def position(number: int, height: int, depth: int, *, preview: bool) -> bytes:
    """`26 08 00 seq 02 preview height depth`."""
    return bytes((Op.SETTINGS, 8, 0, number & 0xFF, POSITION, preview, height, depth))


def debug(dialect: Dialect = STOCK, *, on: bool) -> bytes:
    return bytes((Op.SYSTEM, 0x6C, 0 if on else dialect.debug_off))


def dashboard_time(
    number: int, local_s: int, dialect: Dialect = STOCK, *, twelve_hour: bool = False
) -> bytes:
    """Sub-command 01 of 06: set the dashboard clock, in seconds of local wall time; no weather."""
    hours = dialect.twelve_hour if twelve_hour else 1 - dialect.twelve_hour
    body = struct.pack("<IQ4B", local_s, local_s * 1000, 0, 0, 0, hours)
    return bytes((Op.DASHBOARD, 5 + len(body), 0, number & 0xFF, 0x01)) + body
