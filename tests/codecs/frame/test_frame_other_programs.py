"""What programs of other hosts take and send (§3, §6, §7 of the sheet), byte by byte."""

import pytest

from firmware_bridge.codecs.frame.device import FrameDevice, LuaProgram
from firmware_bridge.codecs.frame.lz4_frame import read_frame
from firmware_bridge.codecs.frame.wire import Capture
from firmware_bridge.errors import RemoteViolation
from firmware_bridge.messages import Gesture, Gestured
from tests.codecs.frame.pair import FramePair, equipped

OK = [b"\x01\x00"]
STRIP = "00 08 00 02 00 01 02 00 00 00 ff ff ff"
"""8 × 2 pixels, not compressed, 1 bit, 2 colours: dark and white."""
ZEROS = "04 22 4d 18 68 40 20 00 00 00 00 00 00 00 30 0b 00 00 00 1f 00 01 00 07 50"
"""32 zero bytes as the lz4 package writes them, up to the last literals."""


@pytest.fixture
def pair():
    return FramePair(FrameDevice(program=LuaProgram("")), air=nothing_of_ours)


def nothing_of_ours(way: str, packet: bytes) -> list[bytes]:
    return [packet] if way == "up" else []


def message(pair: FramePair, code: int, payload: str) -> list[bytes]:
    """Give glasses one message, and return what they say to it."""
    data = bytes.fromhex(payload)
    pair.told.clear()
    packet = bytes((1, code)) + len(data).to_bytes(2, "big") + data
    pair.glasses.receive_packet(packet, pair.now)
    pair.run(for_s=0.1)
    return pair.told


def tiles(pair: FramePair) -> list[tuple[int, int, int, int]]:
    return [(each.x, each.y, each.width, each.height) for each in pair.shown[-1].tiles]


# ------------------------------------------------------------------ sprites in blocks


def test_a_picture_comes_in_strips_that_are_drawn_as_they_arrive(pair):
    """FF width height line_height progressive updatable, then sprites; the last may be lower."""
    assert message(pair, 0x20, "ff 00 08 00 03 00 02 01 00") == OK
    assert message(pair, 0x20, STRIP + "81 7e") == OK
    assert tiles(pair) == [(0, 0, 8, 2)]
    assert message(pair, 0x20, "00 08 00 01 00 01 02 00 00 00 ff ff ff ff") == OK
    assert tiles(pair) == [(0, 0, 8, 2), (0, 2, 8, 1)]


def test_a_picture_that_is_not_progressive_is_drawn_when_it_is_whole(pair):
    message(pair, 0x20, "ff 00 08 00 04 00 02 00 00")
    message(pair, 0x20, STRIP + "81 7e")
    assert tiles(pair) == []
    message(pair, 0x20, STRIP + "81 7e")
    assert tiles(pair) == [(0, 0, 8, 2), (0, 2, 8, 2)]


@pytest.mark.parametrize(("updatable", "first"), [("01", 0xFF), ("00", 0x00)])
def test_a_picture_may_be_updated_from_its_first_strip(pair, updatable, first):
    message(pair, 0x20, f"ff 00 08 00 02 00 02 01 {updatable}")
    message(pair, 0x20, STRIP + "00 00")
    message(pair, 0x20, STRIP + "ff ff")
    (tile,) = pair.shown[-1].tiles
    assert tile.pixels[0] == first


def test_text_comes_as_a_sprite_of_each_line_and_the_newest_are_kept(pair):
    """FF width max_rows lines, then x y of each line, then sprites."""
    message(pair, 0x20, "ff 00 08 02 03 00 00 00 00 00 05 00 14 00 00 00 28")
    for _ in range(2):
        assert message(pair, 0x20, STRIP + "81 7e") == OK
    assert tiles(pair) == [(0, 0, 8, 2), (5, 20, 8, 2)]
    message(pair, 0x20, STRIP + "81 7e")
    assert tiles(pair) == [(5, 20, 8, 2), (0, 40, 8, 2)]


def test_one_line_of_text_has_a_header_of_nine_bytes_too(pair):
    message(pair, 0x20, "ff 00 08 02 01 00 07 00 09")
    message(pair, 0x20, STRIP + "81 7e")
    assert tiles(pair) == [(7, 9, 8, 2)]


@pytest.mark.parametrize("header", ["ff", "ff 00 08 02 03", "ff 00 08 00 10 00 00 01 01"])
def test_a_header_that_cannot_be_is_refused(pair, header):
    printed, refused = message(pair, 0x20, header)
    assert printed.startswith(b"Error")
    assert refused == b"\x01\x01"


def test_a_sprite_is_drawn_again_where_its_coordinates_say(pair):
    message(pair, 0x20, STRIP + "81 7e")
    assert message(pair, 0x21, "20 00 05 00 09 00") == OK
    assert tiles(pair) == [(4, 8, 8, 2)]


# ------------------------------------------------------------------ compressed sprites


def test_pixels_may_be_one_lz4_frame(pair):
    """16 × 16 pixels: 32 zero bytes."""
    frame = ZEROS + "00 00 00 00 00 00 00 00 00"
    assert message(pair, 0x20, "00 10 00 10 01 01 02 00 00 00 ff ff ff" + frame) == OK
    assert tiles(pair) == [(0, 0, 16, 16)]


