"""Halo's packets, byte for byte: what its documents say that a Frame has not (§ are of
PROTOCOL.md of its firmware).
"""

import pytest

from firmware_bridge import lc3
from firmware_bridge.codecs.frame.device import FrameDevice, FrameDialect, LuaProgram
from firmware_bridge.codecs.frame.hardware import HALO
from firmware_bridge.codecs.frame.program import START, program
from firmware_bridge.codecs.frame.prompts import LuaPrompt
from firmware_bridge.codecs.frame.ring import RING_BYTES
from firmware_bridge.codecs.frame.speaker import BUFFER_BYTES, LATE_S
from firmware_bridge.errors import CommandRefused, LinkLost, RemoteViolation
from firmware_bridge.messages import (
    AudioChunk,
    AudioFormat,
    BatteryChanged,
    Done,
    EndAudio,
    Failed,
    Gesture,
    Gestured,
    GlassesInfo,
    PhotoSize,
    Ping,
    SetBrightness,
    SetHeadUpAngle,
    ShowPage,
    StartAudio,
    StartMicrophone,
    TakePhoto,
    TextLine,
    Tile,
)
from firmware_bridge.packets import ChannelPacket, channel_of
from tests.codecs.frame.pair import FramePair, equipped
from tests.system import needs

SPEECH = AudioFormat.PCM16
FRAME = bytes(lc3.FRAME_BYTES)
"""10 ms of silence."""


def halo_pair(device: FrameDevice | None = None, **options) -> FramePair:
    return FramePair(device or equipped(hardware=HALO), max_packet=509, **options)


@pytest.fixture
def pair():
    pair = halo_pair()
    pair.greet()
    return pair


@pytest.fixture
def without_lc3(monkeypatch):
    def missing():
        raise lc3.Lc3Missing("not installed")

    monkeypatch.setattr(lc3, "_load", missing)


def packets(text: str) -> list[bytes]:
    return [bytes.fromhex(line) for line in text.split("|")]


# ------------------------------------------------------------------ what we say

PLACED = "| 01 21 00 06 20 00 d9 00 cd 00 | 01 22 00 02 00 01"
SAID = {
    # x 1 + 32, y 1 + 44 + 2 × 12; the last line of 14 is the last that fits
    "text": (
        ShowPage("s", lines=(TextLine(2, "Hi"),)),
        "01 0a 00 08 00 21 00 45 01 04 48 69 | 01 22 00 02 00 01",
        Done(drawn=2),
    ),
    "last line": (
        ShowPage("s", lines=(TextLine(13, "Hi"), TextLine(14, "no"))),
        "01 0a 00 08 00 21 00 c9 01 04 48 69 | 01 22 00 02 00 01",
        Done(drawn=2, clipped=1),
    ),
    "too wide": (
        ShowPage("s", lines=(TextLine(0, "x" * 25),)),
        "01 0a 00 1f 00 21 00 2d 01 04" + " 78" * 25 + "| 01 22 00 02 00 01",
        Done(drawn=25, clipped=1),
    ),
    "picture": (
        ShowPage("s", tiles=(Tile(184, 160, 16, 16, 1, b"\xff" * 32),)),
        "01 20 00 15 00 08 00 08 00 01 02 00 00 00 ff ff ff" + " ff" * 8 + PLACED,
        Done(drawn=64),
    ),
    "small photo": (TakePhoto(1, PhotoSize.SMALL), "01 0d 00 06 01 01 40 00 8c 00", Done()),
    "large photo": (TakePhoto(1, PhotoSize.LARGE), "01 0d 00 06 04 01 40 00 8c 00", Done()),
    "bright": (SetBrightness(100), "01 32 00 01 04", Done()),
    "looking up": (SetHeadUpAngle(40), "01 36 00 01 28", Done()),
    "speaker": (StartAudio(3, SPEECH), "01 34 00 01 01", Done()),
    "ping": (Ping(), "01 31 00 00", Done()),
}


SAID_NAMES = [
    pytest.param(name, marks=[needs("liblc3")] if name == "speaker" else []) for name in SAID
]


@pytest.mark.parametrize("name", SAID_NAMES)
def test_a_command_becomes_exactly_these_packets(pair, name):
    command, said, reply = SAID[name]
    assert pair.ask(command) == reply
    assert pair.said == packets(said)


def test_what_it_says_of_itself():
    pair = halo_pair()
    assert pair.greet() == GlassesInfo("Halo", "0.8.20", "", {}, {})


def test_a_packet_carries_509_bytes(pair):
    pair.ask(ShowPage("s", tiles=(Tile(0, 0, 192, 168, 4, b"\x5a" * 16128),)))
    assert max(map(len, pair.said)) == 509


