"""A message that exists is valid: what cannot be built."""

import typing

import pytest
from msgspec import Struct

from firmware_bridge import messages
from firmware_bridge.messages import (
    MAX_BITMAP_BYTES,
    MAX_CHUNK_BYTES,
    MAX_LINES,
    MAX_TEXT_BYTES,
    AudioChunk,
    BatteryChanged,
    Prompt,
    ShowPage,
    TextLine,
    Tile,
)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: TextLine(-1, "x"), "row -1"),
        (lambda: TextLine(MAX_LINES, "x"), "row 32"),
        (lambda: TextLine(0, "x", -1), "x -1"),
        (lambda: TextLine(0, "x", 4096), "x 4096"),
        (lambda: TextLine(0, "a\nb"), "no line break"),
        (lambda: Tile(0, 0, 8, 1, 3, b"x"), "3 bits per pixel"),
        (lambda: Tile(0, 0, 0, 1, 1, b""), "a place and a size"),
        (lambda: Tile(0, -1, 8, 1, 1, b"x"), "a place and a size"),
        (lambda: Tile(0, 0, 9, 1, 1, b"x"), "1 bytes of pixels where 2 are needed"),
        (lambda: Tile(0, 0, 4000, 4000, 4, b""), "over 153600"),
        (lambda: ShowPage("s", page=0), "page 0 of 1"),
        (lambda: ShowPage("s", page=3, pages=2), "page 3 of 2"),
        (lambda: ShowPage("s", lines=(TextLine(0, ""),) * 33), "33 lines"),
        (lambda: ShowPage("s", lines=(TextLine(0, "é" * 4097),)), "8194 bytes of text"),
        (lambda: AudioChunk(1, 0, (b"x" * 4096, b"x")), "a chunk of 4097 bytes"),
        (lambda: Prompt(1, (), 0), "a prompt of 0 s"),
        (lambda: Prompt(1, (), 600.5), "a prompt of 600.5 s"),
        (lambda: Prompt(1, (), float("nan")), "a prompt of nan s"),
        (lambda: BatteryChanged(101), "101 %"),
        (lambda: BatteryChanged(-1), "-1 %"),
    ],
)
def test_an_invalid_message_cannot_be_built_and_says_what_is_wrong(make, complaint):
    with pytest.raises(ValueError) as refused:
        make()
    assert complaint in str(refused.value)


def test_messages_at_their_bounds_can_be_built():
    TextLine(MAX_LINES - 1, "", 4095)
    Tile(0, 0, 640, 480, 4, bytes(MAX_BITMAP_BYTES))
    ShowPage("s", lines=(TextLine(0, "x" * MAX_TEXT_BYTES),))
    AudioChunk(1, 0, (b"x" * MAX_CHUNK_BYTES,))
    Prompt(1, (), 600)
    BatteryChanged(100)


@pytest.mark.parametrize("union", ["Command", "Event", "Reply"])
def test_every_message_is_frozen_and_slotted(union):
    for kind in typing.get_args(getattr(messages, union)):
        assert issubclass(kind, Struct), kind
        assert kind.__struct_config__.frozen, kind
        assert not kind.__struct_config__.dict, kind
