"""Describes, in words for a person, the hardware that glasses lack."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from firmware_bridge.capabilities import MENTRA_FIELDS, Capabilities, Hardware, Scalar, key_of
from tools_cache.registry.models import Detail

KNOWN: Final = frozenset(h.value for h in Hardware)
MAX_WORD: Final = 80
"""Characters of a word from outside."""

WORDS: Final = {
    Hardware.CAMERA: "a camera",
    Hardware.DISPLAY: "a display",
    Hardware.MICROPHONE: "a microphone",
    Hardware.SPEAKER: "a speaker",
    Hardware.IMU: "a motion sensor",
    Hardware.BUTTON: "a button",
    Hardware.LIGHT: "a light",
    Hardware.WIFI: "Wi-Fi",
    Hardware.EXIST: "glasses",
}
_THAT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "haptic": "vibrate",
        "display.bitmap": "shows pictures",
        "display.is_color": "shows colours",
        "display.tiles": "changes in parts",
        "display.brightness": "lets its brightness be set",
        "display.silent": "can be silenced",
        "display.position": "lets its picture be moved",
        "display.dashboard_content": "has a dashboard that can be filled",
        "display.dashboard": "has a dashboard of its own",
        "display.notifications": "shows notifications of its own",
        "display.preferences": "has further settings of its own",
        "display.restart": "can be restarted",
        "display.navigation": "shows turns by itself",
        "display.translation": "shows translations by itself",
        "microphone.notes": "keeps spoken notes",
        "light.brightness": "can be dimmed",
        "light.blink": "can be switched",
        "wifi.setup": "can be set up",
        "wifi.hotspot": "can be a network of its own",
        "camera.gallery": "keeps pictures",
        "microphone.gain": "lets its gain be set",
        "microphone.vad": "notices speech by itself",
        "speaker.private": "only the wearer hears",
        "camera.record": "records video",
        "camera.stream": "streams video",
        "camera.focus": "focuses",
        "camera.hdr": "takes HDR pictures",
        "imu.compass": "has a compass",
        "imu.gyroscope": "has a gyroscope",
        "imu.accelerometer": "has an accelerometer",
        "wifi.connected": "is connected",
    }
)
"""Ends of `a display that …`."""
_UNIT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "display.lines": "lines of text",
        "display.width": "pixels across",
        "display.height": "pixels down",
        "display.bpp": "bits a pixel",
        "display.count": "panels",
        "camera.width": "pixels across",
        "camera.height": "pixels down",
        "imu.axes": "axes",
        "display.page_bytes": "bytes a page",
    }
)
"""Units of `a display with at least 5 …`."""


class Lack(Struct, frozen=True):
    """An unmet need: the type, and the failing details with known values (none: all of it).
    `instead`: a type that would do as well and is missing too, or "".
    """

    type: str
    failing: tuple[tuple[Detail, Scalar | None], ...] = ()
    instead: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.type}.{detail.field}" for detail, _ in self.failing) or (self.type,)


class Here(Struct, frozen=True):
    """The glasses compared: record (None: never any), display name, whether they are away."""

    record: Capabilities | None
    title: str
    stale: bool

    def __str__(self) -> str:
        who = "the glasses last seen" if self.stale else "these glasses"
        return f"{who} ({self.title})" if self.title else who


def phrase(lack: Lack) -> str:
    """Return one need: `a display with at least 5 lines of text that shows pictures`."""
    found = " ".join((word(lack.type), *_qualities(lack)))
    return f"{found} or {word(lack.instead)}" if lack.instead else found


def word(hardware: str) -> str:
    """Return a hardware type with its article; an unknown one as it is."""
    return WORDS[Hardware(hardware)] if hardware in KNOWN else _clean(hardware)


def tail(lacks: Sequence[Lack], here: Here) -> str:
    """Return why it is missing."""
    strange = list(dict.fromkeys(word(lack.type) for lack in lacks if lack.type not in KNOWN))
    if strange:
        return f"this version cannot tell whether glasses have {joined(strange)}"
    if here.record is None:
        return "no glasses are known yet"
    if not any(lack.failing for lack in lacks):
        return f"{here} have {({1: 'none', 2: 'neither'}).get(len(lacks), 'none of them')}"
    if len(lacks) > 1 or len(lacks[0].failing) > 1:
        return f"{here} lack that"
    ((_, value),) = lacks[0].failing
    if lacks[0].type == Hardware.EXIST:
        return f"{here} do not" if value is not None else f"{here} do not say that they do"
    noun = word(lacks[0].type).removeprefix("a ")
    if value is None:
        return f"{here} do not report this about their {noun}"
    return f"{here} have {f'no such {noun}' if isinstance(value, bool) else _clean(str(value))}"


def needed(lacks: Sequence[Lack]) -> str:
    """Join several needs; parts with details of their own are separated by a comma."""
    found = list(dict.fromkeys(map(phrase, lacks)))
    return ", and ".join(found) if any(lack.failing for lack in lacks) else joined(found)


def joined(parts: Iterable[str]) -> str:
    """Join as a sentence does, each part once."""
    found = list(dict.fromkeys(parts))
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}"


def _qualities(lack: Lack) -> tuple[str, ...]:
    """Return the details: `with at least 5 lines of text`, then `that shows pictures`."""
    counted = [_counted(key, d) for key, d in _keys(lack) if d.equal is None]
    rest = [_that(key, d) for key, d in _keys(lack) if d.equal is not None]
    return (
        *((f"with {joined(counted)}",) if counted else ()),
        *((f"that {joined(rest)}",) if rest else ()),
    )


def _keys(lack: Lack) -> list[tuple[str, Detail]]:
    if not lack.failing:
        return []
    full = [(key_of(Hardware(lack.type), detail.field), detail) for detail, _ in lack.failing]
    return [(MENTRA_FIELDS.get(key, key), detail) for key, detail in full]


def _counted(key: str, wanted: Detail) -> str:
    unit = _UNIT.get(key, f"as its {wanted.field}")
    bounds = [f"at least {wanted.least:g}"] if wanted.least is not None else []
    bounds += [f"at most {wanted.most:g}"] if wanted.most is not None else []
    return f"{joined(bounds)} {unit}"


def _that(key: str, wanted: Detail) -> str:
    if wanted.equal is True and key in _THAT:
        return _THAT[key]
    value = str(wanted.equal).lower() if isinstance(wanted.equal, bool) else str(wanted.equal)
    return f"has {_clean(value)} as its {wanted.field}"


def _clean(text: str) -> str:
    """Return a word from outside for one line of a terminal."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(printable.split())[:MAX_WORD]
