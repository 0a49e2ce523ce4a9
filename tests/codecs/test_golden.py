"""PROFILE.md's golden frames against the code, in both directions and every way bytes can
arrive.
"""

import pytest

from firmware_bridge.codec import NEED_DATA, Incoming, Role
from firmware_bridge.codecs.reference import uuids
from firmware_bridge.codecs.reference.codec import ReferenceCodec
from firmware_bridge.codecs.reference.frames import Frame, FrameType, Sender
from firmware_bridge.codecs.reference.messages import decode_info, encode_info
from firmware_bridge.errors import RemoteViolation, Violation
from firmware_bridge.messages import (
    AudioChunk,
    AudioFormat,
    ClearPage,
    Done,
    EndPrompt,
    Failed,
    Gesture,
    Gestured,
    GlassesInfo,
    Hello,
    Prompt,
    ShowPage,
    StartAudio,
    StartMicrophone,
    TextLine,
    Tile,
)
from tests.codecs.golden import CONVERSATION, GOLDEN, PROFILE
from tests.codecs.pair import drain

INFO = GlassesInfo(
    "hobby",
    "1.0",
    "0001",
    {"display": True, "display.lines": 5},
    {"window": 8, "message": 4096},
)
FRAGMENTED = ShowPage("s", lines=(TextLine(0, "Hi"),))
TILE = ShowPage("t", tiles=(Tile(0, 0, 16, 2, 1, b"\xff" * 4),))
SAID = {
    "hello": Incoming(Hello("glassd", "0.1.0"), number=1),
    "info": Incoming(INFO, re=1),
    "show": Incoming(
        ShowPage("list", lines=(TextLine(0, "Milk"), TextLine(1, "Bread", x=12))), number=2
    ),
    "done": Incoming(Done(drawn=1234), re=2),
    "clear": Incoming(ClearPage(), number=3),
    "done-clear": Incoming(Done(), re=3),
    "audio-start": Incoming(StartAudio(1, AudioFormat.OPUS), number=4),
    "done-audio-start": Incoming(Done(), re=4),
    "audio-chunk": Incoming(AudioChunk(1, 0, (b"\xf8\xff\xfe",))),
    "tap": Incoming(Gestured(Gesture.TAP)),
    "mic-start": Incoming(StartMicrophone(2, AudioFormat.LC3), number=5),
    "failed": Incoming(Failed("unsupported"), re=5),
    "fragments": Incoming(FRAGMENTED, number=1),
    "tile": Incoming(TILE, number=1),
    "prompt": Incoming(Prompt(7, (TextLine(0, "Delete?"),), 30), number=1),
    "prompt-end": Incoming(EndPrompt(7), number=2),
}
CONTROL = {"ack": FrameType.ACK, "nak": FrameType.NAK, "ask": FrameType.ASK}
PEER = {Role.CENTRAL: Role.PERIPHERAL, Role.PERIPHERAL: Role.CENTRAL}
WHOLE = [name for name in SAID if name != "fragments"]


def body(name):
    return b"".join(packet[6:] for packet in GOLDEN[name].message_packets)[4:]


def frames_of(message, max_packet):
    """The message cut for an open window, as frame packets."""
    sender = Sender()
    sender.acknowledged(Frame(FrameType.ACK, 0, 0, b"\xff"), 0.0)
    sender.queue(message)
    return sender.emit(0.0, max_packet)


def receiver_of(name):
    return ReferenceCodec(PEER[GOLDEN[name].side])


def test_every_listing_of_the_profile_is_checked_by_a_test_here():
    acknowledgements = {"ack-info", "ack-done", "ack-clear"}
    assert set(GOLDEN) == set(SAID) | set(CONTROL) | acknowledgements | {"info-value"}
    assert (
        set(CONVERSATION)
        == (set(SAID) - {"fragments", "tile", "prompt", "prompt-end"}) | acknowledgements
    )


def test_the_uuids_of_the_document_are_those_of_the_code():
    text = PROFILE.read_text(encoding="utf-8")
    for name in ("SERVICE_UUID", "INFO_UUID", "RX_UUID", "TX_UUID"):
        assert text.count(getattr(uuids, name)) == 1, name


