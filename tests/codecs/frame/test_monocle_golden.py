"""Packets of Monocle, byte by byte, from its fact sheet (§12) and its firmware, both directions."""

import pytest

from firmware_bridge.codecs.frame.program import program
from firmware_bridge.codecs.frame.prompts import RawPrompt
from firmware_bridge.codecs.frame.terminal import FIRMWARE, MonocleDevice
from firmware_bridge.errors import CommandRefused, RemoteViolation
from firmware_bridge.messages import (
    AudioFormat,
    BatteryChanged,
    ClearPage,
    Done,
    Failed,
    Gesture,
    Gestured,
    GlassesInfo,
    MicrophoneChunk,
    PhotoFailed,
    PhotoTaken,
    Ping,
    SetBrightness,
    SetHeadUpAngle,
    ShowPage,
    StartAudio,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
    TextLine,
    Tile,
)
from firmware_bridge.own_commands import BlinkLight, GetMotion, LightColor, SwitchLightOff
from firmware_bridge.packets import ChannelPacket, channel_of
from firmware_bridge.sim.monocle.glasses import start
from tests.codecs.frame.pair import FramePair, equipped_monocle

GREEN = LightColor.GREEN
MICROPHONE = StartMicrophone(4, AudioFormat.PCM16, 16000)
JPEG = b"\xff\xd8" + bytes(500) + b"\xff\xd9"
EVENTS = (
    "import touch\r\n"
    'touch.callback(touch.A, lambda x: print("[EVENT:touch-A]"))\r\n'
    'touch.callback(touch.B, lambda x: print("[EVENT:touch-B]"))\r\n'
)


@pytest.fixture
def pair():
    pair = FramePair(equipped_monocle(), max_packet=253)
    pair.greet()
    return pair


def packets(text: str) -> list[bytes]:
    return [bytes.fromhex(line) for line in text.strip().splitlines()]


def typed(pair: FramePair, data: bytes) -> str:
    """Type at the prompt, and return what it answers."""
    pair.told.clear()
    pair.glasses.receive_packet(ChannelPacket(data, "prompt"), pair.now)
    pair._serve(lambda: None)
    said = pair.glasses.packets_to_send(pair.now)
    assert {channel_of(packet) for packet in said} <= {"printed"}
    return b"".join(said).decode()


def alone(device: MonocleDevice | None = None) -> FramePair:
    """Glasses to which glassd says nothing."""
    return FramePair(device or MonocleDevice(), max_packet=253, air=lambda _way, _packet: [])


# ------------------------------------------------------------------ what glassd says

SAID = {
    "text": (
        ShowPage("s", lines=(TextLine(0, "Hi"), TextLine(7, "last", 48))),
        """
        01 0a 00 08 00 01 00 01 01 04 48 69
        01 0a 00 0a 00 31 01 5f 01 04 6c 61 73 74
        01 22 00 02 00 01
        """,
        Done(drawn=6),
    ),
    "clear": (ClearPage(), "01 22 00 02 00 01", Done(drawn=0)),
    "photo": (TakePhoto(5), "01 0d 00 06 04 01 40 00 8c 00", Done()),
    "16 kHz": (MICROPHONE, "01 30 00 01 02", Done()),
    "brightness": (SetBrightness(75), "01 32 00 01 03", Done()),
    "ping": (Ping(), "01 31 00 00", Done()),
    "light": (BlinkLight(GREEN, 500, 250, 3), "01 38 00 06 02 01 f4 00 fa 03", Done()),
    "light off": (SwitchLightOff(), "01 38 00 06 00 00 00 00 00 00", Done()),
}


@pytest.mark.parametrize("name", SAID)
def test_a_command_becomes_exactly_these_packets(pair, name):
    command, said, reply = SAID[name]
    assert pair.ask(command) == reply
    assert pair.said == packets(said)
    assert {channel_of(packet) for packet in pair.said} == {""}, "the data service"


@pytest.mark.parametrize(
    "command",
    [
        ShowPage("s", tiles=(Tile(0, 0, 8, 1, 1, b"\xff"),)),
        SetHeadUpAngle(30),
        GetMotion(),
        BlinkLight(LightColor.BLUE),
        BlinkLight(GREEN, level=50),
        StartAudio(1, AudioFormat.PCM16, 16000),
    ],
)
def test_what_monocle_lacks_is_refused(pair, command):
    with pytest.raises(CommandRefused) as refused:
        pair.central.send(command, pair.now)
    assert refused.value.code == "unsupported"


