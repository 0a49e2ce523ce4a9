"""Photos of a Mentra Live: file packets that are lost, doubled or out of order, and failures."""

import random

import pytest
from hypothesis import given, settings, strategies as st

from firmware_bridge.codecs.mentra_live.camera import READY_S
from firmware_bridge.codecs.mentra_live.conflicts import Dialect
from firmware_bridge.codecs.mentra_live.files import IncomingFile, packets_of
from firmware_bridge.codecs.mentra_live.layers import chip
from firmware_bridge.codecs.mentra_live.peripheral import Facts
from firmware_bridge.codecs.mentra_live.wire import FilePacket, Kind, json_frame
from firmware_bridge.errors import CommandRefused
from firmware_bridge.messages import (
    MAX_PHOTO_BYTES,
    Done,
    Failed,
    PhotoFailed,
    PhotoSize,
    PhotoTaken,
    TakePhoto,
)
from firmware_bridge.packets import channel_of
from tests.codecs.mentra_live.live_pair import JPEG, Pair, losing

ANY = (PhotoTaken, PhotoFailed)


def ready(**options) -> Pair:
    pair = Pair(**options)
    air, pair.air = pair.air, lambda _way, packet: [packet]
    pair.greet()
    pair.run(for_s=2.0)
    pair.air = air
    for log in (pair.heard, pair.said, pair.told):
        log.clear()
    return pair


def photos(pair: Pair, *, for_s: float = 60.0) -> list[object]:
    pair.run(for_s=for_s, until=lambda: bool(pair.events(*ANY)))
    pair.run()
    return pair.events(*ANY)


@pytest.fixture
def pair():
    return ready()


# ------------------------------------------------------------------ the order


def test_a_photo_is_ordered_over_bluetooth_and_arrives_whole(pair):
    assert pair.ask(TakePhoto(9, PhotoSize.SMALL)) == Done()
    assert len(pair.done) == 1
    assert photos(pair) == [PhotoTaken(9, JPEG)]
    [order] = [m for m in pair.messages() if m["type"] == "take_photo"]
    assert (order["size"], order["transferMethod"], order["webhookUrl"]) == ("small", "ble", "")
    assert order["requestId"]
    assert len(order["bleImgId"]) + len(".avif") <= 16
    [end] = [m for m in pair.messages() if m["type"] == "transfer_complete"]
    assert (end["fileName"], end["success"]) == (order["bleImgId"] + ".jpg", True)
    assert [c.size for c in pair.done if isinstance(c, TakePhoto)] == [PhotoSize.SMALL]


@pytest.mark.parametrize(
    ("word", "size"),
    [("low", "small"), ("small", "small"), ("medium", "medium"), ("high", "large"), ("", "medium")]
    + [(word, "large") for word in ("large", "full", "max")],
)
def test_a_size_has_the_words_of_both_ages(pair, word, size):
    order = {"type": "take_photo", "requestId": "r", "bleImgId": "I1", "transferMethod": "auto"}
    pair.central._outbox.put({**order, "size": word}, pair.now)
    pair.run()
    assert pair.done == [TakePhoto(1, PhotoSize(size))]


def test_photos_follow_each_other_one_at_a_time(pair):
    picture, pair.picture = pair.picture, None
    pair.ask(TakePhoto(1))
    with pytest.raises(CommandRefused, match="photo 1 is being taken"):
        pair.central.send(TakePhoto(5), pair.now)
    pair.picture = picture
    pair.take(1)
    photos(pair)
    pair.ask(TakePhoto(2))
    pair.run(for_s=3.0)
    assert pair.events(*ANY) == [PhotoTaken(1, JPEG), PhotoTaken(2, JPEG)]


def acknowledged(pair: Pair) -> list[int]:
    return [m["B"]["index"] for m in pair.messages() if m.get("C") == "cs_flts"]


