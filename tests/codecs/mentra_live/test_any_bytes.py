"""Whatever bytes arrive: only violations, bounded memory, and codecs that go on working."""

import contextlib
import json

import pytest
from hypothesis import given, settings, strategies as st

from firmware_bridge.codecs.mentra_live import layers
from firmware_bridge.codecs.mentra_live.central import MentraLiveCodec
from firmware_bridge.codecs.mentra_live.layers import Joiner
from firmware_bridge.codecs.mentra_live.peripheral import MentraLiveGlasses
from firmware_bridge.codecs.mentra_live.wire import (
    STALL_S,
    FilePacket,
    FrameReader,
    Kind,
    json_frame,
)
from firmware_bridge.errors import RemoteViolation
from firmware_bridge.messages import (
    AudioFormat,
    Gesture,
    Gestured,
    PhotoTaken,
    Ping,
    StartMicrophone,
    TakePhoto,
)
from firmware_bridge.packets import ChannelPacket
from tests.codecs.mentra_live.live_pair import JPEG, Pair, drain

CHANNELS = ["", "files", "microphone", "speaker", "x"]
PONG = json_frame(layers.wrap_answer({"type": "pong"}), "big")
FILE = FilePacket(Kind.PHOTO, 3, 4000, "I000000001.jpg", bytes(range(200))).pack()
payloads = st.binary(min_size=1, max_size=512)


def quietly(codec, packet, now=0.0):
    """Receive a packet that may be refused as a violation, but as nothing else."""
    with contextlib.suppress(RemoteViolation):
        codec.receive_packet(packet, now)
    drain(codec)


def recorded() -> tuple[list[bytes], list[bytes]]:
    """Real packets of both sides: start-up, photo, sound, gestures."""
    pair = Pair()
    pair.greet()
    pair.ask(TakePhoto(1))
    pair.run(for_s=3.0)
    pair.ask(StartMicrophone(1, AudioFormat.LC3))
    pair.glasses.send(Gestured(Gesture.TAP), pair.now)
    pair.glasses.send(Gestured(Gesture.BUTTON), pair.now)
    pair.ask(Ping())
    return pair.said, pair.told


SAID, TOLD = recorded()


# ------------------------------------------------------------------ frames


@given(payload=payloads, order=st.sampled_from(["big", "little"]), cuts=st.integers(1, 60))
def test_a_frame_is_read_from_pieces_of_any_size(payload, order, cuts):
    reader, frame = FrameReader("big", "little"), json_frame(payload, order)
    found = []
    for at in range(0, len(frame), cuts):
        found += reader.add(frame[at : at + cuts], 0.0)
    later = [
        # a payload may look like the end of a shorter frame in the other order
        b"$$" in payload,
        found == [payload],
    ]
    assert any(later)


@given(
    st.integers(0, 0xFFFF),
    st.integers(0, 2**32 - 1),
    st.text(st.characters(min_codepoint=48, max_codepoint=122), max_size=16),
    st.binary(min_size=1, max_size=800),
    st.integers(1, 300),
)
def test_a_file_packet_is_read_from_pieces_of_any_size(index, size, name, data, cut):
    packet = FilePacket(Kind.PHOTO, index, size, name, data, 0)
    reader, frame = FrameReader("big", "little"), packet.pack()
    found = []
    for at in range(0, len(frame), cut):
        found += reader.add(frame[at : at + cut], 0.0)
    assert found == [packet]
    assert reader.skipped == 0


@given(st.binary(max_size=80).filter(lambda junk: b"#" not in junk))
def test_what_is_between_frames_is_skipped_and_counted(junk):
    reader = FrameReader("big", "little")
    assert reader.add(PONG + junk + FILE + junk + PONG, 0.0) == [
        PONG[5:-2],
        *FrameReader("big").add(FILE, 0.0),
        PONG[5:-2],
    ]
    assert reader.skipped == 2 * len(junk)


def test_a_frame_that_stops_is_forgotten_when_the_next_message_comes():
    reader = FrameReader("big", "little")
    assert reader.add(PONG[:-5], 0.0) == []
    assert reader.add(PONG, 0.1) == [PONG[5:-2]]


def test_a_file_packet_that_stops_is_forgotten_after_a_second():
    reader = FrameReader("big", "little")
    short = FilePacket(Kind.PHOTO, 4, 4000, "I000000001.jpg", b"end")
    assert reader.add(FILE[:50], 0.0) == []
    assert reader.add(short.pack(), STALL_S - 0.1) == []
    assert reader.add(FILE[:50], 5.0) == []
    assert reader.add(short.pack(), 5.0 + STALL_S + 0.1) == [short]


@pytest.mark.parametrize("at", range(len(FILE)))
def test_a_damaged_file_packet_is_not_taken(at):
    reader = FrameReader("big", "little")
    damaged = FILE[:at] + bytes([FILE[at] ^ 0x5A]) + FILE[at + 1 :]
    [good] = FrameReader("big").add(FILE, 0.0)
    in_header = 5 <= at < 29
    found = reader.add(damaged, 0.0)
    assert in_header or good not in found
    assert reader.add(FILE, 2.0)[-1] == good


@given(st.lists(st.binary(max_size=600), max_size=20))
def test_the_buffer_of_a_reader_is_bounded(pieces):
    reader = FrameReader("big", "little")
    for piece in pieces:
        reader.add(piece, 0.0)
        assert len(reader._buffer) < 840


