"""Golden packets of Omi, OMI Glass and OpenGlass in both directions, written by hand from the rules
of the sources (§ of the fact sheet).
"""

import pytest
from msgspec.structs import replace

from firmware_bridge.catalog import CATALOG, find
from firmware_bridge.codec import NEED_DATA
from firmware_bridge.codecs.omi.peripheral import DIALECTS
from firmware_bridge.codecs.omi.wire import gain_of, interval, percent_of
from firmware_bridge.errors import CommandRefused, LocalMisuse, RemoteViolation
from firmware_bridge.messages import (
    AudioFormat,
    BatteryChanged,
    ButtonReleased,
    Done,
    Failed,
    Gesture,
    Gestured,
    GlassesInfo,
    MicrophoneChunk,
    PhotoTaken,
    Ping,
    SetBrightness,
    SetClock,
    ShowPage,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
    WornChanged,
)
from firmware_bridge.models import Advertisement
from firmware_bridge.own_commands import (
    DimLight,
    GetMotion,
    MotionRead,
    SetMicrophoneGain,
    Vibrate,
    Vibration,
)
from firmware_bridge.packets import ChannelPacket
from tests.codecs.omi.pair import Pair

KEYS = ["omi", "omi_glass", "openglass"]
FORMS = {
    0: (AudioFormat.PCM16, 16000),
    1: (AudioFormat.PCM16, 8000),
    10: (AudioFormat.MULAW, 16000),
    11: (AudioFormat.MULAW, 8000),
    20: (AudioFormat.OPUS, 16000),
    21: (AudioFormat.OPUS, 16000),
}
JPEG = b"\xff\xd8" + bytes(range(1, 250)) * 2 + b"\xff\xd9"
"""502 bytes: three packets."""


def listening(pair: Pair, stream: int = 5) -> Pair:
    pair.greet()
    form, rate = FORMS[pair.dialect.codec]
    assert pair.ask(StartMicrophone(stream, form, rate)) == Done()
    return pair


# ------------------------------------------------------------------ §1 UUIDs, §2 names

MAIN = "19b10000-e8f2-537e-4f6c-d104768a1214"
UUIDS = {
    "audio": "19b10001-e8f2-537e-4f6c-d104768a1214",
    "codec": "19b10002-e8f2-537e-4f6c-d104768a1214",
    "photo": "19b10005-e8f2-537e-4f6c-d104768a1214",
    "control": "19b10006-e8f2-537e-4f6c-d104768a1214",
    "dim": "19b10011-e8f2-537e-4f6c-d104768a1214",
    "gain": "19b10012-e8f2-537e-4f6c-d104768a1214",
    "update": "19b10011-e8f2-537e-4f6c-d104768a1214",
    "progress": "19b10012-e8f2-537e-4f6c-d104768a1214",
    "features": "19b10021-e8f2-537e-4f6c-d104768a1214",
    "set_clock": "19b10031-e8f2-537e-4f6c-d104768a1214",
    "clock": "19b10032-e8f2-537e-4f6c-d104768a1214",
    "button": "23ba7925-0000-1000-7450-346eac492e92",
    "battery": "00002a19-0000-1000-8000-00805f9b34fb",
    "model": "00002a24-0000-1000-8000-00805f9b34fb",
    "serial": "00002a25-0000-1000-8000-00805f9b34fb",
    "firmware": "00002a26-0000-1000-8000-00805f9b34fb",
    "hardware": "00002a27-0000-1000-8000-00805f9b34fb",
    "manufacturer": "00002a29-0000-1000-8000-00805f9b34fb",
    "charging": "19b10013-e8f2-537e-4f6c-d104768a1214",
    "diagnostics": "19b10041-e8f2-537e-4f6c-d104768a1214",
    "vibrate": "cab1ab96-2ea5-4f4d-bb56-874b72cfc984",
    "motion": "32403791-0000-1000-7450-bf445e5829a2",
}
HAS = {
    "omi": {
        *("button", "dim", "gain", "features", "set_clock", "clock"),
        *("charging", "diagnostics", "vibrate", "motion"),
    },
    "omi_glass": {"photo", "control", "update", "progress"},
    "openglass": {"photo", "control"},
}


