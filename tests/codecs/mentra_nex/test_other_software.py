"""What other software says to a Mentra Display and hears from it: all messages of schema B that we
do not send, schema A', and JSON of the older specification.
"""

import json

import pytest

from firmware_bridge.codecs.mentra_nex import legacy
from firmware_bridge.codecs.mentra_nex.central import PROBE_S
from firmware_bridge.codecs.mentra_nex.peripheral import MentraNexGlasses
from firmware_bridge.codecs.mentra_nex.wire import (
    Dialect,
    Framing,
    Schema,
    ToGlasses,
    ToPhone,
    chunk,
    encode,
)
from firmware_bridge.errors import CommandRefused, RemoteViolation
from firmware_bridge.messages import (
    BatteryChanged,
    ClearPage,
    Done,
    Failed,
    Gesture,
    Gestured,
    GlassesInfo,
    Hello,
    Ping,
    SetBrightness,
    SetHeadUpAngle,
    ShowPage,
    StartMicrophone,
    TextLine,
    Tile,
)
from firmware_bridge.own_commands import MotionRead, Restart, SetDisplayPosition
from firmware_bridge.protobuf import Message
from firmware_bridge.sides import Side
from tests.codecs.mentra_nex.nex_pair import Pair, drain

B, A = Dialect(), Dialect(schema=Schema.A)
PRIME = Dialect(schema=Schema.A, prime=True)
OLD_JSON = Dialect(schema=Schema.A, framing=Framing.JSON)
HI = ShowPage("hi", lines=(TextLine(0, "Hi"),))
PICTURE = ShowPage("p", tiles=(Tile(8, 4, 16, 8, 1, b"\xaa\x55" * 8),))


class Glasses:
    """Simulated glasses that a phone of others speaks to."""

    def __init__(self, dialect=B):
        self.codec = MentraNexGlasses(max_packet=509, dialect=dialect)

    def take(self, *packets):
        """Return the commands that these packets are."""
        for packet in packets:
            raw = bytes.fromhex(packet) if isinstance(packet, str) else packet
            self.codec.receive_packet(raw, 0.0)
        return [each.message for each in drain(self.codec)]

    def say(self, fields):
        return self.take(b"\x02" + encode(fields))

    def told(self):
        return self.codec.packets_to_send(0.0)


# ------------------------------------------------------------------ which schema


def test_glasses_that_ping_and_do_not_know_a_version_have_schema_a():
    pair = Pair(dialect=PRIME)
    assert isinstance(pair.greet(), GlassesInfo)
    assert pair.ask(HI) == Done()
    assert pair.done[-1].lines == HI.lines
    assert any(b"\x20\x14\x28\x84\x02\x30\x30" in packet for packet in pair.said)


@pytest.mark.parametrize("dialect", [A, PRIME, B], ids=["A", "A'", "B"])
def test_a_ping_is_answered_once_and_a_pong_never(dialect):
    pair = Pair(dialect=dialect)
    pair.greet()
    pair.run(for_s=PROBE_S)
    pair.tell("02 7a 00")
    pair.run(for_s=0.5)
    assert pair.said.count(bytes.fromhex("02 82 01 00")) == 1
    pair.run(for_s=60.0)
    assert len(pair.said) <= 4, "no pong is answered, or both would go on for ever"


def test_a_version_that_comes_late_still_tells_the_schema():
    pair = Pair()
    late = []

    def air(_way, packet):
        if packet[:2] == b"\x02\xb2" and b"v1" in packet:
            late.append(packet)
            return []
        return [packet]

    pair.air = air
    pair.greet()
    pair.ask(HI)
    assert any(b"\x20\x14\x28" in packet for packet in pair.said), "as schema A"
    pair.tell(late[0])
    pair.said.clear()
    pair.ask(HI)
    assert any(b"\x18\x14\x20" in packet for packet in pair.said)


@pytest.mark.parametrize(
    "wire",
    ["02 b2 04 06 0a 02 76 31 10 02", "02 7a 04 0a 02 70 31", "02 ba 01 00", "02 fa 01 00"],
    ids=["version", "ping with a number", "voice activity", "queue"],
)
def test_what_only_schema_b_has_tells_it(wire):
    pair = Pair(dialect=PRIME)
    pair.greet()
    pair.tell(wire)
    pair.said.clear()
    pair.central.send(HI, pair.now)
    pair.run()
    assert any(b"\x18\x14\x20" in packet for packet in pair.said)