# ------------------------------------------------------------------ whole codecs


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(CHANNELS), st.binary(max_size=300)), max_size=10),
    st.booleans(),
)
def test_any_bytes_leave_both_codecs_usable(packets, ordered):
    pair = Pair()
    pair.greet()
    if ordered:
        pair.picture = None
        pair.ask(TakePhoto(1))
        pair.ask(StartMicrophone(1, AudioFormat.LC3))
    for channel, data in packets:
        quietly(pair.central, ChannelPacket(data, channel) if channel else data, pair.now)
        quietly(pair.glasses, ChannelPacket(data, channel) if channel else data, pair.now)
    pair.now += STALL_S + 0.1
    assert pair.ask(Ping()) is not None


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
        max_leaves=8,
    ),
    st.sampled_from(
        [
            "sr_hrt",
            "sr_batv",
            "sr_tpevt",
            "enable_custom_audio_tx",
            "glasses_ready",
            "version_info",
            "button_press",
            "battery_status",
            "chunked_msg",
            "msg_ack",
            "take_photo",
            "set_ble_mtu",
            "request_missing_packets",
            "file_announce",
            "photo_response",
        ]
    ),
    st.sampled_from(
        ["pt", "type", "percent", "mId", "data", "mtu", "totalPackets", "requestId", "B", "C", "x"]
    ),
)
def test_any_values_in_messages_leave_both_codecs_usable(value, kind, key):
    forms = [
        layers.encode({"C": kind, "B": value}),
        layers.encode({"C": kind, "B": {key: value}}),
        layers.encode({"C": layers.encode({"type": kind, key: value})}),
        layers.encode({"type": value, key: value}),
        layers.encode({"C": value}),
        layers.encode(value),
    ]
    central, glasses = MentraLiveCodec(max_packet=509), MentraLiveGlasses(max_packet=509)
    for form in forms:
        payload = form.encode("utf-8", "surrogatepass")[:512]
        quietly(central, json_frame(payload, "big"))
        quietly(glasses, json_frame(payload, "little"))
    central.packets_to_send(0.0)
    glasses.packets_to_send(0.0)


@pytest.mark.parametrize("text", ["[" * 500, '{"a":' * 100, "1" * 512, '{"C":' + "9" * 500, "{}"])
def test_hostile_json_is_a_violation(text):
    central = MentraLiveCodec(max_packet=509)
    with pytest.raises(RemoteViolation):
        central.receive_packet(json_frame(text.encode(), "big"), 0.0)
    quietly(central, PONG)


def test_every_real_packet_cut_or_changed_leaves_the_codecs_usable():
    central, glasses = MentraLiveCodec(max_packet=509), MentraLiveGlasses(max_packet=509)
    now = 0.0
    for codec, packets in ((central, TOLD), (glasses, SAID)):
        for packet in dict.fromkeys(packets):
            for at in range(len(packet)):
                changed = packet[:at] + bytes([packet[at] ^ 0xFF]) + packet[at + 1 :]
                for each in (packet[:at], changed):
                    now += 0.3
                    quietly(codec, ChannelPacket(each, getattr(packet, "channel", "")), now)
            codec.packets_to_send(now)
    pair = Pair()
    pair.central, pair.glasses = central, glasses
    pair.now = now + 20.0
    assert pair.greet() is not None
    pair.run(for_s=60.0)
    pair.heard.clear()
    assert pair.ask(Ping()) is not None


# ------------------------------------------------------------------ parts of messages


def part(name: str, at: int, total: int, data: str) -> dict:
    return {"type": "chunked_msg", "chunkId": name, "chunk": at, "total": total, "data": data}


def test_parts_in_any_order_and_doubled_make_the_message():
    joiner = Joiner()
    whole = json.dumps({"type": "x", "n": 1})
    parts = [part("a", 0, 3, whole[:5]), part("a", 1, 3, whole[5:9]), part("a", 2, 3, whole[9:])]
    for each in (parts[2], parts[0], parts[0]):
        assert joiner.add(each, 0.0) is None
    assert joiner.add(parts[1], 0.0) == {"type": "x", "n": 1}


def test_unfinished_messages_are_forgotten():
    joiner = Joiner()
    for number in range(100):
        assert joiner.add(part(f"m{number}", 0, 2, "x" * 100), 0.0) is None
    assert len(joiner._sessions) == 10
    assert joiner.add(part("late", 0, 2, "{"), 31.0) is None
    assert len(joiner._sessions) == 1


@pytest.mark.parametrize(
    "bad",
    [
        part("", 0, 2, "x"),
        part("a", 2, 2, "x"),
        part("a", -1, 2, "x"),
        part("a", 0, 0, "x"),
        part("a", 0, 10**6, "x"),
        {"type": "chunked_msg"},
        {**part("a", 0, 1, "x"), "data": 7},
        part("a", 0, 1, "no JSON"),
        part("a", 0, 1, "x" * 20_000),
    ],
)
def test_impossible_parts_are_violations(bad):
    with pytest.raises(RemoteViolation):
        Joiner().add(bad, 0.0)


def test_a_message_in_parts_inside_parts_is_not_followed():
    inner = json.dumps(part("b", 0, 1, '{"type":"pong"}'))
    pair = Pair()
    pair.tell(part("a", 0, 1, inner))
    assert (pair.events(), pair.refused) == ([], [])


def test_a_photo_survives_a_central_that_was_confused():
    pair = Pair()
    pair.greet()
    pair.ask(TakePhoto(1))
    pair.raw(b"##1\x00\x10garbage", "files")
    pair.run(for_s=60.0)
    assert PhotoTaken(1, JPEG) in pair.events()


def test_a_flood_of_messages_to_acknowledge_is_survived():
    pair = Pair()
    pair.greet()
    pair.heard.clear()
    for mid in range(1, 3000):
        pair.tell({"type": "button_press", "pressType": "short", "mId": mid})
    assert len(pair.events()) == 2999
    assert pair.central.backlog() < 64 * 1024
    pair.run(for_s=60.0)
    assert pair.ask(Ping()) is not None
