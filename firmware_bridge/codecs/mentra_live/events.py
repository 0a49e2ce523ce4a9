"""Translates what a Mentra Live reports unasked into events, each reported once."""

from typing import Any, Final

from firmware_bridge.codecs.mentra_live.layers import ChipCommand, Json, flag, number, text
from firmware_bridge.messages import BatteryChanged, Event, Gesture, Gestured

CHARGING_MV: Final = 4000
"""Millivolts above which M26 takes the battery as charging; used where nothing better is said."""
SAME_S: Final = 0.4
"""Seconds within which a gesture that the chip and the application both report is one."""
_TOUCHES: Final = {0: Gesture.TAP, 1: Gesture.DOUBLE_TAP, 3: Gesture.BUTTON_LONG}
"""Touch pad, by `sr_tpevt`: 2 is a triple tap, 4 to 7 are swipes, which have no meaning here."""
_PRESSES: Final = {
    "short": Gesture.BUTTON,
    "press": Gesture.BUTTON,
    "short_press": Gesture.BUTTON,
    "long": Gesture.BUTTON_LONG,
    "long_press": Gesture.BUTTON_LONG,
    "double": Gesture.DOUBLE_TAP,
    "double_press": Gesture.DOUBLE_TAP,
}
_TOUCHED: Final = {
    "tap": Gesture.TAP,
    "single_tap": Gesture.TAP,
    "double_tap": Gesture.DOUBLE_TAP,
    "long_press": Gesture.BUTTON_LONG,
}
"""The touch pad as the application reports it, by name."""
_HEAD: Final = {
    "head_up": Gesture.HEAD_UP,
    "head_down": Gesture.HEAD_DOWN,
    "nod_yes": Gesture.NOD,
    "shake_no": Gesture.SHAKE,
}
_WITHOUT_SOUND: Final = "K900"
"""The base model; the others code LC3 (J25)."""


class Version:
    """What the glasses say of themselves, in one message or three."""

    def __init__(self) -> None:
        self.build = 0
        self.text = ""
        self.serial = ""
        self._device = ""

    def learn(self, message: Json) -> None:
        self.build = number(message.get("build_number"), 1, 2**31) or self.build
        self.text = text(message, "app_version", self.text)[:64]
        self.serial = text(message, "serial_number", self.serial)[:64]
        self._device = text(message, "device_model", self._device)

    @property
    def without_sound(self) -> bool:
        return self._device == _WITHOUT_SOUND

    @property
    def capabilities(self) -> dict[str, Any]:
        """Return what differs from the catalogue."""
        return dict.fromkeys(("microphone", "speaker"), False) if self.without_sound else {}


class EventReader:
    """Messages → events. Invalid values are ignored: a newer firmware may mean something else."""

    def __init__(self) -> None:
        self._battery: BatteryChanged | None = None
        self._knows_charging = False
        self._gesture: tuple[Gesture, str, float] | None = None

    def chip(self, command: ChipCommand, now: float) -> list[Event]:
        """Process a message of the chip."""
        body = command.body
        match command.name:
            case "sr_hrt":
                return self._charge(body.get("pt"), flag(body.get("charg")))
            case "sr_batv":
                millivolts = number(body.get("vt"), 1, 20_000)
                known = self._knows_charging or millivolts is None
                above = None if known else (millivolts or 0) > CHARGING_MV
                return self._charge(body.get("pt"), above, guess=True)
            case "sr_tpevt":
                touch = number(body.get("type"), 0, 7)
                gesture = None if touch is None else _TOUCHES.get(touch)
                return self._made(gesture, command.name, now)
        return []

    def message(self, kind: str, message: Json, now: float) -> list[Event]:
        """Process a message of the application."""
        match kind:
            case "battery_status":
                level = message.get("percent", message.get("level"))
                return self._charge(level, flag(message.get("charging")))
            case "button_press":
                return self._made(_PRESSES.get(text(message, "pressType")), kind, now)
            case "touch_event":
                return self._made(_TOUCHED.get(text(message, "gesture_name")), kind, now)
            case "imu_gesture_response" | "imu_gesture_detected":
                return self._made(_HEAD.get(text(message, "gesture")), kind, now)
        return []

    def _made(self, gesture: Gesture | None, source: str, now: float) -> list[Event]:
        if gesture is None:
            return []
        last = self._gesture
        if last is not None and last[0] is gesture and last[1] != source and now - last[2] < SAME_S:
            return []
        self._gesture = gesture, source, now
        return [Gestured(gesture)]

    def _charge(self, level: object, charging: bool | None, *, guess: bool = False) -> list[Event]:  # noqa: FBT001 - None: unknown
        percent = number(level, 0, 100)
        if percent is None:
            return []
        self._knows_charging = self._knows_charging or (charging is not None and not guess)
        was = self._battery
        before = was is not None and was.charging
        now = self._battery = BatteryChanged(percent, before if charging is None else charging)
        return [] if now == was else [now]
