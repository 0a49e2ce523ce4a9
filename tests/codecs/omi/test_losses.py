"""What Omi, OMI Glass and OpenGlass lose on the air, send twice or late, and what nobody sends."""

import math
import random
from array import array
from itertools import product

import pytest
from hypothesis import given, settings, strategies as st
from msgspec.structs import replace

from firmware_bridge.catalog import find
from firmware_bridge.codecs.omi.central import MAX_WAITING, PHOTO_PAUSE_S, PHOTO_S
from firmware_bridge.codecs.omi.peripheral import DIALECTS
from firmware_bridge.codecs.omi.photo import MAX_BYTES
from firmware_bridge.codecs.omi.sound import FrameJoiner, SampleWidth
from firmware_bridge.errors import CommandRefused, RemoteViolation, Violation
from firmware_bridge.messages import (
    MAX_CHUNK_BYTES,
    AudioFormat,
    BatteryChanged,
    Done,
    Failed,
    MicrophoneChunk,
    PhotoFailed,
    PhotoTaken,
    Ping,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
)
from firmware_bridge.own_commands import DimLight, SetMicrophoneGain
from firmware_bridge.packets import ChannelPacket
from tests.codecs.omi.pair import Pair, drain
from tests.codecs.omi.test_golden import GOLDEN, JPEG, listening

SETS = (DimLight, SetMicrophoneGain)
CAMERAS = ["omi_glass", "openglass"]
END = b"\xff\xff"


def photos(pair: Pair) -> list[object]:
    messages = [incoming.message for incoming in pair.heard]
    return [m for m in messages if isinstance(m, PhotoTaken | PhotoFailed)]


def show(pair: Pair, packets: list[bytes]) -> list[object]:
    for packet in packets:
        pair.tell("photo", packet)
    return photos(pair)


# ------------------------------------------------------------------ photos


@pytest.mark.parametrize(("key", "lost"), [*product(CAMERAS, range(4))])
def test_a_photo_that_lacks_a_packet_fails(key, lost):
    pair = Pair(key)
    pair.ask(TakePhoto(3))
    packets = GOLDEN[key]
    show(pair, packets[:lost] + packets[lost + 1 :])
    show(pair, packets)  # the next one, which nobody asked for
    failed = [found for found in photos(pair) if isinstance(found, PhotoFailed)]
    taken = [found for found in photos(pair) if isinstance(found, PhotoTaken)]
    assert all(found.jpeg == JPEG for found in taken), "a damaged picture is none"
    if lost == 0:  # it never began: the next one is taken for it
        assert (failed, [found.photo for found in taken]) == ([], [3])
    else:
        assert [found.photo for found in failed] == [3]
        assert [found.photo for found in taken] == [0]


@pytest.mark.parametrize(("key", "twice"), [*product(CAMERAS, range(4))])
def test_a_packet_that_comes_twice_changes_nothing(key, twice):
    pair = Pair(key)
    pair.ask(TakePhoto(3))
    packets = GOLDEN[key]
    assert show(pair, packets[: twice + 1] + packets[twice:]) == [PhotoTaken(3, JPEG, 180)]


@pytest.mark.parametrize(("key", "first"), [*product(CAMERAS, range(3))])
def test_packets_in_the_wrong_order_fail(key, first):
    pair = Pair(key)
    pair.ask(TakePhoto(3))
    packets = [*GOLDEN[key]]
    packets[first], packets[first + 1] = packets[first + 1], packets[first]
    assert all(isinstance(found, PhotoFailed) for found in show(pair, packets))


def test_an_unasked_photo_that_fails_is_not_reported():
    pair = Pair("omi_glass")
    first, second, third, end = GOLDEN["omi_glass"]
    assert show(pair, [first, third, second, end]) == []
    assert show(pair, [first, second, third, end]) == [PhotoTaken(0, JPEG, 180)]


def test_a_photo_that_was_on_the_way_is_not_the_one_asked_for():
    pair = Pair("omi_glass")
    packets = GOLDEN["omi_glass"]
    show(pair, packets[:2])
    pair.ask(TakePhoto(3))
    show(pair, packets[2:])
    show(pair, packets)
    assert [found.photo for found in photos(pair)] == [0, 3]


