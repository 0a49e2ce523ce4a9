"""Bytes of Brilliant Labs Frame and Halo: packets, messages of the program on the glasses, prompt.

Sources: Frame's firmware (frame-codebase), and the host packages frame-ble 1.1.1 and frame-msg
5.2.1, whose framing and layouts the program on the glasses keeps where they have one; those of Halo
are in hardware.py.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from math import isfinite
from typing import Final, NamedTuple

from firmware_bridge.codecs.frame.lz4_frame import read_frame
from firmware_bridge.errors import CommandRefused, RemoteViolation, Violation
from firmware_bridge.own_commands import BlinkLight, LightColor, MotionRead, SwitchLightOff

SERVICE_UUID: Final = "7a230001-5475-a6a4-654c-8431f6ad49c4"
RX_UUID: Final = "7a230002-5475-a6a4-654c-8431f6ad49c4"
TX_UUID: Final = "7a230003-5475-a6a4-654c-8431f6ad49c4"

WIDTH: Final = 640
HEIGHT: Final = 400
LINE_HEIGHT: Final = 60
"""Pixels from one line to the next, as in the maker's SDK (frame-sdk 1.2.4)."""
LINES: Final = HEIGHT // LINE_HEIGHT
SPACING: Final = 4
"""Pixels between two characters; the default of every host."""
WHITE: Final = 1

DATA: Final = 0x01
"""First byte of a packet for the program, or from it; other packets are text."""
REBOOT: Final = b"\x02"
BREAK: Final = b"\x03"
RESET: Final = b"\x04"
REMOVE_MAIN: Final = b"\x05"
LEAVE: Final = b"\x06"
REMOVE_ALL: Final = b"\x07"
"""02 and 05 to 07 are controls of Halo only."""
SPEAKER: Final = "speaker"
BATTERY: Final = "battery"
"""Channels that Halo has beside the two of Frame."""
PROMPT: Final = "prompt"
PRINTED: Final = "printed"
"""Channels of Monocle's prompt: what is typed, and what it answers."""
MAX_MESSAGE: Final = 0xFFFF
CARRIED_OUT: Final = bytes((DATA, 0))
REFUSED: Final = bytes((DATA, 1))

RATES: Final = (8000, 16000)
"""Sound in Hz; the number of a rate, from 1, is its place here. 0 switches the microphone off."""
LC3_FRAME: Final = 40
"""Bytes of 10 ms of speech: 32 kbit/s, 16 kHz."""
SPOKEN_RATE: Final = 16000
BAD_PHOTO: Final = 0xFFFFFFFF
"""Length in the end of a photo that could not be taken."""


class To(IntEnum):
    """Codes of messages to the program."""

    TEXT = 0x0A
    CAPTURE = 0x0D
    SPRITE = 0x20
    PLACE = 0x21
    SHOW = 0x22
    LISTEN = 0x30
    BATTERY = 0x31
    BRIGHTNESS = 0x32
    HELLO = 0x33
    SPEAK = 0x34
    END_SPEECH = 0x35
    HEAD_ANGLE = 0x36
    MOTION = 0x37
    LIGHT = 0x38


class From(IntEnum):
    """Codes of data from the program; those before `SOUND` are of programs of the maker's SDK."""

    LONG_DATA = 0x01
    LONG_DATA_END = 0x02
    WAKE = 0x03
    SDK_TAP = 0x04
    SOUND = 0x05
    SOUND_END = 0x06
    PHOTO = 0x07
    PHOTO_END = 0x08
    TAP = 0x09
    MOTION = 0x0A
    CLICK = 0x0B
    BATTERY = 0x0C
    EXPOSURE = 0x11
    METERING = 0x12
    INFO = 0x40
    SHOWN = 0x41
    PLAYED = 0x42
    HEAD = 0x43


UNUSED: Final = frozenset(
    {From.LONG_DATA, From.LONG_DATA_END, From.WAKE, From.EXPOSURE, From.METERING}
)
"""What programs of other hosts send, and glassd has no use for."""


# ------------------------------------------------------------------ framing


def cut(code: int, payload: bytes, max_packet: int) -> Iterator[bytes]:
    """Yield the packets of one message: the first has the length of the payload."""
    room = max_packet - 4
    yield bytes((DATA, code)) + len(payload).to_bytes(2, "big") + payload[:room]
    step = max_packet - 2
    for at in range(room, len(payload), step):
        yield bytes((DATA, code)) + payload[at : at + step]


