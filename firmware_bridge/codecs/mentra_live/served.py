"""The glasses' end of `orders.py`, for the simulator and the tests: JSON → commands, and reports of
the glasses → JSON.
"""

from typing import Any

from firmware_bridge.codecs.mentra_live.conflicts import Dialect
from firmware_bridge.codecs.mentra_live.layers import Json, number, text
from firmware_bridge.codecs.mentra_live.orders import COLORS
from firmware_bridge.messages import Command
from firmware_bridge.own_commands import (
    MAX_BLINKS,
    MAX_LIGHT_MS,
    BlinkLight,
    ForgetWifi,
    GalleryChanged,
    GetGallery,
    GetWifi,
    JoinWifi,
    KeepPictures,
    LeaveWifi,
    ScanWifi,
    SwitchLightOff,
    WifiChanged,
    WifiFound,
    WifiNetwork,
)


def command_of(kind: str, message: Json) -> Command | None:
    """Return the order that a message is; None for another, or for one that is damaged."""
    try:
        return _command_of(kind, message)
    except ValueError:
        return None


def _command_of(kind: str, message: Json) -> Command | None:
    match kind:
        case "request_wifi_status":
            return GetWifi()
        case "request_wifi_scan":
            return ScanWifi()
        case "set_wifi_credentials":
            return JoinWifi(text(message, "ssid"), text(message, "password"))
        case "disconnect_wifi":
            return LeaveWifi()
        case "forget_wifi":
            return ForgetWifi(text(message, "ssid"))
        case "query_gallery_status":
            return GetGallery()
        case "save_in_gallery_mode":
            return KeepPictures(message.get("active") is True)
        case "rgb_led_control_off":
            return SwitchLightOff()
        case "rgb_led_control_on":
            return _blink(message)
    return None


def _blink(message: Json) -> BlinkLight:
    led = number(message.get("led", 0), 0, len(COLORS) - 1)
    on, off = (number(message.get(k, 1000), 0, MAX_LIGHT_MS) for k in ("ontime", "offtime"))
    times = number(message.get("count", 1), 1, MAX_BLINKS)
    if led is None or on is None or off is None or times is None:
        raise ValueError("a light that there is not")
    bright = number(message.get("brightness"), 0, 255)
    return BlinkLight(COLORS[led], on, off, times, None if bright is None else bright * 100 // 255)


def report(event: WifiChanged | WifiFound | GalleryChanged, dialect: Dialect) -> dict[str, Any]:
    """Return a report as this firmware sends it."""
    match event:
        case WifiChanged(connected, ssid, address):
            named = {"ssid": ssid, "local_ip": address} if dialect.names_network else {}
            return {"type": "wifi_status", "connected": connected, **(named if connected else {})}
        case WifiFound(networks, is_last):
            if not dialect.finishes_scan:
                return {"type": "wifi_scan_result", "networks": [each.ssid for each in networks]}
            found = [_network(each) for each in networks]
            return {
                "type": "wifi_scan_result",
                "scan_complete": is_last is not False,
                "networks_neo": found,
            }
        case GalleryChanged(photos, videos, size, busy):
            counts: dict[str, Any] = {"photos": photos, "videos": videos, "total": photos + videos}
            counts |= {"total_size": size or 0, "has_content": photos + videos > 0}
            return {
                "type": "gallery_status",
                **counts,
                **({"camera_busy": busy} if busy else {}),
            }


def _network(network: WifiNetwork) -> dict[str, Any]:
    security = "" if network.is_open else "WPA2"
    return {"ssid": network.ssid, "signal_strength": network.dbm, "security": security}
