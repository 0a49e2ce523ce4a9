"""What the glasses show by themselves: their services answer, and a host fills some of them."""

import pytest

from firmware_bridge.codecs.even_g2 import FILE_ANSWER, config, hub, own
from firmware_bridge.codecs.even_g2.answers import ArmFacts
from firmware_bridge.codecs.even_g2.hub import Cmd, Rect
from firmware_bridge.codecs.even_g2.peripheral import EvenG2Arm, Variant
from firmware_bridge.codecs.even_g2.picture import bmp
from firmware_bridge.codecs.even_g2.wire import Dialect, Kind, cut
from firmware_bridge.errors import CommandRefused, RemoteViolation
from firmware_bridge.messages import (
    App,
    BatteryChanged,
    CaseChanged,
    ClearPage,
    Done,
    Failed,
    Gesture,
    Gestured,
    Hello,
    Hiding,
    HidingChanged,
    PageClosed,
    SetClock,
    ShowNotification,
)
from firmware_bridge.own_commands import (
    CalendarEntry,
    DashboardLayout,
    GetMotion,
    MotionRead,
    Restart,
    SetCalendar,
    SetDashboard,
    SetDisplayPosition,
    SetNote,
    SetWeather,
    Sky,
)
from firmware_bridge.protobuf import Double, Message, encode
from tests.codecs.even_g2.pair import L, Pair, R, drain, page
from tests.codecs.even_g2.test_golden import SETTINGS, TIME, answers, arm, payload, rest

ENTER = "aa21250a01010720080110311a020802399f"
ASK = "aa21091e01010720080310652a16080010001800220e576861742069732032202b20323fc72b"
PLACE = "aa213e13010108200802220d080112064f66666963651a01029a79"
BEAT_0B = "aa212d0901010b2008ff0110385200f383"


def sent(sid: int, fields: dict, *, flag: int = 0x20, kind: Kind = Kind.HOST) -> list[str]:
    """Return a message that needs one packet as hexadecimal digits."""
    wire = encode(fields, zeros=False)
    return [each.hex() for each in cut(wire, kind, 7, sid, flag, max_packet=244)]


def said(glasses: EvenG2Arm, sid: int, fields: dict) -> tuple[str, str]:
    """Return service with flag, and the contents of the only answer to a message."""
    (answer,) = answers(glasses, *sent(sid, fields))
    return answer[6:10], answer[10:-4]


# ------------------------------------------------------------------ services of their own


@pytest.mark.parametrize(
    ("asked", "contents"),
    [
        (ENTER, "080110311a020802"),
        (ASK, "080310652a00"),
        (PLACE, "0802" + "2200"),
        (BEAT_0B, "08ff0110385200"),
    ],
)
def test_captured_messages_of_services_are_answered(asked, contents):
    if asked == PLACE:  # the number of a navigation may be absent: it is 0x2d here
        contents = "0802102d2200" if Message(payload(PLACE)).integer(2) else contents
    (answer,) = answers(arm(), asked)
    assert answer[6:10] == asked[12:14] + "00"
    assert answer[10:-4] == contents


@pytest.mark.parametrize(
    ("sid", "fields", "contents"),
    [
        (0x01, {1: 2, 2: 9, 4: {3: {2: {2: {1: 0, 2: 0}}}}}, "080110091a00"),
        (0x03, {1: 0, 2: 9, 3: {1: 1, 2: [{1: 0, 4: 4}]}}, "080110092200"),
        (0x04, {1: 1, 2: 9, 3: {1: 1, 2: 1}}, "080110091a0408011001"),
        (0x05, {1: 1, 2: 9, 3: {1: 1, 2: 3}}, "080110091a00"),
        (0x06, {1: 3, 2: 9, 5: {1: 1, 3: "x"}}, "08a60110096200"),
        (0x07, {1: 9, 2: 9, 11: {}}, "080910095a00"),
        (0x07, {1: 10, 2: 9, 13: {1: 1, 2: 32}}, "080a10096a0408011020"),
        (0x08, {1: 7, 5: {1: 1, 3: "High St"}}, "08072a00"),
        (0x08, {2: 9, 3: {}}, "10091a00"),
        (0x0A, {1: 2, 2: 9, 4: {1: "x"}}, "080210092200"),
        (0x0B, {1: 255, 2: 9, 10: {}}, "08ff0110095200"),
        (0x0C, {1: 2, 2: 9, 4: {1: 2, 2: 1, 3: {1: 90, 5: "x"}}}, "080210092200"),
        (0x0E, {1: 2, 2: 9, 4: {1: 1, 2: {1: 2, 3: 2.5}}}, "0802100922020801"),
        (0x10, {1: 1, 2: 9, 3: {1: 4}}, "080110091a020804"),
        (0x20, {2: 9, 3: {1: 1}}, "1009"),
        (0x20, {1: 1, 2: 9, 4: {}}, "080110092202080a"),
        (0x30, {1: 162, 2: 11, 10: {1: 1}}, "08a201100b5200"),
        (0x81, {1: 1, 2: 9, 3: {}}, "080110091a02085a"),
        (0x91, {1: 1, 2: 9, 3: {1: b"\1\2\3\4\5\6", 2: 1}}, "080110091a0a0a060102030405061001"),
    ],
)
def test_each_service_has_its_answer(sid, fields, contents):
    assert said(arm(), sid, fields) == (f"{sid:02x}00", contents)
    assert answers(arm(L), *sent(sid, fields)) == []