class MessageBuffer:
    """Joins the packets of messages, each code by itself, as the program does."""

    def __init__(self, limit: int = MAX_MESSAGE) -> None:
        self._limit = limit
        self._parts: dict[int, tuple[int, bytearray]] = {}

    def add(self, data: bytes) -> tuple[int, bytes] | None:
        """Take a packet without its first byte; return code and payload of a whole message.
        Raises `RemoteViolation`, which drops what arrived of it.
        """
        if not data:
            raise RemoteViolation(Violation.TRUNCATED, "a data packet without a code")
        code = data[0]
        size, joined = self._parts.pop(code, (-1, bytearray()))
        if size < 0:
            if len(data) < 3:
                raise RemoteViolation(Violation.TRUNCATED, f"{code:02X} without its length")
            size, piece = int.from_bytes(data[1:3], "big"), data[3:]
            if size > self._limit:
                raise RemoteViolation(Violation.OVERSIZED, f"{code:02X} of {size} bytes")
        else:
            piece = data[1:]
        joined += piece
        if len(joined) > size:
            raise RemoteViolation(Violation.OVERSIZED, f"{code:02X}: more than {size} bytes")
        if len(joined) < size:
            self._parts[code] = size, joined
            return None
        return code, bytes(joined)

    def clear(self) -> None:
        """Drop what has arrived in part."""
        self._parts.clear()


# ------------------------------------------------------------------ payloads


class PlainText(NamedTuple):
    """Text at a place, from 1, in a colour of the palette."""

    x: int
    y: int
    text: str
    colour: int = WHITE
    spacing: int = SPACING


class Sprite(NamedTuple):
    """A picture of 1, 2 or 4 bits. `palette`: red, green, blue of each colour. Rows of `pixels`
    follow each other without padding, the first pixel in the highest bits.
    """

    width: int
    height: int
    bpp: int
    palette: bytes
    pixels: bytes


class Place(NamedTuple):
    """Where a sprite is drawn, from 1. `code`: of the sprite's message."""

    code: int
    x: int
    y: int
    offset: int = 0


class Capture(NamedTuple):
    """A photo: `quality` 0 (very low) to 4 (very high), `resolution` its width and height."""

    quality: int = 4
    resolution: int = 512
    pan: int = 0
    raw: bool = False


_TEXT: Final = struct.Struct(">HHBB")
_SPRITE: Final = struct.Struct(">HHBBB")
_OLD_SPRITE: Final = struct.Struct(">HHBB")
_PLACE: Final = struct.Struct(">BHHB")
_CAPTURE: Final = struct.Struct(">BHHB")
_LIGHT: Final = struct.Struct(">BHHB")
LIGHTS: Final = (LightColor.RED, LightColor.GREEN)
"""Colours of Monocle's light, by their number from 1."""
_MOTION: Final = struct.Struct("<x6f")
_OLD_MOTION: Final = struct.Struct("<x6h")


def text_bytes(text: PlainText) -> bytes:
    return _TEXT.pack(text.x, text.y, text.colour, text.spacing) + text.text.encode()


def read_text(payload: bytes, screen: tuple[int, int] = (WIDTH, HEIGHT)) -> PlainText:
    """Raises `RemoteViolation`."""
    x, y, colour, spacing = _unpack(_TEXT, payload)
    if not (1 <= x <= screen[0] and 1 <= y <= screen[1] and colour <= 15):
        raise RemoteViolation(Violation.BAD_MESSAGE, f"text at {x}, {y} in colour {colour}")
    return PlainText(x, y, payload[_TEXT.size :].decode("utf-8", "replace"), colour, spacing)


def sprite_bytes(sprite: Sprite) -> bytes:
    colours = len(sprite.palette) // 3
    head = _SPRITE.pack(sprite.width, sprite.height, 0, sprite.bpp, colours)
    return head + sprite.palette + sprite.pixels


def read_sprite(payload: bytes, *, compress_byte: bool = True) -> Sprite:
    """Read a sprite. `compress_byte`: the form with a byte that says whether it is compressed.
    Raises `RemoteViolation`.
    """
    if compress_byte:
        width, height, compressed, bpp, colours = _unpack(_SPRITE, payload)
        start = _SPRITE.size
    else:
        width, height, bpp, colours = _unpack(_OLD_SPRITE, payload)
        compressed, start = 0, _OLD_SPRITE.size
    pixels = payload[start + 3 * colours :]
    palette = payload[start : start + 3 * colours]
    if bpp not in (1, 2, 4) or not 0 < colours <= 1 << bpp:
        what = f"a sprite of {bpp} bits and {colours} colours"
        raise RemoteViolation(Violation.BAD_MESSAGE, what)
    if not (0 < width <= WIDTH and 0 < height <= HEIGHT) or len(palette) < 3 * colours:
        raise RemoteViolation(Violation.BAD_MESSAGE, f"a sprite of {width} × {height}")
    size = (width * height * bpp + 7) // 8
    if compressed:
        pixels = read_frame(pixels, size)
    if len(pixels) != size:
        raise RemoteViolation(
            Violation.TRUNCATED, f"{len(pixels)} bytes of pixels, {width} × {height}"
        )
    return Sprite(width, height, bpp, palette, pixels)


def place_bytes(place: Place) -> bytes:
    return _PLACE.pack(*place)


def read_place(payload: bytes, screen: tuple[int, int] = (WIDTH, HEIGHT)) -> Place:
    """Raises `RemoteViolation`."""
    place = Place(*_unpack(_PLACE, payload))
    if not (1 <= place.x <= screen[0] and 1 <= place.y <= screen[1]):
        raise RemoteViolation(Violation.BAD_MESSAGE, f"a sprite at {place.x}, {place.y}")
    return place


