"""Variants of the simulated Frame: what programs of other hosts do where their sources differ.

glassd's own program is the same in all of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from firmware_bridge.codecs.frame.device import FrameDialect
from firmware_bridge.sim.quirks import choose

QUIRKS: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "sprite": {"compress-byte": {}, "older": {"compress_byte": False}},
    "acknowledgement": {
        "each-packet": {},
        "three-bytes": {"acknowledgement": b"\x01\x00\x00"},
        "none": {"acknowledgement": b""},
    },
    "tap": {"09": {}, "04": {"tap": 0x04}},
    "running": {"nothing": {}, "other-program": {}, "glassd": {}},
}
"""`running` is what runs when the glasses are switched on. Other conflicts of the sources are in
values that any host may send: exposure settings, and the marker that a host has printed.
"""


def dialect(words: Sequence[str]) -> tuple[FrameDialect, str]:
    """Return the chosen dialect, and what runs. Raises `QuirkError`."""
    chosen = choose(QUIRKS, words)
    return dialect_of(QUIRKS, chosen), chosen["running"]


def dialect_of(
    quirks: Mapping[str, Mapping[str, Mapping[str, Any]]], chosen: Mapping[str, str]
) -> FrameDialect:
    """Return the dialect that the chosen values make."""
    differs: dict[str, Any] = {}
    for name, value in chosen.items():
        differs |= quirks[name][value]
    return FrameDialect(**differs)