def test_a_phone_that_is_asked_says_which_packet_it_expects_next():
    """NEW: flag bit 0, every eight packets; 5124 bytes are 24 packets of 221."""
    pair = ready(dialect=Dialect(batched=True))
    pair.ask(TakePhoto(1))
    begun = pair.now
    assert photos(pair) == [PhotoTaken(1, JPEG)]
    assert acknowledged(pair) == [8, 16, 24]
    assert pair.now - begun < 4.0, "no batch waited until it was late"


def test_glasses_wait_after_each_batch_for_the_phone_but_not_for_ever():
    pair = ready(dialect=Dialect(batched=True))
    pair.picture = None
    pair.ask(TakePhoto(1))
    pair.glasses.send(PhotoTaken(1, JPEG), pair.now)

    def sent(at):
        count = 0
        while packets := pair.glasses.packets_to_send(at):
            count += sum(channel_of(packet) == "files" for packet in packets)
        return count

    assert [sent(at) for at in (0.0, 1.9, 2.0)] == [8, 0, 8]
    assert pair.glasses.next_timer() == 4.0
    pair.glasses.receive_packet(json_frame(chip("cs_flts", {"state": 1, "index": 16}), "big"), 2.1)
    assert sent(2.1) == 8


def test_a_phone_that_is_not_asked_says_nothing_of_packets(pair):
    pair.ask(TakePhoto(1))
    photos(pair)
    assert acknowledged(pair) == []


def test_a_batch_whose_packet_was_lost_expects_that_one():
    pair = ready(dialect=Dialect(batched=True))
    number = iter(range(10_000))
    pair.air = lambda way, packet: (
        [] if channel_of(packet) == "files" and next(number) == 4 else [packet]
    )
    pair.ask(TakePhoto(1))
    assert photos(pair) == [PhotoTaken(1, JPEG)]
    assert acknowledged(pair)[0] == 4


@pytest.mark.parametrize("picture", [JPEG, b"\0\0\0\x20ftypavif" + bytes(3000)])
def test_pictures_of_both_codings_are_passed_on_as_they_came(picture):
    pair = ready(picture=picture)
    pair.ask(TakePhoto(1))
    assert photos(pair) == [PhotoTaken(1, picture)]


def test_what_is_no_picture_is_a_failure(pair):
    pair.picture = b"no picture at all"
    pair.ask(TakePhoto(1))
    assert photos(pair) == [PhotoFailed(1, "what came is neither a JPEG nor an AVIF picture")]
    assert pair.messages()[-1]["success"] is False


# ------------------------------------------------------------------ losses


@pytest.mark.parametrize("percent", [50, 30, 10])
@pytest.mark.parametrize("selective", [True, False])
@pytest.mark.parametrize("announces", [True, False])
def test_lost_packets_are_asked_for_until_the_photo_is_whole(percent, selective, announces):
    dialect = Dialect(selective=selective, announces=announces)
    pair = ready(dialect=dialect, air=losing("up", percent=percent))
    pair.ask(TakePhoto(1), for_s=30.0)
    assert photos(pair, for_s=120.0) == [PhotoTaken(1, JPEG)]
    assert "request_missing_packets" in pair.types()


@pytest.mark.parametrize("keeps_mtu", [True, False])
def test_the_fragments_of_large_packets_may_be_lost_too(keeps_mtu):
    pair = ready(dialect=Dialect(keeps_mtu=keeps_mtu), air=losing("up", percent=25))
    pair.ask(TakePhoto(1), for_s=30.0)
    assert photos(pair, for_s=120.0) == [PhotoTaken(1, JPEG)]


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(1, 4000),
    pack=st.sampled_from([100, 221, 399, 400, 474]),
    inflated=st.booleans(),
    announced=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_packets_in_any_order_and_doubled_make_the_file(size, pack, inflated, announced, seed):
    data = random.Random(seed).randbytes(size)
    packets = packets_of("x", data, pack, inflated=inflated and pack <= 400)
    count = len(packets) if announced else 0
    file = IncomingFile("x", packets[0].file_size, count=count)
    order = packets + packets
    random.Random(seed).shuffle(order)
    for packet in order:
        file.add(packet)
    assert file.missing == []
    assert file.data() == data


