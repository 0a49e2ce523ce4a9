"""Worked examples of the fact sheet and of its sources, in both directions."""

import json

import pytest

from firmware_bridge.catalog import find, recognise
from firmware_bridge.codecs.mentra_live import layers, wire
from firmware_bridge.codecs.mentra_live.files import IncomingFile, packets_of
from firmware_bridge.codecs.mentra_live.layers import ChipCommand
from firmware_bridge.codecs.mentra_live.peripheral import MentraLiveGlasses
from firmware_bridge.codecs.mentra_live.sound import frames_of, packet_of
from firmware_bridge.codecs.mentra_live.wire import FilePacket, FrameReader, Kind, json_frame
from firmware_bridge.messages import StartMicrophone
from firmware_bridge.models import Advertisement
from firmware_bridge.own_commands import GalleryChanged, StreamChanged
from firmware_bridge.packets import ChannelPacket
from tests.codecs.mentra_live.live_pair import Pair

CS_BATV = bytes.fromhex(
    "23 23 30 1c 00 7b 22 43 22 3a 22 63 73 5f 62 61 74 76 22 2c 22 56 22 3a 31 2c 22 42 22 3a 22 "
    "22 7d 24 24"
)
"""mentraos.md 7.4 (vector): {"C":"cs_batv","V":1,"B":""}, little-endian length."""
HANDSHAKE_V2 = bytes.fromhex("23 23 40 09 00 0B 01 00 00 01 02 00 76 32 24 24")
"""Section 6 (NEW): not understood here, and never answered."""
FILE = bytes.fromhex(
    "23 23 31 0003 0002 000004B0 49343939313731353337000000000000 0000 01 02 FF 02 24 24"
)
"""Section 4: type, packSize 3, packIndex 2, fileSize 1200, name, flags, data, sum mod 256."""


def test_a_battery_question_is_the_published_frame():
    assert json_frame(layers.chip("cs_batv", version=True), "little") == CS_BATV
    pair = Pair()
    pair.greet()
    pair.run()
    assert CS_BATV in pair.said


def test_glasses_read_the_published_frame():
    [payload] = FrameReader("little").add(CS_BATV, 0.0)
    assert layers.read(payload) == ChipCommand("cs_batv", {})
    assert FrameReader("big").add(CS_BATV, 0.0) == [], "lengths to the glasses are little-endian"


@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("channel", ["", wire.TO_FILES])
def test_glasses_answer_a_frame_of_either_order_on_both_channels(order, channel):
    glasses = MentraLiveGlasses(max_packet=253)
    frame = json_frame(layers.chip("cs_batv", version=True), order)
    glasses.receive_packet(ChannelPacket(frame, channel) if channel else frame, 0.0)
    assert len(glasses.packets_to_send(0.0)) == 1


@pytest.mark.parametrize("words", ["pa$$word", "$$$$$", "##", "a##b$$c", "#$#$"])
def test_what_the_glasses_take_for_the_end_of_a_frame_is_in_no_frame(words):
    """J25: they look for `##` and `$$`, not at the length."""
    (payload,) = layers.parts({"type": "x", "words": words}, 1)
    assert b"$$" not in payload
    assert b"##" not in payload
    assert layers.read(payload) == {"type": "x", "words": words}


def test_a_part_as_later_builds_cut_it_is_read():
    """NEW: {t:"ck", id, c, n, d, mId}, above 200 bytes."""
    pair = Pair()
    whole = json.dumps({"t": "gallery_status", "photos": 4, "videos": 2})
    for at, piece in enumerate((whole[:20], whole[20:])):
        pair.tell({"t": "ck", "id": "7", "c": at, "n": 2, "d": piece})
    assert pair.events() == [GalleryChanged(4, 2)]
    assert pair.refused == []


def test_short_keys_are_read_in_plain_frames_too():
    pair = Pair()
    pair.tell({"t": "stream_status", "k": "lifecycle", "s": "streaming"})
    assert pair.events() == [StreamChanged(True, "streaming")]


@pytest.mark.parametrize("body", [True, {"enable": True}, '{"enable":true}'])
def test_the_microphone_is_switched_by_each_published_form(body):
    pair = Pair()
    payload = layers.chip("enable_custom_audio_tx", body)
    pair.glasses.receive_packet(json_frame(payload, "little"), 0.0)
    assert isinstance(pair.glasses.next_event().message, StartMicrophone)


def test_commands_for_the_chip_have_the_published_forms():
    pair = Pair()
    pair.greet()
    assert json.loads(pair.said[0][5:-2]) == {"C": "cs_hrt", "B": ""}
    first = next(packet for packet in pair.said if b"phone_ready" in packet)
    outer = json.loads(first[5:-2])
    assert json.loads(outer.pop("C")) == {"type": "phone_ready", "timestamp": 1_000_000}
    assert outer == {"W": 1}


