"""Any bytes at Halo and its central: nothing but a violation is raised, and both go on."""

import pytest
from hypothesis import given, settings, strategies as st

from firmware_bridge.codecs.frame.device import FrameDevice
from firmware_bridge.codecs.frame.hardware import HALO
from firmware_bridge.codecs.frame.wire import REMOVE_ALL
from firmware_bridge.messages import (
    AudioChunk,
    AudioFormat,
    Done,
    EndAudio,
    GlassesInfo,
    ShowPage,
    StartAudio,
    StartMicrophone,
    TakePhoto,
    TextLine,
    Tile,
)
from firmware_bridge.packets import ChannelPacket
from firmware_bridge.pixels import unpack
from tests.codecs.frame.pair import FramePair, drain, equipped
from tests.codecs.frame.test_frame_bytes import damaged, judge
from tests.system import needs

PAGE = ShowPage("s", lines=(TextLine(0, "Hello"), TextLine(13, "there", 20)))
GLASSES_SAY = [
    "01 09 02",
    "01 0b 03",
    "01 0c 32 01",
    "01 42 00 00 01 40",
    "01 43 01",
    "01 41 00 01 00 0a 00 00",
    "0a",
]
CHANNELS = st.sampled_from(["battery", "speaker", "other"])
CONTROLS = st.sampled_from([b"\x02", b"\x03", b"\x04", b"\x05", b"\x06", b"\x07"])
PACKETS = st.one_of(
    st.binary(max_size=60).map(lambda rest: b"\x01" + rest),
    st.binary(max_size=60),
    CONTROLS,
    st.builds(ChannelPacket, st.binary(max_size=60), CHANNELS),
)


def greeted(device=None, **options) -> FramePair:
    pair = FramePair(device or equipped(hardware=HALO), max_packet=509, **options)
    assert isinstance(pair.greet(), GlassesInfo)
    return pair


@pytest.mark.parametrize("said", GLASSES_SAY)
def test_a_damaged_packet_of_the_glasses_raises_only_violations(said):
    pair = greeted()
    pair.ask(StartAudio(4, AudioFormat.PCM16))
    judge(
        lambda packet: pair.central.receive_packet(packet, pair.now),
        damaged(bytes.fromhex(said)),
    )
    drain(pair.central)
    assert pair.ask(PAGE) == Done(drawn=10)


@settings(max_examples=150, deadline=None)
@given(st.lists(PACKETS))
def test_whatever_glasses_say_the_central_goes_on(packets):
    ends = (b"[string", b"glassd_")
    pair = greeted()
    said = [packet for packet in packets if packet[:7] not in ends]
    judge(lambda packet: pair.central.receive_packet(packet, pair.now), said)
    drain(pair.central)
    if not any(packet.endswith((b"interrupted", b"break signal")) for packet in said):
        assert pair.ask(PAGE) == Done(drawn=10)


def conversation() -> list[bytes]:
    pair = greeted()
    for command in (PAGE, TakePhoto(1), StartMicrophone(4, AudioFormat.PCM16)):
        pair.ask(command)
    pair.ask(StartAudio(5, AudioFormat.PCM16))
    pair.central.send(AudioChunk(5, 0, (bytes(320),)), pair.now)
    pair.ask(EndAudio(5))
    return pair.said


@pytest.mark.parametrize("said", conversation(), ids=lambda packet: packet[:8].hex())
def test_a_damaged_packet_of_the_central_raises_only_violations(said):
    pair = greeted()
    for packet in damaged(said):
        judge(lambda packet: pair.glasses.receive_packet(packet, pair.now), [packet])
        pair.now += 0.02
        judge(lambda _: pair.glasses.handle_timer(pair.now), [packet])
        drain(pair.glasses)
    pair.device.left = False
    again = greeted(pair.device, now=pair.now)
    assert again.ask(PAGE) == Done(drawn=10)


@settings(max_examples=100, deadline=None)
@given(st.lists(PACKETS))
def test_any_bytes_to_the_glasses_raise_only_violations(packets):
    pair = greeted()
    for packet in packets:
        judge(lambda packet: pair.glasses.receive_packet(packet, pair.now), [packet])
        pair.now += 0.02
        judge(lambda _: pair.glasses.handle_timer(pair.now), [packet])
    pair.device.left = False
    again = greeted(pair.device, now=pair.now)
    assert again.ask(PAGE) == Done(drawn=10)


ascii_lines = st.builds(
    TextLine,
    st.integers(0, 13),
    st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=24).filter(
        lambda text: text.strip(" ")
    ),
    st.integers(0, 191),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(ascii_lines, max_size=14))
def test_lines_arrive_as_they_were_sent(texts):
    pair = greeted()
    done = pair.ask(ShowPage("s", lines=tuple(texts)))
    assert pair.shown[-1].lines == tuple(texts)
    assert done.drawn == sum(len(line.text) - line.text.count(" ") for line in texts)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 160), st.integers(0, 150), st.binary(min_size=64, max_size=64))
def test_a_picture_keeps_its_place_and_levels(x, y, pixels):
    pair = greeted()
    done = pair.ask(ShowPage("s", tiles=(Tile(x, y, 16, 8, 4, pixels),)))
    levels = unpack(pixels, 16, 4)
    assert done.drawn == len(levels) - levels.count(0)
    for drawn in pair.shown[-1].tiles:
        assert (drawn.x, drawn.y, drawn.width, drawn.height) == (x, y, 16, 8)
        assert unpack(drawn.pixels, 16, 4) == levels


@needs("liblc3")
@settings(max_examples=40, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=4000), max_size=8))
def test_all_of_the_speech_goes_out_in_whole_frames(chunks):
    pair = greeted()
    pair.ask(StartAudio(5, AudioFormat.PCM16))
    for index, chunk in enumerate(chunks):
        pair.central.send(AudioChunk(5, index, (chunk,)), pair.now)
        pair.run(for_s=0.05)
    assert isinstance(pair.ask(EndAudio(5)), Done)
    sent = sum(len(packet) for packet in pair.said if isinstance(packet, ChannelPacket))
    assert sent == -(-sum(map(len, chunks)) // 320) * 40
    assert pair.glasses._ring.lost == 0


@pytest.mark.parametrize("way", ["down", "up"])
def test_a_lost_packet_ends_the_connection_and_the_next_one_works(way):
    pair = greeted()
    lost = []

    def air(at, packet):
        if at == way and not lost and packet[:2] in (b"\x01\x0a", b"\x01\x00"):
            lost.append(packet)
            return []
        return [packet]

    pair.air = air
    pair.ask(PAGE)
    assert lost
    assert "not acknowledged" in str(pair.lost)
    again = greeted(pair.device, now=pair.now)
    assert again.ask(PAGE) == Done(drawn=10)


def test_a_file_that_was_removed_while_it_was_written_takes_no_more():
    device = FrameDevice(hardware=HALO)
    assert device.begin_file("glassd_app.lua") == ""
    assert device.write("x") == ""
    device.control(REMOVE_ALL)
    assert "no such file" in device.write("y")
    assert device.files == {}
