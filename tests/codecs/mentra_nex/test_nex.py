"""Mentra Display: worked examples of the fact sheet, start-up, pages, pictures, events, sound."""

import contextlib

import pytest
from hypothesis import given, settings, strategies as st

from firmware_bridge.catalog import find, recognise
from firmware_bridge.codecs.mentra_nex import picture
from firmware_bridge.codecs.mentra_nex.conflicts import CONFLICTS
from firmware_bridge.codecs.mentra_nex.peripheral import MentraNexGlasses
from firmware_bridge.codecs.mentra_nex.text import lay_out, plain
from firmware_bridge.codecs.mentra_nex.wire import (
    Dialect,
    Framing,
    Schema,
    crc16,
    packets,
    text_message,
)
from firmware_bridge.errors import CommandRefused, LocalMisuse, RemoteViolation
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
    Ping,
    SetBrightness,
    SetHeadUpAngle,
    SetSilentMode,
    SetWearDetection,
    ShowPage,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
    TextLine,
    Tile,
    UpdatePage,
)
from firmware_bridge.models import Advertisement
from firmware_bridge.own_commands import GetMotion, MotionRead
from firmware_bridge.sides import Side
from tests.codecs.mentra_nex.nex_pair import Pair, drain

HI = ShowPage("hi", lines=(TextLine(0, "Hi"), TextLine(2, "there")))
HI_TEXT = "f2 01 0e 0a 02 48 69 10 90 4e 18 14 20 84 02 28 30"
PICTURE = ShowPage("p", tiles=(Tile(8, 4, 16, 8, 1, b"\xaa\x55" * 8),))
MIC = StartMicrophone(7, AudioFormat.LC3)
HEADS = [b"", b"\x02", b"\xa0", b"\xb0", b"\x02\x00\x01\x00"]
L, R = Side.LEFT, Side.RIGHT


@pytest.fixture
def pair():
    pair = Pair()
    assert pair.greet() == GlassesInfo("mentra_nex", "1.2.3", "", {}, {})
    return pair


# ------------------------------------------------------------------ worked examples (7.1.11)


def test_messages_are_framed_whole_or_in_fragments():
    battery = bytes.fromhex("5a 00")
    assert packets(battery, Framing.WHOLE, 0, 20) == [bytes.fromhex("02 5a 00")]
    assert packets(battery, Framing.FRAGMENTS, 0, 20) == [bytes.fromhex("02 00 01 00 5a 00")]
    long = packets(bytes(40), Framing.FRAGMENTS, 257, 20)
    assert [p[:4] for p in long] == [bytes((2, 1, 3, at)) for at in range(3)]
    assert sum(len(p) - 4 for p in long) == 40


def test_texts_are_as_published():
    assert text_message("Hi", Schema.B) == bytes.fromhex(HI_TEXT)
    shifted = bytes.fromhex(HI_TEXT.replace("18 14 20 84 02 28 30", "20 14 28 84 02 30 30"))
    assert text_message("Hi", Schema.A) == shifted


@pytest.mark.parametrize(
    ("command", "wire"),
    [
        (SetHeadUpAngle(20), ["02 7a 02 08 14"]),
        (SetSilentMode(on=True), ["02 a2 02 00"]),
        (SetSilentMode(on=False), ["02 a2 02 02 08 01"]),
        (SetBrightness(50), ["02 b2 02 00", "02 aa 02 02 08 32"]),
        (MIC, ["02 a2 01 02 08 01"]),
        (ClearPage(), ["02 f2 02 00"]),
        (Ping(), []),
        (ShowPage("x", lines=(TextLine(0, "Hi"),)), ["02 f2 02 00", "02" + HI_TEXT, "02 da 02 00"]),
    ],
)
def test_commands_are_as_published_and_followed_by_the_battery_question(pair, command, wire):
    assert pair.ask(command) == Done()
    assert pair.said == [bytes.fromhex(each) for each in (*wire, "02 5a 00")]


