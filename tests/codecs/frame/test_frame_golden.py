"""Packets of Frame, byte by byte, written by hand from its fact sheet (§), in both directions."""

import re

import pytest

from firmware_bridge.codecs.frame.program import FILE, START, program
from firmware_bridge.messages import (
    AudioFormat,
    BatteryChanged,
    ClearPage,
    Done,
    Failed,
    Gesture,
    Gestured,
    MicrophoneChunk,
    PhotoFailed,
    PhotoSize,
    PhotoTaken,
    Ping,
    SetBrightness,
    ShowPage,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
    TextLine,
    Tile,
)
from firmware_bridge.own_commands import GetMotion, MotionRead
from tests.codecs.frame.pair import FramePair, equipped

HELLO = "01 33 00 00"
MICROPHONE = StartMicrophone(4, AudioFormat.PCM16, 16000)


@pytest.fixture
def pair():
    pair = FramePair(equipped())
    pair.greet()
    return pair


def packets(text: str) -> list[bytes]:
    return [bytes.fromhex(line) for line in text.strip().splitlines()]


def first_reply(pair: FramePair, data: str) -> bytes:
    """Give glasses one packet, and return what they say to it."""
    pair.told.clear()
    pair.glasses.receive_packet(bytes.fromhex(data), pair.now)
    pair.run(for_s=0.3)
    return pair.told[0]


# ------------------------------------------------------------------ what we say

SAID = {
    # §6 TxPlainText: x y palette spacing text; §5 first packet: 01 code len len
    "text": (
        ShowPage("s", lines=(TextLine(0, "Hi"), TextLine(1, "é", 9))),
        """
        01 0a 00 08 00 01 00 01 01 04 48 69
        01 0a 00 08 00 0a 00 3d 01 04 c3 a9
        01 22 00 02 00 02
        """,
        Done(drawn=3),
    ),
    # §6 TxSprite: width height compress bpp colours palette pixels; TxSpriteCoords: code x y offset
    "1 bit": (
        ShowPage("s", tiles=(Tile(4, 0, 8, 2, 1, b"\x81\x7e"),)),
        """
        01 20 00 0f 00 08 00 02 00 01 02 00 00 00 ff ff ff 81 7e
        01 21 00 06 20 00 05 00 01 00
        01 22 00 02 00 02
        """,
        Done(drawn=8),
    ),
    # rows are not padded: 2 rows of 3 pixels are 6 bits, the last byte is zero-filled
    "unaligned": (
        ShowPage("s", tiles=(Tile(0, 0, 3, 2, 1, b"\xa0\xe0"),)),
        """
        01 20 00 0e 00 03 00 02 00 01 02 00 00 00 ff ff ff bc
        01 21 00 06 20 00 01 00 01 00
        01 22 00 02 00 02
        """,
        Done(drawn=5),
    ),
    # levels 0 1 2 3 of 2 bits are the colours 0 3 2 1 of the palette
    "2 bits": (
        ShowPage("s", tiles=(Tile(0, 0, 4, 1, 2, b"\x1b"),)),
        """
        01 20 00 14 00 04 00 01 00 02 04 00 00 00 ff ff ff aa aa aa 55 55 55 39
        01 21 00 06 20 00 01 00 01 00
        01 22 00 02 00 02
        """,
        Done(drawn=3),
    ),
    "clear": (ClearPage(), "01 22 00 02 00 02", Done(drawn=0)),
    # §6 TxCaptureSettings: quality resolution/2 pan+140 raw
    "photo": (TakePhoto(5, PhotoSize.MEDIUM), "01 0d 00 06 03 01 00 00 8c 00", Done()),
    "large photo": (TakePhoto(5, PhotoSize.LARGE), "01 0d 00 06 04 01 68 00 8c 00", Done()),
    "16 kHz": (MICROPHONE, "01 30 00 01 02", Done()),
    "8 kHz": (StartMicrophone(4, AudioFormat.PCM16, 8000), "01 30 00 01 01", Done()),
    "dark": (SetBrightness(0), "01 32 00 01 00", Done()),
    "bright": (SetBrightness(100), "01 32 00 01 04", Done()),
    "middle": (SetBrightness(50), "01 32 00 01 02", Done()),
    "motion": (GetMotion(), "01 37 00 00", Done()),
    # §5: an empty message is one packet
    "ping": (Ping(), "01 31 00 00", Done()),
}


@pytest.mark.parametrize("name", SAID)
def test_a_command_becomes_exactly_these_packets(pair, name):
    command, said, reply = SAID[name]
    if name == "text":
        assert pair.ask(ClearPage()) == Done(drawn=0)
        pair.said.clear()
    page_number = "00 02" if name == "text" else "00 01"
    wanted = packets(said.replace("01 22 00 02 00 02", f"01 22 00 02 {page_number}"))
    assert pair.ask(command) == reply
    assert pair.said == wanted