@pytest.mark.parametrize(
    "command", [StartAudio(1, SPEECH), EndAudio(1), EndAudio(1, flush=True)], ids=repr
)
def test_a_frame_has_no_speaker(command):
    pair = FramePair(equipped())
    pair.greet()
    with pytest.raises(CommandRefused, match="Frame has no"):
        pair.central.send(command, pair.now)


# ------------------------------------------------------------------ what it says


def test_a_tap_says_its_kind(pair):
    pair.tell(b"\x01\x09\x01", b"\x01\x09\x02", b"\x01\x09\x03", b"\x01\x09\x00")
    assert pair.events() == [Gestured(Gesture.TAP), Gestured(Gesture.DOUBLE_TAP)]


def test_clicks_and_looking_up(pair):
    pair.tell(*(bytes((1, 0x0B, kind)) for kind in (1, 2, 3, 4)), b"\x01\x43\x01", b"\x01\x43\x00")
    assert [event.gesture for event in pair.events()] == [
        Gesture.BUTTON,
        Gesture.DOUBLE_TAP,
        Gesture.BUTTON_LONG,
        Gesture.HEAD_UP,
        Gesture.HEAD_DOWN,
    ]


@pytest.mark.parametrize(
    "gesture",
    [
        Gesture.TAP,
        Gesture.DOUBLE_TAP,
        Gesture.BUTTON,
        Gesture.BUTTON_LONG,
        Gesture.HEAD_UP,
        Gesture.HEAD_DOWN,
    ],
)
def test_a_gesture_of_the_wearer_arrives(pair, gesture):
    pair.event(Gestured(gesture))
    pair.run()
    assert pair.events() == [Gestured(gesture)]


def test_battery_comes_by_its_service_and_by_the_program(pair):
    """§3.2: the charge as one byte; only our program says whether it is being charged."""
    pair.tell(b"\x01\x0c\x2a\x01")
    pair.tell(ChannelPacket(b"\x2b", "battery"))
    pair.tell(b"\x01\x0c\x2b\x00")
    assert pair.events() == [
        BatteryChanged(42, charging=True),
        BatteryChanged(43, charging=True),
        BatteryChanged(43),
    ]


def test_a_change_of_the_battery_is_notified_at_once(pair):
    pair.event(BatteryChanged(12))
    pair.run()
    assert pair.events() == [BatteryChanged(12)]
    assert channel_of(pair.told[0]) == "battery"


@pytest.mark.parametrize(
    "packet", [ChannelPacket(b"\x65", "battery"), ChannelPacket(b"\x01", "video")]
)
def test_what_cannot_be_on_a_channel_is_a_violation(pair, packet):
    with pytest.raises(RemoteViolation):
        pair.central.receive_packet(packet, pair.now)
    assert pair.ask(Ping()) == Done()


def test_a_line_end_after_an_error_does_not_hide_the_error(pair):
    """Its prompt ends each error with a line feed in a packet of its own."""
    pair.air = lambda way, packet: [packet] if way == "down" else []
    number = pair.central.send(ShowPage("s", lines=(TextLine(0, "Hi"),)), pair.now)
    pair.run(for_s=0.1)
    pair.tell(b"Error in data accumulator: no memory", b"\n", b"\x01\x01")
    pair.run(for_s=0.1)
    pair.tell(b"\x01\x01")
    assert "no memory" in pair.answer(number).detail


def test_a_program_that_was_interrupted_has_ended(pair):
    pair.tell(b"[string \"require('glassd_app')\"]:1: error executing module: interrupted")
    pair.run()
    assert isinstance(pair.lost, LinkLost)
    assert LuaPrompt().is_error("other.lua:12: interrupted")


def test_a_late_break_is_no_reason_to_upload():
    device = equipped(hardware=HALO)
    device.stop()
    pair = halo_pair(device)
    pair.run(until=lambda: START.encode() in pair.said, for_s=10)
    pair.tell(b"[string \"require('main')\"]:1: error executing module 'main': interrupted")
    assert isinstance(pair.greet(), GlassesInfo)
    assert not pair.central.startup.uploaded


# ------------------------------------------------------------------ the speaker


def speak(pair, count: int, *, stream: int = 3) -> None:
    """Send frames of 10 ms."""
    for index in range(count):
        pair.central.send(AudioChunk(stream, index, (FRAME,)), pair.now)


def sound(pair) -> bytes:
    return b"".join(packet for packet in pair.said if channel_of(packet) == "speaker")


@needs("liblc3")
def test_speech_is_lc3_of_40_bytes_in_10_ms(pair):
    """§3.1.3, §7.8: 10 ms per frame, 32 kbit/s is 40 bytes of them."""
    assert pair.ask(StartAudio(3, SPEECH)) == Done()
    speak(pair, 5)
    pair.run(for_s=0.1)
    assert len(sound(pair)) == 5 * 40
    assert pair.ask(EndAudio(3)) == Done(samples=0)
    assert pair.said[-1] == bytes.fromhex("01 35 00 00")


