"""What a pair of glasses can do: one shape, every value with its origin and age.

Refuses to know who needs an ability. Absence of a key is "unknown", never "no".
Names follow the MentraOS capability record (`hasCamera`, `display.maxTextLines` …) spelled as
dotted keys.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final


class Origin(StrEnum):
    """Who said so. Later members overrule earlier ones when records are merged."""

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
"""The boolean key that answers each hardware type; EXIST is answered by the record being there
at all.
"""

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
"""MentraOS's names of what lies below a flag → our keys; names not here are the same in both
(`display.color`).
"""

MAX_KEYS: Final = 128
"""Bound on what a firmware may announce."""

_PRECEDENCE: Final = tuple(Origin)
Scalar = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Value:
    """One fact: what, who said it, and when we learned it (seconds on CLOCK_BOOTTIME)."""

    value: Scalar
    origin: Origin
    learned_at: float


@dataclass(frozen=True, slots=True)
class Capabilities:
    """An immutable record for one model. Keys: `display`, `display.width`, `speaker.codecs` …
    (see PROFILE.md).
    """

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
        """True only when it is known to be there; unknown counts as absent (fail closed)."""
        return True if hardware is Hardware.EXIST else self.get(FLAG[hardware]) is True

    def detail(self, hardware: Hardware, field: str) -> Scalar | None:
        """What is known of `field` of this hardware, by MentraOS's name or ours; None when nothing
        is, and for hardware that is not there: MentraOS's record of no glasses has a display's
        details.
        """
        key = f"{FLAG.get(hardware, '')}.{field}"
        found: Scalar | None = self.get(MENTRA_FIELDS.get(key, key)) if self.has(hardware) else None
        return found

    def merged(self, other: "Capabilities") -> "Capabilities":
        """Combine two records of the same glasses, key by key: the higher origin wins, then the
        later word.
        """
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
        """Inverse of `report`, for the last-known record kept on disk. Raises KeyError or
        ValueError when damaged.
        """
        return cls(
            model,
            MappingProxyType(
                {
                    key: Value(entry["value"], Origin(entry["origin"]), now - float(entry["ageS"]))
                    for key, entry in report.items()
                }
            ),
        )


def _rank(value: Value) -> tuple[int, float]:
    return _PRECEDENCE.index(value.origin), value.learned_at


def missing(required: Iterable[Hardware], record: Capabilities | None) -> tuple[Hardware, ...]:
    """Say which of `required` these glasses lack; with no record, all of them (fail closed)."""
    return tuple(h for h in required if record is None or not record.has(h))