def test_a_long_message_is_cut_and_each_packet_waits_for_its_acknowledgement(pair):
    """§5: room MTU − 7 in the first packet, MTU − 5 in the following (MTU 247)."""
    text = "x" * 500
    pair.ask(ShowPage("s", lines=(TextLine(0, text),)))
    assert [len(packet) for packet in pair.said] == [244, 244, 26, 6]
    assert pair.said[0][:10] == bytes.fromhex("01 0a 01 fa 00 01 00 01 01 04")
    assert pair.said[1][:2] == pair.said[2][:2] == b"\x01\x0a"
    assert b"".join((pair.said[0][10:], pair.said[1][2:], pair.said[2][2:])) == text.encode()
    assert pair.told.count(b"\x01\x00") >= 3


def test_the_next_packet_is_never_sent_before_the_acknowledgement():
    pair = FramePair(equipped())
    pair.greet()
    pair.air = lambda way, packet: [] if way == "up" else [packet]
    pair.central.send(ShowPage("s", lines=(TextLine(0, "x" * 500),)), pair.now)
    pair.run(for_s=4.9)
    assert len(pair.said) == 1
    pair.run(for_s=0.2)
    assert "not acknowledged" in str(pair.lost)


@pytest.mark.parametrize("max_packet", [64, 100, 244])
def test_the_program_is_uploaded_as_frame_ble_uploads_files(max_packet):
    """§2: 03 04 03, 0.2 s apart; §4: open, write, close, each waiting for its printed reply."""
    pair = FramePair(max_packet=max_packet)
    pair.central.send(Ping(), pair.now)
    pair.run(for_s=30)
    said = [packet for packet in pair.said if packet[0] != 1]
    assert said[:3] == [b"\x03", b"\x04", b"\x03"]
    assert said[3] == START.encode()
    upload = said[4:-4]
    assert upload[0] == b"f=frame.file.open('glassd_app.lua','w');print(1)"
    assert upload[-1] == b"f:close();print(nil)"
    chunks = [re.fullmatch(rb'f:write\("(.*)"\);print\(1\)', piece)[1] for piece in upload[1:-1]]
    assert all(not chunk.endswith(b"\\") or chunk.endswith(b"\\\\") for chunk in chunks)
    assert all(len(chunk) <= max_packet - 22 for chunk in chunks), "§4: the limit − 22"
    assert said[-4:] == [b"\x03", b"\x04", b"\x03", START.encode()]
    assert pair.device.files == {FILE: program().text}
    assert pair.told.count(b"1") == len(upload) - 1


def test_packets_too_small_for_the_prompt_end_the_connection():
    pair = FramePair(max_packet=63)
    pair.run(for_s=10)
    assert "64 are needed" in str(pair.lost)


def test_the_first_question_is_who_is_there():
    pair = FramePair(equipped())
    pair.run(for_s=0.5)
    assert pair.said == packets(HELLO)
    answer = b"\x01\x40" + bytes([87]) + program().build.encode() + b"v24.179.0818"
    assert pair.told == [answer, b"\x01\x00"]


# ------------------------------------------------------------------ what the glasses say


def test_taps_are_counted_within_300_ms(pair):
    """§7: taps within 40 ms are one, within 0.3 s one event."""
    for gaps, gesture in (
        ((), Gesture.TAP),
        ((0.03,), Gesture.TAP),
        ((0.1,), Gesture.DOUBLE_TAP),
        ((0.29,), Gesture.DOUBLE_TAP),
        ((0.1, 0.1), Gesture.DOUBLE_TAP),
    ):
        pair.heard.clear()
        pair.tell(b"\x01\x09")
        for gap in gaps:
            pair.run(for_s=gap)
            pair.tell(b"\x01\x09")
        assert pair.events() == []
        pair.run()
        assert pair.events() == [Gestured(gesture)], gaps


@pytest.mark.parametrize("gesture", [Gesture.TAP, Gesture.DOUBLE_TAP])
def test_glasses_tap_as_their_wearer_does(pair, gesture):
    pair.event(Gestured(gesture))
    pair.run()
    assert pair.events() == [Gestured(gesture)]


def test_two_slow_taps_are_two(pair):
    pair.tell(b"\x01\x09")
    pair.run(for_s=0.4)
    pair.tell(b"\x01\x09")
    pair.run()
    assert pair.events() == [Gestured(Gesture.TAP)] * 2


