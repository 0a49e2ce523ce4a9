"""What a Mentra Live answers by itself, for its peripheral end: orders of the maker's application
that nobody who wears simulated glasses would notice (DOC).
"""

from typing import Any, Final

from firmware_bridge.codecs.mentra_live.layers import Json, text

GESTURES: Final = ("head_up", "head_down", "nod_yes", "shake_no")
_OTA: Final = {
    "type": "ota_status",
    "status": "idle",
    "total_steps": 0,
    "current_step": 0,
    "step_type": "apk",
    "phase": "download",
    "step_percent": 0,
    "overall_percent": 0,
}


def answers_to(kind: str, message: Json, *, online: bool) -> list[dict[str, Any]]:
    """Return the answers to a message; none to one that has none. `online`: they have Wi-Fi."""
    match kind:
        case "ping":
            return [{"type": "pong"}]
        case "auth_token":
            return [{"type": "token_status", "success": bool(text(message, "coreToken"))}]
        case "set_photo_mode":
            return [{"type": "set_photo_mode_ack", "mode": text(message, "mode")}]
        case "imu_subscribe_gesture":
            wanted = message.get("gestures")
            known = [each for each in GESTURES if isinstance(wanted, list) and each in wanted]
            if not known:
                return [{"type": "imu_error", "error": "No valid gestures specified"}]
            return [{"type": "imu_gesture_subscribed", "gestures": known}]
        case "imu_unsubscribe_gesture" | "imu_stream_stop":
            return [{"type": "imu_ack", "message": kind}]
        case "rgb_led_photo_flash" | "rgb_led_video_solid":
            return [{"type": f"{kind}_response", "success": True}]
        case "camera_fov_setting":
            done = {"status": "ready", "hardware_applied": True}
            return [{"type": "settings_ack", "setting": "camera_fov", **done}]
        case "camera_tuning_config":
            return [{"type": "settings_ack", "setting": "camera_tuning", "status": "applied"}]
        case "ota_query_status":
            return [{**_OTA}]
        case "ota_start":
            failed = {"status": "failed", "error_message": "no update" if online else "no Wi-Fi"}
            return [{"type": "ota_start_ack", "timestamp": 0}, {**_OTA, **failed}]
    return []
