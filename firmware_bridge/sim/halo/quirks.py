"""Variants of the simulated Halo: what its firmware and programs of other hosts do where their
sources differ.

glassd's own program is the same in all of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from firmware_bridge.codecs.frame.device import FrameDialect
from firmware_bridge.sim.frame.quirks import QUIRKS as FRAME_QUIRKS, dialect_of
from firmware_bridge.sim.quirks import choose

_ACKNOWLEDGEMENT: Final = FRAME_QUIRKS["acknowledgement"]

QUIRKS: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "acknowledgement": {
        word: _ACKNOWLEDGEMENT[word] for word in ("three-bytes", "each-packet", "none")
    },
    "tap": FRAME_QUIRKS["tap"],
    "tap-kinds": {"yes": {}, "no": {"tap_kinds": False}},
    "sound-counts": {"yes": {}, "no": {"counts_sound": False}},
    "microphone": {"free": {}, "le-audio": {"microphone": False}},
    "characteristics": {"protocol": {}, "services": {}},
    "name": {"fourth-byte": {}, "last-byte": {}},
    "running": FRAME_QUIRKS["running"],
}
"""`acknowledgement`: as brilliant-msg 7.3.0 does it, or as older programs. `tap-kinds` and
`sound-counts`: newer or older firmware. `characteristics`: those of PROTOCOL.md or also those of
BLE_SERVICES.md. `name`: which byte of the address its name ends with (PROTOCOL.md, or the maker's
emulator).
"""


def dialect(words: Sequence[str]) -> tuple[FrameDialect, Mapping[str, str]]:
    """Return the chosen dialect, and all that was chosen. Raises `QuirkError`."""
    chosen = choose(QUIRKS, words)
    return dialect_of(QUIRKS, chosen), chosen
