"""What a Mentra Live reports of its Wi-Fi, gallery, video and motion sensor: JSON → events, and for
the glasses' end events → JSON. The messages are those of DOC (see `wire.py`), and older forms.
"""

import math
from typing import Any, Final

from firmware_bridge.codecs.mentra_live.conflicts import Dialect
from firmware_bridge.codecs.mentra_live.layers import Json, flag, number, text
from firmware_bridge.messages import OwnEvent
from firmware_bridge.own_commands import (
    MAX_SSID,
    GalleryChanged,
    HotspotChanged,
    MotionRead,
    StreamChanged,
    Vector,
    VideoChanged,
    WifiChanged,
    WifiFound,
    WifiNetwork,
)

MAX_NETWORKS: Final = 64
"""Networks of one message that are read; a message has at most 16 KiB."""
_OPEN: Final = frozenset({"", "open", "none", "nopass"})
_STREAMS: Final = frozenset({"streaming", "active", "reconnected", "streaming_started"})
"""States of a stream in which the picture is sent."""
_STREAM_ENDED: Final = frozenset({"error", "timeout", "disconnected", "reconnect_failed"})
"""States in which it is not, and will not be."""
_VIDEO: Final = {"recording_started": True, "already_recording": True}
_MOTION: Final = (("accelerometer", "accel"), ("gyroscope", "gyro"), ("magnetometer", "mag"))
_Report = WifiChanged | WifiFound | GalleryChanged | VideoChanged | StreamChanged | HotspotChanged


def report_of(kind: str, message: Json) -> OwnEvent | None:
    """Return what a message reports; None if it is none of these, or damaged."""
    match kind:
        case "wifi_status" | "wifi_status_update":
            return _wifi(message)
        case "wifi_scan_result" | "wifi_scan_results_enhanced":
            return _networks(message)
        case "hotspot_status_update" | "hotspot_error":
            return _hotspot(kind, message)
        case "gallery_status":
            return _gallery(message)
        case "video_recording_status" | "video_recording_status_update":
            return _video(message)
        case "stream_status" | "rtmp_stream_status" | "rtmp_status_response":
            return _stream(message)
        case "imu_response":
            return _motion(message)
    return None


def _wifi(message: Json) -> WifiChanged | None:
    connected = message.get("connected", False)  # later builds leave out what is false
    if not isinstance(connected, bool):
        return None
    address = text(message, "local_ip") or text(message, "ip")
    named = (_ssid(message.get("ssid")), _printable(address)[:45])
    return WifiChanged(True, *named) if connected else WifiChanged(False)


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
    dbm = number(entry.get("signal_strength", entry.get("signalStrength")), -127, 20)
    return WifiNetwork(_ssid(entry.get("ssid")), dbm, is_open)


def _ssid(name: object) -> str:
    """Return a network's name; "" if it has none, or one that no network can have."""
    words = _printable(name) if isinstance(name, str) else ""
    return words if len(words.encode()) <= MAX_SSID else ""


def _printable(words: str) -> str:
    return "".join(filter(str.isprintable, words))


def _said(message: Json, *keys: str) -> str:
    """Return the first of these texts that is there and says something."""
    return next((words for key in keys if (words := _printable(text(message, key)))), "")


def _hotspot(kind: str, message: Json) -> HotspotChanged | None:
    if kind == "hotspot_error":
        why = _said(message, "error_message", "errorMessage", "error", "message")
        return HotspotChanged(False, problem=why or "the glasses did not say why")
    on = flag(message.get("hotspot_enabled", False))
    if not on:
        return None if on is None else HotspotChanged(False)
    password = _said(message, "hotspot_password")[:63]
    address = _said(message, "hotspot_gateway_ip", "local_ip", "hotspot_ip")[:45]
    return HotspotChanged(True, _ssid(message.get("hotspot_ssid")), password, address)


def _gallery(message: Json) -> GalleryChanged | None:
    photos, videos = (number(message.get(key, 0), 0, 10**6) for key in ("photos", "videos"))
    if photos is None or videos is None:
        return None
    size = number(message.get("total_size"), 0, 2**50)
    return GalleryChanged(photos, videos, size, _said(message, "camera_busy")[:20])


