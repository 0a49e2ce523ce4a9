"""What a pair of glasses can do: each value with its origin and age.

A missing key means "unknown", never "no". Names follow the MentraOS capability record as dotted
keys.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct


class Origin(StrEnum):
    """Where a value comes from. When records are merged, later members override earlier ones."""

    CATALOGUE = "catalogue"
    FIRMWARE = "firmware"
    CONFIGURED = "configured"


class Hardware(StrEnum):
    """Hardware types an app can require (MentraOS `HardwareType`)."""

    CAMERA = "CAMERA"
    DISPLAY = "DISPLAY"
    MICROPHONE = "MICROPHONE"
    SPEAKER = "SPEAKER"
    IMU = "IMU"
    BUTTON = "BUTTON"
    LIGHT = "LIGHT"
    WIFI = "WIFI"
    EXIST = "EXIST"


FLAG: Final[Mapping[Hardware, str]] = MappingProxyType(
    {
        Hardware.CAMERA: "camera",
        Hardware.DISPLAY: "display",
        Hardware.MICROPHONE: "microphone",
        Hardware.SPEAKER: "speaker",
        Hardware.IMU: "imu",
        Hardware.BUTTON: "button",
        Hardware.LIGHT: "light",
        Hardware.WIFI: "wifi",
    }
)
"""The boolean key for each hardware type; EXIST is true for any record."""

MENTRA_FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "display.maxTextLines": "display.lines",
        "display.canDisplayBitmap": "display.bitmap",
        "display.isColor": "display.is_color",
        "display.resolution.width": "display.width",
        "display.resolution.height": "display.height",
        "display.adjustBrightness": "display.brightness",
        "microphone.hasVAD": "microphone.vad",
        "speaker.isPrivate": "speaker.private",
        "camera.resolution.width": "camera.width",
        "camera.resolution.height": "camera.height",
        "camera.hasHDR": "camera.hdr",
        "camera.hasFocus": "camera.focus",
        "camera.video.canRecord": "camera.record",
        "camera.video.canStream": "camera.stream",
        "camera.video.supportedStreamTypes": "camera.streams",
        "imu.axisCount": "imu.axes",
        "imu.hasAccelerometer": "imu.accelerometer",
        "imu.hasCompass": "imu.compass",
        "imu.hasGyroscope": "imu.gyroscope",
    }
)
"""MentraOS's detail names that differ from ours → our keys; others are equal (`display.color`)."""

MAX_KEYS: Final = 128
"""Maximum number of keys a firmware may announce."""

_PRECEDENCE: Final = tuple(Origin)
Scalar = bool | int | float | str


class Value(Struct, frozen=True):
    """One value, its origin, and when it was learned (seconds, CLOCK_BOOTTIME)."""

    value: Scalar
    origin: Origin
    learned_at: float


class Capabilities(Struct, frozen=True):
    """An immutable record for one model; keys as in PROFILE.md: `display`, `display.width` …"""

    model: str
    values: Mapping[str, Value]

    @classmethod
    def of(
        cls, model: str, facts: Mapping[str, Scalar], *, origin: Origin, now: float
    ) -> "Capabilities":
        """Build a record whose facts all come from one origin."""
        return cls(model, MappingProxyType({k: Value(v, origin, now) for k, v in facts.items()}))

    def get(self, key: str, default: Any = None) -> Any:
        found = self.values.get(key)
        return default if found is None else found.value

    def has(self, hardware: Hardware) -> bool:
        """True only if known to be present; unknown counts as absent (fail closed)."""
        return True if hardware is Hardware.EXIST else self.get(FLAG[hardware]) is True

    def detail(self, hardware: Hardware, field: str) -> Scalar | None:
        """Return `field` of this hardware (MentraOS's name or ours); None if unknown or absent."""
        key = key_of(hardware, field)
        found: Scalar | None = self.get(MENTRA_FIELDS.get(key, key)) if self.has(hardware) else None
        return found

    def merged(self, other: "Capabilities") -> "Capabilities":
        """Combine two records of the same glasses by key: higher origin wins, then newer value."""
        values = dict(self.values)
        for key, new in other.values.items():
            old = values.get(key)
            if old is None or _rank(new) >= _rank(old):
                values[key] = new
        return Capabilities(other.model or self.model, MappingProxyType(values))

    def report(self, now: float) -> dict[str, dict[str, Any]]:
        """Render for the cloud: key → {value, origin, ageS}."""
        return {
            key: {
                "value": v.value,
                "origin": v.origin.value,
                "ageS": round(max(0.0, now - v.learned_at), 1),
            }
            for key, v in sorted(self.values.items())
        }

    @classmethod
    def from_report(
        cls, model: str, report: Mapping[str, Mapping[str, Any]], *, now: float
    ) -> "Capabilities":
        """Inverse of `report`, for the record on disk. Raises KeyError or ValueError if damaged."""
        return cls(
            model,
            MappingProxyType(
                {
                    key: Value(entry["value"], Origin(entry["origin"]), now - float(entry["ageS"]))
                    for key, entry in report.items()
                }
            ),
        )


def key_of(hardware: Hardware, field: str) -> str:
    """Return the key of a detail; of EXIST it is a detail of the glasses themselves."""
    flag = FLAG.get(hardware)
    return f"{flag}.{field}" if flag else field


def _rank(value: Value) -> tuple[int, float]:
    return _PRECEDENCE.index(value.origin), value.learned_at


def missing(required: Iterable[Hardware], record: Capabilities | None) -> tuple[Hardware, ...]:
    """Return which of `required` these glasses lack; with no record, all of them (fail closed)."""
    return tuple(h for h in required if record is None or not record.has(h))