def test_messages_of_both_layers_are_read():
    assert layers.read(b'{"C":"{\\"type\\":\\"pong\\"}","V":1,"B":{}}') == {"type": "pong"}
    assert layers.read(b'{"type":"pong"}') == {"type": "pong"}
    hrt = ChipCommand("sr_hrt", {"pt": 80, "ready": 1})
    assert layers.read(b'{"C":"sr_hrt","B":{"pt":80,"ready":1}}') == hrt
    assert layers.read(rb'{"C":"sr_hrt","B":"{\"pt\":80,\"ready\":1}"}') == hrt
    slash = rb'{"C":"{\"type\":\"a\",\"b\":\"x\\\/y\"}"}'
    assert layers.read(slash) == {"type": "a", "b": "x/y"}, "Android writes / as \\/"


def test_a_file_packet_is_as_published():
    packet = FilePacket(Kind.PHOTO, 2, 1200, "I499171537", b"\x01\x02\xff")
    assert packet.pack() == FILE
    assert len(FILE) == 3 + wire.FILE_OVERHEAD
    assert FrameReader("big").add(FILE, 0.0) == [packet]


def test_the_transfer_of_the_log_is_complete_after_28_packets():
    """DOC: 11200 bytes announced, 28 packets of 221 bytes, a picture of 6037 bytes."""
    packets = packets_of("I499171537", bytes(6037), wire.pack_size(wire.CHIP_MTU))
    assert (len(packets), packets[0].file_size, len(packets[0].data)) == (28, 11200, 221)
    assert len(packets[0].pack()) == wire.MAX_NOTIFICATION
    file = IncomingFile("I499171537", 11200)
    for packet in packets:
        assert file.missing or not file.data()
        file.add(packet)
    assert (file.count, file.missing, len(file.data())) == (28, [], 6037)


@pytest.mark.parametrize(("mtu", "size"), [(512, 400), (256, 221), (185, 150), (23, 100)])
def test_file_packets_fit_the_mtu_but_have_at_least_100_bytes(mtu, size):
    assert wire.pack_size(mtu) == size


def test_sound_has_a_number_and_frames_of_40_bytes():
    frames = tuple(bytes([at]) * 40 for at in range(6))
    packet = b"\xf1\x07" + b"".join(frames)
    assert packet_of(263, frames) == packet
    assert frames_of(packet) == (7, frames)
    assert frames_of(b"\xa0" + packet[1:]) == (7, frames)


def test_a_long_message_is_cut_into_parts_that_fit_the_glasses():
    message = {"type": "x", "text": "a" * 700, "mId": 12}
    whole = layers.parts(message, 12, wake=True)
    inner = [json.loads(json.loads(part)["C"]) for part in whole]
    assert [part["chunk"] for part in inner] == list(range(len(inner)))
    assert {part["total"] for part in inner} == {len(inner)}
    assert [part.get("mId") for part in inner] == [None] * (len(inner) - 1) + [12]
    assert all(part["type"] == "chunked_msg" and len(part["data"]) <= 300 for part in inner)
    assert [json.loads(part).get("W") for part in whole] == [1] + [None] * (len(whole) - 1)
    assert json.loads("".join(part["data"] for part in inner)) == message


def test_a_message_of_400_bytes_is_not_cut():
    short = {"type": "x", "text": "a" * (400 - len(layers.wrap({"type": "x", "text": ""})))}
    assert layers.parts(short, 1) == [layers.wrap(short)]
    longer = {**short, "text": short["text"] + "a"}
    assert len(layers.parts(longer, 1)) == 2


@pytest.mark.parametrize("text", ["ä€😀" * 200, '"\\' * 300, "a" * 3000])
def test_parts_are_cut_between_characters_and_never_too_large(text):
    joiner, whole = layers.Joiner(), layers.parts({"type": "x", "text": text}, 5)
    assert all(len(json_frame(part, "little")) <= 512 for part in whole), "the glasses' buffer"
    read = [joiner.add(layers.read(part), 0.0) for part in whole]
    assert read[-1] == {"type": "x", "text": text}
    assert set(map(type, read[:-1])) == {type(None)}


def test_the_handshake_of_the_newer_frames_is_left_alone():
    pair = Pair()
    pair.raw(HANDSHAKE_V2)
    assert pair.refused == []
    assert pair.said == []
    assert pair.central.packets_to_send(pair.now) == []


@pytest.mark.parametrize(
    "name",
    ["Xy_A", "Xy_A1234", "XyBLE_12", "MENTRA_LIVE_BLE_4F2A", "MENTRA_LIVE_BT_1", "mentra_live_7"],
)
def test_its_names_are_recognised(name):
    assert recognise(Advertisement(name, frozenset())) is find("mentra_live")


@pytest.mark.parametrize("name", ["Nex1-12", "MENTRA_DISPLAY_1", "Xy_B", "", None])
def test_other_names_are_not(name):
    service = frozenset({find("mentra_live").gatt.service})
    found = recognise(Advertisement(name, service))
    assert found is None or found.key != "mentra_live"


def test_the_channels_of_the_model_are_those_of_the_codec():
    names = [channel.name for channel in find("mentra_live").gatt.channels]
    assert names == [wire.FILES, wire.TO_FILES, wire.MICROPHONE, wire.SPEAKER]