def test_unknown_services_are_ignored():
    glasses = arm()
    for sid in (0x0F, 0x90, 0xF0):
        (packet,) = cut(b"\xff\xff", Kind.HOST, 1, sid, 0x20, max_packet=244)
        assert answers(glasses, packet.hex()) == []


def test_firmware_is_refused_and_nothing_is_reset():
    for sid in (0xC0, 0xC3):
        (packet,) = cut(b"\0\1\2", Kind.HOST, 7, sid, 0, max_packet=244)
        glasses = arm()
        glasses.receive_packet(packet, 1.0)
        assert [each.hex() for each in glasses.packets_to_send(1.0)] == [f"aa1207000101{sid:02x}10"]
    for cmd, field in ((13, 12), (15, 14)):
        assert said(arm(), 0x80, {1: cmd, 2: 9, field: {}})[1] == f"080a10094a0408{cmd:02x}1008"


@pytest.mark.parametrize(("cmd", "field"), [(5, 4), (7, 6), (8, 7), (9, 8), (129, 129)], ids=str)
def test_a_link_is_configured(cmd, field):
    answer = Message(bytes.fromhex(said(arm(), 0x80, {1: cmd, 2: 9, field: {1: 1}})[1]))
    assert (answer.integer(1), answer.integer(2), answer.data(field)) == (cmd, 9, b"")
    assert answers(arm(L), *sent(0x80, {1: cmd, 2: 9, field: {1: 1}})) == []


def test_a_ring_is_connected():
    taken, notice = answers(arm(), *sent(0x80, {1: 6, 2: 9, 5: {1: 1, 2: b"\1\2\3\4\5\6"}}))
    assert taken[6:-4] == "8000080610092a00"
    assert notice[6:-4] == "800108062a02203e"


def test_a_heartbeat_comes_back_as_it_was():
    assert said(arm(), 0x80, {1: 14, 2: 9, 13: {1: 7}}) == ("8000", "080e10096a020807")
    beat = sent(0x80, {1: 14, 2: 9, 13: {}})
    assert len(answers(arm(L), *beat, *beat)) == 2, "a host may say the same twice"


def test_the_foreground_comes_as_a_notice_without_number():
    glasses = arm()
    assert said(glasses, 0x0D, {2: 9}) == ("0d01", "08011a00")
    assert answers(glasses, *sent(0xE0, PAGE)) != []
    assert said(glasses, 0x0D, {2: 9}) == ("0d01", "08011a0308e001")


PAGE = {1: 0, 2: 5, 3: {1: 1, 3: {3: 576, 4: 288, 9: 1, 10: "t1", 11: 1, 12: "Hi"}}}


def test_settings_come_exactly_as_in_the_example():
    facts = {"battery": 64, "brightness": 12, "vertical": 6, "depth": 0, "angle": 0}
    glasses = arm(**facts, firmware="2.2.6.10", wear_detection=False, head_up=False)
    asked = sent(0x09, {1: 2, 2: 33, 4: {1: 1}})
    assert answers(glasses, *asked) == [rest(SETTINGS)]