@pytest.mark.parametrize("key", KEYS)
def test_a_model_has_the_characteristics_of_its_firmware(key):
    channels = find(key).gatt.channels
    common = {"audio", "codec", "battery"}
    common |= {"model", "serial", "firmware", "hardware", "manufacturer"}
    assert {each.name for each in channels} == common | HAS[key]
    assert all(each.uuid == UUIDS[each.name] for each in channels)
    assert channels[-1].name == "codec", "read last: then all else is known"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("OpenGlass", "openglass"),
        ("OMI Glass", "omi_glass"),
        ("Omi", "omi"),
        ("Omi DevKit 2", "omi"),
        (None, None),
        ("", None),
    ],
)
def test_a_model_is_recognised_by_its_name(name, key):
    found = CATALOG.recognise(Advertisement(name, frozenset({MAIN})))
    assert (found and found.key) == key


@pytest.mark.parametrize("name", ["OpenGlass", "OMI Glass", "Omi"])
def test_a_name_without_the_service_is_nothing(name):
    assert CATALOG.recognise(Advertisement(name, frozenset({UUIDS["battery"]}))) is None


@pytest.mark.parametrize(("text", "key"), [("OpenGlass", "openglass"), ("OMI Glass", "omi_glass")])
def test_the_model_string_leads_to_the_model(text, key):
    assert CATALOG.by_firmware_model(text) is find(key)


# ------------------------------------------------------------------ §2, §3 who they are


def test_glasses_say_who_they_are_and_what_they_send():
    pair = Pair("omi_glass")
    for channel, text in (("model", b"OMI Glass"), ("firmware", b"2.3.2\0"), ("serial", b"A1B2")):
        pair.tell(channel, text)
    info = pair.greet()
    assert isinstance(info, GlassesInfo)
    assert (info.model, info.firmware, info.serial) == ("OMI Glass", "2.3.2", "A1B2")
    assert info.capabilities["camera"] is True
    assert pair.said == [("control", b"\0"), ("codec", b"")], "no photos unasked, and a read"


@pytest.mark.parametrize("codec", FORMS)
def test_the_codec_id_says_format_and_rate(codec):
    pair = Pair("omi", replace(DIALECTS["omi"], codec=codec))
    known = pair.greet().capabilities
    assert known["microphone"] is True
    assert (known["microphone.codecs"], known["microphone.rate"]) == FORMS[codec]


def test_a_codec_that_nobody_knows_is_no_microphone():
    pair = Pair("omi", replace(DIALECTS["omi"], codec=22))
    assert pair.greet().capabilities["microphone"] is False
    assert pair.ask(StartMicrophone(1, AudioFormat.OPUS)).code == "unsupported"


@pytest.mark.parametrize(("bits", "button"), [(b"\x04\0\0\0", True), (b"\xfb\x07\0\0", False)])
def test_the_features_say_whether_there_is_a_button(bits, button):
    pair = Pair("omi")
    pair.tell("features", bits)
    known = pair.greet().capabilities
    assert known["button"] is button
    assert known["gestures"] == ("button,double_tap" if button else "")


def test_a_ping_reads_the_codec_id_and_is_answered_by_it():
    pair = Pair("omi")
    pair.greet()
    del pair.said[:]
    number = pair.central.send(Ping(), 0.0)
    assert pair.central.packets_to_send(0.0) == [b""]
    assert pair.central.next_event() is NEED_DATA, "not before it is read"
    assert pair.tell("codec", b"\x15") == [Done()]
    assert pair.heard[-1].re == number


# ------------------------------------------------------------------ §4 sound


def test_sound_is_subscribed_only_while_it_is_wanted():
    pair = listening(Pair("omi"))
    assert pair.said[-1] == ("audio", b"\x01")
    assert pair.taken == [StartMicrophone(0, AudioFormat.OPUS, 16000)]
    assert pair.ask(StopMicrophone(5)) == Done()
    assert pair.said[-1] == ("audio", b"\x00")
    assert pair.taken[1:] == [StopMicrophone(0)]
    assert pair.tell("audio", b"\1\0\0late") == pair.tell("audio", b"\2\0\0late") == []


def test_openglass_sends_one_block_a_packet():
    """163 bytes: number, fragment 0, 80 samples."""
    pair = listening(Pair("openglass"))
    block = bytes(range(160))
    assert pair.tell("audio", b"\xfe\xff\x00" + block) == []
    assert pair.tell("audio", b"\xff\xff\x00" + bytes(160)) == [MicrophoneChunk(5, 0, (block,))]
    assert pair.tell("audio", b"\x00\x00\x00" + block) == [MicrophoneChunk(5, 1, (bytes(160),))]
    assert pair.tell("audio", b"\x01\x00\x00" + block) == [MicrophoneChunk(5, 2, (block,))]


