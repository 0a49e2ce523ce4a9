"""Our Lua program, run by a real Lua: what it draws, sends and survives. Needs lupa."""

import pytest

from firmware_bridge.codecs.frame.program import FILE, Program, program
from firmware_bridge.errors import LostReason
from firmware_bridge.messages import (
    AudioFormat,
    BatteryChanged,
    ClearPage,
    Done,
    Failed,
    Gesture,
    Gestured,
    GlassesInfo,
    Hello,
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
from tests.codecs.frame.pair import FramePair

pytest.importorskip("lupa", reason="the program runs in Lua only with lupa")
from tests.codecs.frame.lua_glasses import FIRMWARE, LuaGlasses

PAGE = ShowPage("s", lines=(TextLine(0, "Grüße an  dich"), TextLine(2, "second", 40)))
PICTURE = ShowPage("p", tiles=(Tile(8, 16, 16, 2, 1, b"\xff\x00\x0f\xf0"),))


class LuaPair(FramePair):
    """A central and glasses that run Lua."""

    def __init__(self, glasses: LuaGlasses | None = None, **options) -> None:
        super().__init__(**options)
        halo = self.device.hardware.is_halo
        self.glasses = glasses or LuaGlasses(max_packet=self.max_packet, halo=halo)

    @property
    def host(self):
        return self.glasses.host


@pytest.fixture
def pair():
    pair = LuaPair()
    pair.greet()
    return pair


@pytest.mark.parametrize("max_packet", [100, 244])
def test_the_program_is_uploaded_and_says_who_it_is(max_packet):
    pair = LuaPair(max_packet=max_packet)
    assert pair.greet() == GlassesInfo("Frame", FIRMWARE, "", {}, {})
    assert pair.glasses.files == {FILE.encode(): program().text.encode()}
    assert pair.refused == []


def test_a_running_program_is_not_uploaded_again(pair):
    again = LuaPair(pair.glasses, now=pair.now)
    assert isinstance(again.greet(), GlassesInfo)
    assert again.now - pair.now < 0.2
    assert again.central.startup.uploaded is False


def test_a_stopped_program_is_started_and_not_uploaded_again(pair):
    pair.glasses.receive_packet(b"\x03", pair.now)
    pair.glasses.receive_packet(b"\x04", pair.now)
    assert not pair.glasses.runs
    again = LuaPair(pair.glasses, now=pair.now)
    assert isinstance(again.greet(), GlassesInfo)
    assert again.central.startup.uploaded is False


def test_glasses_may_keep_the_first_question_until_the_program_runs():
    """A Halo keeps data until a program takes it (halo-emulator 2.3.0)."""
    pair = LuaPair()
    hello, kept = b"\x01\x33\x00\x00", []

    def air(way: str, packet: bytes) -> list[bytes]:
        if way == "down" and packet == hello:
            kept.append(packet)
            return []
        if way == "down" and packet.startswith(b"\x01\x31") and kept:
            return [kept.pop(), packet]
        return [packet]

    pair.air = air
    numbers = [pair.central.send(each, pair.now) for each in (Hello("test", "0"), Ping(), PAGE)]
    pair.run(for_s=60.0, until=lambda: pair.answer(numbers[-1]) is not None)
    assert pair.answer(numbers[1]) == Done()
    assert pair.answer(numbers[2]) == Done(drawn=17)
    assert pair.ask(Ping()) == Done()
    assert kept == []


def test_another_version_replaces_a_running_program(pair):
    other = Program(program().text.replace(program().build, "0badcafe"), "0badcafe")
    again = LuaPair(pair.glasses, app=other, now=pair.now)
    assert isinstance(again.greet(), GlassesInfo)
    assert pair.glasses.files == {FILE.encode(): other.text.encode()}


def test_a_program_of_somebody_else_is_stopped():
    pair = LuaPair()
    pair.glasses.receive_packet(b"while true do frame.sleep(0.1) end", 0.0)
    pair.glasses.handle_timer(1.0)
    assert pair.glasses.runs
    assert isinstance(pair.greet(), GlassesInfo)


def test_a_program_that_does_not_run_ends_the_connection():
    pair = LuaPair(app=Program("this is not Lua", "00000000"))
    assert pair.greet() is None
    assert pair.lost.reason is LostReason.PROTOCOL
    assert "does not run" in str(pair.lost)


def test_a_page_is_drawn_then_shown_then_reported(pair):
    assert pair.ask(PAGE) == Done(drawn=11 + 6)
    assert pair.host.shown[-1] == [
        ("text", "Grüße an  dich".encode(), 1, 1, b"WHITE", 4),
        ("text", b"second", 41, 121, b"WHITE", 4),
    ]
    assert pair.host.drawn == []


def test_a_picture_is_drawn_in_the_palette_of_greys(pair):
    assert pair.ask(PICTURE) == Done(drawn=16)
    assert pair.host.shown[-1] == [("bitmap", 9, 17, 16, 2, 0, b"\xff\x00\x0f\xf0")]
    assert pair.host.palette == {b"WHITE": (255, 255, 255)}
    levels = bytes(0x11 * level for level in range(16))
    grey = ShowPage("g", tiles=(Tile(0, 0, 32, 1, 4, levels),))
    assert pair.ask(grey) == Done(drawn=30)
    assert len(pair.host.palette) == 15
    assert pair.host.palette[b"GREY"] == (170, 170, 170)
    assert b"VOID" not in pair.host.palette


def test_a_large_picture_is_drawn_in_strips(pair):
    whole = ShowPage("w", tiles=(Tile(0, 0, 640, 400, 4, b"\x5a" * 128_000),))
    before = pair.now
    assert pair.ask(whole) == Done(drawn=128_000)
    assert pair.now - before < 5
    drawn = pair.host.shown[-1]
    assert [what[2] for what in drawn] == [1 + 51 * at for at in range(8)]
    assert sum(len(what[6]) for what in drawn) == 32_000


def test_clearing_shows_nothing(pair):
    pair.ask(PAGE)
    assert pair.ask(ClearPage()) == Done(drawn=0)
    assert pair.host.shown[-1] == [("text", b" ", 1, 1, None, None)]


def test_an_error_while_drawing_is_reported_and_does_not_reach_the_next_page(pair):
    text = pair.host.text

    def broken(*what):
        if what[0] == b"second":
            raise ValueError("no memory")
        text(*what)

    pair.host.text = broken
    refused = pair.ask(PAGE)
    assert isinstance(refused, Failed)
    assert "no memory" in refused.detail
    pair.host.text = text
    assert pair.ask(PICTURE) == Done(drawn=16)
    assert len(pair.host.shown[-1]) == 1


def test_taps_arrive(pair):
    pair.glasses.tap()
    pair.run()
    pair.glasses.tap()
    pair.run(for_s=0.1)
    pair.glasses.tap()
    pair.run()
    assert pair.events() == [Gestured(Gesture.TAP), Gestured(Gesture.DOUBLE_TAP)]


def test_motion_is_read_in_g(pair):
    pair.host.motion = [1, 2, 3, 4096, -4096, 2048]
    assert pair.ask(GetMotion()) == Done()
    assert pair.events() == [MotionRead((1.0, -1.0, 0.5), None, (1.0, 2.0, 3.0))]


def test_looking_up_and_down_again_are_gestures(pair):
    for pitch in (30.0, 30.0, 0.0):
        pair.host.pitch = pitch
        pair.run()
    assert pair.events() == [Gestured(Gesture.HEAD_UP), Gestured(Gesture.HEAD_DOWN)]


def test_a_photo_is_exposed_taken_and_sent_whole(pair):
    jpeg = b"\xff\xd8" + bytes(range(256)) * 20 + b"\xff\xd9"
    pair.host.photo = jpeg
    assert pair.ask(TakePhoto(9, PhotoSize.SMALL)) == Done()
    assert pair.host.captured is None, "the exposure comes first"
    pair.run(for_s=5)
    assert pair.events() == [PhotoTaken(9, jpeg, 270)]
    assert pair.host.captured == (320, b"MEDIUM", 0)
    assert pair.host.exposed == 8


def test_a_camera_that_fails_is_reported(pair):
    pair.host.camera_problem = b"camera is asleep"
    assert pair.ask(TakePhoto(9)) == Done()
    pair.run(for_s=5)
    (failed,) = pair.events()
    assert isinstance(failed, PhotoFailed)
    assert "camera is asleep" in failed.detail
    assert isinstance(pair.ask(Ping()), Done)


@pytest.mark.parametrize("rate", [8000, 16000])
def test_sound_arrives_until_it_is_stopped(pair, rate):
    assert pair.ask(StartMicrophone(3, AudioFormat.PCM16, rate)) == Done()
    assert pair.host.listening == (rate, 16)
    pcm = bytes(range(256)) * 10
    pair.host.sound.extend([pcm[:1000], pcm[1000:]])
    pair.run()
    chunks = [event for event in pair.events() if isinstance(event, MicrophoneChunk)]
    assert b"".join(frame for chunk in chunks for frame in chunk.frames) == pcm
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert pair.ask(StopMicrophone(3)) == Done()
    pair.run()
    assert pair.host.listening is None
    assert b"\x01\x06" in pair.told


def test_brightness_and_battery(pair):
    assert pair.ask(SetBrightness(100)) == Done()
    assert pair.host.brightness == 2
    pair.host.level = 42.9
    assert pair.ask(Ping()) == Done()
    assert pair.events() == [BatteryChanged(42)]


def test_a_lost_connection_leaves_nothing_for_the_next(pair):
    pair.central.send(StartMicrophone(3, AudioFormat.PCM16), pair.now)
    pair.run()
    # a page that stops half-way: one text, and one packet of a picture
    pair.glasses.receive_packet(bytes.fromhex("010a0007000100010104") + b"x", pair.now)
    pair.run()
    pair.glasses.receive_packet(bytes.fromhex("012001000010"), pair.now)
    pair.run()
    assert len(pair.host.drawn) == 1
    again = LuaPair(pair.glasses, now=pair.now)
    assert isinstance(again.greet(), GlassesInfo)
    assert pair.host.listening is None
    assert again.ask(PICTURE) == Done(drawn=16)
    assert len(pair.host.shown[-1]) == 1


def test_without_a_central_the_program_lives_on(pair):
    pair.glasses.connected = False
    pair.glasses.tap()
    pair.host.listen(16000, 16)
    pair.host.sound.append(bytes(400))
    for step in range(100):
        pair.glasses.handle_timer(pair.now + step)
    assert pair.glasses.runs
    pair.glasses.connected = True
    again = LuaPair(pair.glasses, now=pair.now + 200)
    assert isinstance(again.greet(), GlassesInfo)
    assert again.central.startup.uploaded is False


def test_a_break_ends_the_program_also_while_it_sends(pair):
    pair.host.breaking = True
    pair.glasses.tap()
    pair.run()
    assert not pair.glasses.runs


@pytest.mark.parametrize(
    "packet",
    [
        "01",
        "01 0a",
        "01 0a 00",
        "01 0a 00 00",
        "01 0a ff ff 00",
        "01 0a 00 01 00 00 00",
        "01 21 00 06 20 00 01 00 01 00",
        "01 20 00 01 00",
        "01 77 00 00",
        "01 0d 00 01 00",
        "01 32 00 01 09",
    ],
)
def test_a_damaged_message_is_refused_and_the_program_lives_on(pair, packet):
    pair.glasses.receive_packet(bytes.fromhex(packet), pair.now)
    pair.run()
    assert pair.told[-1] == b"\x01\x01"
    assert pair.ask(PAGE) == Done(drawn=17)
