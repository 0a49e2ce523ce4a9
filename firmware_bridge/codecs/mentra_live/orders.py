"""What a Mentra Live is ordered to do beside photos and sound: its Wi-Fi, light, gallery, video and
motion sensor. What it reports of that is in `reports.py`.

The messages are those of DOC (see `wire.py`). The glasses acknowledge that they have a message,
which is all that most orders are answered by; only for the light they say whether they did it.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import MsgspecError, Struct, convert

from firmware_bridge.codecs.mentra_live.layers import Json, number, text
from firmware_bridge.codecs.mentra_live.outbox import Outbox
from firmware_bridge.messages import Command, Done, Failed, OwnCommand, Reply
from firmware_bridge.own_commands import (
    MAX_BLINKS,
    MAX_LIGHT_MS,
    BlinkLight,
    ForgetWifi,
    GetGallery,
    GetMotion,
    GetVideo,
    GetWifi,
    JoinWifi,
    KeepPictures,
    LeaveWifi,
    LightColor,
    RecordVideo,
    Restart,
    ScanWifi,
    SetHotspot,
    SwitchLightOff,
)

ANSWER_S: Final = 2.0
"""Seconds to wait for an answer once the glasses have the order: older builds send none."""
COLORS: Final = tuple(LightColor)
"""By the number that they have in a message."""
_LIGHT: Final = ("rgb_led_control_on", "rgb_led_control_off")
_LIGHT_FAILED: Final = "rgb_led_control_error"
_BRIGHTEST: Final = 255
_VIDEO: Final = {False: "stop_video_recording", True: "start_video_recording"}
VIDEO_ID: Final = "glassd-video"
_PLAIN: Final[Mapping[type[OwnCommand], tuple[str, Mapping[str, str]]]] = {
    GetWifi: ("request_wifi_status", {}),
    ScanWifi: ("request_wifi_scan", {}),
    JoinWifi: ("set_wifi_credentials", {"ssid": "ssid", "password": "password"}),
    LeaveWifi: ("disconnect_wifi", {}),
    ForgetWifi: ("forget_wifi", {"ssid": "ssid"}),
    SetHotspot: ("set_hotspot_state", {"enabled": "on"}),
    GetGallery: ("query_gallery_status", {}),
    KeepPictures: ("save_in_gallery_mode", {"active": "on"}),
    SwitchLightOff: (_LIGHT[1], {}),
    GetVideo: ("get_video_recording_status", {}),
    GetMotion: ("imu_single", {}),
    Restart: ("reboot", {}),
}
"""Order → the type of its message, and each of its keys with the field that it has."""
_KINDS: Final = {kind: (order, keys) for order, (kind, keys) in _PLAIN.items()}


def message_of(command: Command) -> Json | None:
    """Return the message of an order; None for one that these glasses do not have."""
    match command:
        case BlinkLight():
            return _blink(command)
        case RecordVideo(on):
            how = {"save": True, "flash": True, "sound": True} if on else {}
            return {"type": _VIDEO[on], "requestId": VIDEO_ID, **how}
        case OwnCommand() if type(command) in _PLAIN:
            kind, keys = _PLAIN[type(command)]
            return {"type": kind, **{key: getattr(command, name) for key, name in keys.items()}}
    return None


def _blink(command: BlinkLight) -> Json:
    pattern: dict[str, Any] = {
        "led": COLORS.index(command.color),
        "ontime": command.on_ms,
        "offtime": command.off_ms,
        "count": command.times,
    }
    if command.level is not None:
        pattern["brightness"] = (command.level * _BRIGHTEST + 50) // 100
    return {"type": _LIGHT[0], **pattern}


def command_of(kind: str, message: Json) -> Command | None:
    """Return the order that a message is, for the glasses' end; None for another, or for one that
    is damaged.
    """
    try:
        if kind == _LIGHT[0]:
            return _blink_of(message)
        if kind in _VIDEO.values():
            return RecordVideo(kind == _VIDEO[True])
        order, keys = _KINDS[kind]
        return convert({keys[key]: message[key] for key in keys if key in message}, order)
    except (ValueError, KeyError, MsgspecError):
        return None


def _blink_of(message: Json) -> BlinkLight:
    led = number(message.get("led", 0), 0, len(COLORS) - 1)
    on, off = (number(message.get(k, 1000), 0, MAX_LIGHT_MS) for k in ("ontime", "offtime"))
    times = number(message.get("count", 1), 1, MAX_BLINKS)
    if led is None or on is None or off is None or times is None:
        raise ValueError("a light that there is not")
    bright = number(message.get("brightness"), 0, _BRIGHTEST)
    level = None if bright is None else bright * 100 // _BRIGHTEST
    return BlinkLight(COLORS[led], on, off, times, level)


class _Order(Struct):
    """An order that is not answered. `due`: when an answer is not waited for any longer."""

    kind: str
    due: float | None = None


class Orders:
    """Orders on their way, each until its answer."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._waiting: dict[int, _Order] = {}

    def send(self, about: int, message: Json, now: float) -> bool:
        """Queue an order; return whether it is done with that, because nothing will answer it."""
        kind = text(message, "type")
        acknowledged = self._outbox.put(message, now, wake=True, about=about)
        if acknowledged or kind in _LIGHT:
            self._waiting[about] = _Order(kind, None if acknowledged else now + ANSWER_S)
        return about not in self._waiting

    def acknowledged(self, about: int, now: float) -> Reply | None:
        """The glasses have an order; return its answer if that is all."""
        order = self._waiting.get(about)
        if order is None:
            return None
        if order.kind in _LIGHT:
            order.due = now + ANSWER_S
            return None
        del self._waiting[about]
        return Done()

    def answered(self, kind: str, message: Json) -> tuple[int, Reply] | None:
        """Return the order that a message answers, and how."""
        failed = kind == _LIGHT_FAILED
        wanted = _LIGHT if failed else (kind.removesuffix("_response"),)
        about = next((n for n, order in self._waiting.items() if order.kind in wanted), None)
        if about is None or not (failed or kind.endswith("_response")):
            return None
        self._outbox.settle(about)
        del self._waiting[about]
        why = text(message, "error") or text(message, "message") or "they did not say why"
        failed = failed or message.get("success") is False
        return about, Failed("unsupported", why) if failed else Done()

    def give_up(self, about: int) -> Reply | None:
        """An order was never acknowledged; return its answer."""
        if self._waiting.pop(about, None) is None:
            return None
        return Failed("busy", "the glasses do not acknowledge it")

    def due(self) -> float | None:
        """Return when `over` has something to do."""
        return min((o.due for o in self._waiting.values() if o.due is not None), default=None)

    def over(self, now: float) -> list[int]:
        """Return the orders that the glasses have and will not answer."""
        late = [n for n, o in self._waiting.items() if o.due is not None and o.due <= now]
        for about in late:
            del self._waiting[about]
        return late