def test_one_photo_is_asked_for_at_a_time():
    pair = Pair("openglass")
    assert pair.ask(TakePhoto(3)) == Done()
    refused = pair.ask(TakePhoto(4))
    assert isinstance(refused, Failed)
    assert refused.code == "busy"
    assert pair.said == [("control", b"\xff")]
    assert show(pair, GOLDEN["openglass"]) == [PhotoTaken(3, JPEG, 180)]
    assert pair.ask(TakePhoto(4)) == Done()


@pytest.mark.parametrize("received", range(4))
def test_a_photo_that_does_not_come_fails_in_time(received):
    pair = Pair("openglass")
    pair.now = 100.0
    pair.ask(TakePhoto(3))
    pair.now = 104.0
    show(pair, GOLDEN["openglass"][:received])
    due = 100.0 + PHOTO_PAUSE_S + (4.0 if received else 0.0)
    assert pair.central.next_timer() == due
    pair.central.handle_timer(due - 0.1)
    assert drain(pair.central) == []
    pair.central.handle_timer(due)
    [failed] = [incoming.message for incoming in drain(pair.central)]
    assert isinstance(failed, PhotoFailed)
    assert failed.photo == 3
    assert pair.central.next_timer() is None
    assert show(pair, GOLDEN["openglass"][received:]) == (
        [PhotoTaken(0, JPEG, 180)] * (not received)
    )
    assert pair.ask(TakePhoto(4)) == Done()


def test_a_photo_that_goes_on_for_ever_fails():
    pair = Pair("openglass")
    pair.ask(TakePhoto(3))
    show(pair, GOLDEN["openglass"][:1])
    for index in range(1, 200):
        pair.now = index * 5.0
        due = pair.central.next_timer()
        if due is None or due <= pair.now:
            break
        pair.tell("photo", index.to_bytes(2, "little") + b"x")
    assert pair.now == PHOTO_S