def test_taps_without_end_are_a_gesture_each_second(pair):
    for _ in range(30):
        pair.tell(b"\x01\x09")
        pair.run(for_s=0.05)
    assert pair.events() == [Gestured(Gesture.DOUBLE_TAP)], "while they go on"
    pair.run()
    assert pair.events() == [Gestured(Gesture.DOUBLE_TAP)] * 2


def test_a_tap_of_the_makers_sdk_is_a_tap(pair):
    """§8, §13: tap 04."""
    pair.tell(b"\x01\x04")
    pair.run()
    assert pair.events() == [Gestured(Gesture.TAP)]


def test_battery_is_told_when_it_changes(pair):
    pair.tell(bytes.fromhex("01 0c 2a"), bytes.fromhex("01 0c 2a"), bytes.fromhex("01 0c 29"))
    assert pair.events() == [BatteryChanged(42), BatteryChanged(41)]


def test_battery_is_asked_for_each_minute(pair):
    pair.device.battery = 12
    pair.run(for_s=59)
    assert pair.events() == []
    pair.run(for_s=2)
    assert pair.events() == [BatteryChanged(12)]


def test_sound_is_joined_to_whole_samples(pair):
    assert pair.ask(MICROPHONE) == Done()
    pair.tell(bytes.fromhex("01 05 01 02 03"), bytes.fromhex("01 05 04 05"), b"\x01\x06")
    assert pair.events() == [
        MicrophoneChunk(4, 0, (b"\x01\x02",)),
        MicrophoneChunk(4, 1, (b"\x03\x04",)),
    ]
    assert pair.ask(StopMicrophone(4)) == Done()
    pair.tell(bytes.fromhex("01 05 01 02"))
    assert len(pair.events()) == 2


JPEG = b"\xff\xd8" + bytes(500) + b"\xff\xd9"


@pytest.mark.parametrize("end", ["", "00 00 01 f8"])
def test_a_photo_comes_in_parts(pair, end):
    """§7: 07 parts, 08 end; turned by 90° anticlockwise. The length is our program's own."""
    assert pair.ask(TakePhoto(5)) == Done()
    pair.tell(b"\x01\x07" + JPEG[:242], b"\x01\x07" + JPEG[242:484], b"\x01\x07" + JPEG[484:])
    assert pair.events() == []
    pair.tell(b"\x01\x08" + bytes.fromhex(end))
    assert pair.events() == [PhotoTaken(5, JPEG, turned=270)]


@pytest.mark.parametrize(
    ("parts", "end", "why"),
    [
        ([JPEG], "00 00 01 f9", "504 of its 505 bytes"),
        ([b"no picture"], "", "no JPEG"),
        ([], "ff ff ff ff", "took none"),
    ],
)
def test_a_photo_that_is_not_whole_has_failed(pair, parts, end, why):
    assert pair.ask(TakePhoto(5)) == Done()
    pair.tell(*(b"\x01\x07" + part for part in parts), b"\x01\x08" + bytes.fromhex(end))
    (failed,) = pair.events()
    assert isinstance(failed, PhotoFailed)
    assert failed.photo == 5
    assert why in failed.detail
    assert pair.ask(TakePhoto(6)) == Done(), "the next can be taken"


def test_a_photo_that_stops_coming_is_given_up(pair):
    assert pair.ask(TakePhoto(5)) == Done()
    pair.tell(b"\x01\x07" + JPEG[:242])
    pair.run(for_s=14)
    assert pair.events() == []
    pair.run(for_s=2)
    assert [type(event) for event in pair.events()] == [PhotoFailed]
    pair.tell(b"\x01\x07" + JPEG[242:], b"\x01\x08")
    assert len(pair.events()) == 1
    assert pair.refused == []


def test_a_reading_of_the_motion_sensor(pair):
    assert pair.ask(GetMotion()) == Done()
    assert pair.told[0] == bytes.fromhex(
        "01 0a 00 00 00 a0 41 00 00 00 00 00 00 20 c2 00 00 00 00 00 00 00 00 00 00 80 3f"
    )
    assert pair.events() == [MotionRead((0.0, 0.0, 1.0), None, (20.0, 0.0, -40.0))]


def test_the_older_form_of_a_motion_is_read(pair):
    """§7: 00, then compass and accelerometer, signed 16 bits; 4096 are 1 g. More may follow."""
    pair.tell(bytes.fromhex("01 0a 00 01 00 fe ff 03 00 00 10 00 f0 00 08 77"))
    assert pair.events() == [MotionRead((1.0, -1.0, 0.5), None, (1.0, -2.0, 3.0))]