def test_the_start_is_as_published():
    pair, seen = Pair(), []
    pair.air = lambda way, packet: (seen.append(packet) if way == "down" else None, [packet])[1]
    pair.greet()
    begun = ["5a 00", "82 01 00", "62 00", "0a 02 76 31 b2 04 04 0a 02 76 31"]
    assert seen[:4] == [bytes.fromhex(f"02 {each}") for each in begun]


def test_what_the_glasses_say_of_themselves_is_read_as_published():
    live = "0a 05 31 2e 32 2e 33 12 0a 4d 65 6e 74 72 61 4c 69 76 65"
    features = "1a 0e 08 01 10 01 18 01 28 01 30 01 38 01 40 0c"
    pair = Pair(air=lambda way, packet: [] if way == "up" else [packet])
    number = pair.central.send(Hello("test", "0"), pair.now)
    for packet in ("52 02 08 52", f"62 23 {live} {features}", "b2 04 06 0a 02 76 31 10 02"):
        pair.tell(f"02 {packet}")
    pair.run()
    assert pair.answer(number) == GlassesInfo("mentra_nex", "1.2.3", "", {"imu": True}, {})


def test_missing_chunks_are_named_as_published():
    pair = Pair()
    pair.greet()
    pair.air = lambda way, packet: [] if way == "up" else [packet]
    pair.central.send(PICTURE, pair.now)
    pair.run()
    pair.said.clear()
    pair.tell("02 f2 01 0d 0a 04 30 30 32 41 10 01 1a 03 03 04 06")
    pair.run()
    assert [packet[3] for packet in pair.said if packet[0] == 0xB0] == [3, 4, 6]
    pair.said.clear()
    pair.tell("02 f2 01 06 0a 04 30 30 32 41")
    pair.run()
    assert pair.said[0] == bytes.fromhex("02 da 02 00"), "it is committed"


# ------------------------------------------------------------------ answers that are no


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ("02 72 02 08 01", Done()),
        ("02 72 00", Failed("unsupported", "the glasses refused this angle")),
    ],
)
def test_an_angle_that_the_glasses_refuse_is_refused(body, answer):
    pair = Pair()
    pair.greet()
    pair.air = lambda way, packet: [] if way == "up" else [packet]
    number = pair.central.send(SetHeadUpAngle(20), pair.now)
    pair.run()
    pair.tell(body)
    pair.tell("02 52 02 08 52")
    assert pair.answer(number) == answer
    pair.air = lambda _way, packet: [packet]
    assert pair.ask(Ping()) == Done()


def test_a_restart_is_sent_and_not_answered():
    pair = Pair()
    pair.greet()
    assert pair.ask(Restart()) == Done()
    pair.run()
    assert (pair.said, pair.done) == ([bytes.fromhex("02 e2 03 00")], [Restart()])


@pytest.mark.parametrize(("depth", "tier"), [(1, 1), (5, 2), (9, 4)])
def test_the_place_of_the_picture_is_height_and_tier(depth, tier):
    pair = Pair()
    pair.greet()
    assert pair.ask(SetDisplayPosition(8, depth)) == Done()
    wire = ["02 ea 02 02 08 08", f"02 e2 02 02 08 {tier:02x}", "02 5a 00"]
    assert pair.said == [bytes.fromhex(each) for each in wire]
    assert pair.done[-1] == SetDisplayPosition(8, tier)
    with pytest.raises(CommandRefused):
        pair.central.send(SetDisplayPosition(1, 1, preview=True), pair.now)


# ------------------------------------------------------------------ schema B, all of it


def test_lines_rectangles_and_circles_are_drawn_at_the_commit():
    glasses = Glasses()
    shape = {1: 10000, 2: 1, 3: 10, 4: 20}
    assert glasses.say({ToGlasses.LINE: encode({**shape, 5: 13, 6: 20})}) == []
    assert glasses.say({ToGlasses.RECT: encode({**shape, 5: 4, 6: 3})}) == []
    assert glasses.say({ToGlasses.CIRCLE: encode({**shape, 5: 2})}) == []
    (page,) = glasses.say({ToGlasses.COMMIT: b""})
    line, rect, circle = page.tiles
    assert line == Tile(10, 20, 4, 1, 1, b"\xf0")
    assert rect == Tile(10, 20, 4, 3, 1, b"\xf0\x90\xf0")
    assert (circle.x, circle.y, circle.width, circle.height) == (8, 18, 5, 5)
    assert circle.pixels == bytes([0b00100000, 0b01110000, 0b10001000, 0b01110000, 0b00100000])


