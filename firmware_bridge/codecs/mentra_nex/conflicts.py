"""Contradictions between the public sources on the Mentra Display, as switches of simulated
glasses; we find out which form these have.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from firmware_bridge.codecs.mentra_nex.wire import Framing, Schema


class Conflict(Struct, frozen=True):
    """One contradiction: its values, the usual first, each with the fields it changes."""

    name: str
    reason: str
    values: Mapping[str, Mapping[str, Any]]


CONFLICTS: Final = (
    Conflict(
        "schema",
        "version 2 has no fonts in texts and other numbers for sensors than the older one (A), of "
        "which one form has glasses that ping, and no answer to one (A-prime)",
        {"B": {}, "A": {"schema": Schema.A}, "A-prime": {"schema": Schema.A, "prime": True}},
    ),
    Conflict(
        "framing",
        "messages to the glasses are whole, in fragments with number, total and index, or JSON of "
        "an older specification, which both ends then speak",
        {
            "whole": {},
            "fragments": {"framing": Framing.FRAGMENTS},
            "json": {"framing": Framing.JSON, "schema": Schema.A},
        },
    ),
    Conflict(
        "sound-second-byte",
        "the byte after A0 runs from 0 to 255, or is the stream id 01",
        {"number": {}, "id": {"numbered": False}},
    ),
    Conflict(
        "chunk-checksum",
        "picture chunks have no checksum, or the CRC-16 of an older firmware",
        {"no": {}, "yes": {"checked": True}},
    ),
    Conflict(
        "motion",
        "the protocol has a motion sensor, the maker's list of abilities has none: what the "
        "glasses say of themselves counts",
        {"no": {}, "yes": {"motion": True}},
    ),
    Conflict(
        "drawing",
        "drawing waits for a commit, or texts and pictures are drawn at once",
        {"commit": {}, "at-once": {"queued": False}},
    ),
)