@pytest.mark.parametrize("data", ["01 0a", "01 0a 00 01 00", "01 0a 00" + " 00 00 c0 7f" * 6])
def test_a_motion_that_cannot_be_is_a_violation(pair, data):
    pair.tell(bytes.fromhex(data))
    assert len(pair.refused) == 1
    assert pair.events() == []


# ------------------------------------------------------------------ what the glasses take


@pytest.mark.parametrize("name", [name for name in SAID if name not in ("ping", "motion")])
def test_glasses_hear_what_was_meant(pair, name):
    command, _, _ = SAID[name]
    pair.ask(command)
    heard = pair.shown[-1]
    match command:
        case ShowPage(lines=lines, tiles=()):
            assert heard.lines == lines
        case ShowPage(tiles=(tile,)):
            (drawn,) = heard.tiles
            assert (drawn.x, drawn.y, drawn.width, drawn.height) == (
                tile.x,
                tile.y,
                tile.width,
                tile.height,
            )
        case ClearPage():
            assert (heard.lines, heard.tiles) == ((), ())
        case TakePhoto(size=size):
            assert heard.size is size
        case StartMicrophone(rate=rate):
            assert heard.rate == rate
        case _:
            assert heard == command


def test_a_refusal_is_printed_and_acknowledged_with_one(pair):
    """§5: on an error it prints a line and sends 01 01."""
    said = first_reply(pair, "01 0a 00 06 00 00 00 00 01 04")
    assert said.startswith(b"Error in data accumulator: ")
    assert pair.told[1] == b"\x01\x01"


def test_a_message_of_more_than_8192_bytes_is_refused(pair):
    first_reply(pair, "01 0a 20 01 00")
    assert pair.told[1] == b"\x01\x01"
    assert first_reply(pair, "01 0a 20 00 00") == b"\x01\x00"


def test_the_prompt_has_one_buffer(pair):
    """§2: a second text before the first was taken overwrites it."""
    device = pair.device
    device.stop()
    pair.glasses.receive_packet(b"print(1)", pair.now)
    pair.glasses.receive_packet(b"print(2)", pair.now)
    pair.run()
    assert pair.told == [b"2"]


def test_the_program_has_one_buffer(pair):
    """§2: a second packet before the callback ran overwrites the first."""
    pair.glasses.receive_packet(bytes.fromhex("01 31 00 00"), pair.now)
    pair.glasses.receive_packet(bytes.fromhex("01 31 00 00"), pair.now)
    pair.run()
    assert pair.told.count(b"\x01\x00") == 1


def test_data_without_a_program_is_dropped_and_a_nul_cuts_the_text(pair):
    pair.device.stop()
    pair.glasses.receive_packet(bytes.fromhex("01 31 00 00"), pair.now)
    pair.glasses.receive_packet(b"print(3)\0print(4)", pair.now)
    pair.run()
    assert pair.told == [b"3"]


def test_a_break_is_said_by_a_program_and_not_by_the_prompt(pair):
    """§3: a break of a running program arrives as text, one at the idle prompt is silent."""
    for _ in range(2):
        pair.glasses.receive_packet(b"\x03", pair.now)
        pair.run()
    assert len(pair.told) == 1
    assert b"break signal" in pair.told[0]


def test_a_reset_is_only_seen_by_the_prompt(pair):
    pair.device.lines.append(TextLine(0, "drawn"))
    pair.glasses.receive_packet(b"\x04", pair.now)
    assert pair.device.program is not None
    assert pair.device.dirty, "nothing happened"
    pair.glasses.receive_packet(b"\x03", pair.now)
    pair.glasses.receive_packet(b"\x04", pair.now)
    assert pair.device.program is None


def test_a_page_that_the_glasses_do_not_show_is_not_done(pair):
    pair.reply = lambda command: Failed("busy", "out of memory")
    refused = pair.ask(ShowPage("s", lines=(TextLine(0, "Hi"),)))
    assert refused == Failed("bad_message", refused.detail)
    assert "out of memory" in refused.detail


@pytest.mark.parametrize("said", ["", "00 01 00 02", "00 01 00 01 00 00", "00 02 00 02 00 00"])
def test_a_page_is_done_only_if_the_program_says_that_all_of_it_is_shown(pair, said):
    """The program must say this page, its characters, and its pictures."""
    pair.air = lambda way, packet: [] if (way, packet[:2]) == ("up", b"\x01\x41") else [packet]
    if said:
        lie = b"\x01\x41" + bytes.fromhex(said)
        pair.air = lambda way, packet: (
            [lie] if (way, packet[:2]) == ("up", b"\x01\x41") else [packet]
        )
    assert isinstance(pair.ask(ShowPage("s", lines=(TextLine(0, "Hi"),))), Failed)