def test_a_photo_is_bounded():
    pair = Pair("openglass")
    pair.ask(TakePhoto(3))
    show(pair, GOLDEN["openglass"][:1])
    for index in range(1, MAX_BYTES // 500 + 2):
        pair.tell("photo", index.to_bytes(2, "little") + bytes(500))
    [failed] = photos(pair)
    assert isinstance(failed, PhotoFailed)
    assert "bytes" in failed.detail


@pytest.mark.parametrize("jpeg", [JPEG[:-2], b"GIF89a" + JPEG[6:], JPEG[:-1], b""], ids=len)
def test_what_is_no_whole_jpeg_fails(jpeg):
    pair = Pair("openglass")
    pair.ask(TakePhoto(3))
    [failed] = show(pair, [b"\0\0" + jpeg, END])
    assert isinstance(failed, PhotoFailed)


def test_zeros_after_the_end_of_a_jpeg_are_allowed():
    assert show(Pair("openglass"), [b"\0\0" + JPEG + bytes(3), END]) == [
        PhotoTaken(0, JPEG + bytes(3), 180)
    ]


# ------------------------------------------------------------------ sound


def numbers(pair: Pair) -> list[int]:
    return [index for index, _frame in pair.sound()]


def say(pair: Pair, *heads: tuple[int, int], size: int = 8) -> Pair:
    """The glasses send pieces: (number, fragment)."""
    for number, fragment in heads:
        data = bytes([number & 0xFF, fragment]) * (size // 2)
        pair.tell("audio", (number & 0xFFFF).to_bytes(2, "little") + bytes([fragment]) + data)
    return pair


def test_a_lost_packet_is_a_gap_in_the_index():
    pair = say(listening(Pair("omi")), (65533, 0), (65534, 0), (2, 0), (3, 0), (4, 0))
    assert numbers(pair) == [0, 1, 5, 6], "one packet a frame: three frames are missing"


def test_packets_that_come_twice_or_late_are_dropped():
    pair = say(listening(Pair("omi")), (7, 0), (8, 0), (8, 0), (10, 0), (9, 0), (11, 0), (12, 0))
    assert numbers(pair) == [0, 1, 3, 4]


def test_glasses_that_count_from_the_beginning_again_are_heard():
    pair = say(listening(Pair("omi")), (500, 0), (501, 0), (0, 0), (1, 0), (2, 0))
    assert numbers(pair) == [0, 1, 2, 3]


def test_what_came_before_the_microphone_went_off_is_not_heard_later():
    pair = say(listening(Pair("omi")), (7, 0), (8, 0))
    pair.ask(StopMicrophone(5))
    pair.ask(StartMicrophone(6, AudioFormat.OPUS))
    say(pair, (9, 0), (10, 0))
    assert pair.sound() == [(0, b"\7\0" * 4), (0, b"\11\0" * 4)]


PIECES = [(0, 0), (1, 1), (2, 2), (3, 0), (4, 1), (5, 2), (6, 0), (7, 1), (8, 2), (9, 0)]
"""Three frames of three full pieces; the next begins."""


def cut(pair: Pair, lost: set[int]) -> list[tuple[int, int]]:
    say(pair, *(head for at, head in enumerate(PIECES) if at not in lost), size=20)
    return [(index, len(frame)) for index, frame in pair.sound()]


def test_frames_of_several_pieces_are_joined():
    assert cut(listening(Pair("omi", max_packet=23)), set()) == [(0, 60), (1, 60), (2, 60)]


@pytest.mark.parametrize("lost", range(3, 6))
def test_a_frame_that_lacks_a_piece_is_dropped(lost):
    assert cut(listening(Pair("omi", max_packet=23)), {lost}) == [(0, 60), (2, 60)]


def test_pieces_of_two_frames_are_never_joined():
    frames = cut(listening(Pair("omi", max_packet=23)), {2, 3})
    assert [size for _index, size in frames] == [60]


def test_one_number_for_all_pieces_of_a_frame_is_understood():
    dialect = replace(DIALECTS["omi"], numbers_frames=True)
    pair = listening(Pair("omi", dialect, max_packet=23))
    for index in range(4):
        pair.event(MicrophoneChunk(0, index, (bytes([index]) * 50,)))
    assert [packet[:3] for _channel, packet in pair.sent[:4]] == [
        b"\0\0\0",
        b"\0\0\1",
        b"\0\0\2",
        b"\1\0\0",
    ]
    assert pair.sound() == [(index, bytes([index]) * 50) for index in range(3)]


def test_a_gap_of_the_microphone_is_a_gap_on_the_air():
    pair = listening(Pair("omi"))
    for index in (0, 1, 4, 5, 3, 6):
        pair.event(MicrophoneChunk(0, index, (bytes([index]) * 8,)))
    assert [packet[0] for _channel, packet in pair.sent] == [0, 1, 4, 5, 3, 6]
    assert pair.sound() == [(index, bytes([index]) * 8) for index in (0, 1, 4, 5)]


@pytest.mark.parametrize(("codec", "size", "heard"), [(21, 160, 2), (0, 320, 0)])
def test_pieces_that_are_too_long_lose_their_end(codec, size, heard):
    """Opus frames are shorter than a packet; PCM frames arrive damaged, and are dropped."""
    pair = listening(Pair("omi", replace(DIALECTS["omi"], codec=codec, overlong=True)))
    for index in range(3):
        pair.event(MicrophoneChunk(0, index, (bytes(size),)))
    assert [len(frame) for _index, frame in pair.sound()] == [size] * heard


def test_pcm_of_two_packets_arrives_whole():
    pair = listening(Pair("omi", replace(DIALECTS["omi"], codec=0)))
    for index in range(3):
        pair.event(MicrophoneChunk(0, index, (bytes([index]) * 320,)))
    assert pair.sound() == [(index, bytes([index]) * 320) for index in range(2)]


def test_a_frame_is_bounded():
    joiner = FrameJoiner()
    with pytest.raises(RemoteViolation) as refused:
        for at in range(256):
            joiner.add(at.to_bytes(2, "little") + bytes([at]) + bytes(200), 203)
            assert at * 200 <= MAX_CHUNK_BYTES
    assert refused.value.reason is Violation.OVERSIZED
    assert joiner.add(b"\x50\0\0new", 203) is None
    found = joiner.add(b"\x51\0\0next", 203)
    assert found is not None
    assert found[1] == b"new"


# ------------------------------------------------------------------ the width of samples


def tone(
    amplitude: float, hertz: float = 440.0, noise: float = 0.0, blocks: int = 20
) -> list[bytes]:
    """Blocks of 10 ms at 8 kHz, 16 bits, as OpenGlass shifts them."""
    source = random.Random(1)
    samples = [
        round(amplitude * math.sin(2 * math.pi * hertz * n / 8000) + source.gauss(0, noise))
        for n in range(80 * blocks)
    ]
    pcm = array("h", [max(-8192, min(8191, sample)) << 2 for sample in samples]).tobytes()
    return [pcm[at : at + 160] for at in range(0, len(pcm), 160)]


def narrow(blocks: list[bytes]) -> list[bytes]:
    """The same with 8 bits."""
    return [bytes((sample >> 8) + 128 for sample in array("h", block)) for block in blocks]


SOUNDS = {
    "silence": tone(0),
    "quiet noise": tone(0, noise=10),
    "noise of the lowest bit": [
        bytes(byte for bit in random.Random(n).choices((0, 255), k=80) for byte in (bit, bit))
        for n in range(20)
    ],
    "a quiet tone": tone(20),
    "speech": tone(3000, noise=50),
    "a deep tone": tone(4000, 60),
    "a high tone": tone(4000, 3000),
    "the loudest noise": tone(0, noise=6000),
}


@pytest.mark.parametrize("name", SOUNDS)
def test_sound_of_16_bits_stays_as_it_is(name):
    pair = listening(Pair("openglass"))
    for index, block in enumerate([*SOUNDS[name], b"end."]):
        pair.event(MicrophoneChunk(0, index, (block,)))
    assert [frame for _index, frame in pair.sound()] == SOUNDS[name]


@pytest.mark.parametrize("name", ["a quiet tone", "speech", "a deep tone"])
def test_sound_of_8_bits_is_recognised_and_widened(name):
    width = SampleWidth()
    wide = tone(400, noise=50) if name == "a quiet tone" else SOUNDS[name]
    heard = [width.widen(block) for block in [bytes([128] * 80), *narrow(wide)]]
    assert [len(block) for block in heard] == [80] * 5 + [160] * 16
    for block, sent in zip(heard[5:], wide[4:], strict=True):
        assert array("h", block).tolist() == [v >> 8 << 8 for v in array("h", sent)]
    assert width.widen(wide[0]) != wide[0], "decided for good"


def test_what_had_16_bits_once_has_them_for_good():
    width = SampleWidth()
    width.widen(SOUNDS["speech"][0])
    assert [width.widen(block) for block in narrow(SOUNDS["speech"])] == narrow(SOUNDS["speech"])


# ------------------------------------------------------------------ anything


CHANNELS = "audio photo battery button features clock codec model firmware serial other".split()


@given(st.lists(st.tuples(st.sampled_from(CHANNELS), st.binary(max_size=512)), max_size=40))
@settings(max_examples=300, deadline=None)
def test_no_bytes_break_the_central(packets):
    for key in ("omi", "omi_glass"):
        pair = listening(Pair(key))
        if key == "omi_glass":
            pair.ask(TakePhoto(3))
        for channel, packet in packets:
            pair.tell(channel, packet)
        still_usable(pair)


def still_usable(pair: Pair) -> None:
    pair.central.handle_timer(1000.0)
    drain(pair.central)
    pair.values["codec"] = bytes([pair.dialect.codec])
    assert pair.ask(Ping()) == Done()
    pair.tell("battery", b"\0")
    assert pair.tell("battery", b"\x2a") == [BatteryChanged(42)]
    if "photo" in {channel.name for channel in _channels(pair)}:
        *pieces, end = GOLDEN["omi_glass"]
        for piece in pieces:
            pair.tell("photo", piece)
        [taken] = pair.tell("photo", end)
        assert isinstance(taken, PhotoTaken)
        assert taken.jpeg == JPEG


def _channels(pair: Pair):
    return find("omi_glass" if pair.central._known.get("camera") else "omi").gatt.channels


@given(
    st.lists(
        st.tuples(
            st.sampled_from("audio control set_clock dim gain x".split()), st.binary(max_size=8)
        ),
        max_size=40,
    )
)
@settings(max_examples=200, deadline=None)
def test_no_bytes_break_the_glasses(packets):
    pair = Pair("omi")
    for channel, packet in packets:
        try:
            pair.glasses.receive_packet(ChannelPacket(packet, channel), 0.0)
        except RemoteViolation:
            continue
    taken = [each.message for each in drain(pair.glasses)]
    assert all(0 <= each.level <= 100 for each in taken if isinstance(each, SETS))
    pair.glasses.receive_packet(ChannelPacket(b"\x01", "audio"), 0.0)
    assert [each.message for each in drain(pair.glasses)] == [
        StartMicrophone(0, AudioFormat.OPUS, 16000)
    ]


@pytest.mark.parametrize("key", CAMERAS)
def test_every_packet_cut_or_changed_anywhere_is_harmless(key):
    """Either whole or not at all: of a changed photo only bytes of the picture may differ."""
    pair = listening(Pair(key))
    for at, packet in enumerate(GOLDEN[key]):
        for byte in range(len(packet)):
            for changed in (packet[:byte], packet[:byte] + b"\x55" + packet[byte + 1 :]):
                show(pair, [*GOLDEN[key][:at], changed, *GOLDEN[key][at + 1 :]])
    assert all(isinstance(found, PhotoTaken) and found.photo == 0 for found in photos(pair))
    still_usable(pair)


@pytest.mark.parametrize(
    ("channel", "packet"),
    [
        ("battery", b""),
        ("battery", b"\x65"),
        ("charging", b""),
        ("button", b""),
        ("features", b""),
        ("clock", b""),
        ("audio", b"\0\0\0"),
        ("photo", b"\0"),
        ("nothing", b"\0"),
    ],
)
def test_what_no_glasses_send_is_a_violation(channel, packet):
    pair = listening(Pair("omi"))
    assert pair.tell(channel, packet) == []
    assert len(pair.refused) == 1


def test_orders_that_wait_are_bounded():
    pair = Pair("omi")
    with pytest.raises(CommandRefused) as refused:
        for _ in range(MAX_WAITING + 1):
            pair.central.send(Ping(), 0.0)
    assert refused.value.code == "busy"
    pair.settle()
    assert pair.ask(Ping()) == Done()


def test_texts_are_bounded_and_printable():
    pair = Pair("omi")
    pair.tell("model", b"A\0B\x1b[2J\xff" + b"x" * 500)
    model = pair.greet().model
    assert model.startswith("AB[2J")
    assert len(model) <= 64


# ------------------------------------------------------------------ both roles


@given(
    st.sampled_from(["omi", "omi_glass", "openglass"]),
    st.integers(20, 512),
    st.lists(st.binary(min_size=1, max_size=400), min_size=1, max_size=12),
)
@settings(max_examples=150, deadline=None)
def test_sound_arrives_as_it_was_sent(key, max_packet, frames):
    pair = listening(Pair(key, replace(DIALECTS[key], codec=20), max_packet=max_packet))
    for index, frame in enumerate([*frames, b"end"]):
        pair.event(MicrophoneChunk(0, index, (frame,)))
    assert [frame for _index, frame in pair.sound()] == frames
    assert pair.refused == []


@given(
    st.sampled_from(CAMERAS),
    st.integers(20, 512),
    st.binary(max_size=3000),
)
@settings(max_examples=150, deadline=None)
def test_photos_arrive_as_they_were_sent(key, max_packet, middle):
    jpeg = b"\xff\xd8\xff" + middle + b"\xff\xd9"
    pair = Pair(key, max_packet=max_packet)
    assert pair.ask(TakePhoto(8)) == Done()
    assert pair.event(PhotoTaken(0, jpeg, 180)) == [PhotoTaken(8, jpeg, 180)]
    assert pair.refused == []


@given(st.sampled_from(CAMERAS), st.sets(st.integers(0, 20)), st.binary(max_size=3000))
@settings(max_examples=150, deadline=None)
def test_a_photo_over_a_bad_air_is_whole_or_fails(key, lost, middle):
    jpeg = b"\xff\xd8\xff" + middle + b"\xff\xd9"
    count = 0

    def air(packet):
        nonlocal count
        count += 1
        return [] if count - 1 in lost else [packet]

    pair = Pair(key, air=air)
    pair.ask(TakePhoto(8))
    pair.event(PhotoTaken(0, jpeg, 180))
    pair.now += PHOTO_S
    pair.central.handle_timer(pair.now)
    pair._heard()
    [found] = photos(pair)
    assert isinstance(found, PhotoFailed) or found == PhotoTaken(8, jpeg, 180)
    if not any(at < len(pair.sent) for at in lost):
        assert isinstance(found, PhotoTaken)