def test_simulated_openglass_sends_the_same_packets():
    pair = listening(Pair("openglass"))
    for index in (0, 1):
        pair.event(MicrophoneChunk(0, index, (bytes(range(160)),)))
    heads = (b"\x00\x00\x00", b"\x01\x00\x00")
    assert pair.sent == [("audio", head + bytes(range(160))) for head in heads]


def test_omi_cuts_a_frame_and_numbers_its_pieces():
    pair = listening(Pair("omi", max_packet=23))
    sent = pair.glasses
    sent.send(MicrophoneChunk(0, 0, (b"A" * 20 + b"B" * 20 + b"C",)), 0.0)
    sent.send(MicrophoneChunk(0, 1, (b"D" * 7,)), 0.0)
    sent.send(MicrophoneChunk(0, 2, (b"E" * 7,)), 0.0)
    pair.settle()
    assert pair.sent == [
        ("audio", b"\0\0\0" + b"A" * 20),
        ("audio", b"\1\0\1" + b"B" * 20),
        ("audio", b"\2\0\2" + b"C"),
        ("audio", b"\3\0\0" + b"D" * 7),
        ("audio", b"\4\0\0" + b"E" * 7),
    ]
    assert pair.sound() == [(0, b"A" * 20 + b"B" * 20 + b"C"), (1, b"D" * 7)]


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (StartMicrophone(6, AudioFormat.OPUS), "busy"),
        (StartMicrophone(6, AudioFormat.LC3), "unsupported"),
        (StartMicrophone(6, AudioFormat.OPUS, 8000), "unsupported"),
        (StopMicrophone(6), "no_stream"),
    ],
)
def test_a_microphone_order_that_does_not_fit_is_refused(command, code):
    pair = listening(Pair("omi"))
    said = len(pair.said)
    reply = pair.ask(command)
    assert isinstance(reply, Failed)
    assert reply.code == code
    assert len(pair.said) == said, "nothing was sent"


# ------------------------------------------------------------------ §5 photos


def test_one_photo_is_ordered_by_ff():
    pair = Pair("openglass")
    assert pair.ask(TakePhoto(9)) == Done()
    assert pair.said == [("control", b"\xff")]
    assert pair.taken == [TakePhoto(0)]


GOLDEN = {
    "omi_glass": [
        b"\x00\x00\x02" + JPEG[:199],
        b"\x01\x00" + JPEG[199:399],
        b"\x02\x00" + JPEG[399:],
        b"\xff\xff",
    ],
    "openglass": [
        b"\x00\x00" + JPEG[:200],
        b"\x01\x00" + JPEG[200:400],
        b"\x02\x00" + JPEG[400:],
        b"\xff\xff",
    ],
}


@pytest.mark.parametrize("key", GOLDEN)
def test_a_photo_is_received(key):
    pair = Pair(key)
    pair.ask(TakePhoto(9))
    *pieces, end = GOLDEN[key]
    assert all(pair.tell("photo", piece) == [] for piece in pieces)
    assert pair.tell("photo", end) == [PhotoTaken(9, JPEG, 180)]


@pytest.mark.parametrize("key", GOLDEN)
def test_a_simulated_photo_has_the_same_packets(key):
    pair = Pair(key)
    assert pair.event(PhotoTaken(0, JPEG, 180)) == [PhotoTaken(0, JPEG, 180)]
    assert pair.sent == [("photo", packet) for packet in GOLDEN[key]]


@pytest.mark.parametrize("orientation", range(4))
def test_the_orientation_is_degrees_clockwise(orientation):
    pair = Pair("omi_glass")
    pair.tell("photo", bytes((0, 0, orientation)) + JPEG)
    assert pair.tell("photo", b"\xff\xff") == [PhotoTaken(0, JPEG, 90 * orientation)]


@pytest.mark.parametrize(
    ("byte", "steps", "fixed"),
    [
        (5, 5, 30),
        (9, 5, 30),
        (10, 10, 30),
        (127, 125, 30),
        (1, None, None),
        (4, None, None),
        (128, None, None),
        (254, None, None),
    ],
)
def test_an_interval_means_steps_of_five_seconds_or_nothing(byte, steps, fixed):
    assert interval(byte, DIALECTS["openglass"]) == steps
    assert interval(byte, DIALECTS["omi_glass"]) == fixed


