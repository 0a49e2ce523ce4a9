"""Our program of Monocle, run with stubs of its firmware's modules, and glassd's codec."""

from itertools import pairwise

import pytest

from firmware_bridge.codecs.frame.terminal import FIRMWARE, MonocleDevice
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
    ShowPage,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
    TextLine,
)
from firmware_bridge.own_commands import BlinkLight, LightColor, SwitchLightOff
from tests.codecs.frame.pair import FramePair
from tests.codecs.frame.python_glasses import PythonGlasses

PAGE = ShowPage("s", lines=tuple(TextLine(row, "M" * 26) for row in range(8)))
JPEG = b"\xff\xd8" + bytes(3000) + b"\xff\xd9"
MICROPHONE = StartMicrophone(4, AudioFormat.PCM16, 16000)


@pytest.fixture(params=[100, 253])
def pair(request):
    pair = FramePair(MonocleDevice(), max_packet=request.param)
    pair.glasses = PythonGlasses(pair.device, request.param)
    assert pair.greet() == GlassesInfo("Monocle", FIRMWARE, "", {}, {})
    return pair


def test_a_full_page_is_on_the_lens_without_texts_that_touch(pair):
    assert pair.ask(PAGE) == Done(drawn=208)
    assert pair.glasses.shown == [("M" * 26, 0, 50 * row) for row in range(8)]


def test_a_cleared_lens_is_empty(pair):
    pair.ask(PAGE)
    assert pair.ask(ClearPage()) == Done(drawn=0)
    assert pair.glasses.shown == []


def test_an_error_while_drawing_is_reported_and_does_not_reach_the_next_page(pair):
    pair.glasses.broken = "overlaps"
    refused = pair.ask(ShowPage("s", lines=(TextLine(0, "one"),)))
    assert refused == Failed("bad_message", refused.detail)
    assert "overlaps" in refused.detail
    pair.glasses.broken = ""
    assert pair.ask(ShowPage("s", lines=(TextLine(0, "two"),))) == Done(drawn=3)
    assert pair.glasses.shown == [("two", 0, 0)]


def test_touches_arrive(pair):
    pair.glasses.pads["A"]("A")
    pair.run()
    pair.glasses.pads["B"]("B")
    pair.run()
    assert pair.events() == [Gestured(Gesture.TAP), Gestured(Gesture.BUTTON)]


def test_battery_and_brightness(pair):
    pair.glasses.level, pair.glasses.charging = 103, True
    assert pair.ask(Ping()) == Done()
    assert pair.events() == [BatteryChanged(100, charging=True)]
    assert pair.ask(SetBrightness(100)) == Done()
    assert pair.glasses.lit == 4


def test_the_light_blinks_as_it_was_told(pair):
    assert pair.ask(BlinkLight(LightColor.RED, 500, 200, 2)) == Done()
    pair.run(for_s=5)
    told = [(colour, word) for _, colour, word in pair.glasses.lights]
    assert told == [("RED", "on"), ("RED", "off")] * 2
    times = [at for at, _, _ in pair.glasses.lights]
    steps = [later - earlier for earlier, later in pairwise(times)]
    assert steps == [pytest.approx(step, abs=0.03) for step in (0.5, 0.2, 0.5)]


def test_the_light_is_switched_off_and_stays_so(pair):
    pair.ask(BlinkLight(LightColor.GREEN, 60_000))
    pair.run()
    assert pair.ask(SwitchLightOff()) == Done()
    pair.run(for_s=100)
    assert [word for _, _, word in pair.glasses.lights] == ["on", "off"]


def test_a_photo_arrives_whole(pair):
    pair.glasses.photo = JPEG
    assert pair.ask(TakePhoto(3)) == Done()
    pair.run(for_s=3)
    assert pair.events() == [PhotoTaken(3, JPEG)]


def test_a_camera_that_gives_nothing_is_reported(pair):
    assert pair.ask(TakePhoto(3)) == Done()
    pair.run(for_s=4)
    assert pair.events() == []
    pair.run(for_s=3)
    assert [type(event) for event in pair.events()] == [PhotoFailed]


def test_a_camera_that_fails_is_reported(pair):
    pair.glasses.broken = "no camera"
    refused = pair.ask(TakePhoto(3))
    assert "no camera" in refused.detail


@pytest.mark.parametrize("rate", [8000, 16000])
def test_sound_arrives_until_it_is_stopped(pair, rate):
    sound = bytes(range(256)) * 4
    pair.glasses.sound = sound
    assert pair.ask(StartMicrophone(4, AudioFormat.PCM16, rate)) == Done()
    pair.run()
    heard = [e for e in pair.events() if isinstance(e, MicrophoneChunk)]
    said = b"".join(frame for chunk in heard for frame in chunk.frames)
    assert said == bytes(byte for at in range(0, 1024, 2) for byte in (sound[at + 1], sound[at]))
    assert pair.glasses.recordings == [{"seconds": 10, "sample_rate": rate, "bit_depth": 16}]
    pair.run(for_s=10)
    assert len(pair.glasses.recordings) == 2, "the next begins when one ends"
    assert pair.ask(StopMicrophone(4)) == Done()
    pair.glasses.sound = sound
    pair.run(for_s=30)
    assert pair.glasses.sound == sound, "nobody reads it"
    assert len(pair.glasses.recordings) == 2


def test_a_busy_radio_delays_and_loses_nothing(pair):
    pair.glasses.busy = 30
    assert pair.ask(PAGE) == Done(drawn=208)


def test_a_lost_connection_leaves_nothing_for_the_next(pair):
    half = b"\x01\x0a\x00\x64\x00\x01\x00\x01\x01\x04half"
    whole = b"\x01\x0a\x00\x09\x00\x01\x00\x01\x01\x04old"
    for packet in (half, whole):
        pair.glasses.receive_packet(packet, pair.now)
    pair.ask(MICROPHONE)
    again = FramePair(pair.device, max_packet=pair.max_packet, now=pair.now)
    again.glasses = pair.glasses
    assert isinstance(again.greet(), GlassesInfo)
    assert not again.central.startup.uploaded
    assert again.ask(ShowPage("s", lines=(TextLine(0, "new"),))) == Done(drawn=3)
    assert pair.glasses.shown == [("new", 0, 0)]
    pair.glasses.sound = b"\1\2"
    again.run()
    assert again.events() == []


def test_without_a_central_the_program_lives_on(pair):
    pair.glasses.connected = False
    pair.glasses.pads["A"]("A")
    pair.run()
    pair.glasses.connected = True
    assert pair.ask(PAGE) == Done(drawn=208)


@pytest.mark.parametrize(
    "packet",
    ["01", "01 0a", "01 0a 00", "01 0a ff ff", "01 0a 00 00 ff", "01 77 00 00", "01 30 00 01 09"],
)
def test_a_damaged_message_is_refused_and_the_program_lives_on(pair, packet):
    pair.glasses.receive_packet(bytes.fromhex(packet), pair.now)
    pair.run(for_s=0.1)
    assert b"\x01\x01" in pair.told
    assert pair.ask(PAGE) == Done(drawn=208)


def test_what_is_not_for_the_program_is_ignored(pair):
    pair.glasses.receive_packet(b"hello", pair.now)
    pair.run(for_s=0.1)
    assert pair.told == []