@needs("liblc3")
def test_what_is_left_of_a_frame_is_filled_with_silence(pair):
    pair.ask(StartAudio(3, SPEECH))
    pair.central.send(AudioChunk(3, 0, (FRAME[:100],)), pair.now)
    pair.run(for_s=0.1)
    assert sound(pair) == b""
    pair.ask(EndAudio(3))
    assert len(sound(pair)) == 40


def test_without_lc3_speech_is_samples(pair, without_lc3):
    assert pair.ask(StartAudio(3, SPEECH)) == Done()
    assert pair.said[-1] == bytes.fromhex("01 34 00 01 00")
    speak(pair, 1)
    pair.run(for_s=0.1)
    assert sound(pair) == FRAME


@pytest.mark.parametrize("coded", [pytest.param(True, marks=needs("liblc3")), False])
def test_the_buffer_of_the_glasses_never_overflows(pair, coded, request):
    if not coded:
        request.getfixturevalue("without_lc3")
    rate = 4000 if coded else 32000
    pair.ask(StartAudio(3, SPEECH))
    began = pair.now
    speak(pair, 400)
    pair.run(for_s=0.05)
    assert BUFFER_BYTES - 509 <= len(sound(pair)) <= BUFFER_BYTES + 0.05 * rate < RING_BYTES
    pair.run(for_s=10)
    assert pair.glasses._ring.lost == 0
    assert len(sound(pair)) == (400 * 40 if coded else 400 * 320)
    assert pair.ask(EndAudio(3)) == Done(samples=0)
    assert pair.now - began >= 4


def test_the_end_waits_until_the_last_sample_was_played(pair):
    pair.ask(StartAudio(3, SPEECH))
    speak(pair, 100)
    began = pair.now
    assert pair.ask(EndAudio(3)) == Done(samples=0)
    assert 1.0 + LATE_S <= pair.now - began < 1.0 + LATE_S + 0.2


def test_a_flush_drops_what_waits(pair):
    pair.ask(StartAudio(3, SPEECH))
    speak(pair, 400)
    pair.run(for_s=0.05)
    sent = len(sound(pair))
    assert pair.ask(EndAudio(3, flush=True)) == Done(samples=0)
    pair.run(for_s=5)
    assert len(sound(pair)) == sent
    assert pair.ask(StartAudio(4, SPEECH)) == Done()


def test_no_sound_is_sent_before_the_speaker_is_open(pair):
    pair.air = lambda way, packet: [] if way == "up" else [packet]
    pair.central.send(StartAudio(3, SPEECH), pair.now)
    speak(pair, 10)
    pair.run(for_s=1)
    assert sound(pair) == b""


def test_a_speaker_that_is_refused_is_closed(pair):
    pair.reply = lambda _command: Failed("busy", "LE Audio")
    assert isinstance(pair.ask(StartAudio(3, SPEECH)), Failed)
    pair.reply = lambda _command: Done()
    assert pair.ask(StartAudio(4, SPEECH)) == Done()


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (StartAudio(4, SPEECH), "busy"),
        (StartAudio(4, AudioFormat.OPUS), "unsupported"),
        (StartAudio(4, SPEECH, rate=8000), "unsupported"),
        (EndAudio(9), "no_stream"),
        (EndAudio(9, flush=True), "no_stream"),
    ],
    ids=repr,
)
def test_what_the_speaker_cannot_do_is_refused(pair, command, code):
    pair.ask(StartAudio(3, SPEECH))
    with pytest.raises(CommandRefused) as refused:
        pair.central.send(command, pair.now)
    assert refused.value.code == code


def test_sound_of_another_stream_is_dropped(pair):
    pair.ask(StartAudio(3, SPEECH))
    speak(pair, 5, stream=9)
    pair.run(for_s=0.1)
    assert sound(pair) == b""


@pytest.mark.parametrize(("counted", "done"), [(True, Done(samples=480)), (False, Done())])
def test_samples_are_claimed_only_where_they_are_counted(counted, done):
    pair = halo_pair(equipped(hardware=HALO, dialect=FrameDialect(counts_sound=counted)))
    pair.greet()
    pair.reply = lambda command: Done(samples=480) if isinstance(command, EndAudio) else Done()
    pair.ask(StartAudio(3, SPEECH))
    assert pair.ask(EndAudio(3)) == done


# ------------------------------------------------------------------ what the glasses take


def told(pair) -> list[bytes]:
    pair.run(for_s=0.2)
    return [bytes(packet) for packet in pair.told]


