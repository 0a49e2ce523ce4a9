"""JSON of the older specification (SPEC 1.1), which some firmware still speaks: each message is one
of protobuf in other words, so it is translated at the rim, in both directions.

A packet is `01` and the JSON; field numbers are those of schema A.
"""

import json
import math
from string import hexdigits
from typing import Any, Final

from msgspec import Struct

from firmware_bridge import protobuf
from firmware_bridge.codecs.mentra_nex.wire import JSON, OLD_GESTURE, ToGlasses, ToPhone, encode
from firmware_bridge.errors import RemoteViolation, Violation
from firmware_bridge.protobuf import Message

MAX_JSON: Final = 4096
_AXES: Final = "xyz"
_Kind = str | tuple[str, ...]
"""What a value is: `i` a number, `x` one that is written as 0xF800, `s` a text, `l` a list of
numbers, `v` three numbers; names, by the number that they stand for.
"""


class _Word(Struct, frozen=True):
    """One message: its name, its field, and its keys, each with its field and what it is."""

    name: str
    field: int
    keys: tuple[tuple[str, int, _Kind], ...] = ()


_GESTURES: Final = ("nod", "shake", "head_up", "head_down", "tilt_left", "tilt_right")
TO_GLASSES: Final = (
    _Word("disconnect", ToGlasses.DISCONNECT),
    _Word("request_battery_state", ToGlasses.BATTERY),
    _Word("request_glasses_info", ToGlasses.INFO),
    _Word("request_head_position", ToGlasses.HEAD_POSITION),
    _Word("set_head_up_angle", ToGlasses.HEAD_UP_ANGLE, (("angle", 1, "i"),)),
    _Word("ping", ToGlasses.PONG),
    _Word("set_mic_state", ToGlasses.MICROPHONE, (("enabled", 1, "i"),)),
    _Word(
        "display_text",
        ToGlasses.TEXT,
        (("text", 1, "s"), ("color", 2, "x"), ("x", 4, "i"), ("y", 5, "i"), ("size", 6, "i")),
    ),
    _Word(
        "display_image",
        ToGlasses.IMAGE,
        (
            ("stream_id", 1, "s"),
            ("x", 2, "i"),
            ("y", 3, "i"),
            ("width", 4, "i"),
            ("height", 5, "i"),
            ("encoding", 6, "s"),
            ("total_chunks", 7, "i"),
        ),
    ),
    _Word("set_brightness", ToGlasses.BRIGHTNESS, (("value", 1, "i"),)),
    _Word("set_auto_brightness", ToGlasses.AUTO_BRIGHTNESS, (("enabled", 1, "i"),)),
    _Word("commit", ToGlasses.COMMIT),
    _Word("set_display_distance", ToGlasses.DISTANCE, (("distance_cm", 1, "i"),)),
    _Word("set_display_height", ToGlasses.HEIGHT, (("height", 1, "i"),)),
    _Word(
        "request_head_gesture_event",
        OLD_GESTURE,
        (("gesture", 1, _GESTURES), ("enabled", 2, "i")),
    ),
)
TO_PHONE: Final = (
    _Word("battery_status", ToPhone.BATTERY, (("level", 1, "i"), ("charging", 2, "i"))),
    _Word("charging_state", ToPhone.CHARGING, (("state", 1, ("not_charging", "charging")),)),
    _Word("device_info", ToPhone.INFO, (("fw", 1, "s"), ("hw", 2, "s"))),
    _Word("head_position", ToPhone.HEAD_POSITION, (("angle", 1, "i"),)),
    _Word("head_up_angle_set", ToPhone.HEAD_UP_ANGLE, (("success", 1, "i"),)),
    _Word("pong", ToPhone.PING),
    _Word("vad_event", ToPhone.VAD, (("state", 1, ("inactive", "active")),)),
    _Word(
        "image_transfer_complete",
        ToPhone.IMAGE_DONE,
        (("stream_id", 1, "s"), ("status", 2, ("ok", "incomplete")), ("missing_chunks", 3, "l")),
    ),
    _Word("imu_data", ToPhone.MOTION, (("accel", 1, "v"), ("gyro", 2, "v"), ("mag", 3, "v"))),
    _Word(
        "button_event",
        ToPhone.BUTTON,
        (("button", 1, ("center", "left", "right")), ("state", 2, ("up", "down"))),
    ),
    _Word("head_gesture", ToPhone.GESTURE, (("gesture", 1, _GESTURES),)),
)