def test_a_file_that_may_have_a_further_packet_is_waited_for(pair):
    """2000 bytes announced, packets of 200: five if that is inflated, else ten."""
    pair.picture = None
    pair.ask(TakePhoto(1))
    name = pair.messages()[-1]["bleImgId"]
    data = JPEG[:1000]
    for at in range(5):
        piece = data[at * 200 : at * 200 + 200]
        pair.raw(FilePacket(Kind.PHOTO, at, 2000, name, piece).pack(), "files")
    assert pair.events(*ANY) == []
    assert photos(pair, for_s=3.0) == [PhotoTaken(1, data)]


def test_a_packet_too_short_for_its_place_is_asked_for_again():
    """The glasses began again with larger packets after the first."""
    file = IncomingFile("x", 1200)
    for at, size in ((0, 100), (1, 221), (2, 50)):
        file.add(FilePacket(Kind.PHOTO, at, 1200, "x", bytes(size)))
    assert file.missing == [0]
    file.add(FilePacket(Kind.PHOTO, 0, 1200, "x", bytes(221)))
    assert len(file.data()) == 492


def test_a_file_that_begins_again_with_larger_packets_is_received():
    file = IncomingFile("x", 1001)
    for at in range(5):
        file.add(FilePacket(Kind.PHOTO, at, 1001, "x", bytes(100)))
    for at in range(4):
        file.add(FilePacket(Kind.PHOTO, at, 1001, "x", bytes(221)))
    assert file.missing == [4], "the old one is no end of this file"


def test_a_real_size_that_is_a_multiple_of_400_is_not_cut_short():
    data = JPEG[:4000]
    file = IncomingFile("x", 4000)
    for packet in packets_of("x", data, 200, inflated=False):
        assert not (file.count and not file.missing and file.is_sure)
        file.add(packet)
    assert file.data() == data


def test_a_photo_of_which_packets_never_come_fails_and_says_so(pair):
    seen = []

    def air(way, packet):
        if way == "up" and channel_of(packet) == "files":
            seen.append(packet)
            return [packet] if len(seen) in (1, 2) else []
        return [packet]

    pair.air = air
    pair.ask(TakePhoto(1))
    [failed] = photos(pair, for_s=120.0)
    assert isinstance(failed, PhotoFailed)
    assert "packets of the picture never came" in failed.detail
    assert pair.messages()[-1]["success"] is False
    pair.air = lambda _way, packet: [packet]
    pair.ask(TakePhoto(2))
    assert photos(pair)[-1] == PhotoTaken(2, JPEG)


def test_a_packet_that_is_lost_every_time_ends_the_photo():
    """The whole file comes again and again, but always without the same packet."""
    pair = ready(dialect=Dialect(selective=False))
    pair.air = lambda _way, p: [] if b"\x00\xdd\x00\x05" in p[:9] else [p]
    pair.ask(TakePhoto(1))
    assert photos(pair) == [PhotoFailed(1, "1 of 24 packets of the picture never came")]
    assert pair.types().count("request_missing_packets") == 8


def test_late_packets_of_a_photo_that_was_given_up_are_nothing(pair):
    pair.raw(FilePacket(Kind.PHOTO, 0, 400, "I000000001", b"\xff\xd8\xff").pack(), "files")
    assert (pair.events(), pair.refused) == ([], [])


# ------------------------------------------------------------------ failures


def test_glasses_that_send_nothing_are_waited_for_but_not_for_ever(pair):
    pair.picture = None
    pair.ask(TakePhoto(1))
    begun = pair.now
    assert photos(pair, for_s=100.0) == [PhotoFailed(1, "the glasses sent no picture")]
    assert pair.now - begun <= READY_S + 2.0


def test_a_photo_that_comes_too_slowly_is_given_up(pair):
    pair.picture = None
    pair.ask(TakePhoto(1))
    name = pair.messages()[-1]["bleImgId"]
    for at in range(150):
        pair.raw(FilePacket(Kind.PHOTO, at, 400_000, name, bytes(400)).pack(), "files")
        pair.run(for_s=1.9)
    assert pair.events(*ANY) == [PhotoFailed(1, "the picture did not come within 180 s")]