def test_control_bytes(pair):
    """§3.1.2: 03 breaks, 04 restarts also a running program, 05 removes main.lua, 07 all files."""
    files = pair.device.files
    pair.glasses.receive_packet(b"\x03", pair.now)
    (broken,) = told(pair)
    assert broken.endswith(b"interrupted")
    assert pair.device.program is None
    files["main.lua"] = "while true do end"
    pair.glasses.receive_packet(b"\x04", pair.now)
    assert pair.device.program is not None, "main.lua runs"
    pair.glasses.receive_packet(b"\x05", pair.now)
    assert pair.device.program is None
    assert list(files) == ["glassd_app.lua"]
    pair.glasses.receive_packet(b"\x07", pair.now)
    assert files == {}


def test_06_leaves_lua_until_02_reboots(pair):
    rebooted = []
    pair.glasses.reboot = lambda: rebooted.append(True)
    pair.glasses.receive_packet(b"\x06", pair.now)
    pair.glasses.receive_packet(b"print(1)", pair.now)
    assert told(pair) == []
    pair.glasses.receive_packet(b"\x02", pair.now)
    assert rebooted == [True]
    pair.glasses.receive_packet(b"print(2)", pair.now)
    assert told(pair) == [b"2"]


def test_a_control_empties_the_queues(pair):
    pair.device.stop()
    pair.glasses.receive_packet(b"print(1)", pair.now)
    pair.glasses.receive_packet(b"\x03", pair.now)
    pair.glasses.receive_packet(b"print(2)", pair.now)
    assert told(pair) == [b"2"]


def test_packets_wait_in_a_queue(pair):
    """§7.5: one write is one call, in their order."""
    for _ in range(3):
        pair.glasses.receive_packet(bytes.fromhex("01 31 00 00"), pair.now)
    assert told(pair) == [b"\x01\x0c\x57\x00", b"\x01\x00"] * 3


def test_what_has_no_room_in_the_queue_is_refused(pair):
    packet = bytes.fromhex("01 31 00 00") + bytes(505)
    for _ in range(12):
        pair.glasses.receive_packet(packet, pair.now)
    assert told(pair).count(b"\x01\x01") == 8, "4096 bytes hold eight of them"


def test_a_missing_module_is_a_file_that_cannot_be_opened():
    pair = halo_pair(FrameDevice(hardware=HALO))
    pair.glasses.receive_packet(b"require('glassd_app')", pair.now)
    (said,) = told(pair)
    assert said.endswith(b"cannot open file: glassd_app.lua")
    assert LuaPrompt().is_error(said.decode())


def test_the_program_is_uploaded_and_started():
    pair = halo_pair(FrameDevice(hardware=HALO, program=LuaProgram("")))
    assert isinstance(pair.greet(), GlassesInfo)
    assert pair.device.files == {"glassd_app.lua": program("halo").text}


def test_the_program_of_a_frame_is_replaced():
    device = FrameDevice(hardware=HALO, files={"glassd_app.lua": program("frame").text})
    device.run("require('glassd_app')")
    pair = halo_pair(device)
    assert isinstance(pair.greet(), GlassesInfo)
    assert device.files == {"glassd_app.lua": program("halo").text}


def test_a_text_at_the_prompt_is_seen_at_once_until_it_is_cleared():
    pair = halo_pair(FrameDevice(hardware=HALO))
    for text in (
        b"frame.display.text('Hello',33,45,0xFFFFFF);print(1)",
        b"frame.display.text('there',33,57,0xFFFFFF);print(1)",
    ):
        pair.glasses.receive_packet(text, pair.now)
        pair.run(for_s=0.1)
    assert pair.shown[-1].lines == (TextLine(0, "Hello"), TextLine(1, "there"))
    pair.glasses.receive_packet(b"frame.display.clear(0x000000);print(1)", pair.now)
    pair.run(for_s=0.1)
    assert pair.shown[-1].lines == ()


@pytest.mark.parametrize("value", ["frame.HARDWARE_VERSION", "frame.FIRMWARE_VERSION"])
def test_it_says_what_it_is_at_the_prompt(value):
    pair = halo_pair(FrameDevice(hardware=HALO))
    pair.glasses.receive_packet(f"print({value})".encode(), pair.now)
    assert told(pair) == [b"halo" if "HARDWARE" in value else b"0.8.20"]


def test_le_audio_keeps_the_microphone():
    pair = halo_pair(equipped(hardware=HALO, dialect=FrameDialect(microphone=False)))
    pair.greet()
    refused = pair.ask(StartMicrophone(1, SPEECH))
    assert isinstance(refused, Failed)
    assert "LE Audio" in refused.detail
    assert pair.ask(Ping()) == Done()