@pytest.mark.parametrize("number", [ToGlasses.LINE, ToGlasses.RECT, ToGlasses.CIRCLE])
def test_shapes_beyond_the_canvas_are_cut_or_nothing(number):
    glasses = Glasses()
    huge = dict.fromkeys(range(1, 7), 2**32 - 1)
    for fields in ({}, huge, {**huge, 3: 499, 4: 219}, {3: 5000, 4: 5000, 5: 5001, 6: 5001}):
        glasses.say({number: encode(fields)})
    for page in glasses.say({ToGlasses.COMMIT: b""}):
        for tile in page.tiles:
            assert tile.x + tile.width <= 500
            assert tile.y + tile.height <= 220


def test_a_batch_is_drawn_as_one_page_in_its_order_from_the_top():
    glasses = Glasses()
    text = lambda words, y: {1: words, 2: 10000, 3: 20, 4: y, 5: 48}  # noqa: E731
    scrolling = {1: "scrolls", 2: 1, 3: 20, 4: 100, 5: 480, 6: 50, 7: 1, 10: 48, 11: True}
    commands = [
        encode({1: encode(text("below", 200))}),
        encode({1: encode(text("above\nall", 10))}),
        encode({6: encode(scrolling)}),
        encode({3: encode({1: 1, 2: 1, 3: 1, 4: 1, 5: 2, 6: 1})}),
    ]
    assert glasses.say({ToGlasses.BATCH: encode({1: commands})}) == []
    (page,) = glasses.say({ToGlasses.COMMIT: encode({1: True})})
    assert [line.text for line in page.lines] == ["above", "all", "scrolls", "below"]
    assert [line.row for line in page.lines] == [0, 1, 2, 3]
    assert page.tiles == (Tile(1, 1, 2, 1, 1, b"\xc0"),)


def test_a_long_batch_stays_within_what_a_page_holds():
    glasses = Glasses()
    text = encode({1: encode({1: ("é" * 150 + "\n") * 10, 5: 48})})
    glasses.say({ToGlasses.BATCH: encode({1: [text] * 60})})
    (page,) = glasses.say({ToGlasses.COMMIT: b""})
    assert len(page.lines) <= 32


def test_a_picture_is_kept_under_its_number_and_drawn_later():
    pair = Pair()
    pair.greet()
    pair.ask(ShowPage("p", tiles=(Tile(0, 0, 8, 8, 1, b"\xff" * 8),)))
    file = b"".join(packet[4:] for packet in pair.said if packet[0] == 0xB0)
    glasses = Glasses()
    pieces = [file[at : at + 400] for at in range(0, len(file), 400)]
    kept = {1: "00A1", 2: 7, 3: 500, 4: 220, 5: "raw", 6: len(pieces)}
    glasses.say({ToGlasses.CACHE_IMAGE: encode(kept)})
    chunks = [chunk(0xA1, at, piece, checked=False) for at, piece in enumerate(pieces)]
    assert glasses.take(*chunks) == []
    assert glasses.told() == [bytes.fromhex("02 f2 01 06 0a 04 30 30 41 31")]
    glasses.say({ToGlasses.CACHED_IMAGE: encode({1: 7, 2: 3, 3: 4})})
    (page,) = glasses.say({ToGlasses.COMMIT: b""})
    assert (page.tiles[0].x, page.tiles[0].y) == (3, 4)
    glasses.say({ToGlasses.CLEAR_CACHED_IMAGE: encode({1: 7})})
    glasses.say({ToGlasses.CACHED_IMAGE: encode({1: 7})})
    assert glasses.say({ToGlasses.COMMIT: b""}) == []


def test_voice_activity_is_switched_set_and_asked_for():
    glasses = Glasses()
    glasses.take("02 ba 01 05 0a 01 61 10 01")
    glasses.say({ToGlasses.VAD_CONFIG: encode({1: "b", 2: 70})})
    glasses.say({ToGlasses.VAD_STATUS: encode({1: "c"})})
    glasses.say({ToGlasses.VAD_CONFIG: encode({1: "d", 2: 101})})
    switched, configured, status, refused = [Message(packet[1:]) for packet in glasses.told()]
    assert switched.data(ToPhone.VAD_ENABLED) == encode({1: "a", 2: True})
    assert configured.data(ToPhone.VAD_CONFIGURED) == encode({1: "b", 2: True})
    assert status.data(ToPhone.VAD_STATUS) == encode({1: "c", 2: True, 3: 70})
    assert refused.message(ToPhone.VAD_CONFIGURED).text(3) == "sensitivity is 0 to 100"