def read(packet: bytes, words: tuple[_Word, ...]) -> Message:
    """Return the message of a JSON packet; an empty one if its name is unknown. Raises
    `RemoteViolation`.
    """
    if len(packet) > MAX_JSON:
        raise RemoteViolation(Violation.OVERSIZED, f"JSON of {len(packet)} bytes")
    try:
        found = json.loads(packet[1:])
    except (ValueError, RecursionError):
        raise RemoteViolation(Violation.BAD_MESSAGE, "a packet of JSON that is none") from None
    if not isinstance(found, dict):
        raise RemoteViolation(Violation.BAD_MESSAGE, "a packet of JSON without an object")
    word = next((each for each in words if each.name == found.get("type")), None)
    if word is None:
        return Message()
    fields = {
        number: value
        for key, number, kind in word.keys
        if (value := _decode(found.get(key), kind)) is not None
    }
    return Message(encode({word.field: encode(fields)}))


def _decode(value: object, kind: _Kind) -> protobuf.Value:
    """Return a value for protobuf; None for one that is missing, or is not what it should be."""
    if kind == "s":
        return value[:1000] if isinstance(value, str) else None
    if kind == "l":
        numbers = [_integer(each) for each in value[:256]] if isinstance(value, list) else []
        return protobuf.packed([each for each in numbers if each is not None])
    if kind == "v":
        return _vector(value)
    if isinstance(kind, tuple) and isinstance(value, str):
        return kind.index(value.lower()) if value.lower() in kind else None
    if kind == "x" and isinstance(value, str):
        digits = value.lower().removeprefix("0x")
        is_hex = 0 < len(digits) <= 8 and all(digit in hexdigits for digit in digits)
        value = int(digits, 16) if is_hex else None
    return _integer(value)


def _integer(value: object) -> int | None:
    if isinstance(value, int | float) and math.isfinite(value) and 0 <= value < 1 << 31:
        return int(value)
    return None


def _vector(value: object) -> bytes | None:
    """Return a vector, which is an object or a list of three numbers."""
    if isinstance(value, dict):
        value = [value.get(axis) for axis in _AXES]
    if not isinstance(value, list) or len(value) != 3:
        return None
    if not all(isinstance(each, int | float) and abs(each) < 1e9 for each in value):
        return None
    return encode({at: float(each) for at, each in enumerate(value, 1)})


def write(message: bytes, words: tuple[_Word, ...]) -> bytes | None:
    """Return a message as a JSON packet; None if this specification has no such message."""
    found = Message(message)
    word = next((each for each in words if each.field in found), None)
    if word is None:
        return None
    body = found.message(word.field)
    values = {key: _encode(body, number, kind) for key, number, kind in word.keys}
    name = {"type": word.name, "msg_id": found.text(1) or word.name}
    said = json.dumps({**name, **values}, ensure_ascii=False, separators=(",", ":"))
    return bytes((JSON,)) + said.encode()


def _encode(body: Message, number: int, kind: _Kind) -> Any:
    if kind == "s":
        return body.text(number)
    if kind == "l":
        return body.integers(number)
    if kind == "v":
        return [body.message(number).decimal(axis) for axis in (1, 2, 3)]
    value = body.integer(number)
    if kind == "x":
        return f"0x{value:04X}"
    return kind[value] if isinstance(kind, tuple) and value < len(kind) else value