def test_control_bytes_set_the_interval_of_the_glasses():
    pair = Pair("openglass")
    for byte, seconds in ((10, 10.0), (4, 10.0), (200, 10.0), (0, 0.0), (30, 30.0), (255, 0.0)):
        pair.glasses.receive_packet(_control(byte), 0.0)
        assert pair.settings == {"interval": seconds}


def _control(byte: int):
    return ChannelPacket(bytes([byte]), "control")


def test_pieces_of_a_photo_keep_their_pace():
    """OpenGlass: one every 20 ms; OMI Glass: two every 5 ms."""
    for key, count, pause in (("openglass", 1, 0.02), ("omi_glass", 2, 0.005)):
        glasses = Pair(key).glasses
        glasses.send(PhotoTaken(0, JPEG, 180), 1.0)
        glasses.send(MicrophoneChunk(0, 0, (b"sound",)), 1.0)
        first = glasses.packets_to_send(1.0)
        assert [packet.channel for packet in first] == ["audio", *["photo"] * count]
        assert glasses.packets_to_send(1.0 + pause / 2) == []
        assert glasses.next_timer() == pytest.approx(1.0 + pause)
        assert len(glasses.packets_to_send(1.0 + pause)) == count


# ------------------------------------------------------------------ other lengths than today's


@pytest.mark.parametrize(
    ("channel", "packet", "events"),
    [
        ("button", b"\x01", [Gestured(Gesture.BUTTON)]),
        ("button", b"\x02\0\0\0", [Gestured(Gesture.DOUBLE_TAP)]),
        ("button", b"\x02\0\0\0\0\0\0\0\0\0", [Gestured(Gesture.DOUBLE_TAP)]),
        ("battery", b"\x57\x01", [BatteryChanged(87)]),
        ("manufacturer", b"Based Hardware", []),
        ("diagnostics", bytes(25), []),
        ("dim", b"\x20", []),
        ("progress", b"\x30\x05", []),
    ],
)
def test_shorter_and_longer_values_are_understood(channel, packet, events):
    pair = Pair("omi")
    assert pair.tell(channel, packet) == events
    assert pair.refused == []


@pytest.mark.parametrize(
    ("value", "form"),
    [(b"\x15\0", AudioFormat.OPUS), (b"", AudioFormat.PCM16)],
)
def test_a_codec_id_may_be_followed_by_more_or_be_missing(value, form):
    pair = Pair("omi")
    pair.values["codec"] = value
    assert pair.greet().capabilities["microphone.codecs"] == form


def test_features_of_fewer_or_more_bytes_are_understood():
    for bits in (b"\x84", b"\x84\0", b"\x84\0\0\0\x01"):
        pair = Pair("omi")
        pair.tell("features", bits)
        known = pair.greet().capabilities
        assert (known["button"], known["light"], known["microphone.gain"]) == (True, True, False)


def test_the_end_of_a_photo_may_be_followed_by_more():
    pair = Pair("openglass")
    for packet in GOLDEN["openglass"][:-1]:
        pair.tell("photo", packet)
    assert pair.tell("photo", b"\xff\xff\0\0") == [PhotoTaken(0, JPEG, 180)]


# ------------------------------------------------------------------ charging, motion, vibration


def test_charging_belongs_to_the_battery():
    pair = Pair("omi")
    assert pair.tell("charging", b"\x01") == [], "the charge is not known yet"
    assert pair.tell("battery", b"\x57") == [BatteryChanged(87, charging=True)]
    assert pair.tell("charging", b"\x01") == []
    assert pair.tell("charging", b"\x00") == [BatteryChanged(87)]
    assert pair.event(BatteryChanged(88, charging=True))[-1] == BatteryChanged(88, charging=True)
    assert pair.sent == [("charging", b"\x01"), ("battery", b"\x58")]


MOTION = bytes.fromhex(
    "00 00 00 00 c0 d4 01 00"  # 0.12
    "00 00 00 00 70 2f fc ff"  # -0.25
    "09 00 00 00 10 5c 0c 00"  # 9.81
    "ff ff ff ff e0 5e f8 ff"  # -1.5
    "00 00 00 00 00 00 00 00"
    "02 00 00 00 01 00 00 00"  # 2.000001
)
READ = MotionRead((0.12, -0.25, 9.81), (-1.5, 0.0, 2.000001))


