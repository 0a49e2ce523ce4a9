"""Any bytes at Monocle and its central: nothing but a violation is raised, and both go on."""

import pytest
from hypothesis import given, settings, strategies as st

from firmware_bridge.codecs.frame.prompts import RawPrompt
from firmware_bridge.codecs.frame.terminal import MonocleDevice
from firmware_bridge.messages import (
    AudioFormat,
    Done,
    GlassesInfo,
    SetBrightness,
    ShowPage,
    StartMicrophone,
    TakePhoto,
    TextLine,
)
from firmware_bridge.packets import ChannelPacket, channel_of
from tests.codecs.frame.pair import FramePair, drain, equipped_monocle
from tests.codecs.frame.test_frame_bytes import damaged, judge

PAGE = ShowPage("s", lines=(TextLine(0, "Hello"), TextLine(7, "there", 48)))
GLASSES_SAY = ["01 09", "01 0b 01", "01 0c 32 01", "01 05 01 02", "01 08 00 00 00 01", "01 06"]
CHANNELS = st.sampled_from(["prompt", "printed", "other"])
STATEMENTS = st.sampled_from(
    [b"f=open('a','wb')", b"f.write(b'1')", b"f.close()", b"import a", b"display.show([])", b"((("]
)
TYPED = st.one_of(
    st.binary(max_size=40),
    STATEMENTS,
    st.sampled_from([b"\x01", b"\x02", b"\x03", b"\x04", b"\x1c", b"\r", b"OK", b"\x04\x04>"]),
)
PACKETS = st.one_of(
    st.binary(max_size=60).map(lambda rest: b"\x01" + rest),
    st.binary(max_size=60),
    st.builds(ChannelPacket, TYPED, CHANNELS),
)


def greeted(device=None, **options) -> FramePair:
    pair = FramePair(device or equipped_monocle(), max_packet=253, **options)
    assert isinstance(pair.greet(), GlassesInfo)
    return pair


@pytest.mark.parametrize("said", GLASSES_SAY)
def test_a_damaged_packet_of_the_glasses_raises_only_violations(said):
    pair = greeted()
    pair.ask(StartMicrophone(4, AudioFormat.PCM16, 16000))
    judge(
        lambda packet: pair.central.receive_packet(packet, pair.now), damaged(bytes.fromhex(said))
    )
    drain(pair.central)
    assert pair.ask(PAGE) == Done(drawn=10)


@settings(max_examples=150, deadline=None)
@given(st.lists(PACKETS))
def test_whatever_glasses_say_the_central_goes_on_or_says_why(packets):
    pair = greeted()
    judge(lambda packet: pair.central.receive_packet(packet, pair.now), packets)
    drain(pair.central)
    done = pair.ask(PAGE)
    assert done == Done(drawn=10) or "the program on the glasses ended" in str(pair.lost)


@settings(max_examples=150, deadline=None)
@given(st.lists(PACKETS))
def test_any_bytes_to_the_glasses_raise_only_violations(packets):
    pair = greeted()
    for packet in packets:
        judge(lambda packet: pair.glasses.receive_packet(packet, pair.now), [packet])
        pair.now += 0.02
        judge(lambda _: pair.glasses.handle_timer(pair.now), [packet])
    again = greeted(pair.device, now=pair.now)
    assert again.ask(PAGE) == Done(drawn=10)


def conversation() -> list[bytes]:
    pair = FramePair(MonocleDevice(), max_packet=253)
    for command in (PAGE, TakePhoto(1), SetBrightness(25), StartMicrophone(4, AudioFormat.PCM16)):
        pair.ask(command)
    said = pair.said
    return [*said[:8], *(packet for packet in said[8:] if not channel_of(packet))]


@pytest.mark.parametrize("said", conversation(), ids=lambda packet: packet[:8].hex())
def test_a_damaged_packet_of_the_central_raises_only_violations(said):
    pair = greeted()
    for packet in damaged(said):
        one = ChannelPacket(packet, channel_of(said))
        judge(lambda packet: pair.glasses.receive_packet(packet, pair.now), [one])
        pair.now += 0.02
        judge(lambda _: pair.glasses.handle_timer(pair.now), [one])
        drain(pair.glasses)
    again = greeted(pair.device, now=pair.now)
    assert again.ask(PAGE) == Done(drawn=10)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300), st.integers(1, 40))
def test_answers_of_the_prompt_may_be_cut_anywhere(printed, size):
    answer = b"OK" + printed + b"\x04\x04>"
    whole, cut = RawPrompt(), RawPrompt()
    for prompt in (whole, cut):
        prompt.type("1", 253)
    said = whole.read(ChannelPacket(answer, "printed"))
    pieces = (answer[at : at + size] for at in range(0, len(answer), size))
    assert [text for piece in pieces for text in cut.read(ChannelPacket(piece, "printed"))] == said


@settings(max_examples=50, deadline=None)
@given(st.text(st.characters(codec="ascii"), min_size=1, max_size=700), st.integers(64, 253))
def test_a_file_arrives_as_it_was_sent(text, max_packet):
    prompt, device = RawPrompt(), MonocleDevice()
    list(device.take(b"\x01"))
    for statement, awaited in prompt.upload(text, max_packet):
        packets = prompt.type(statement, max_packet)
        assert max(map(len, packets)) <= max_packet
        said = "".join(part for packet in packets for part in device.take(packet))
        assert prompt.read(ChannelPacket(said.encode(), "printed")) == [awaited]
    assert device.files["glassd_app.py"] == text
