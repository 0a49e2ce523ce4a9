"""The codec of the Even Realities G2, and the facts that its model shares with it."""

import re
from typing import Final

from firmware_bridge.sides import Side

_BASE: Final = "00002760-08c2-11e1-9073-0e8ac72e"
SERVICE_UUID: Final = _BASE + "5450"
RX_UUID: Final = _BASE + "5401"
TX_UUID: Final = _BASE + "5402"
SOUND_SERVICE_UUID: Final = _BASE + "6450"
SOUND_UUID: Final = _BASE + "6402"
FILE_SERVICE_UUID: Final = _BASE + "7450"
FILE_RX_UUID: Final = _BASE + "7401"
FILE_TX_UUID: Final = _BASE + "7402"
SOUND: Final = "sound"
FILE: Final = "file"
FILE_ANSWER: Final = "file-answer"
"""Channels beside the control characteristics: the microphone, files, and answers to files."""

WIDTH: Final = 576
HEIGHT: Final = 288
LINES: Final = 10
LINE_HEIGHT: Final = 27
TEXT_WIDTH: Final = 552
"""The canvas without the 12 pixels that the vendor's text keeps on each side."""
PAGE_BYTES: Final = 1000
"""UTF-8 bytes of a text when its page is created; an update may have 2000."""

_NAME: Final = re.compile(r"Even G2_([^_]{1,8})_([LR])_([^_]{1,16})", re.ASCII)
_LETTERS: Final = {"L": Side.LEFT, "R": Side.RIGHT}


def arm_of(name: str) -> tuple[str, Side] | None:
    """Return (pair id, side) of an advertised name: the arms share the number, not the suffix."""
    found = _NAME.fullmatch(name)
    return None if found is None else (f"G2_{found[1]}", _LETTERS[found[2]])


def name_of(number: int, side: Side, address: str) -> str:
    """Return an arm's advertised name."""
    return f"Even G2_{number}_{side[0].upper()}_{address.replace(':', '')[-6:].upper()}"