@pytest.mark.parametrize("name", ["light", "light off"])
def test_glasses_hear_what_the_light_shall_do(pair, name):
    pair.ask(SAID[name][0])
    assert pair.shown[-1] == SAID[name][0]


def test_other_letters_are_question_marks_and_clipped(pair):
    assert pair.ask(ShowPage("s", lines=(TextLine(0, "Grüße"),))) == Done(drawn=5, clipped=1)
    assert pair.shown[-1].lines == (TextLine(0, "Gr??e"),)


@pytest.mark.parametrize("max_packet", [64, 125, 253])
def test_the_program_is_uploaded_over_the_raw_prompt(max_packet):
    """03, 03, 01, then each statement with 04 after it; a file as the maker's example writes it."""
    pair = FramePair(MonocleDevice(), max_packet=max_packet)
    assert pair.greet() == GlassesInfo("Monocle", FIRMWARE, "", {}, {})
    assert pair.device.files == {"glassd_app.py": program("monocle").text}
    pair = FramePair(MonocleDevice(), max_packet=max_packet)
    pair.ask(Ping(), for_s=60)
    said = [packet for packet in pair.said if channel_of(packet) == "prompt"]
    assert said[:3] == [b"\x03", b"\x03", b"\x01"]
    stream = b"".join(said[3:])
    begin = RawPrompt.start.replace("\n", "\r\n").encode() + b"\x04"
    assert stream.startswith(begin + b"f=open('glassd_app.py','wb')\x04f.write(b'")
    assert stream.endswith(b"')\x04f.close()\x04" + b"\x03\x03\x01" + begin)
    assert max(map(len, stream.split(b"\x04"))) < 1024, "what its prompt keeps"


def test_a_stored_program_is_started_and_not_uploaded_again():
    pair = FramePair(MonocleDevice(files={"glassd_app.py": program("monocle").text}))
    assert isinstance(pair.greet(), GlassesInfo)
    assert not pair.central.startup.uploaded


@pytest.mark.parametrize("stored", ["", "BUILD = (", program("monocle").text[:2000]])
def test_a_file_stored_in_part_is_uploaded_again(stored):
    pair = FramePair(MonocleDevice(files={"glassd_app.py": stored}))
    assert isinstance(pair.greet(), GlassesInfo)
    assert pair.device.files["glassd_app.py"] == program("monocle").text


def test_another_version_is_replaced():
    device = MonocleDevice()
    other = program("monocle").text.replace(program("monocle").build, "00000000")
    device.files["glassd_app.py"] = other
    list(device.take(b"\x01" + RawPrompt.start.encode() + b"\x04"))
    pair = FramePair(device)
    assert isinstance(pair.greet(), GlassesInfo)
    assert pair.central.startup.uploaded


def test_the_program_of_somebody_else_is_stopped_and_its_file_stays():
    device = MonocleDevice()
    start(device, "other-program")
    pair = FramePair(device)
    assert isinstance(pair.greet(), GlassesInfo)
    assert "main.py" in device.files


def test_glasses_without_space_end_the_connection():
    pair = FramePair(MonocleDevice(files={f"{index}.py": "" for index in range(32)}))
    pair.ask(Ping(), for_s=60)
    assert "OSError: 28" in str(pair.lost)


# ------------------------------------------------------------------ what the glasses say


def test_a_prompt_in_pieces_is_read(pair):
    prompt = RawPrompt()
    prompt.type("f.close()", 253)
    answer = b"old>OK\x04\x04>"
    texts = [
        prompt.read(ChannelPacket(answer[at : at + 1], "printed")) for at in range(len(answer))
    ]
    assert [each for some in texts for each in some] == ["\x04"]


@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        (b"OK\x04\x04>", ["\x04"]),
        (b"OK1\r\n2\x04\x04>", ["1", "2", "\x04"]),
        (
            b"OK\x04Traceback (most recent call last):\r\n  File\r\nOSError: 28\r\n\x04>",
            ["error: OSError: 28"],
        ),
        (b"raw REPL; CTRL-B to exit\r\n>", []),
        (b"x" * 5000, []),
        (b"OK" + b"x" * 5000 + b"\r\n", ["x" * 5000]),
    ],
)
def test_what_the_raw_prompt_answers(answer, texts):
    prompt = RawPrompt()
    prompt.type("1", 253)
    assert prompt.read(ChannelPacket(answer, "printed")) == texts


def test_a_program_that_ends_ends_the_connection(pair):
    pair.tell(
        ChannelPacket(
            b"\x04Traceback (most recent call last):\r\nMemoryError: \r\n\x04>", "printed"
        )
    )
    pair.run()
    assert "MemoryError" in str(pair.lost)


