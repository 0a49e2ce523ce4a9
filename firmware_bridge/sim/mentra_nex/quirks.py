"""Firmware variants of the simulated Mentra Display: a switch for each conflict of sources."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from firmware_bridge.codecs.mentra_nex.conflicts import CONFLICTS
from firmware_bridge.codecs.mentra_nex.wire import STOCK, Dialect
from firmware_bridge.sim.quirks import choose

QUIRKS: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    conflict.name: conflict.values for conflict in CONFLICTS
}
"""Name → value → the fields of the dialect it changes; the first value is stock."""


def dialect(words: Sequence[str]) -> Dialect:
    """Parse `NAME=VALUE` words, on top of stock. Raises `QuirkError`."""
    changes: dict[str, Any] = {}
    for name, value in choose(QUIRKS, words).items():
        changes.update(QUIRKS[name][value])
    return replace(STOCK, **changes)