def test_a_piece_of_a_picture_is_answered_exactly_as_in_the_example():
    glasses = arm()
    body = {1: 2, 2: [], 3: [PAGE[3][3]], 4: [{3: 20, 4: 20, 5: 2, 6: "pic"}]}
    answers(glasses, *sent(0xE0, {1: 0, 2: 5, 3: body}))
    file = bmp(bytes(576 * 144), Rect(0, 0, 20, 20))
    assert len(file) == 358
    image = {1: 2, 2: "pic", 3: 1, 4: 358, 7: 358, 8: file}
    wire = encode({1: 3, 2: 0x85, 5: image}, zeros=False)
    packets = cut(wire, Kind.HOST, 7, 0xE0, 0x20, max_packet=244)
    (answer,) = answers(glasses, *(packet.hex() for packet in packets))
    assert answer == "1a0101e0000804108501321108021203706963180120e60238e6024004b9d6"


# ------------------------------------------------------------------ what a host fills


@pytest.mark.parametrize(
    "command",
    [
        SetDisplayPosition(0, 1),
        SetDisplayPosition(8, 9),
        *(SetDisplayPosition(height, 5) for height in range(9)),
        SetCalendar(()),
        SetCalendar((CalendarEntry("Tea", "16:00-17:00", "home"),)),
        SetCalendar((CalendarEntry("Tea", "16:00"), CalendarEntry("Ballet", "Tmr 08:00-09:00"))),
        SetNote(2, "Milk and bread"),
        SetNote(4),
        *(SetWeather(1_790_003_600, sky, -5) for sky in Sky),
        SetWeather(1_790_003_600, Sky.RAIN, 21, fahrenheit=True),
    ],
)
def test_what_a_host_fills_comes_through(command):
    pair = Pair().ready()
    assert pair.ask(command) == Done()
    assert pair.shown[-1] == command
    assert pair.refused == []


def test_the_weather_is_as_captured():
    pair = Pair().ready()
    pair.ask(SetWeather(1_790_003_600, Sky.SNOW, 3))
    body = pair.messages(sid=0x01)[-1].message(4).message(3).message(1).message(1)
    assert body.decimal(1) == 3.0
    assert (body.integer(2), body.integer(3), body.integer(4)) == (1, 9, 1_790_003_600_000)


def test_a_calendar_has_an_entry_in_each_message():
    pair = Pair().ready()
    day = 1_790_003_600 - 1_790_003_600 % 86_400
    pair.ask(SetClock(1_790_003_600))
    entries = ("16:00-17:30", "Tmr 08:00-09:00", "noon")
    pair.ask(SetCalendar(tuple(CalendarEntry("x", time, "there") for time in entries)))
    found = [each.message(4).message(3).message(2).message(3) for each in pair.messages(sid=0x01)]
    calendar = [each for each in found if 3 in each]
    assert [(each.integer(1), each.integer(2)) for each in calendar] == [(3, 1), (3, 2), (3, 3)]
    ends = [each.message(3).integer(5) - day for each in calendar]
    assert ends == [17 * 3600 + 1800, 86_400 + 9 * 3600, 86_400]


def test_a_calendar_may_be_numbered_from_zero():
    glasses = arm()
    for number in (0, 1):
        entry = {1: 2, 2: number, 3: {1: number, 2: f"e{number}"}, 4: 1}
        answers(glasses, *sent(0x01, {1: 2, 2: 9, 4: {3: {2: {3: entry}}}}))
    assert glasses._own._entries == {}


def test_a_note_is_added_then_changed_then_deleted():
    pair = Pair().ready()
    for note in (SetNote(1, "Milk", "2\nl"), SetNote(1, "Bread"), SetNote(1), SetNote(1, "Tea")):
        assert pair.ask(note) == Done()
    lists = [each.message(4) for each in pair.messages(sid=0x0C)]
    assert [each.integer(1) for each in lists] == [2, 3, 4, 2]
    assert [each.message(3).text(5) for each in lists] == ["Milk: 2 l", "Bread", "", "Tea"]


@pytest.mark.parametrize(
    "command",
    [SetDashboard(DashboardLayout.DUAL), Restart(), SetDisplayPosition(1, 1, preview=True)],
)
def test_what_is_not_known_is_refused(command):
    with pytest.raises(CommandRefused, match="unsupported"):
        Pair().ready().send(command)


def test_the_clock_may_be_set_as_by_the_vendor():
    pair = Pair(dialect=Dialect(utc=True)).ready()
    clock = SetClock(1_790_003_600, offset_s=3600)
    assert pair.ask(clock) == Done()
    (message,) = (each for each in pair.messages(sid=0x80) if each.integer(1) == config.TIME)
    body = Message(payload(TIME)).data(128)
    assert message.data(128) == body
    assert pair.shown == [SetClock(1_790_003_600)]
    west = config.setting(SetClock(1_790_000_000, offset_s=-6 * 3600), Dialect(utc=True))
    assert Message(encode(west.fields)).message(128).signed(2) == -24