def test_a_dashboard_is_kept_and_shown_by_order():
    glasses = Glasses()
    text = encode({1: encode({1: "Board", 5: 48})})
    batch = encode({1: [text]})
    glasses.say({ToGlasses.CACHE_DASHBOARD: encode({1: 3, 2: batch})})
    (page,) = glasses.say({ToGlasses.DASHBOARD_TRIGGER: encode({1: 3, 2: 3})})
    assert page.lines[0].text == "Board"
    assert glasses.told() == [b"\x02" + encode({ToPhone.DASHBOARD: encode({1: 3, 2: 2})})]
    glasses.say({ToGlasses.CLEAR_DASHBOARD: encode({1: 3})})
    assert glasses.say({ToGlasses.DASHBOARD_TRIGGER: encode({1: 3, 2: 3})}) == []


def test_the_queue_is_said_and_emptied_by_the_commit():
    glasses = Glasses()
    glasses.say({ToGlasses.TEXT: encode({1: "x", 5: 48})})
    glasses.say({ToGlasses.QUEUE_STATUS: b""})
    glasses.say({ToGlasses.COMMIT: b""})
    glasses.say({ToGlasses.QUEUE_STATUS: b""})
    counts = [Message(packet[1:]).message(ToPhone.QUEUE).integer(1) for packet in glasses.told()]
    assert counts == [1, 0]


@pytest.mark.parametrize(
    ("wire", "commands"),
    [
        ("18", [ClearPage()]),
        ("04 01 00 7b 7d", []),
        ("02 b2 02 02 08 01", [SetBrightness(auto=True)]),
        ("02 b2 02 00", []),
        ("02 ea 02 02 08 09", []),
        ("02 ea 02 02 08 03", [SetDisplayPosition(3, 5)]),
        ("02 e2 03 00", [Restart()]),
        ("02 52 00", []),
        ("02 6a 00", []),
        ("02 ea 03 00", []),
        ("02 ca 07 02 08 01", []),
    ],
    ids=str,
)
def test_each_packet_of_the_applications_is_taken(wire, commands):
    assert Glasses().take(wire) == commands


def test_the_angle_of_the_head_is_said():
    glasses = Glasses()
    glasses.take("02 72 00")
    assert glasses.told() == [bytes.fromhex("02 6a 00")]


@pytest.mark.parametrize(("dialect", "ping"), [(B, "02 7a 04 0a 02 70 31"), (PRIME, "02 7a 00")])
def test_glasses_ping_every_half_minute(dialect, ping):
    glasses = Glasses(dialect)
    glasses.take("02 5a 00")
    glasses.told()
    assert glasses.codec.next_timer() == 30.0
    glasses.codec.handle_timer(30.0)
    assert glasses.told() == [bytes.fromhex(ping)]


def test_in_schema_a_the_numbers_of_schema_b_mean_nothing():
    glasses = Glasses(A)
    for number in (ToGlasses.QUEUE_STATUS, ToGlasses.VAD_STATUS, ToGlasses.VERSION):
        assert glasses.say({number: b""}) == []
    assert glasses.told() == []


# ------------------------------------------------------------------ JSON of the older specification


def said(name, **fields):
    return b"\x01" + json.dumps({"type": name, **fields}).encode()


EVENTS = [
    (said("battery_status", level=82, charging=False), [BatteryChanged(82)]),
    (said("battery_status", level=82, charging=True), [BatteryChanged(82, charging=True)]),
    (said("battery_status"), [BatteryChanged(0)]),
    (said("head_gesture", gesture="nod"), [Gestured(Gesture.NOD)]),
    (said("head_gesture", gesture="HEAD_UP"), [Gestured(Gesture.HEAD_UP)]),
    (said("head_gesture", gesture=3), [Gestured(Gesture.HEAD_DOWN)]),
    (
        said("imu_data", accel=[0, 0, 9.5], gyro={"x": 1, "y": 2, "z": 3}),
        [MotionRead((0.0, 0.0, 9.5), (1.0, 2.0, 3.0), (0.0, 0.0, 0.0))],
    ),
    (said("head_position", angle=20), []),
    (said("vad_event", state="active"), []),
    (said("something_new", x=1), []),
]


@pytest.mark.parametrize(("packet", "events"), EVENTS)
def test_events_in_json_are_read(packet, events):
    pair = Pair()
    pair.greet()
    pair.central._events._battery = None
    pair.tell(packet)
    assert pair.events() == events
    assert pair.refused == []


def test_a_button_in_json_is_that_of_the_older_schema():
    pair = Pair(dialect=OLD_JSON)
    pair.greet()
    pair.tell(said("button_event", button="left", state="down"))
    pair.tell(said("button_event", button="left", state="up"))
    assert pair.events() == [Gestured(Gesture.TAP, Side.LEFT)]