@pytest.mark.parametrize(
    ("wire", "events"),
    [
        ("02 52 02 08 52", [BatteryChanged(82)]),
        ("02 52 04 08 64 10 01", [BatteryChanged(100, charging=True)]),
        ("02 52 00", [BatteryChanged(0)]),
        ("02 a2 01 02 08 01", []),
        ("02 ca 02 04 08 01 10 01", [Gestured(Gesture.DOUBLE_TAP, R)]),
        ("02 ca 02 00", [Gestured(Gesture.TAP, L)]),
        ("02 ca 02 02 10 03", [Gestured(Gesture.BUTTON_LONG, L)]),
        ("02 ca 02 02 10 02", []),
        ("02 d2 02 02 08 02", [Gestured(Gesture.HEAD_UP)]),
        ("02 d2 02 00", [Gestured(Gesture.NOD)]),
        ("02 d2 02 02 08 05", []),
        ("01 7b 7d", []),
    ],
)
def test_events_are_read_as_published(pair, wire, events):
    pair.tell(wire)
    assert pair.events() == events
    assert pair.refused == []


def test_a_ping_of_the_glasses_is_answered(pair):
    pair.tell("02 7a 04 0a 02 70 31")
    pair.run()
    assert pair.said == [bytes.fromhex("02 82 01 00")]


def test_a_picture_is_announced_and_cut_as_published(pair):
    assert pair.ask(PICTURE) == Done()
    announced = next(p for p in pair.said if b"img_start_1" in p)
    assert announced.startswith(bytes.fromhex("02 0a 0b 69 6d 67 5f 73 74 61 72 74 5f 31 fa 01"))
    assert b"002A" in announced
    assert b"raw" in announced
    chunks = [p for p in pair.said if p[0] == 0xB0]
    assert [p[:4] for p in chunks] == [bytes((0xB0, 0, 0x2A, at)) for at in range(len(chunks))]
    assert all(len(p) <= 509 - 17 for p in chunks)


def test_the_checksum_is_crc_16_ccitt():
    assert crc16(b"123456789") == bytes.fromhex("29 B1")


@pytest.mark.parametrize("name", ["Nex1-12", "MENTRA_DISPLAY_4F", "my MENTRA_DISPLAY_1", "NexSim"])
def test_its_names_are_recognised(name):
    service = frozenset({find("mentra_nex").gatt.service})
    assert recognise(Advertisement(name, service)) is find("mentra_nex")


# ------------------------------------------------------------------ start-up and variants


@pytest.mark.parametrize("conflict", CONFLICTS, ids=lambda c: c.name)
def test_every_variant_shows_text_and_pictures(conflict):
    for changes in conflict.values.values():
        pair = Pair(dialect=Dialect(**changes))
        assert isinstance(pair.greet(), GlassesInfo)
        assert pair.ask(HI) == Done()
        shown = pair.done[-1]
        assert [(line.row, line.text) for line in shown.lines] == [(0, "Hi"), (2, "there")]
        assert pair.ask(PICTURE) == Done()
        pair.run()
        [tile] = pair.done[-1].tiles
        assert (tile.width, tile.height) == (500, 220)
        assert pair.ask(ClearPage()) == Done()


def test_both_conflicts_at_once_are_found_out():
    pair = Pair(dialect=Dialect(schema=Schema.A, framing=Framing.FRAGMENTS, checked=True))
    assert isinstance(pair.greet(), GlassesInfo)
    assert pair.ask(HI) == Done()
    assert pair.done[-1].lines == HI.lines


def test_the_older_schema_is_known_by_its_pong_only_at_the_start():
    pair = Pair(dialect=Dialect(schema=Schema.A))
    pair.greet()
    pair.ask(HI)
    assert any(b"\x20\x14\x28\x84\x02\x30\x30" in p for p in pair.said)
    newer = Pair()
    newer.greet()
    newer.tell("02 7a 00")
    newer.ask(HI)
    assert any(b"\x18\x14\x20\x84\x02\x28\x30" in p for p in newer.said)


def test_glasses_that_say_nothing_are_refused_after_both_framings():
    pair = Pair(air=lambda _way, _packet: [])
    begun = pair.now
    assert isinstance(pair.greet(), Failed)
    assert pair.now - begun >= 4.0