def test_a_low_battery_is_the_reason_that_is_given():
    pair = ready(facts=Facts(battery=8))
    pair.ask(TakePhoto(1))
    assert photos(pair) == [PhotoFailed(1, "Battery too low (8%)")]


def test_a_refusal_of_the_simulator_becomes_a_failure(pair):
    pair.reply = lambda _command: Failed("busy", "the lens is covered")
    pair.ask(TakePhoto(1))
    assert photos(pair) == [PhotoFailed(1, "the lens is covered")]


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ({"type": "photo_response", "success": False, "errorMessage": "upload"}, "upload"),
        ({"type": "photo_response", "state": "error", "errorCode": "X1"}, "X1"),
        ({"type": "photo_error_response", "error": {"message": "camera"}}, "camera"),
        ({"type": "ble_photo_error", "error": "full"}, "full"),
        ({"type": "ble_photo_complete", "success": False}, "the glasses said ble_photo_complete"),
    ],
)
def test_every_form_of_failure_is_understood(pair, message, why):
    pair.picture = None
    pair.ask(TakePhoto(1))
    pair.tell({**message, "requestId": "another"})
    assert pair.events(*ANY) == []
    pair.tell({**message, "requestId": pair.messages()[-1]["requestId"]})
    assert pair.events(*ANY) == [PhotoFailed(1, why)]


@pytest.mark.parametrize("kind", ["transfer_timeout", "transfer_failed"])
def test_a_transfer_that_the_glasses_give_up_is_a_failure(pair, kind):
    pair.picture = None
    pair.ask(TakePhoto(1))
    pair.tell({"type": kind, "fileName": "other.jpg"})
    pair.tell({"type": kind, "fileName": pair.messages()[-1]["bleImgId"] + ".avif"})
    assert pair.events(*ANY) == [PhotoFailed(1, f"the glasses said {kind}")]


def test_progress_is_no_failure(pair):
    pair.picture = None
    pair.ask(TakePhoto(1))
    request = pair.messages()[-1]["requestId"]
    for status in ("configuring", "captured", "failed"):
        pair.tell({"type": "photo_status", "requestId": request, "status": status})
    pair.tell({"type": "photo_response", "requestId": request, "success": True})
    assert pair.events(*ANY) == []


def test_our_own_repeated_order_is_not_taken_for_a_failure(pair):
    """The first was taken, its acknowledgement lost; glasses that forgot the number are busy."""
    pair.picture = None
    pair.ask(TakePhoto(1))
    order = pair.messages()[-1]
    about = {"requestId": order["requestId"]}
    pair.tell({"type": "ble_photo_ready", "bleImgId": order["bleImgId"], **about})
    pair.tell({"type": "photo_error_response", "error_code": "CAMERA_BUSY", **about})
    assert pair.events(*ANY) == []
    pair.tell({"type": "photo_error_response", "error_code": "BATTERY_LOW", **about})
    assert pair.events(*ANY) == [PhotoFailed(1, "BATTERY_LOW")]


def test_a_camera_that_is_busy_with_something_else_is_a_failure(pair):
    pair.picture = None
    pair.ask(TakePhoto(1))
    about = {"requestId": pair.messages()[-1]["requestId"]}
    pair.tell({"type": "photo_error_response", "error_code": "CAMERA_BUSY", **about})
    assert pair.events(*ANY) == [PhotoFailed(1, "CAMERA_BUSY")]


@pytest.mark.parametrize("size", [0, MAX_PHOTO_BYTES + 1, 2**32 - 1])
def test_a_photo_of_impossible_size_is_a_violation(pair, size):
    pair.picture = None
    pair.ask(TakePhoto(1))
    name = pair.messages()[-1]["bleImgId"]
    pair.raw(FilePacket(Kind.PHOTO, 0, size, name, b"x").pack(), "files")
    assert len(pair.refused) == 1
    assert pair.events(*ANY) == []
