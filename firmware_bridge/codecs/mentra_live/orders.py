"""What a Mentra Live is ordered to do beside photos and sound, and what it reports of that: its
Wi-Fi, its light and its gallery.

The messages are those of DOC (see `wire.py`). The glasses acknowledge that they have a message,
which is all that most orders are answered by; only for the light they say whether they did it.
"""

from typing import Any, Final

from msgspec import Struct

from firmware_bridge.codecs.mentra_live.layers import Json, number, text
from firmware_bridge.codecs.mentra_live.outbox import Outbox
from firmware_bridge.messages import Command, Done, Failed, OwnEvent, Reply
from firmware_bridge.own_commands import (
    MAX_SSID,
    BlinkLight,
    ForgetWifi,
    GalleryChanged,
    GetGallery,
    GetWifi,
    JoinWifi,
    KeepPictures,
    LeaveWifi,
    LightColor,
    ScanWifi,
    SwitchLightOff,
    WifiChanged,
    WifiFound,
    WifiNetwork,
)

MAX_NETWORKS: Final = 64
"""Networks of one message that are read; a message has at most 16 KiB."""
ANSWER_S: Final = 2.0
"""Seconds to wait for an answer once the glasses have the order: older builds send none."""
COLORS: Final = tuple(LightColor)
"""By the number that they have in a message."""
_LIGHT: Final = ("rgb_led_control_on", "rgb_led_control_off")
_LIGHT_FAILED: Final = "rgb_led_control_error"
_BRIGHTEST: Final = 255
_OPEN: Final = frozenset({"", "open", "none", "nopass"})


def message_of(command: Command) -> Json | None:
    """Return the message of an order; None for one that these glasses do not have."""
    match command:
        case GetWifi():
            return {"type": "request_wifi_status"}
        case ScanWifi():
            return {"type": "request_wifi_scan"}
        case JoinWifi(ssid, password):
            return {"type": "set_wifi_credentials", "ssid": ssid, "password": password}
        case LeaveWifi():
            return {"type": "disconnect_wifi"}
        case ForgetWifi(ssid):
            return {"type": "forget_wifi", "ssid": ssid}
        case GetGallery():
            return {"type": "query_gallery_status"}
        case KeepPictures(on):
            return {"type": "save_in_gallery_mode", "active": on}
        case BlinkLight():
            return _blink(command)
        case SwitchLightOff():
            return {"type": _LIGHT[1]}
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


# ------------------------------------------------------------------ reports


def report_of(kind: str, message: Json) -> OwnEvent | None:
    """Return what a message reports; None if it is none of these, or damaged."""
    match kind:
        case "wifi_status" if isinstance(connected := message.get("connected", False), bool):
            if not connected:  # later builds leave out what is false
                return WifiChanged(False)
            address = text(message, "local_ip") or text(message, "ip")
            return WifiChanged(True, _ssid(message.get("ssid")), _printable(address)[:45])
        case "wifi_scan_result":
            return _networks(message)
        case "gallery_status":
            return _gallery(message)
    return None


def _networks(message: Json) -> WifiFound | None:
    detailed, names = message.get("networks_neo"), message.get("networks")
    listed = detailed if isinstance(detailed, list) else names
    if not isinstance(listed, list):
        return None
    found = {network.ssid: network for network in map(_network, listed[:MAX_NETWORKS])}
    found.pop("", None)
    complete = message.get("scan_complete")
    return WifiFound(tuple(found.values()), complete if isinstance(complete, bool) else None)


def _network(entry: object) -> WifiNetwork:
    if not isinstance(entry, dict):
        return WifiNetwork(_ssid(entry))
    secret, security = entry.get("requiresPassword"), entry.get("security")
    is_open = None if not isinstance(secret, bool) else not secret
    if isinstance(security, str):
        is_open = security.casefold() in _OPEN
    dbm = number(_dbm(entry), -127, 20)
    return WifiNetwork(_ssid(entry.get("ssid")), dbm, is_open)


def _dbm(entry: dict[str, Any]) -> object:
    return entry.get("signal_strength", entry.get("signalStrength"))


def _ssid(name: object) -> str:
    """Return a network's name; "" if it has none, or one that no network can have."""
    words = _printable(name) if isinstance(name, str) else ""
    return words if len(words.encode()) <= MAX_SSID else ""


def _printable(words: str) -> str:
    return "".join(filter(str.isprintable, words))


def _gallery(message: Json) -> GalleryChanged | None:
    photos, videos = (number(message.get(key, 0), 0, 10**6) for key in ("photos", "videos"))
    if photos is None or videos is None:
        return None
    size = number(message.get("total_size"), 0, 2**50)
    return GalleryChanged(photos, videos, size, _printable(text(message, "camera_busy"))[:20])