def moving() -> Pair:
    pair = Pair("omi", replace(DIALECTS["omi"], features=0xFF))
    pair.tell("features", b"\x02\0\0\0")
    return pair


def test_a_reading_of_the_motion_sensor_is_six_numbers_of_two_integers():
    pair = moving()
    assert pair.greet().capabilities["imu"] is True
    del pair.said[:]
    assert pair.ask(GetMotion()) == Done()
    assert pair.ask(GetMotion()) == Done(), "it is being read"
    assert pair.taken == [GetMotion()]
    assert pair.tell("motion", b"\x06\0\0\0") == [], "the number of axes"
    assert pair.tell("motion", MOTION) == [READ]
    assert pair.tell("motion", MOTION) == [], "one was asked for"
    pair.settle()
    assert pair.said == [("motion", b"\x01"), ("motion", b"\x00")]


def test_simulated_motion_has_the_same_packet():
    pair = moving()
    pair.ask(GetMotion())
    assert pair.event(READ) == [READ]
    assert pair.sent == [("motion", MOTION)]


def test_motion_and_vibration_are_refused_where_they_are_not_built_in():
    pair = Pair("omi")
    pair.tell("features", b"\0\0\0\0")
    for command in (GetMotion(), Vibrate()):
        with pytest.raises(CommandRefused, match="unsupported"):
            pair.central.send(command, 0.0)


@pytest.mark.parametrize(("length", "byte"), [("short", 1), ("medium", 2), ("long", 3)])
def test_a_vibration_is_one_byte(length, byte):
    pair = Pair("omi")
    pair.tell("features", b"\x20\0\0\0")
    assert pair.ask(Vibrate(Vibration(length))) == Done()
    assert pair.said == [("vibrate", bytes([byte]))]
    assert pair.taken == [Vibrate(Vibration(length))]


@pytest.mark.parametrize("packet", [b"\0", b"\4", b"\xff"])
def test_glasses_ignore_a_vibration_that_there_is_not(packet):
    pair = Pair("omi")
    pair.glasses.receive_packet(ChannelPacket(packet, "vibrate"), 0.0)
    assert pair.glasses.next_event() is NEED_DATA


# ------------------------------------------------------------------ §6 battery and button


def test_the_battery_is_a_byte_and_told_when_it_changes():
    pair = Pair("omi")
    assert pair.tell("battery", b"\x57") == [BatteryChanged(87)]
    assert pair.tell("battery", b"\x57") == []
    assert pair.event(BatteryChanged(40)) == [BatteryChanged(40)]
    assert pair.sent == [("battery", b"\x28")]


@pytest.mark.parametrize(
    ("packet", "event"),
    [
        ("01 00 00 00 00 00 00 00", [Gestured(Gesture.BUTTON)]),
        ("02 00 00 00 00 00 00 00", [Gestured(Gesture.DOUBLE_TAP)]),
        ("03 00 00 00 00 00 00 00", [Gestured(Gesture.BUTTON_LONG)]),
        ("04 00 00 00 00 00 00 00", []),
        ("05 00 00 00 00 00 00 00", []),
        ("06 00 00 00 00 00 00 00", []),
        ("ff ff ff ff 00 00 00 00", []),
    ],
)
def test_button_values(packet, event):
    assert Pair("omi").tell("button", bytes.fromhex(packet)) == event


def test_a_release_ends_a_long_press_and_nothing_else():
    pair = Pair("omi")
    pressed, released = (bytes((code, *[0] * 7)) for code in (3, 5))
    assert pair.tell("button", released) == []
    pair.tell("button", pressed)
    assert pair.tell("button", released) == [ButtonReleased()]
    assert pair.tell("button", released) == []


def test_simulated_buttons_have_the_same_packets():
    pair = Pair("omi", replace(DIALECTS["omi"], says_long=True))
    for event in (
        Gestured(Gesture.BUTTON),
        Gestured(Gesture.DOUBLE_TAP),
        Gestured(Gesture.BUTTON_LONG),
        ButtonReleased(),
    ):
        assert pair.event(event) == [event]
    codes = [int.from_bytes(packet, "little") for _channel, packet in pair.sent]
    assert codes == [1, 2, 3, 5]
    with pytest.raises(LocalMisuse):
        Pair("omi").glasses.send(Gestured(Gesture.BUTTON_LONG), 0.0)
    with pytest.raises(LocalMisuse):
        Pair("omi").glasses.send(WornChanged(True), 0.0)