def test_head_gestures_are_switched_on_at_the_start():
    pair = Pair()
    seen = []
    pair.air = lambda way, p: (seen.append(p) if way == "down" else None, [p])[1]
    pair.greet()
    wanted = [bytes.fromhex(f"02 d2 03 {rest}") for rest in ("02 10 01", "04 08 01 10 01")]
    assert all(each in seen for each in wanted)


# ------------------------------------------------------------------ pages


def test_rows_and_columns_become_one_text():
    width = lambda text: 8.0 * len(text)  # noqa: E731
    lines = (TextLine(0, "a"), TextLine(0, "b", x=40), TextLine(2, "c", x=16))
    assert lay_out(lines, width) == "a    b\n\n  c"
    assert lay_out((), width) == ""


def test_near_characters_are_taken_and_lacking_ones_refused(pair):
    assert plain("Café – 20 °C “x” … 5 %") == 'Cafe - 20  degC "x" ... 5  pct'
    with pytest.raises(CommandRefused, match="no characters for ж"):
        pair.central.send(ShowPage("x", lines=(TextLine(0, "ж"),)), pair.now)
    assert pair.central.packets_to_send(pair.now + 1) == []


def test_an_update_is_drawn_with_the_rest_of_the_page(pair):
    with pytest.raises(CommandRefused, match="no_scene"):
        pair.central.send(UpdatePage("hi"), pair.now)
    pair.ask(HI)
    assert pair.ask(UpdatePage("hi", lines=(TextLine(2, "you"),))) == Done()
    assert [line.text for line in pair.done[-1].lines] == ["Hi", "you"]


def test_an_empty_page_clears_the_lens(pair):
    pair.ask(HI)
    assert pair.ask(ShowPage("hi")) == Done()
    assert pair.done[-1] == ClearPage()


def test_text_and_picture_on_one_page_are_refused(pair):
    both = ShowPage("b", lines=HI.lines, tiles=PICTURE.tiles)
    with pytest.raises(CommandRefused, match="not both"):
        pair.central.send(both, pair.now)


def test_a_page_that_fits_no_packet_is_refused_and_the_last_one_stays():
    pair = Pair(max_packet=60)
    pair.greet()
    pair.ask(HI)
    with pytest.raises(CommandRefused, match="too_big"):
        pair.central.send(ShowPage("x", lines=(TextLine(0, "a" * 100),)), pair.now)
    assert pair.ask(UpdatePage("hi", lines=(TextLine(2, "you"),))) == Done()


@pytest.mark.parametrize("command", [SetWearDetection(on=True), TakePhoto(1), Done()])
def test_what_these_glasses_lack_is_refused(pair, command):
    with pytest.raises(CommandRefused, match="unsupported"):
        pair.central.send(command, pair.now)


def test_a_lost_answer_does_not_shift_the_later_ones(pair):
    pair.air = lambda way, _p: [] if way == "up" else [_p]
    assert pair.ask(Ping(), for_s=6.0) is None
    pair.air = lambda _way, p: [p]
    assert pair.ask(Ping()) == Done()


def test_too_much_at_once_is_refused(pair):
    with pytest.raises(LocalMisuse):
        for _ in range(10_000):
            pair.central.send(Ping(), pair.now)


# ------------------------------------------------------------------ pictures


def test_pictures_survive_drawing_and_reading():
    tile = Tile(0, 0, 500, 220, 1, bytes(range(1, 64)) * 220)
    read = picture.read(picture.bmp([tile]))
    assert read.pixels[:62] == tile.pixels[:62]
    grey = Tile(490, 215, 20, 20, 4, b"\x7f" * 200)
    lit = picture.read(picture.bmp([grey]))
    assert sum(byte.bit_count() for byte in lit.pixels) == 5 * 5, "half of them, clipped"


@pytest.mark.parametrize("every", [2, 3, 7])
def test_missing_chunks_are_sent_again(pair, every):
    count = 0

    def air(way, packet):
        nonlocal count
        count += packet[:1] == b"\xb0"
        return [] if way == "down" and packet[0] == 0xB0 and count % every == 0 else [packet]

    pair.air = air
    assert pair.ask(PICTURE) == Done()
    assert isinstance(pair.done[-1], ShowPage)


