"""Our Lua program on a Halo, run by a real Lua: what differs from a Frame. Needs lupa."""

import pytest

from firmware_bridge.codecs.frame.device import FrameDevice
from firmware_bridge.codecs.frame.hardware import HALO
from firmware_bridge.codecs.frame.program import FILE, program
from firmware_bridge.messages import (
    AudioFormat,
    BatteryChanged,
    ClearPage,
    Done,
    EndAudio,
    Failed,
    Gesture,
    Gestured,
    GlassesInfo,
    MicrophoneChunk,
    PhotoSize,
    PhotoTaken,
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

pytest.importorskip("lupa", reason="the program runs in Lua only with lupa")
from firmware_bridge.own_commands import GetMotion, MotionRead
from tests.codecs.frame.lua_glasses import FIRMWARE
from tests.codecs.frame.test_frame_program import LuaPair
from tests.system import needs

PAGE = ShowPage("s", lines=(TextLine(0, "Hi, you"), TextLine(2, "second", 40)))
PICTURE = ShowPage("p", tiles=(Tile(8, 16, 16, 2, 1, b"\xff\x00\x0f\xf0"),))


def halo_pair(glasses=None, **options) -> LuaPair:
    return LuaPair(glasses, device=FrameDevice(hardware=HALO), max_packet=509, **options)


@pytest.fixture
def pair():
    pair = halo_pair()
    pair.greet()
    return pair


def test_the_program_is_uploaded_and_says_who_it_is():
    pair = halo_pair()
    assert pair.greet() == GlassesInfo("Halo", FIRMWARE, "", {}, {})
    assert pair.glasses.files == {FILE.encode(): program("halo").text.encode()}
    assert pair.refused == []


def test_each_kind_of_glasses_has_a_program_of_its_own():
    assert program("halo").build != program("frame").build
    assert "frame.button" not in program("frame").text


def test_a_running_program_is_not_uploaded_again(pair):
    again = halo_pair(pair.glasses, now=pair.now)
    assert isinstance(again.greet(), GlassesInfo)
    assert again.central.startup.uploaded is False


def test_the_lens_is_awake_while_something_is_shown(pair):
    assert list(pair.host.font.values()) == [0, 8, 1]
    for page, asleep in ((PAGE, False), (ClearPage(), True), (PICTURE, False)):
        pair.ask(page)
        assert pair.host.lens_asleep is asleep


def test_a_page_is_drawn_in_the_middle_once_it_is_whole(pair):
    assert pair.ask(PAGE) == Done(drawn=6 + 6)
    assert pair.host.shown == [
        [],  # what another program had left
        [
            ("text", b"Hi, you", 33, 45, 0xFFFFFF, None),
            ("text", b"second", 73, 45 + 24, 0xFFFFFF, None),
        ],
    ]


def test_a_page_that_stops_half_way_is_never_seen(pair):
    pair.ask(PAGE)
    text = bytes.fromhex("01 0a 00 07 00 21 00 2d 01 04") + b"x"
    pair.glasses.receive_packet(text, pair.now)
    pair.run()
    assert len(pair.host.shown) == 2
    again = halo_pair(pair.glasses, now=pair.now)
    again.greet()
    assert again.ask(PICTURE) == Done(drawn=16)
    assert pair.host.shown[-1] == [("bitmap", 41, 61, 16, 2, 0, b"\xff\x00\x0f\xf0")]


def test_a_picture_brings_its_colours(pair):
    levels = bytes(0x11 * level for level in range(16))
    assert pair.ask(ShowPage("g", tiles=(Tile(0, 0, 32, 1, 4, levels),))) == Done(drawn=30)
    (palette,) = pair.host.palettes
    assert len(palette) == 48
    assert palette[:6] == b"\x00\x00\x00\xff\xff\xff"


def test_clearing_shows_nothing(pair):
    pair.ask(PAGE)
    assert pair.ask(ClearPage()) == Done(drawn=0)
    assert pair.host.shown[-1] == []


def test_letters_that_its_font_lacks_are_question_marks_and_clipped(pair):
    done = pair.ask(ShowPage("s", lines=(TextLine(0, "Grüße"),)))
    assert done == Done(drawn=5, clipped=1)
    assert pair.host.shown[-1][0][1] == b"Gr??e"


def test_the_program_counts_only_what_its_font_draws(pair):
    pair.glasses.receive_packet(
        bytes.fromhex("01 0a 00 09 00 21 00 2d 01 04") + "aü".encode(), pair.now
    )
    pair.run()
    pair.glasses.receive_packet(bytes.fromhex("01 22 00 02 00 09"), pair.now)
    pair.run()
    assert bytes.fromhex("01 41 00 09 00 01 00 00") in pair.told


@pytest.mark.parametrize(
    ("kind", "gesture"), [(b"single", Gesture.TAP), (b"double", Gesture.DOUBLE_TAP)]
)
def test_taps_arrive_with_their_kind(pair, kind, gesture):
    pair.glasses.tap(kind)
    pair.run()
    assert pair.events() == [Gestured(gesture)]


def test_three_taps_mean_nothing(pair):
    pair.glasses.tap(b"triple")
    pair.run()
    assert (pair.events(), pair.refused) == ([], [])


def test_older_firmware_reports_each_tap(pair):
    pair.glasses.tap()
    pair.run(for_s=0.1)
    pair.glasses.tap()
    pair.run()
    assert pair.events() == [Gestured(Gesture.DOUBLE_TAP)]


@pytest.mark.parametrize(
    ("press", "gesture"),
    [
        (b"single", Gesture.BUTTON),
        (b"double", Gesture.DOUBLE_TAP),
        (b"long", Gesture.BUTTON_LONG),
    ],
)
def test_the_button_is_reported(pair, press, gesture):
    pair.host.clicks[press]()
    pair.run()
    assert pair.events() == [Gestured(gesture)]


def test_motion_is_turned_to_right_forward_up(pair):
    """As brilliant-msg 7.3.0 does; its sensors lie in different directions."""
    pair.host.motion = [1.0, 2.0, 3.0, 500.0, -250.0, 1000.0]
    assert pair.ask(GetMotion()) == Done()
    assert pair.events() == [MotionRead((-1.0, -0.25, 0.5), None, (1.0, 3.0, -2.0))]


def test_looking_up_is_a_gesture_with_some_play(pair):
    for pitch, gestures in (
        (24.0, []),
        (26.0, [Gesture.HEAD_UP]),
        (16.0, []),
        (30.0, []),
        (14.0, [Gesture.HEAD_DOWN]),
        (-40.0, []),
    ):
        pair.heard.clear()
        pair.host.pitch = pitch
        pair.run()
        assert pair.events() == [Gestured(gesture) for gesture in gestures], pitch


def test_the_angle_of_looking_up_is_set(pair):
    assert pair.ask(SetHeadUpAngle(50)) == Done()
    pair.host.pitch = 45.0
    pair.run()
    assert pair.events() == []
    pair.host.pitch = 51.0
    pair.run()
    assert pair.events() == [Gestured(Gesture.HEAD_UP)]


def test_without_a_motion_sensor_the_program_lives_on(pair):
    pair.host.pitch = None
    pair.run(for_s=2)
    assert pair.ask(PAGE) == Done(drawn=12)


def test_battery_says_whether_it_is_charged(pair):
    pair.host.level, pair.host.charging = 42.9, True
    assert pair.ask(Ping()) == Done()
    assert pair.events() == [BatteryChanged(42, charging=True)]


def test_brightness_is_set_in_percent_and_never_dark(pair):
    for level, set_to in ((100, 100), (50, 50), (0, 10)):
        assert pair.ask(SetBrightness(level)) == Done()
        assert pair.host.brightness == set_to


def test_a_photo_wakes_the_camera_and_lets_it_sleep(pair):
    jpeg = b"\xff\xd8" + bytes(range(256)) * 20 + b"\xff\xd9"
    pair.host.photo = jpeg
    assert pair.ask(TakePhoto(9, PhotoSize.SMALL)) == Done()
    pair.run(for_s=0.3)
    assert pair.host.camera_asleep is False
    assert pair.host.captured is None, "the light is measured first"
    pair.run(for_s=5)
    assert pair.events() == [PhotoTaken(9, jpeg, 270)]
    assert pair.host.captured[:2] == (640, b"LOW")
    assert pair.host.camera_asleep is True
    assert max(map(len, pair.told)) <= 241, "no packet is larger than one of the radio"


def test_sound_of_the_microphone_arrives(pair):
    assert pair.ask(StartMicrophone(3, AudioFormat.PCM16, 16000)) == Done()
    assert pair.host.listening == (16000, 16)
    pcm = bytes(range(256)) * 10
    pair.host.sound.append(pcm)
    pair.run()
    chunks = [event for event in pair.events() if isinstance(event, MicrophoneChunk)]
    assert b"".join(frame for chunk in chunks for frame in chunk.frames) == pcm


def test_a_microphone_taken_by_le_audio_ends_and_the_program_lives_on(pair):
    pair.ask(StartMicrophone(3, AudioFormat.PCM16, 16000))
    pair.host.taken_over = True
    pair.run()
    assert b"\x01\x06" in pair.told
    assert pair.ask(PAGE) == Done(drawn=12)


def speak(pair) -> object:
    assert pair.ask(StartAudio(5, AudioFormat.PCM16)) == Done()
    pair.host.played |= {"frames_decoded": 7, "frames_write_failed": 2, "pcm_bytes": 1600}
    return pair.ask(EndAudio(5))


def test_speech_is_coded_and_counted(pair, monkeypatch):
    assert speak(pair) == Done(samples=5 * 160)
    assert pair.host.speaking is None
    monkeypatch.setattr("firmware_bridge.lc3._load", missing)
    assert pair.ask(StartAudio(6, AudioFormat.PCM16)) == Done()
    assert pair.host.speaking[:2] == (b"pcm", 16000)
    assert pair.ask(EndAudio(6)) == Done(samples=800)


@needs("liblc3")
def test_the_speaker_is_opened_for_lc3_at_32_kbit(pair):
    pair.ask(StartAudio(5, AudioFormat.PCM16))
    assert pair.host.speaking == (b"lc3", 16000, 32000)


def test_a_lost_connection_closes_the_speaker(pair):
    pair.ask(StartAudio(5, AudioFormat.PCM16))
    pair.run()
    assert pair.host.speaking is not None
    pair.glasses.connected = False
    pair.run()
    assert pair.host.speaking is None


def test_the_next_greeting_closes_the_speaker(pair):
    pair.ask(StartAudio(5, AudioFormat.PCM16))
    again = halo_pair(pair.glasses, now=pair.now)
    assert isinstance(again.greet(), GlassesInfo)
    assert pair.host.speaking is None


def missing():
    from firmware_bridge.lc3 import Lc3Missing

    raise Lc3Missing("not installed")


def test_firmware_that_counts_no_sound_claims_nothing(pair):
    pair.glasses.without_counts()
    assert speak(pair) == Done()


def test_a_break_ends_the_program_also_while_it_sends(pair):
    pair.host.breaking = True
    pair.glasses.tap(b"single")
    pair.run()
    assert not pair.glasses.runs


def test_an_error_while_drawing_is_reported_and_does_not_reach_the_next_page(pair):
    text = pair.host.text

    def broken(*what):
        raise ValueError("no memory")

    pair.host.text = broken
    refused = pair.ask(PAGE)
    assert isinstance(refused, Failed)
    assert "no memory" in refused.detail
    pair.host.text = text
    assert pair.ask(PICTURE) == Done(drawn=16)
    assert len(pair.host.shown[-1]) == 1