@pytest.mark.requirement("K7-golden")
def test_two_codecs_hold_the_published_conversation_byte_by_byte():
    codecs = {role: ReferenceCodec(role, max_packet=244) for role in Role}
    for name in CONVERSATION:
        golden, said = GOLDEN[name], SAID.get(name)
        speaker, listener = codecs[golden.side], codecs[PEER[golden.side]]
        if said is not None:
            number = speaker.send(said.message, 0.0, re=said.re)
            assert number == (said.number or 0), name

        assert [p.hex(" ") for p in speaker.packets_to_send(0.0)] == [
            p.hex(" ") for p in golden.packets
        ], name

        for packet in golden.packets:
            listener.receive_packet(packet, 0.0)
        assert drain(listener) == ([] if said is None else [said]), name


def test_a_page_is_cut_for_the_smallest_mtu_as_published():
    central = ReferenceCodec(Role.CENTRAL, max_packet=20)
    central.send(FRAGMENTED, 0.0)
    assert tuple(central.packets_to_send(0.0)) == GOLDEN["fragments"].packets


def test_a_tile_is_packed_as_published():
    central = ReferenceCodec(Role.CENTRAL, max_packet=244)
    central.send(TILE, 0.0)
    assert tuple(central.packets_to_send(0.0)) == GOLDEN["tile"].packets


def test_a_question_is_asked_and_taken_back_as_published():
    central = ReferenceCodec(Role.CENTRAL, max_packet=244)
    for name in ("prompt", "prompt-end"):
        central.send(SAID[name].message, 0.0)
        assert tuple(central.packets_to_send(0.0)) == GOLDEN[name].packets


@pytest.mark.parametrize("name", CONTROL)
def test_control_frames_are_as_published(name):
    (packet,) = GOLDEN[name].packets
    frame = Frame.parse(packet)
    assert (frame.type, frame.flags, frame.seq) == (CONTROL[name], 0, 0 if name == "ask" else 5)
    assert frame.payload == (b"" if name == "ask" else b"\x08")
    assert frame.pack() == packet


def test_the_info_characteristic_is_as_published():
    (value,) = GOLDEN["info-value"].packets
    assert encode_info(INFO) == value
    assert decode_info(value) == INFO


@pytest.mark.parametrize("name", SAID)
@pytest.mark.parametrize("max_packet", [20, 21, 23, 27, 40, 61, 100, 185, 244, 247, 512])
def test_every_sample_is_read_whole_and_in_pieces(name, max_packet):
    codec = receiver_of(name)
    pieces = frames_of(body(name), max_packet)
    for packet in pieces[:-1]:
        codec.receive_packet(packet, 0.0)
        assert codec.next_event() is NEED_DATA
        codec.packets_to_send(0.0)  # the ACK that opens the window further
    codec.receive_packet(pieces[-1], 0.0)
    assert drain(codec) == [SAID[name]]


@pytest.mark.parametrize("name", SAID)
def test_every_sample_survives_every_packet_size(name):
    for max_packet in range(20, 248):
        codec = receiver_of(name)
        for packet in frames_of(body(name), max_packet):
            assert len(packet) <= max_packet
            codec.receive_packet(packet, 0.0)
            codec.packets_to_send(0.0)
        assert drain(codec) == [SAID[name]], max_packet


@pytest.mark.parametrize("name", WHOLE)
def test_a_sample_grown_byte_by_byte_is_refused_until_it_is_whole(name):
    (packet,) = frames_of(body(name), 512)
    codec = receiver_of(name)
    for size in range(len(packet)):
        with pytest.raises(RemoteViolation) as refused:
            codec.receive_packet(packet[:size], 0.0)
        assert refused.value.reason is Violation.TRUNCATED
    codec.receive_packet(packet, 0.0)
    assert drain(codec) == [SAID[name]]


@pytest.mark.parametrize("name", WHOLE)
def test_a_sample_with_trailing_junk_is_refused(name):
    (packet,) = frames_of(body(name), 512)
    codec = receiver_of(name)
    with pytest.raises(RemoteViolation) as refused:
        codec.receive_packet(packet + b"\x00", 0.0)
    assert refused.value.reason is Violation.OVERSIZED
    assert codec.packets_to_send(0.0) == []
    codec.receive_packet(packet, 0.0)
    assert drain(codec) == [SAID[name]]


@pytest.mark.parametrize("name", SAID)
def test_a_message_with_junk_behind_inside_its_frame_is_a_bad_message(name):
    codec = receiver_of(name)
    with pytest.raises(RemoteViolation) as refused:
        for packet in frames_of(body(name) + b"\xc0", 512):
            codec.receive_packet(packet, 0.0)
    assert refused.value.reason is Violation.BAD_MESSAGE
    assert codec.next_event() is NEED_DATA