def test_a_picture_that_never_arrives_fails(pair):
    pair.air = lambda _way, p: [] if p[0] == 0xB0 else [p]
    assert pair.ask(PICTURE, for_s=60.0) == Failed(
        "busy", "the glasses did not get the whole picture"
    )


def test_a_newer_page_interrupts_a_picture(pair):
    pair.air = lambda _way, p: [] if p[0] == 0xB0 else [p]
    number = pair.central.send(PICTURE, pair.now)
    assert pair.ask(HI) == Done()
    assert pair.answer(number) == Failed("interrupted", "a newer page replaced it")
    assert sum(p[0] == 0xB0 for p in pair.said) == 0


def test_a_picture_needs_packets_of_some_size():
    pair = Pair(max_packet=60)
    pair.greet()
    with pytest.raises(CommandRefused, match="too_big"):
        pair.central.send(PICTURE, pair.now)


# ------------------------------------------------------------------ sound and sides


@pytest.mark.parametrize(
    ("numbers", "indexes"),
    [([250, 251, 254, 253, 255, 0], [0, 1, 4, 3, 5, 6]), ([1, 1, 1, 1], [0, 1, 2, 3])],
)
def test_sound_is_numbered_by_the_glasses_or_counted(pair, numbers, indexes):
    pair.ask(MIC)
    for number in numbers:
        pair.tell(bytes((0xA0, number)) + bytes(400))
    chunks = [event for event in pair.events() if isinstance(event, MicrophoneChunk)]
    assert [chunk.index for chunk in chunks] == indexes
    assert chunks[0] == MicrophoneChunk(7, 0, (bytes(40),) * 10)


def test_a_microphone_is_opened_again_every_half_hour_and_closed(pair):
    pair.ask(MIC)
    pair.run(for_s=1801.0)
    assert sum(isinstance(c, StartMicrophone) for c in pair.done) == 2
    assert pair.ask(StopMicrophone(7)) == Done()
    assert isinstance(pair.done[-1], StopMicrophone)
    pair.tell(bytes((0xA0, 9)) + bytes(40))
    assert pair.events()[-1:] == []


def test_wrong_uses_of_the_microphone_are_refused(pair):
    for command, why in (
        (StopMicrophone(7), "no_stream"),
        (StartMicrophone(7, AudioFormat.OPUS), "speaks lc3"),
    ):
        with pytest.raises(CommandRefused, match=why):
            pair.central.send(command, pair.now)
    pair.ask(MIC)
    with pytest.raises(CommandRefused, match="busy"):
        pair.central.send(MIC, pair.now)


def test_what_the_glasses_report_is_understood(pair):
    said = [
        Gestured(Gesture.TAP, L),
        Gestured(Gesture.DOUBLE_TAP, R),
        Gestured(Gesture.BUTTON_LONG, L),
        Gestured(Gesture.SHAKE),
        Gestured(Gesture.HEAD_DOWN),
        BatteryChanged(12, charging=True),
    ]
    for event in said:
        pair.glasses.send(event, pair.now)
    pair.run()
    assert pair.events() == said


def test_buttons_of_the_older_schema_are_taps_when_they_go_down():
    pair = Pair(dialect=Dialect(schema=Schema.A))
    pair.greet()
    pair.glasses.send(Gestured(Gesture.TAP, R), pair.now)
    pair.run()
    assert pair.events() == [Gestured(Gesture.TAP, R)]


# ------------------------------------------------------------------ any bytes


@pytest.mark.parametrize("wire", ["", "ff", "02 0b", "02 52 02 08 65", "02 08", "c0 01"])
def test_invalid_packets_are_violations(pair, wire):
    pair.tell(wire)
    assert len(pair.refused) == 1
    assert pair.ask(Ping()) == Done()


