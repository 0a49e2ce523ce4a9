"""Where the sources of Frame conflict (§13): each way of the glasses, and a central that does not
mind. Programs of other hosts differ; ours is the same on all glasses.
"""

import pytest

from firmware_bridge.codecs.frame.device import FrameDevice, FrameDialect, LuaProgram
from firmware_bridge.codecs.frame.wire import Capture
from firmware_bridge.errors import RemoteViolation
from firmware_bridge.messages import (
    AudioFormat,
    Done,
    Gesture,
    Gestured,
    GlassesInfo,
    MicrophoneChunk,
    PhotoTaken,
    ShowPage,
    StartMicrophone,
    StopMicrophone,
    TextLine,
)
from firmware_bridge.sim.frame.quirks import QUIRKS, dialect
from firmware_bridge.sim.quirks import choose
from tests.codecs.frame.pair import FramePair

TEXT = bytes.fromhex("01 0a 00 08 00 01 00 3d 01 04 48 69")
NEW_SPRITE = bytes.fromhex("01 20 00 0e 00 08 00 01 00 01 02 00 00 00 ff ff ff 55")
OLD_SPRITE = bytes.fromhex("01 20 00 0d 00 08 00 01 01 02 00 00 00 ff ff ff 55")
PAGE = ShowPage("s", lines=(TextLine(0, "Hello"),))


def foreign(**differs) -> FramePair:
    """Glasses on which the program of another host runs."""
    return FramePair(FrameDevice(dialect=FrameDialect(**differs), program=LuaProgram("")))


def said_to(pair: FramePair, packet: bytes) -> list[bytes]:
    try:
        pair.glasses.receive_packet(packet, pair.now)
        pair.glasses.handle_timer(pair.now + 0.1)
    except RemoteViolation:
        pass
    pair._serve(lambda: None)
    return pair.glasses.packets_to_send(pair.now)


@pytest.mark.parametrize("word", [f"{n}={v}" for n, values in QUIRKS.items() for v in values])
def test_our_program_is_uploaded_and_works_whatever_the_other_programs_do(word):
    variant, _ = dialect([word])
    pair = FramePair(FrameDevice(dialect=variant, program=LuaProgram("")))
    assert isinstance(pair.greet(), GlassesInfo)
    assert pair.central.startup.uploaded
    assert pair.ask(PAGE) == Done(drawn=5)
    pair.event(Gestured(Gesture.TAP))
    pair.run()
    assert pair.events() == [Gestured(Gesture.TAP)]


def test_a_program_of_another_host_draws_at_once():
    pair = foreign()
    assert said_to(pair, TEXT) == [b"\x01\x00"]
    assert pair.shown[-1].lines == (TextLine(1, "Hi"),)


def test_acknowledgements_are_sent_or_not():
    assert said_to(foreign(), TEXT) == [b"\x01\x00"]
    assert said_to(foreign(acknowledgement=b"\1\0\0"), TEXT) == [b"\x01\x01\x00\x00"]
    silent = foreign(acknowledgement=b"")
    assert said_to(silent, TEXT) == []
    assert silent.shown[-1].lines == (TextLine(1, "Hi"),)


def test_a_sprite_has_a_compress_byte_or_not():
    for compress_byte, good, bad in (
        (True, NEW_SPRITE, OLD_SPRITE),
        (False, OLD_SPRITE, NEW_SPRITE),
    ):
        pair = foreign(compress_byte=compress_byte)
        assert said_to(pair, good) == [b"\x01\x00"]
        assert len(pair.shown[-1].tiles) == 1
        printed, refused = said_to(pair, bad)
        assert printed.startswith(b"Error in data accumulator")
        assert refused == b"\x01\x01"


@pytest.mark.parametrize("tap", [0x09, 0x04])
def test_a_tap_is_09_or_04(tap):
    pair = foreign(tap=tap)
    pair.event(Gestured(Gesture.TAP))
    assert pair.glasses.packets_to_send(pair.now) == [bytes((1, tap))]