# ------------------------------------------------------------------ §1 the clock, and the rest


def test_the_clock_is_set_where_there_is_one():
    pair = Pair("omi")
    with pytest.raises(CommandRefused):
        pair.ask(SetClock(0x01020304))
    pair.tell("clock", bytes(4))
    assert pair.ask(SetClock(0x01020304)) == Done()
    assert pair.said == [("set_clock", b"\x04\x03\x02\x01")]
    assert pair.taken == [SetClock(0x01020304)]


def test_the_clock_is_kept_in_utc():
    pair = Pair("omi")
    pair.tell("clock", bytes(4))
    pair.ask(SetClock(1_800_003_600, offset_s=3600))
    assert pair.said == [("set_clock", (1_800_000_000).to_bytes(4, "little"))]
    assert pair.greet().capabilities["clock"] is True


@pytest.mark.parametrize(
    ("bits", "dims", "gain"),
    [
        (b"\x80\x01\0\0", True, True),
        (b"\x80\0\0\0", True, False),
        (b"\0\x01\0\0", False, True),
        (b"\x7f\xfe\xff\xff", False, False),
    ],
)
def test_the_features_say_whether_light_and_microphone_can_be_set(bits, dims, gain):
    pair = Pair("omi")
    pair.tell("features", bits)
    known = pair.greet().capabilities
    assert (known["light"], known["light.brightness"], known["microphone.gain"]) == (
        dims,
        dims,
        gain,
    )
    for command, there in ((DimLight(1), dims), (SetMicrophoneGain(1), gain)):
        if there:
            assert pair.ask(command) == Done()
        else:
            with pytest.raises(CommandRefused, match="unsupported"):
                pair.central.send(command, 0.0)


def test_an_omi_without_features_is_not_written_to():
    pair = Pair("omi")
    assert pair.greet().capabilities["light"] is False
    with pytest.raises(CommandRefused):
        pair.central.send(DimLight(50), 0.0)


@pytest.mark.parametrize(
    ("command", "packet"),
    [
        (DimLight(0), ("dim", b"\x00")),
        (DimLight(100), ("dim", b"\x64")),
        (SetMicrophoneGain(0), ("gain", b"\x00")),
        (SetMicrophoneGain(50), ("gain", b"\x04")),
        (SetMicrophoneGain(100), ("gain", b"\x08")),
    ],
)
def test_light_and_gain_are_one_byte_each(command, packet):
    pair = Pair("omi")
    pair.tell("features", b"\xff" * 4)
    assert pair.ask(command) == Done()
    assert pair.said == [packet]
    assert pair.taken == [command]


@pytest.mark.parametrize("step", range(9))
def test_each_step_of_the_gain_is_the_step_of_its_percent(step):
    assert gain_of(percent_of(step)) == step


@pytest.mark.parametrize(
    ("channel", "value", "meant"),
    [
        ("dim", 101, DimLight(100)),
        ("dim", 255, DimLight(100)),
        ("gain", 9, SetMicrophoneGain(100)),
    ],
)
def test_a_light_or_a_gain_beyond_the_most_is_the_most(channel, value, meant):
    pair = Pair("omi")
    pair.glasses.receive_packet(ChannelPacket(bytes([value]), channel), 0.0)
    assert pair.glasses.next_event().message == meant


@pytest.mark.parametrize("packet", [b"", b"\1\2"])
@pytest.mark.parametrize("channel", ["dim", "gain", "control"])
def test_a_setting_of_another_length_is_refused(channel, packet):
    with pytest.raises(RemoteViolation):
        Pair("omi").glasses.receive_packet(ChannelPacket(packet, channel), 0.0)


@pytest.mark.parametrize("level", [-1, 101])
@pytest.mark.parametrize("command", [DimLight, SetMicrophoneGain])
def test_a_percentage_outside_the_whole_is_no_command(command, level):
    with pytest.raises(ValueError, match="outside 0…100"):
        command(level)


@pytest.mark.parametrize(
    "command", [ShowPage("s"), SetBrightness(50), TakePhoto(1), SetClock(1)], ids=repr
)
def test_what_an_omi_lacks_is_refused(command):
    pair = Pair("omi")
    with pytest.raises(CommandRefused) as refused:
        pair.central.send(command, 0.0)
    assert refused.value.code == "unsupported"
    assert pair.central.packets_to_send(0.0) == []