def test_a_flood_of_pings_is_survived(pair):
    for _ in range(5000):
        pair.tell("02 7a 04 0a 02 70 31")
    assert pair.central.backlog() <= 4 * 2048
    pair.run(for_s=60.0)
    assert pair.ask(Ping()) == Done()


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"", b"\x02", b"\xa0", b"\xb0", b"\x02\x00\x01\x00"]),
            st.binary(max_size=60),
        ),
        max_size=8,
    ),
    st.sampled_from([Dialect(), Dialect(schema=Schema.A, framing=Framing.FRAGMENTS, checked=True)]),
)
def test_any_bytes_leave_both_codecs_usable(some, dialect):
    pair = Pair(dialect=dialect)
    pair.greet()
    pair.ask(MIC)
    pair.central.send(PICTURE, pair.now)
    for head, data in some:
        for codec in (pair.central, pair.glasses):
            with contextlib.suppress(RemoteViolation):
                codec.receive_packet(head + data, pair.now)
            drain(codec)
    pair.run(for_s=60.0)
    assert pair.ask(Ping()) == Done()


def test_every_real_packet_cut_or_changed_is_survived(pair):
    told = []
    pair.air = lambda way, p: (told.append(p) if way == "up" else None, [p])[1]
    for command in (HI, PICTURE, MIC, SetHeadUpAngle(9)):
        pair.ask(command)
    pair.glasses.send(Gestured(Gesture.TAP, R), pair.now)
    pair.glasses.send(MicrophoneChunk(0, 1, (bytes(40),)), pair.now)
    pair.run()
    for codec, packets_of in ((pair.central, told), (pair.glasses, list(pair.said))):
        for packet in dict.fromkeys(packets_of):
            for at in range(min(len(packet), 80)):
                for each in (
                    packet[:at],
                    packet[:at] + bytes([packet[at] ^ 0xFF]) + packet[at + 1 :],
                ):
                    with contextlib.suppress(RemoteViolation):
                        codec.receive_packet(each, pair.now)
                    drain(codec)
    pair.run(for_s=60.0)
    assert pair.ask(Ping()) == Done()


# ------------------------------------------------------------------ motion

STILL = MotionRead((0.0, 0.0, 9.8125), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
STILL_WIRE = "02 c2 02 0b 0a 05 1d 00 00 1d 41 12 00 1a 00"


@pytest.mark.parametrize(
    ("schema", "switch", "ask"), [(Schema.B, "ba 03", "c2 03"), (Schema.A, "92 03", "9a 03")]
)
def test_the_motion_sensor_is_switched_on_asked_once_and_rests_again(schema, switch, ask):
    pair = Pair(dialect=Dialect(schema=schema, motion=True))
    assert pair.greet().capabilities == {"imu": True}
    assert pair.ask(GetMotion()) == Done()
    wire = [f"02 {switch} 02 08 01", f"02 {ask} 00", "02 5a 00"]
    assert pair.said == [bytes.fromhex(each) for each in wire]
    assert pair.done == [GetMotion()]
    pair.said.clear()
    pair.glasses.send(STILL, pair.now)
    pair.run()
    assert [each.message for each in pair.heard if each.re is None] == [STILL]
    assert pair.said == [bytes.fromhex(f"02 {switch} 00")]


def test_a_reading_is_as_published_in_both_directions():
    glasses = MentraNexGlasses(max_packet=100)
    glasses.send(STILL, 0.0)
    assert glasses.packets_to_send(0.0) == [bytes.fromhex(STILL_WIRE)]
    pair = Pair()
    pair.central.receive_packet(bytes.fromhex(STILL_WIRE), pair.now)
    assert [each.message for each in drain(pair.central)] == [STILL]


def test_glasses_that_do_not_say_that_they_have_a_sensor_are_not_asked(pair):
    with pytest.raises(CommandRefused, match="no GetMotion"):
        pair.ask(GetMotion())


@pytest.mark.parametrize("bits", ["00 00 80 7f", "00 00 c0 7f"], ids=["infinite", "no number"])
def test_a_motion_that_is_no_number_is_a_violation(pair, bits):
    wire = STILL_WIRE.replace("00 00 1d 41", bits)
    with pytest.raises(RemoteViolation, match="no number"):
        pair.central.receive_packet(bytes.fromhex(wire), pair.now)