@pytest.mark.parametrize(("printed", "said"), [("1", b"1"), ("'\\x02'", b"\x02"), ("nil", b"nil")])
def test_the_prompt_prints_the_marker_that_a_host_chose(printed, said):
    pair = FramePair()
    packet = f"f=frame.file.open('a.lua','w');print({printed})".encode()
    assert said_to(pair, packet) == [said]


def test_02_is_no_command_of_a_frame():
    """Only Halo reboots by it: here it is a text for the prompt."""
    pair = FramePair(FrameDevice(files={"main.lua": ""}))
    (printed,) = said_to(pair, b"\x02")
    assert printed.startswith(b"[string")
    assert pair.device.program is None


def test_a_prompt_shows_text_as_frame_msg_does():
    pair = FramePair()
    text = b"frame.display.text('It\\'s on',1,61);frame.display.show();print(0)"
    assert said_to(pair, text) == [b"0"]
    assert pair.shown[-1].lines == (TextLine(1, "It's on"),)


def test_main_lua_runs_after_a_reset():
    pair = FramePair(FrameDevice(files={"main.lua": "while true do end"}))
    pair.glasses.receive_packet(b"\x04", pair.now)
    pair.run(for_s=0.1)
    assert pair.device.program is not None
    assert isinstance(pair.greet(), GlassesInfo)


def test_the_first_value_of_each_quirk_is_what_frame_msg_does():
    assert choose(QUIRKS, []) == {
        "sprite": "compress-byte",
        "acknowledgement": "each-packet",
        "tap": "09",
        "running": "nothing",
    }
    assert dialect([]) == (FrameDialect(), "nothing")


def test_each_quirk_changes_one_thing():
    assert dialect(["tap=04"])[0] == FrameDialect(tap=4)
    assert dialect(["sprite=older"])[0] == FrameDialect(compress_byte=False)
    assert dialect(["acknowledgement=none"])[0] == FrameDialect(acknowledgement=b"")
    newest = FrameDialect(acknowledgement=b"\1\0\0")
    assert dialect(["acknowledgement=three-bytes"])[0] == newest
    assert dialect(["running=glassd"]) == (FrameDialect(), "glassd")


# ------------------------------------------------------------------ the maker's SDK (§8)

JPEG = b"\xff\xd8" + bytes(300)


def test_the_sdk_stores_its_functions_as_a_file():
    pair = FramePair()
    for text, printed in (
        (b'frame.file.mkdir("lib-1a");print("c")', b"c"),
        (b"print(prntLng ~= nil)", b"false"),
        (b'r=frame.file.open("/lib-1a/prntLng.lua","read");print("o");r:close()', None),
        (b'w=frame.file.open("/lib-1a/prntLng.lua","write");print("o")', b"o"),
        (b'frame.bluetooth.receive_callback((function(d)w:write(d)end));print("c")', b"c"),
        (b"\x01function prntLng(stringToPrint)", b""),
        (b"\x01 end", b""),
        (b'w:close();print("c")', b"c"),
        (b'frame.bluetooth.receive_callback(nil);print("c")', b"c"),
        (b'require("lib-1a/prntLng");print("l")', b"l"),
        (b"print(prntLng ~= nil)", b"true"),
        (b"prntLng(tostring(frame.battery_level()))", b"87.0"),
        (b'frame.file.remove("/lib-1a/prntLng.lua");print("d")', b"d"),
    ):
        said = said_to(pair, text)
        pair.now += 1
        if printed is None:
            assert said[0].startswith(b"[string"), text
        else:
            assert said == ([printed] if printed else []), text
    assert pair.device.files == {}


def test_a_photo_of_the_sdk_comes_in_parts_with_their_count():
    """§8: after 01: 01 a part, 02 the end with the number of parts in decimal."""
    pair = FramePair(max_packet=102)
    asked = b"cameraCaptureAndSend('MEDIUM',1,'SPOT',512,-20)"
    assert said_to(pair, asked) == []
    assert pair.glasses.capture == Capture(2, 512, -20)
    pair.event(PhotoTaken(0, JPEG))
    packets = pair.glasses.packets_to_send(pair.now)
    assert [packet[:2] for packet in packets[:-1]] == [b"\x01\x01"] * 4
    assert b"".join(packet[2:] for packet in packets[:-1]) == JPEG
    assert packets[-1] == b"\x01\x024"