def _video(message: Json) -> VideoChanged:
    inner = message.get("data")
    data: Json = {**message, **inner} if isinstance(inner, dict) else message
    status = _said(data, "status")
    recording = flag(data.get("recording"))
    recording = _VIDEO.get(status, False) if recording is None else recording
    ms = number(data.get("duration_ms"), 0, 10**9)
    problem = ""
    if data.get("success") is False and status not in ("already_recording", "not_recording"):
        problem = _said(data, "details", "error", "message") or status or "it failed"
    return VideoChanged(recording, None if ms is None else ms / 1000, problem)


def _stream(message: Json) -> StreamChanged:
    state = _said(message, "status")[:40]
    streaming = flag(message.get("streaming"))
    if streaming is None:
        streaming = state in _STREAMS
    problem = "" if state not in _STREAM_ENDED else state
    return StreamChanged(streaming, state, _said(message, "errorDetails", "error") or problem)


def _motion(message: Json) -> MotionRead | None:
    acceleration, rotation, magnetism = (_vector(message, names) for names in _MOTION)
    return None if acceleration is None else MotionRead(acceleration, rotation, magnetism)


def _vector(message: Json, names: tuple[str, ...]) -> Vector | None:
    """Return three numbers, which are named, or in a list."""
    value = next((message[name] for name in names if name in message), None)
    if isinstance(value, dict):
        value = [value.get(axis) for axis in "xyz"]
    if not isinstance(value, list) or len(value) != 3:
        return None
    x, y, z = (
        float(each)
        if isinstance(each, int | float) and abs(each) < 1e9 and math.isfinite(each)
        else math.nan
        for each in value
    )
    return None if math.isnan(x + y + z) else (x, y, z)


# ------------------------------------------------------------------ the glasses' end


def message_of(event: _Report | MotionRead, dialect: Dialect) -> dict[str, Any]:
    """Return a report as this firmware sends it."""
    match event:
        case WifiChanged(connected, ssid, address):
            named = {"ssid": ssid, "local_ip": address} if dialect.names_network else {}
            return {"type": "wifi_status", "connected": connected, **(named if connected else {})}
        case WifiFound(networks, is_last):
            if not dialect.finishes_scan:
                return {"type": "wifi_scan_result", "networks": [each.ssid for each in networks]}
            found = [_entry(each) for each in networks]
            complete = {"scan_complete": is_last is not False}
            return {"type": "wifi_scan_result", **complete, "networks_neo": found}
        case HotspotChanged(on, ssid, password, address, problem):
            if problem:
                return {"type": "hotspot_error", "error_message": problem}
            named = {"hotspot_ssid": ssid, "hotspot_password": password}
            named |= {"hotspot_gateway_ip": address}
            return {"type": "hotspot_status_update", "hotspot_enabled": on, **(named if on else {})}
        case GalleryChanged(photos, videos, size, busy):
            counts: dict[str, Any] = {"photos": photos, "videos": videos, "total": photos + videos}
            counts |= {"total_size": size or 0, "has_content": photos + videos > 0}
            counts |= {"camera_busy": busy} if busy else {}
            return {"type": "gallery_status", **counts}
        case VideoChanged(recording, seconds, problem):
            return _video_message(recording, seconds, problem)
        case StreamChanged(streaming, state, problem):
            kind = f"{dialect.stream}_status"
            why = {"errorDetails": problem} if problem else {}
            return {"type": kind, "status": state, "streaming": streaming, **why}
        case MotionRead(acceleration, rotation):
            return _motion_message(acceleration, rotation or (0.0,) * 3, named=dialect.names_axes)


def _entry(network: WifiNetwork) -> dict[str, Any]:
    security = "" if network.is_open else "WPA2"
    return {"ssid": network.ssid, "signal_strength": network.dbm, "security": security}


def _video_message(recording: bool, seconds: float | None, problem: str) -> dict[str, Any]:  # noqa: FBT001 - fields of an event
    kind = {"type": "video_recording_status", "success": not problem}
    if seconds is not None:
        return {**kind, "data": {"recording": recording, "duration_ms": round(seconds * 1000)}}
    done = "recording_started" if recording else "recording_stopped"
    return {**kind, "status": problem or done}


def _motion_message(acceleration: Vector, rotation: Vector, *, named: bool) -> dict[str, Any]:
    if not named:
        return {"type": "imu_response", "accel": list(acceleration), "gyro": list(rotation)}
    axes = (dict(zip("xyz", each, strict=True)) for each in (acceleration, rotation))
    return {"type": "imu_response", "timestamp": 0} | dict(
        zip(("accelerometer", "gyroscope"), axes, strict=True)
    )