def test_the_dashboard_gets_the_captured_layout_with_the_clock():
    pair = Pair().ready()
    pair.ask(SetClock(1_790_003_600, twelve_hour=True))
    body = pair.messages(sid=0x01)[-1].message(4).message(2)
    assert (body.integer(1), body.integers(3), body.integers(5)) == (4, [1, 2, 3], [1, 3, 2, 2])
    assert (body.integer(2), body.integer(4), body.integer(6), body.integer(7)) == (3, 4, 1, 1)


def test_a_notification_has_the_wearers_date():
    pair = Pair().ready()
    pair.ask(SetClock(1_790_007_200, offset_s=7200))
    pair.ask(ShowNotification(App("a", "A"), "t", "x", at=1_790_000_000))
    file = b"".join(packet[8:] for packet in pair.said[R] if packet[6] == 0xC5)
    assert b'"date":"20260921T161320"' in file
    assert b'"time_s":1790000000' in file


def test_the_start_of_a_session_switches_notifications_on():
    pair = Pair()
    pair.ask(Hello("t", "0"))
    (message,) = pair.messages(sid=0x04)
    assert (message.integer(1), message.message(3).integer(1), message.message(3).integer(2)) == (
        1,
        1,
        1,
    )


# ------------------------------------------------------------------ what the glasses report


def heard(pair: Pair, sid: int, fields: dict, *, side=R, flag: int = 1) -> list[object]:
    pair.heard.clear()
    pair.tell(side, *sent(sid, fields, flag=flag, kind=Kind.GLASSES))
    return pair.events()


def test_the_charge_of_the_case_is_asked_for_and_reported_once():
    pair = Pair()
    pair.ask(Hello("t", "0"))
    assert pair.events().count(CaseChanged(90, False)) == 1
    pair.run(for_s=130.0)
    assert pair.events().count(CaseChanged(90, False)) == 1
    assert heard(pair, 0x81, {1: 1, 3: {1: 40, 2: 1, 3: 1, 4: 1}}) == [CaseChanged(40, True)]
    assert heard(pair, 0x81, {1: 2, 3: {2: 1}}) == [CaseChanged(None, True)]


def test_settings_that_nobody_asked_for_are_read():
    pair = Pair().ready()
    facts = {1: 2, 4: {1: 1, 12: 33, 13: 1, 100: "custom"}}
    assert heard(pair, 0x09, facts, side=L) == [BatteryChanged(33, True, L)]
    assert heard(pair, 0x09, {1: 3, 5: {2: 1}}) == [HidingChanged(Hiding.SILENT, True)]


@pytest.mark.parametrize("flag", [0, 1, 6])
def test_events_come_with_any_flag(flag):
    pair = Pair().ready()
    assert heard(pair, 0xE0, {1: 2, 13: {3: {2: 2}}}, flag=flag) == [Gestured(Gesture.TAP)]


def test_a_page_in_the_background_is_hidden():
    pair = Pair().ready()
    assert heard(pair, 0xE0, {1: 2, 13: {3: {1: 5}}}) == [HidingChanged(Hiding.DASHBOARD, True)]
    assert heard(pair, 0xE0, {1: 2, 13: {3: {1: 4}}}) == [HidingChanged(Hiding.DASHBOARD, False)]


@pytest.mark.parametrize(
    ("sid", "fields"),
    [
        (0x01, {1: 3, 6: {1: 2, 3: 80}}),
        (0x06, {1: 164, 10: {1: 2}}),
        (0x07, {1: 1, 3: {1: 1}}),
        (0x05, {1: 161, 4: {1: 1}}),
        (0x80, {1: 6, 5: {4: 62}}),
        (0x80, {1: 10, 9: {1: 99, 2: 8}}),
        (0xE0, {1: 17, 20: {1: 7}}),
        (0xE0, {1: 11, 16: {1: 1, 3: "x"}}),
        (0xE0, {1: 14}),
        (0x0F, {1: 1}),
        (0x55, {9: {9: 9}}),
    ],
)
def test_other_reports_are_taken_without_harm(sid, fields):
    pair = Pair().ready()
    assert heard(pair, sid, fields) == []
    assert pair.refused == []