@pytest.mark.parametrize(
    ("data", "held"),
    [
        # as the lz4 package writes them: with checksums, stored as it is, with no size
        (
            """
            04 22 4d 18 7c 40 28 00 00 00 00 00 00 00 4d 0c 00 00 00 2f 81 7e 02 00 0e 50 7e 81
            7e 81 7e 0e 8f 28 47 00 00 00 00 87 f1 a2 b2
            """,
            "817e" * 20,
        ),
        ("04 22 4d 18 60 40 82 02 00 00 80 81 7e 00 00 00 00", "817e"),
        ("04 22 4d 18 60 40 82 00 00 00 00", ""),
    ],
)
def test_a_frame_is_read(data, held):
    assert read_frame(bytes.fromhex(data), 100).hex() == held


def test_what_a_frame_holds_never_grows_beyond_its_limit():
    data = "04 22 4d 18 60 40 82 06 00 00 00 1f 81 01 00 ff ff"
    with pytest.raises(RemoteViolation, match="it ends too early"):
        read_frame(bytes.fromhex(data), 1000)
    with pytest.raises(RemoteViolation, match="a copy of 276 bytes"):
        read_frame(bytes.fromhex(data.replace("ff ff", "ff 02")), 100)


@pytest.mark.parametrize(
    "data",
    [
        "",
        "04 22 4d 19 60 40 82 00 00 00 00",
        "04 22 4d 18 60 40 82 02 00 00 80 81",
        "04 22 4d 18 60 40 82 02 00 00 80 81 7e",
        "04 22 4d 18 60 40 82 03 00 00 00 10 81 02 00 00 00 00",
        "04 22 4d 18 60 40 82 05 00 00 00 1f 81 01 00 ff 00 00 00 00",
        "04 22 4d 18 60 40 82 07 00 00 00 1f 81 01 00 ff ff 00 00 00 00 00",
    ],
)
def test_a_damaged_or_too_large_frame_is_a_violation(data):
    with pytest.raises(RemoteViolation):
        read_frame(bytes.fromhex(data), 100)


# ------------------------------------------------------------------ other messages


@pytest.mark.parametrize(
    ("code", "payload"),
    [
        (0x0E, "01 19 72 3f ff 10 7f 01 1f"),  # TxAutoExpSettings of Python, which cuts fractions
        (0x0E, "01 1a 73 3f ff 10 80 01 1f"),  # the same of Dart, which rounds them
        (0x0F, "0c 00 10 00 79 00 40 00 8c"),  # TxManualExpSettings of Python
        (0x0F, "10 00 01 00 79 00 40 00 8c"),  # and of Dart
        (0x50, "07"),  # TxCode
        (0x50, ""),
    ],
)
def test_messages_whose_code_an_application_chooses_are_taken(pair, code, payload):
    assert message(pair, code, payload) == OK


def test_a_raw_photo_is_asked_for(pair):
    assert message(pair, 0x0D, "04 01 00 00 8c 01") == OK
    assert pair.glasses.capture == Capture(raw=True)


# ------------------------------------------------------------------ the prompt


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("print(1,2)", [b"1", b"\t", b"2"]),
        ("print('a, b', frame.battery_level())", [b"a, b", b"\t", b"87.0"]),
        ("print()", []),
    ],
)
def test_each_argument_of_print_is_a_notification(text, printed):
    pair = FramePair(air=nothing_of_ours)
    pair.glasses.receive_packet(text.encode(), pair.now)
    pair.run(for_s=0.1)
    assert pair.told == printed


def test_the_first_byte_makes_a_control_whatever_follows():
    pair = FramePair(equipped())
    pair.glasses.receive_packet(b"\x03 and more", pair.now)
    assert pair.device.program is None
    pair.device.files["main.lua"] = "while true do end"
    pair.glasses.receive_packet(b"\x04 and more", pair.now)
    pair.run(for_s=0.1)
    assert pair.device.program is not None


def test_a_reset_waits_in_the_buffer_until_the_program_is_broken():
    pair = FramePair(FrameDevice(program=LuaProgram(""), files={"main.lua": "while true do end"}))
    pair.glasses.receive_packet(b"\x04", pair.now)
    pair.run(for_s=0.1)
    pair.glasses.receive_packet(b"\x03", pair.now)
    assert pair.device.program is None
    pair.run(for_s=0.1)
    assert pair.device.program is not None, "main.lua runs after the reset"


# ------------------------------------------------------------------ what glassd has no use for


@pytest.mark.parametrize(
    "packet",
    [
        "01 01 61 62",  # a part of long data of the maker's SDK
        "01 02 33",  # its end, with the count of its parts
        "01 03",  # its wake
        "01 11" + " 00" * 64,  # result of the automatic exposure
        "01 12 01 02 03 04 05 06",  # metering
    ],
)
def test_data_that_has_no_event_is_no_violation(packet):
    pair = FramePair(equipped())
    pair.greet()
    pair.tell(*[bytes.fromhex(packet)] * 20)
    pair.event(Gestured(Gesture.TAP))
    pair.run()
    assert pair.refused == []
    assert pair.events() == [Gestured(Gesture.TAP)]