def test_a_late_break_is_no_reason_to_upload():
    pair = FramePair(MonocleDevice(files={"glassd_app.py": program("monocle").text}))
    pair.central.send(Ping(), pair.now)
    pair.run(until=lambda: any(b"import gc" in packet for packet in pair.said), for_s=10)
    late = b"OK\x04Traceback (most recent call last):\r\nKeyboardInterrupt: \r\n\x04>"
    pair.tell(ChannelPacket(late, "printed"))
    pair.run(for_s=5)
    assert not pair.central.startup.uploaded
    assert pair.central.startup.running


def test_a_packet_of_another_channel_is_a_violation(pair):
    for codec in (pair.central, pair.glasses):
        with pytest.raises(RemoteViolation):
            codec.receive_packet(ChannelPacket(b"1", "other"), pair.now)


def test_pads_are_tap_and_button(pair):
    for data, gesture in (
        (["01 09"], Gesture.TAP),
        (["01 09", "01 09"], Gesture.DOUBLE_TAP),
        (["01 0b 01"], Gesture.BUTTON),
    ):
        pair.heard.clear()
        for each in data:
            pair.tell(bytes.fromhex(each))
            pair.run(for_s=0.1)
        pair.run()
        assert pair.events() == [Gestured(gesture)]


@pytest.mark.parametrize("gesture", [Gesture.TAP, Gesture.DOUBLE_TAP, Gesture.BUTTON])
def test_glasses_are_touched_as_their_wearer_does(pair, gesture):
    pair.event(Gestured(gesture))
    pair.run()
    assert pair.events() == [Gestured(gesture)]


def test_battery_says_whether_it_is_charged(pair):
    pair.tell(bytes.fromhex("01 0c 2a 01"), bytes.fromhex("01 0c 2a 00"))
    assert pair.events() == [BatteryChanged(42, charging=True), BatteryChanged(42)]


def test_samples_come_with_the_high_byte_first(pair):
    assert pair.ask(MICROPHONE) == Done()
    pair.tell(bytes.fromhex("01 05 01 02 03"), bytes.fromhex("01 05 04"))
    assert pair.events() == [
        MicrophoneChunk(4, 0, (b"\x02\x01",)),
        MicrophoneChunk(4, 1, (b"\x04\x03",)),
    ]
    pair.event(MicrophoneChunk(4, 0, (b"\x02\x01\x04\x03",)))
    pair.run()
    assert pair.told[-1] == bytes.fromhex("01 05 01 02 03 04")
    assert pair.ask(StopMicrophone(4)) == Done()


def test_a_photo_lies_as_it_was_taken(pair):
    assert pair.ask(TakePhoto(5)) == Done()
    pair.tell(
        b"\x01\x07" + JPEG[:251], b"\x01\x07" + JPEG[251:], bytes.fromhex("01 08 00 00 01 f8")
    )
    assert pair.events() == [PhotoTaken(5, JPEG, turned=0)]
    assert pair.ask(TakePhoto(6)) == Done()
    pair.tell(bytes.fromhex("01 08 ff ff ff ff"))
    assert isinstance(pair.events()[-1], PhotoFailed)


def test_why_a_message_was_refused_is_printed(pair):
    pair.reply = lambda command: Failed("busy", "texts overlap")
    refused = pair.ask(ShowPage("s", lines=(TextLine(0, "Hi"),)))
    assert refused == Failed("bad_message", refused.detail)
    assert "texts overlap" in refused.detail


# ------------------------------------------------------------------ the prompt of the glasses