def test_a_tap_of_the_sdk_is_04_while_it_wants_taps():
    pair = FramePair()
    pair.event(Gestured(Gesture.TAP))
    assert pair.glasses.packets_to_send(pair.now) == []
    on = rb"function on_tap();frame.bluetooth.send('\x04');end;frame.imu.tap_callback(on_tap)"
    on += b";print(0)"
    assert said_to(pair, on) == [b"0"]
    pair.event(Gestured(Gesture.TAP))
    assert pair.glasses.packets_to_send(pair.now) == [b"\x01\x04"]
    assert said_to(pair, b"frame.imu.tap_callback(nil)") == []
    pair.event(Gestured(Gesture.TAP))
    assert pair.glasses.packets_to_send(pair.now) == []


def test_rectangles_of_the_sdk_are_shown_when_it_says_so():
    pair = FramePair()
    two = (
        rb'frame.display.bitmap(9,3,16,2,1,string.rep("\xFF",4))'
        rb'frame.display.bitmap(1,1,4,2,15,"\xFF")'
    )
    assert said_to(pair, two + b';print("+")') == [b"+"]
    assert pair.shown == []
    assert said_to(pair, b'frame.display.show();print("+")') == [b"+"]
    (page,) = pair.shown
    bright, dark = page.tiles
    assert (bright.x, bright.y, bright.width, bright.height, bright.bpp) == (8, 2, 16, 2, 4)
    assert bright.pixels == b"\xff" * 16
    assert (dark.x, dark.width, dark.height, dark.pixels) == (0, 4, 2, bytes(4))


@pytest.mark.parametrize(("bits", "heard"), [(16, b"\1\2\3\4"), (8, b"\2\4")])
def test_the_sdk_records_until_it_breaks(bits, heard):
    pair = FramePair()
    pair.event(MicrophoneChunk(1, 0, (b"\1\2", b"\3\4")))
    assert pair.glasses.packets_to_send(pair.now) == []
    assert said_to(pair, f"microphoneRecordAndSend(16000,{bits},nil)".encode()) == []
    assert pair.shown == [StartMicrophone(1, AudioFormat.PCM16, 16000)]
    pair.event(MicrophoneChunk(1, 0, (b"\1\2", b"\3\4")))
    assert pair.glasses.packets_to_send(pair.now) == [b"\x01\x05" + heard]
    assert said_to(pair, b"\x03") == []
    assert pair.shown[1:] == [StopMicrophone(1)]
    pair.glasses.end_sound()
    pair.event(MicrophoneChunk(1, 1, (b"\1\2",)))
    assert pair.glasses.packets_to_send(pair.now) == []
    assert said_to(pair, b"\x03") == []
    assert len(pair.shown) == 2


def test_packets_of_a_recording_leave_room_as_its_function_does():
    pair = FramePair(max_packet=102)
    said_to(pair, b"microphoneRecordAndSend(8000,16,nil)")
    pair.event(MicrophoneChunk(1, 0, (bytes(200),)))
    sizes = [len(packet) - 2 for packet in pair.glasses.packets_to_send(pair.now)]
    assert sizes == [96, 96, 8]


@pytest.mark.parametrize(
    "text",
    [
        b"microphoneRecordAndSend(44100,16,nil)",
        rb'frame.display.bitmap(1,1,8,2,1,string.rep("\xFF",9999));print("+")',
        rb'frame.display.bitmap(0,1,8,2,1,string.rep("\xFF",8));print("+")',
        b"cameraCaptureAndSend('BEST',1,'SPOT',512,0)",
        b"cameraCaptureAndSend('MEDIUM',1,'SPOT',9999,0)",
        b'require("lib-0/nothing");print("l")',
        b'frame.file.remove("nothing");print("d")',
    ],
)
def test_what_the_sdk_cannot_have_is_an_error(text):
    (printed,) = said_to(FramePair(), text)
    assert printed.startswith(b"[string")