def test_files_that_nobody_asked_for_are_ignored():
    pair = Pair().ready()
    for sid in (0xC4, 0xC6, 0xC7):
        answer = cut(b"\0\0\7", Kind.GLASSES, 7, sid, 0, max_packet=244)
        pair.tell(R, *answer, channel=FILE_ANSWER)
    assert pair.refused == []


def test_bytes_after_those_announced_are_ignored():
    pair = Pair().ready()
    (packet,) = sent(0xE0, {1: 2, 13: {3: {2: 1}}}, flag=1, kind=Kind.GLASSES)
    pair.tell(R, packet + "00ff")
    assert pair.events() == [Gestured(Gesture.TAP, R)]


# ------------------------------------------------------------------ motion, charge, lists


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("fields", [(22, 20), (22,), (20,)])
def test_motion_is_read_once(fields, wide):
    pair = Pair(variant=Variant(motion_fields=fields, wide_motion=wide)).ready()
    assert pair.ask(GetMotion()) == Done()
    assert pair.arms[R].moving
    for x in (0.5, 1.0):
        pair.event(MotionRead((x, -1.0, 0.25)))
    pair.run(for_s=1.0)
    assert pair.events() == [MotionRead((0.5, -1.0, 0.25))]
    assert not pair.arms[R].moving
    assert pair.ask(GetMotion()) == Done()
    pair.event(MotionRead((2.0, 0.0, 0.0)))
    assert MotionRead((2.0, 0.0, 0.0)) in pair.events()


def test_motion_of_64_bits_is_8_bytes_each():
    wire = encode({1: 2, 13: {3: {1: 8, 3: {1: Double(0.5)}}}}, zeros=False)
    assert wire.hex().endswith("1a0909" + "000000000000e03f")


def test_charging_ends_the_page_and_that_is_noticed():
    pair = Pair().ready()
    pair.ask(page("Hi"))
    pair.event(BatteryChanged(50, charging=True))
    assert pair.arms[R].page is None
    pair.run(for_s=12.0)
    assert ClearPage() in pair.shown
    assert PageClosed() in pair.events()
    assert pair.ask(page("Ho")) == Done()


def test_a_list_reports_what_was_chosen():
    glasses = arm()
    entries = {1: 2, 4: ["Yes", "No"]}
    lists = {3: 200, 4: 144, 9: 2, 10: "l1", 11: entries, 12: 1}
    answers(glasses, *sent(0xE0, {1: 0, 2: 5, 3: {1: 1, 2: [lists]}}))
    glasses.send(Gestured(Gesture.TAP, R), 1.0)
    (packet,) = glasses.packets_to_send(1.0)
    event = Message(packet[8:-2]).message(13).message(1)
    assert (event.integer(1), event.text(2), event.text(3)) == (2, "l1", "Yes")


def test_a_host_that_beats_every_ten_seconds_keeps_its_page():
    glasses = arm()
    answers(glasses, *sent(0xE0, PAGE))
    (beat,) = sent(0xE0, {1: 12, 2: 9, 14: {}})
    for at in (11.0, 21.1, 31.2):
        glasses.handle_timer(at)
        glasses.receive_packet(bytes.fromhex(beat), at)
    assert glasses.page is not None
    glasses.handle_timer(42.0)
    assert glasses.page is None


def test_a_refused_part_of_the_dashboard_is_refused():
    pair = Pair().ready()
    pair.reply = lambda _command: Failed("busy")
    for command in (SetWeather(1, Sky.RAIN, 1), SetNote(1, "x"), SetDisplayPosition(1, 1)):
        assert isinstance(pair.ask(command), Failed)


def test_a_damaged_dashboard_is_refused():
    for content in ({1: {1: {1: 2.0, 3: 99}}}, {1: {1: {1: float("nan")}}}, {2: {3: {1: 99}}}):
        glasses = arm()
        (packet,) = sent(0x01, {1: 2, 2: 9, 4: {3: content}})
        with pytest.raises(RemoteViolation, match=r"weather|calendar"):
            glasses.receive_packet(bytes.fromhex(packet), 1.0)
        assert drain(glasses) == []


def test_the_facts_of_an_arm_are_read_back():
    facts = ArmFacts(vertical=3, depth=2)
    assert own.read_position(facts.vertical, facts.depth) == SetDisplayPosition(2, 9)
    assert hub.BODY[Cmd.MOTION] == 22