def capture_bytes(capture: Capture) -> bytes:
    half = capture.resolution // 2
    return _CAPTURE.pack(capture.quality, half, capture.pan + 140, capture.raw)


def read_capture(payload: bytes) -> Capture:
    """Raises `RemoteViolation`."""
    quality, half, pan, raw = _unpack(_CAPTURE, payload)
    if quality > 4 or not 100 <= 2 * half <= 720 or pan > 280:
        raise RemoteViolation(
            Violation.BAD_MESSAGE, f"a photo of quality {quality}, {2 * half} pixels, pan {pan}"
        )
    return Capture(quality, 2 * half, pan - 140, bool(raw))


def light_bytes(command: BlinkLight | SwitchLightOff) -> bytes:
    """Return what the light of a Monocle does. Raises `CommandRefused` for what it cannot."""
    if isinstance(command, SwitchLightOff):
        return _LIGHT.pack(0, 0, 0, 0)
    if command.color not in LIGHTS or command.level is not None:
        raise CommandRefused("unsupported", "the light is red or green, and always as bright")
    return _LIGHT.pack(
        LIGHTS.index(command.color) + 1, command.on_ms, command.off_ms, command.times
    )


def read_light(payload: bytes) -> BlinkLight | SwitchLightOff:
    """Raises `RemoteViolation`."""
    number, on_ms, off_ms, times = _unpack(_LIGHT, payload)
    if number > len(LIGHTS) or (number and not times):
        raise RemoteViolation(Violation.BAD_MESSAGE, f"light {number}, {times} times")
    if not number:
        return SwitchLightOff()
    return BlinkLight(LIGHTS[number - 1], on_ms, off_ms, times)


def motion_bytes(motion: MotionRead) -> bytes:
    """Return a reading as programs of brilliant-msg 7.3.0 send it."""
    return _MOTION.pack(*(motion.magnetism or (0, 0, 0)), *motion.acceleration)


def read_motion(data: bytes) -> MotionRead:
    """Read what the motion sensor says, in g; also in the older form, of whole numbers (frame-msg
    5.2.1). Raises `RemoteViolation`.
    """
    if len(data) >= _MOTION.size:
        numbers = _MOTION.unpack_from(data)
    elif len(data) >= _OLD_MOTION.size:
        numbers = _OLD_MOTION.unpack_from(data)
        numbers = *numbers[:3], *(number / 4096 for number in numbers[3:])
    else:
        raise RemoteViolation(Violation.TRUNCATED, f"a motion of {len(data)} bytes")
    if not all(map(isfinite, numbers)):
        raise RemoteViolation(Violation.BAD_MESSAGE, f"a motion of {numbers}")
    x, y, z, right, forward, up = map(float, numbers)
    return MotionRead((right, forward, up), magnetism=(x, y, z))


def swapped(pcm: bytes) -> bytes:
    """Return samples of 16 bits with their two bytes in the other order."""
    other = bytearray(pcm)
    other[::2], other[1::2] = pcm[1::2], pcm[::2]
    return bytes(other)


def _unpack(form: struct.Struct, payload: bytes) -> tuple[int, ...]:
    if len(payload) < form.size:
        raise RemoteViolation(Violation.TRUNCATED, f"a message of {len(payload)} bytes")
    return form.unpack_from(payload)


# ------------------------------------------------------------------ the prompt


def escape(text: str) -> str:
    """Return text as it stands between the quotes of a Lua string."""
    text = text.replace("\r", "").replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace("\t", "\\t").replace("'", "\\'").replace('"', '\\"')


def unescape(text: str) -> str:
    """Inverse of `escape`; other escapes stay as they are."""
    out, rest = [], iter(text)
    for ch in rest:
        following = next(rest, "") if ch == "\\" else ""
        out.append(_ESCAPES.get(following, ch + following) if ch == "\\" else ch)
    return "".join(out)


_ESCAPES: Final = {"\\": "\\", "n": "\n", "t": "\t", "'": "'", '"': '"'}
_WRITE: Final = 'f:write("{}");print(1)'
_WRITE_ROOM: Final = 22
"""Bytes of a text that its statements take, as frame-ble counts them."""
MIN_PROMPT: Final = 64
"""Bytes of a packet that the longest statement needs."""


def upload(name: str, content: str, max_packet: int) -> Iterator[tuple[str, str]]:
    """Yield each text for the prompt that writes a file, with what it must print."""
    yield f"f=frame.file.open('{name}','w');print(1)", "1"
    room = max_packet - _WRITE_ROOM
    chunk: list[str] = []
    used = 0
    for piece in map(escape, content):  # an escape is never split
        size = len(piece.encode())
        if used + size > room:
            yield _WRITE.format("".join(chunk)), "1"
            chunk, used = [], 0
        chunk.append(piece)
        used += size
    if chunk:
        yield _WRITE.format("".join(chunk)), "1"
    yield "f:close();print(nil)", "nil"