def test_the_stream_of_the_driver_is_run():
    """brilliant-monocle-driver: 03 01, the code, 04, cut at 125 bytes."""
    pair = alone()
    stream = b"\x03\x01" + EVENTS.encode() + b"\x04"
    said = [typed(pair, stream[at : at + 125]) for at in range(0, len(stream), 125)]
    assert "".join(said) == "\r\n>>> raw REPL; CTRL-B to exit\r\n>OK\x04\x04>"
    pair.event(Gestured(Gesture.DOUBLE_TAP))
    pair.event(Gestured(Gesture.BUTTON))
    assert b"".join(pair.glasses.packets_to_send(pair.now)) == (
        b"[EVENT:touch-A]\r\n[EVENT:touch-A]\r\n[EVENT:touch-B]\r\n"
    )


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("import device\nprint(device.battery_level())", "87\r\n"),
        ("print(device.VERSION, 'x')", f"{FIRMWARE} x\r\n"),
        ("print(device.is_charging())", "False\r\n"),
        ("1", ""),
    ],
)
def test_values_are_printed(code, printed):
    pair = alone()
    typed(pair, b"\x03\x01")
    assert typed(pair, code.encode() + b"\x04") == f"OK{printed}\x04\x04>"


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import nothing", "ImportError: no module named 'nothing'"),
        ("f.write(b'1')", "NameError: name 'f' isn't defined"),
        ("open()", "OSError: [Errno 2] ENOENT"),
        ("1 +", "SyntaxError: invalid syntax"),
        ("touch.callback('x', None)", "ValueError: must be touch.A"),
        ("display.show(1)", "TypeError: object isn't printable"),
        ("display.brightness(5)", "ValueError: brightness must be 0 to 4"),
        ("(" * 3000, "SyntaxError: invalid syntax"),
        ("while True: pass", "RuntimeError"),
        ("x()", "NameError: name 'x()' isn't defined"),
    ],
)
def test_what_cannot_be_run_is_an_error(code, problem):
    pair = alone()
    typed(pair, b"\x03\x01")
    said = typed(pair, code.encode() + b"\x04")
    assert said.startswith("OK\x04Traceback (most recent call last):\r\n")
    assert problem in said
    assert said.endswith("\r\n\x04>")


def test_text_is_shown_and_cleared_at_the_prompt():
    pair = alone()
    typed(pair, b"\x03\x01")
    typed(pair, b"display.show([display.Text('a', 0, 50, display.WHITE)])\x04")
    assert pair.shown[-1].lines == (TextLine(1, "a"),)
    typed(pair, b"display.show(display.Text('b', 24, 0, 0xffffff))\x04")
    assert pair.shown[-1].lines == (TextLine(0, "b", 24),)
    typed(pair, b"display.clear()\x04")
    assert pair.shown[-1].lines == ()
    typed(pair, b"display.brightness(4)\x04")
    assert pair.shown[-1] == SetBrightness(100)


def test_both_modes_of_the_prompt():
    pair = alone()
    assert typed(pair, b"print(1)\r") == "print(1)\r\n1\r\n>>> "
    assert typed(pair, b"\x01") == "raw REPL; CTRL-B to exit\r\n>"
    assert typed(pair, b"print(1)\x03") == ""
    assert typed(pair, b"print(2)\x04") == "OK2\r\n\x04\x04>"
    assert typed(pair, b"\x02").startswith("\r\nMicroPython ")


@pytest.mark.parametrize(("control", "runs"), [(b"\x04", True), (b"\x1c", False)])
def test_it_starts_anew_with_main_or_in_safe_mode(control, runs):
    """MO: 1C starts safe mode, without main.py."""
    pair = alone(MonocleDevice(files={"main.py": "while True: pass"}))
    typed(pair, control)
    assert (pair.device.program is not None) is runs
    assert typed(pair, b"print(1)\r") == ("" if runs else "print(1)\r\n1\r\n>>> ")
    assert typed(pair, b"\x03").endswith("KeyboardInterrupt: \r\n>>> " if runs else "\r\n>>> ")


def test_data_without_a_program_is_dropped():
    pair = alone()
    pair.glasses.receive_packet(bytes.fromhex("01 31 00 00"), pair.now)
    pair.glasses.handle_timer(pair.now + 1)
    assert pair.glasses.packets_to_send(pair.now) == []
    pair.glasses.receive_packet(b"\x03", pair.now)
    pair.glasses.receive_packet(b"print(1)", pair.now)
    pair.glasses.handle_timer(pair.now + 1)
    assert pair.glasses.packets_to_send(pair.now) == [], "the prompt is elsewhere"


def test_packets_wait_in_a_queue(pair):
    for _ in range(2):
        pair.glasses.receive_packet(bytes.fromhex("01 31 00 00"), pair.now)
    pair.run()
    assert pair.told.count(b"\x01\x00") == 2


@pytest.mark.parametrize(
    "packet",
    [
        "01 20 00 01 00",
        "01 21 00 01 00",
        "01 36 00 01 1e",
        "01 37 00 00",
        "01 38 00 06 03 00 00 00 00 01",
        "01 77 00 00",
    ],
)
def test_messages_that_its_program_lacks_are_refused(pair, packet):
    pair.glasses.receive_packet(bytes.fromhex(packet), pair.now)
    pair.run(for_s=0.2)
    assert pair.told[-1] == b"\x01\x01"