@pytest.mark.parametrize(
    "packet",
    [b"\x01", b"\x01{", b"\x01[]", b"\x01" + b"[" * 4000, said("x", pad="a" * 5000), b"\x01\xff"],
)
def test_json_that_is_none_is_a_violation(packet):
    pair = Pair()
    pair.greet()
    pair.tell(packet)
    assert len(pair.refused) == 1
    assert pair.ask(Ping()) == Done()


@pytest.mark.parametrize(
    "packet",
    [
        said("battery_status", level="many"),
        said("battery_status", level=1e400),
        said("battery_status", level=-1),
        said("image_transfer_complete", stream_id=7, missing_chunks=[None, -1, "x"]),
        said("imu_data", accel=[1, 2], gyro="x"),
    ],
)
def test_values_in_json_that_are_none_are_left_out(packet):
    pair = Pair()
    pair.greet()
    pair.tell(packet)
    assert pair.refused == []


ORDERS = [
    (said("request_battery_state", msg_id="1"), [], "battery_status"),
    (said("request_glasses_info"), [], "device_info"),
    (said("request_head_position"), [], "head_position"),
    (said("ping"), [], "pong"),
    (said("set_head_up_angle", angle=20), [SetHeadUpAngle(20)], None),
    (said("set_brightness", value=50), [SetBrightness(50)], None),
    (said("set_display_height", height=2), [SetDisplayPosition(2, 5)], None),
]


@pytest.mark.parametrize(("packet", "commands", "answer"), ORDERS)
def test_orders_in_json_are_carried_out(packet, commands, answer):
    glasses = Glasses(OLD_JSON)
    assert glasses.take(packet) == commands
    kinds = [json.loads(each[1:])["type"] for each in glasses.told()]
    assert kinds == ([] if answer is None else [answer])


def test_the_microphone_is_switched_in_json():
    (order,) = Glasses(OLD_JSON).take(said("set_mic_state", enabled=True))
    assert isinstance(order, StartMicrophone)


def test_a_text_in_json_is_drawn_at_the_commit():
    glasses = Glasses(OLD_JSON)
    text = said("display_text", text="Hi", color="0xF800", font_code="0x11", x=20, y=260, size=48)
    assert glasses.take(text) == []
    (page,) = glasses.take(said("commit"))
    assert page.lines == (TextLine(0, "Hi"),)


def test_glasses_that_speak_json_are_greeted_and_shown_text_in_it():
    pair = Pair(dialect=OLD_JSON)
    assert pair.greet() == GlassesInfo("mentra_nex", "1.2.3", "", {}, {})
    assert pair.ask(HI) == Done()
    assert pair.done[-1].lines == HI.lines
    assert all(packet[0] == 1 for packet in pair.said)
    shown = [json.loads(packet[1:]) for packet in pair.said]
    (text,) = [each for each in shown if each["type"] == "display_text" and each["text"] == "Hi"]
    del text["msg_id"]
    place = {"x": 20, "y": 260, "size": 48}
    assert text == {"type": "display_text", "text": "Hi", "color": "0x2710", **place}
    with pytest.raises(CommandRefused, match="JSON for a packet"):
        pair.central.send(ShowPage("x", lines=(TextLine(0, "a" * 600),)), pair.now)


@pytest.mark.parametrize("words", [legacy.TO_GLASSES, legacy.TO_PHONE], ids=["down", "up"])
def test_every_message_in_json_survives_both_ways(words):
    for word in words:
        numbers = {number: 1 for _, number, kind in word.keys if kind not in ("s", "l", "v")}
        texts = {number: "002A" for _, number, kind in word.keys if kind == "s"}
        vector = encode({1: 1.0, 2: 2.0, 3: 3.0})
        vectors = {number: vector for _, number, kind in word.keys if kind == "v"}
        lists = {number: b"\x03\x04" for _, number, kind in word.keys if kind == "l"}
        whole = {**numbers, **texts, **vectors, **lists}
        body = encode(dict(sorted(whole.items())))
        packet = legacy.write(encode({word.field: body}), words)
        again = legacy.read(packet, words).message(word.field)
        assert {n: again.integer(n) for n in numbers} == numbers
        assert {n: again.text(n) for n in texts} == texts
        assert {n: again.data(n) for n in (*vectors, *lists)} == {**vectors, **lists}


def test_what_the_older_specification_lacks_is_not_said():
    assert legacy.write(encode({ToGlasses.VERSION: b""}), legacy.TO_GLASSES) is None
    assert legacy.write(b"", legacy.TO_PHONE) is None
    with pytest.raises(RemoteViolation):
        legacy.read(b"\x01null", legacy.TO_PHONE)
