"""Firmware variants of the simulated Omi, OMI Glass and OpenGlass: where sources conflict, the
simulator can be either.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from firmware_bridge.codecs.omi.wire import FEATURES, HAS_BUTTON, HAS_MOTION, SOUND, Dialect
from firmware_bridge.sim.quirks import choose

_STOCK: Final[Mapping[str, Any]] = {}
QUIRKS: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "codec": {"stock": _STOCK, **{str(number): {"codec": number} for number in SOUND}},
    "codec-1-width": {"16": _STOCK, "8": {"narrow": True}},
    "fragment-id": {"packet": _STOCK, "frame": {"numbers_frames": True}},
    "piece-length": {"mtu-6": _STOCK, "mtu-3": {"overlong": True}},
    "orientation": {"stock": _STOCK, "sent": {"oriented": True}, "none": {"oriented": False}},
    "interval": {
        "stock": _STOCK,
        "steps": {"fixed_interval_s": None},
        "30": {"fixed_interval_s": 30.0},
    },
    "photos-unasked": {"stock": _STOCK, "no": {"repeats": False}, "yes": {"repeats": True}},
    "long-press": {"off": _STOCK, "reported": {"says_long": True}},
    "button": {"yes": _STOCK, "no": {"features": FEATURES & ~HAS_BUTTON}},
    "features": {
        "stock": _STOCK,
        "none": {"features": 0},
        "motion": {"features": FEATURES | HAS_MOTION},
    },
    "address-length": {"two": _STOCK, "one": {"short_address": True}},
}
"""Name → value → what it changes; the first value is stock."""


def dialect(stock: Dialect, words: Sequence[str]) -> Dialect:
    """Parse `NAME=VALUE` words, on top of a model's own firmware. Raises `QuirkError`."""
    changes: dict[str, Any] = {}
    for name, value in choose(QUIRKS, words).items():
        changes.update(QUIRKS[name][value])
    return replace(stock, **changes)
