"""What only an Even G1 does by itself, over both arms: height and depth, dashboard, notes,
translation, navigation, restart; and whatever bytes come instead.
"""

from contextlib import suppress

import pytest
from hypothesis import given, settings, strategies as st

from firmware_bridge.codecs.even_g1.peripheral import EvenG1Arm
from firmware_bridge.codecs.even_g1.position import PREVIEW_S
from firmware_bridge.codecs.even_g1.scheduler import TRIES
from firmware_bridge.codecs.even_g1.wire import Dialect
from firmware_bridge.errors import CommandRefused, RemoteViolation
from firmware_bridge.messages import (
    MAX_VOICE_NOTE_BYTES,
    App,
    BatteryChanged,
    ButtonReleased,
    CaseChanged,
    ClearPage,
    Done,
    Failed,
    Gesture,
    Gestured,
    Hiding,
    HidingChanged,
    RunningAppChanged,
    ShowNotification,
    ShowPage,
    TextLine,
    Tile,
    VoiceNote,
    VoiceNoteFetched,
    VoiceNotesChanged,
)
from firmware_bridge.own_commands import (
    CalendarEntry,
    ClearNotification,
    DashboardLayout,
    DashboardPane,
    DashboardSeen,
    DeleteVoiceNote,
    EndNavigation,
    FetchVoiceNote,
    GetRunningApp,
    Navigate,
    Restart,
    SetCalendar,
    SetDashboard,
    SetDisplayPosition,
    SetHeadUpAction,
    SetLanguage,
    SetMap,
    SetNote,
    SetWeather,
    ShowRoute,
    ShowTranslation,
    Sky,
    StartTranslation,
    Turn,
)
from tests.codecs.g1_own_golden import OWN_ASKED, OWN_SAID, OWN_TOLD
from tests.codecs.g1_pair import L, Pair, R, accepts, drain

HI = ShowPage("hi", lines=(TextLine(0, "Hi"),))
POSITION = SetDisplayPosition(3, 7)
MAP = Tile(0, 0, 296, 136, 1, bytes(range(37)) * 136)
ROUTE = Tile(0, 0, 136, 136, 1, b"\xff\x00\x0f" * 8 + bytes(17 * 136 - 24))
AHEAD = Navigate(Turn.STRAIGHT, "High St", "50 m")


@pytest.fixture
def pair():
    pair = Pair()
    pair.greet()
    return pair


def hexes(packets):
    return [packet.hex(" ").upper() for packet in packets]


# ------------------------------------------------------------------ height and depth


def test_a_position_is_shown_and_kept_five_seconds_later_on_both_arms(pair):
    """§5 26 sub 02: preview 1, and about 5 s later preview 0 (GB)."""
    begun = pair.now
    assert isinstance(pair.ask(POSITION), Done)
    assert pair.now - begun >= PREVIEW_S == 5
    for side in (L, R):
        assert hexes(pair.said[side]) == ["26 08 00 01 02 01 03 07", "26 08 00 02 02 00 03 07"]
        assert pair.shown[side] == [SetDisplayPosition(3, 7, preview=True), POSITION]
        arm = pair.arms[side]
        arm.receive_packet(b"\x3b", pair.now)
        assert arm.packets_to_send(pair.now)[-1][:4] == bytes.fromhex("3BC90307")


def test_a_preview_is_answered_at_once_and_nothing_is_kept(pair):
    assert isinstance(pair.ask(SetDisplayPosition(3, 7, preview=True), for_s=1), Done)
    pair.run(for_s=2 * PREVIEW_S)
    assert [packet[5] for packet in pair.said[L] if packet[0] == 0x26] == [1]


def test_a_newer_position_replaces_one_that_is_shown(pair):
    first = pair.central.send(POSITION, pair.now)
    pair.run(for_s=1)
    assert isinstance(pair.ask(SetDisplayPosition(8, 1)), Done)
    assert pair.answer(first) == Failed("interrupted", "a newer position replaced it")
    kept = [packet[6:8] for packet in pair.said[R] if packet[0] == 0x26 and not packet[5]]
    assert kept == [b"\x08\x01"]


def test_an_arm_that_refuses_a_position_keeps_the_old_one(pair):
    pair.reply = accepts()
    assert pair.ask(POSITION) == Failed("busy", "the left side refused")
    assert len(pair.shown[L]) == TRIES
    assert pair.shown[R] == []
    pair.run(for_s=2 * PREVIEW_S)
    assert all(packet[5] == 1 for packet in pair.said[L] if packet[0] == 0x26)


def test_an_arm_that_was_away_gets_the_position_when_it_returns(pair):
    pair.news(R, up=False)
    assert pair.ask(POSITION) == Done()
    assert pair.shown == {L: [SetDisplayPosition(3, 7, preview=True), POSITION], R: []}
    pair.news(R, up=True)
    pair.run(for_s=2 * PREVIEW_S)
    assert pair.shown[R] == [SetDisplayPosition(3, 7, preview=True), POSITION]
    assert len(pair.shown[L]) == 2, "the other arm notices nothing"
    pair.news(R, up=False)
    pair.news(R, up=True)
    pair.run(for_s=2 * PREVIEW_S)
    assert len(pair.shown[R]) == 2, "and it is shown once"


def test_a_position_that_neither_arm_kept_does_not_come_back(pair):
    pair.reply = lambda _side, command: Done() if command.preview else Failed("refused")
    assert pair.ask(POSITION) == Failed("busy", "the left side refused")
    pair.news(R, up=False)
    pair.shown[R].clear()
    pair.news(R, up=True)
    pair.run(for_s=2 * PREVIEW_S)
    assert pair.shown[R] == []


def test_the_values_of_a_position_are_bounded():
    for height, depth in ((9, 5), (-1, 5), (4, 0), (4, 10)):
        with pytest.raises(ValueError, match=r"outside \d…\d"):
            SetDisplayPosition(height, depth)


# ------------------------------------------------------------------ dashboard


def test_a_map_goes_in_28_packets_of_at_most_189_bytes(pair):
    """§9 sub 07: 28 chunks of 180 bytes, packets of at most BD (WK-cap)."""
    assert isinstance(pair.ask(SetMap(MAP)), Done)
    packets = pair.said[L]
    assert [len(packet) for packet in packets] == [189] * 27 + [9 + 176]
    assert hexes(packet[:9] for packet in packets[:2]) == [
        "06 BD 00 01 07 1C 00 01 00",
        "06 BD 00 02 07 1C 00 02 00",
    ]
    assert packets[0][9:13] == bytes.fromhex("00040201")
    assert pair.shown == {L: [SetMap(MAP)], R: [SetMap(MAP)]}


def test_a_smaller_map_lies_where_it_was_placed(pair):
    pair.ask(SetMap(Tile(280, 134, 13, 2, 1, b"\xff\xf8\x80\x08")))
    (seen,) = pair.shown[L]
    rows = [seen.picture.pixels[at : at + 37] for at in range(0, 37 * 136, 37)]
    assert rows[134:] == [bytes(35) + b"\xff\xf8", bytes(35) + b"\x80\x08"]
    assert not any(map(any, rows[:134]))
    pair.ask(ShowRoute(Tile(4, 1, 8, 1, 1, b"\x99"), Tile(0, 0, 8, 1, 1, b"\xf0")))
    route = pair.shown[L][-1]
    assert route.picture.pixels[:20] == bytes(17) + b"\x09\x90\x00"
    assert route.overlay.pixels[:2] == b"\xf0\x00"


def test_a_long_calendar_goes_in_several_packets(pair):
    entries = tuple(CalendarEntry(f"{n}" * 90, "12:30", "Café") for n in range(8))
    assert isinstance(pair.ask(SetCalendar(entries)), Done)
    assert len(pair.said[L]) == 5
    assert pair.shown == {L: [SetCalendar(entries)], R: [SetCalendar(entries)]}


@pytest.mark.parametrize(
    ("command", "refusal"),
    [
        (SetMap(), "06 0C 00 01 07 01 00 01 00 01"),
        (SetNote(1), "1E CA" + " 00" * 18),
        (AHEAD, "0A CA" + " 00" * 18),
        (SetDisplayPosition(1, 1, preview=True), "26 06 00 01 02 CA"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_the_glasses_refuse_is_refused_in_the_form_of_their_answers(pair, command, refusal):
    pair.reply = accepts(R)
    assert isinstance(pair.ask(command), Failed)
    assert hexes(pair.told[L])[-1] == refusal


def test_a_refused_piece_of_the_dashboard_is_a_refusal(pair):
    pair.air = lambda _side, way, packet: (
        [packet[:-1] + b"\1"] if way == "up" and packet[0] == 0x06 else [packet]
    )
    assert pair.ask(SetMap()) == Failed("busy", "the left side refused")


def test_a_generic_refusal_counts_for_the_dashboard_too(pair):
    pair.air = lambda _side, way, packet: (
        [b"\x06\xca" + bytes(18)] if way == "up" and packet[0] == 0x06 else [packet]
    )
    assert pair.ask(SetMap()) == Failed("busy", "the left side refused")


@pytest.mark.parametrize(
    ("command", "detail"),
    [
        (SetMap(Tile(1, 0, 296, 136, 1, MAP.pixels)), "296 × 136 at 1, 0; .* within 296 × 136"),
        (SetMap(arrow=MAP), "an? arrow of 296 × 136; it must be 32 × 32"),
        (ShowRoute(MAP), "a map of 296 × 136 at 0, 0; it must be within 136 × 136"),
        (StartTranslation("en", "sv"), "does not know 'sv'; zh, en"),
        (SetNote(1, "t", "x" * 300), "a note of 301 bytes; 230 fit"),
        (Navigate(Turn.LEFT, "x" * 240), "the texts of a turn have 255 bytes; 244 fit"),
        (ShowTranslation("x" * 300), "a translation of 300 bytes; 236 fit"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_does_not_fit_is_refused_and_says_what_would(pair, command, detail):
    with pytest.raises(CommandRefused, match=detail):
        pair.central.send(command, pair.now)
    pair.run()
    assert pair.said == {L: [], R: []}


# ------------------------------------------------------------------ notifications


def test_the_newest_notification_is_cleared_without_a_number(pair):
    with pytest.raises(CommandRefused, match="no notification was shown"):
        pair.central.send(ClearNotification(), pair.now)
    for _ in range(2):
        pair.ask(ShowNotification(App("a", "A"), "t", "x"))
    pair.ask(ClearNotification())
    assert pair.shown[L][-1] == ClearNotification(2)
    pair.ask(ShowNotification(App("a", "A"), "t", "x", number=77))
    pair.ask(ClearNotification())
    assert pair.shown[L][-2:] == [
        ShowNotification(App("a", "A"), "t", "x", number=77),
        ClearNotification(77),
    ]
    assert pair.shown[R] == []


# ------------------------------------------------------------------ notes


def sound(note, count, index, data):
    head = bytes((0x1E, 10 + len(data), 0, index, 2))
    return head + bytes((count, 0, index, 0, note)) + data


def test_a_spoken_note_is_fetched_from_the_right_arm_and_joined(pair):
    notes = {3: bytes(range(256)) * 4}

    def reply(_side, command):
        pair.arms[R].send(VoiceNoteFetched(command.note, notes[command.note]), pair.now)
        return Done()

    pair.reply = reply
    assert isinstance(pair.ask(FetchVoiceNote(3)), Done)
    assert hexes(pair.said[R]) == ["1E 06 00 01 02 03"]
    assert pair.said[L] == []
    assert pair.events() == [VoiceNoteFetched(3, notes[3])]
    first = pair.told[R][0]
    assert hexes([first[:10]]) == ["1E F4 00 01 02 05 00 01 00 03"]


def test_doubled_packets_of_a_spoken_note_do_no_harm_and_lost_ones_lose_it(pair):
    pieces = [sound(1, 3, index, bytes((index,)) * 5) for index in (1, 2, 3)]
    pair.tell(R, pieces[0], pieces[1], pieces[1], pieces[2])
    assert pair.events() == [VoiceNoteFetched(1, b"\1" * 5 + b"\2" * 5 + b"\3" * 5)]
    pair.tell(R, pieces[0], pieces[2])
    assert len(pair.refused) == 1
    pair.tell(R, *pieces)
    assert len(pair.events()) == 2


def test_a_list_of_more_spoken_notes_than_fit_is_refused(pair):
    pair.tell(R, bytes((0x21, 11, 1, 0, 1, 29)) + bytes(29 * 9))
    assert [violation.reason for violation in pair.refused] == ["oversized"]
    assert pair.events() == []


def test_packets_of_two_spoken_notes_are_not_mixed(pair):
    pair.tell(R, sound(1, 2, 1, b"a"), sound(2, 2, 2, b"b"))
    assert pair.events() == []
    assert len(pair.refused) == 1


def test_a_spoken_note_without_end_is_stopped(pair):
    piece = bytes(240)
    for index in range(1, MAX_VOICE_NOTE_BYTES // 240 + 2):
        head = b"\x1e\xfa\0\0\2\xff\x1f" + index.to_bytes(2, "little") + b"\1"
        pair.tell(R, head + piece)
    assert [violation.reason for violation in pair.refused] == ["oversized"]
    pair.tell(R, b"\x1e\x0b\0\0\2\xff\xff\1\0\1" + b"a")
    assert pair.refused[-1].reason == "bad_order", "so many packets has none"


def test_a_note_that_is_not_there_is_refused(pair):
    pair.reply = accepts()
    assert pair.ask(FetchVoiceNote(9)) == Failed("busy", "the right side refused")
    assert pair.ask(DeleteVoiceNote(9)) == Failed("busy", "the right side refused")
    assert pair.shown[R] == [FetchVoiceNote(9)] * TRIES + [DeleteVoiceNote(9)] * TRIES


def test_sound_of_a_spoken_note_is_no_answer_to_a_written_one(pair):
    pair.air = lambda _side, way, packet: [] if way == "up" else [packet]
    number = pair.central.send(SetNote(1, "t"), pair.now)
    pair.run(for_s=0.1)
    pair.tell(L, sound(1, 2, 1, b"a"), sound(0, 2, 1, b"a"))
    pair.run(for_s=0.3)
    assert (len(pair.said[L]), pair.said[R]) == (1, []), "the left arm has not answered"
    pair.tell(L, bytes.fromhex("1E 0F 00 01 03 01 00 01 00 00"))
    pair.run(for_s=0.1)
    assert len(pair.said[R]) == 1
    assert pair.answer(number) is None


def test_deleting_a_spoken_note_is_answered(pair):
    assert isinstance(pair.ask(DeleteVoiceNote(2)), Done)
    assert hexes(pair.said[R]) == ["1E 06 00 01 04 02"]


# ------------------------------------------------------------------ translation and navigation


def test_translation_begins_as_its_host_begins_it(pair):
    """§12 translate (FP)."""
    assert isinstance(pair.ask(StartTranslation("en", "nl")), Done)
    screen = ["1C 00 02 09", "0F 01 01 00 00 00 00 0D", "0D 02 01 00 00 00 00 0D"]
    assert hexes(pair.said[L]) == ["39 05 00 00 13", *screen]
    assert hexes(pair.said[R]) == ["39 05 00 00 13", "50 06 00 00 01 01", *screen]
    for packets in pair.said.values():
        packets.clear()
    assert isinstance(pair.ask(ShowTranslation("Hi", "Hoi")), Done)
    lines = ["0F 03 01 00 00 00 20 0D 48 69", "0D 04 01 00 00 00 20 0D 48 6F 69"]
    assert [hexes(pair.said[side]) for side in (L, R)] == [lines, lines]
    assert pair.shown[L] == [
        StartTranslation("en", "nl"),
        ShowTranslation("Hi"),
        ShowTranslation(translated="Hoi"),
    ]


def test_a_page_that_was_under_a_translation_does_not_return(pair):
    pair.ask(HI)
    pair.ask(StartTranslation("en", "fr"))
    pair.news(R, up=False)
    pair.shown[R].clear()
    pair.news(R, up=True)
    pair.run()
    assert pair.shown[R] == []


def test_navigation_begins_once_and_again_after_something_else(pair):
    def starts():
        return sum(packet[0] == 0x0A and packet[4] == 0 for packet in pair.said[L])

    pair.ask(AHEAD)
    pair.ask(AHEAD)
    assert starts() == 1
    for between in (HI, ClearPage(), EndNavigation()):
        before = starts()
        pair.ask(between)
        pair.ask(AHEAD)
        pair.ask(AHEAD)
        assert starts() == before + 1


def test_navigation_begins_again_for_an_arm_that_returned_or_refused(pair):
    pair.ask(AHEAD)
    pair.news(R, up=False)
    pair.news(R, up=True)
    pair.said[R].clear()
    pair.ask(AHEAD)
    assert [packet[4] for packet in pair.said[R] if packet[0] == 0x0A] == [0, 1]
    pair.reply = accepts()
    assert isinstance(pair.ask(AHEAD), Failed)
    pair.reply = accepts(L, R)
    pair.said[R].clear()
    pair.ask(AHEAD)
    assert [packet[4] for packet in pair.said[R]] == [0, 1]


@pytest.mark.parametrize(
    ("turn", "left", "code"),
    [
        (Turn.DOT, False, 0x01),
        (Turn.RIGHT, False, 0x03),
        (Turn.U_TURN_LEFT, False, 0x09),
        (Turn.MERGE, True, 0x0B),
        (Turn.ROUNDABOUT_SHARP_RIGHT, False, 0x0C),
        (Turn.ROUNDABOUT_SHARP_RIGHT, True, 0x0D),
        (Turn.ROUNDABOUT_EXIT, True, 0x1F),
        (Turn.RAMP_RIGHT, False, 0x20),
        (Turn.FORK_LEFT, False, 0x23),
    ],
)
def test_turns_have_the_codes_of_the_sheet(pair, turn, left, code):
    """§12 turn codes 01..23h (FP)."""
    pair.ask(Navigate(turn, left_traffic=left))
    assert pair.said[L][-1][5] == code


def test_a_route_is_sent_as_runs_of_its_bits(pair):
    """§12 primary picture: run-length pairs (count, bit), 185 bytes per packet (FP)."""
    assert isinstance(pair.ask(ShowRoute(ROUTE, ROUTE)), Done)
    packets = [packet for packet in pair.said[L] if packet[4] == 2]
    assert packets[0][9:17] == bytes.fromhex("08 01 0C 00 0C 01 0C 00")[:8]
    assert {len(packet) for packet in packets[:-1]} <= {9 + 185}
    numbers = [packet[3] for packet in pair.said[L]]
    assert numbers == list(range(1, len(numbers) + 1)), "seq grows with every packet"
    assert pair.shown[R] == [ShowRoute(ROUTE, ROUTE)]


@pytest.mark.parametrize("runs", ["08 01 08 00", "FF 01 FF", "FF 02", ""])
def test_runs_that_are_not_two_pictures_are_refused(runs):
    arm = EvenG1Arm(L, max_packet=244)
    with pytest.raises(RemoteViolation, match="not two pictures"):
        arm.receive_packet(bytes.fromhex("0A 0D 00 01 02 01 00 01 00" + runs), 0.0)
    assert arm.packets_to_send(0.0) == [b"\x0a\xca" + bytes(18)]


def test_a_route_that_is_all_dots_is_too_big(pair):
    noisy = Tile(0, 0, 136, 136, 1, b"\xaa" * (17 * 136))
    with pytest.raises(CommandRefused, match="fit at this MTU"):
        pair.central.send(ShowRoute(noisy, noisy), pair.now)


@pytest.mark.requirement("I4-g1-conflicts")
def test_glasses_that_answer_no_function_are_not_given_up(pair):
    """§12: the host that has them waits for nothing (FP)."""
    pair = Pair(glasses=Dialect(functions_answered=False))
    pair.greet()
    for command in (
        AHEAD,
        ShowRoute(ROUTE, ROUTE),
        EndNavigation(),
        StartTranslation("en", "fr"),
        ShowTranslation("Hi", "Salut"),
    ):
        assert pair.ask(command, for_s=8.0) is not None, "within the patience of a tool"
        assert all(pair.shown[side][-1] != HI for side in (L, R))
    assert (pair.given_up, pair.refused) == ([], [])
    assert isinstance(pair.ask(HI), Done)


def test_a_map_of_navigation_is_not_slowed_by_answers(pair):
    stripes = Tile(0, 0, 136, 136, 1, (b"\xf0" * 17 + bytes(17)) * 68)
    begun = pair.now
    number = pair.central.send(ShowRoute(stripes, stripes), pair.now)
    pair.run(for_s=5, until=lambda: pair.answer(number) is not None)
    pieces = [packet for packet in pair.said[L] if packet[4] == 2]
    assert len(pieces) > 40
    assert pair.now - begun < 2 * len(pieces) * 0.012, "8 ms a packet, on each arm"


def test_navigation_begins_again_when_the_wearer_left_it(pair):
    """§15 00: double tap, leave feature (ED)."""
    pair.ask(AHEAD)
    pair.tell(R, b"\xf5\x00")
    pair.said[L].clear()
    pair.ask(AHEAD)
    assert [packet[4] for packet in pair.said[L]] == [0, 1]
    pair.ask(StartTranslation("en", "fr"))
    pair.said[L].clear()
    pair.ask(AHEAD)
    assert [packet[4] for packet in pair.said[L]] == [0, 1]


@pytest.mark.parametrize(
    ("texts", "heard"),
    [
        (b"5 min\x00400 m\0High St\x0050 m\x004 km/h", "4 km/h"),
        (b"5 min\x00400 m\0High St\x0050 m\0", ""),
        (b"5 min\x00400 m\0High St\x0050 m\x004 km/h\0more\0", "4 km/h"),
    ],
    ids=["without-the-last-nul", "without-speed", "a-sixth-text"],
)
def test_a_turn_may_lack_what_is_last_and_have_more(texts, heard):
    arm = EvenG1Arm(L, max_packet=244)
    arm.receive_packet(b"\x0a\x2a\0\1\1\3\0\0\0\0" + texts, 0.0)
    (said,) = drain(arm)
    assert said.message == Navigate(Turn.RIGHT, "High St", "50 m", "5 min", "400 m", heard)


def test_a_turn_of_an_unknown_code_keeps_its_texts():
    arm = EvenG1Arm(L, max_packet=244)
    arm.receive_packet(b"\x0a\x2a\0\1\1\x24\0\0\0\0a\0b\0High St\0d\0e\0", 0.0)
    assert drain(arm)[0].message == Navigate(Turn.DOT, "High St", "d", "a", "b", "e")


@pytest.mark.parametrize(
    ("body", "entries"),
    [
        ("02 01 01 41 01 01 42 02 01 43", (CalendarEntry("A"), CalendarEntry("B", "C"))),
        ("01 01 01 41 03 01 42 02 01 43", (CalendarEntry("A", "C", "B"),)),
        ("01 01 01 41 09 01 42 03 01 43", (CalendarEntry("A", "", "C"),)),
        ("01 01 01 41 02 01 43 03 00 00 00 00", (CalendarEntry("A", "C"),)),
        ("00", ()),
    ],
    ids=["without-place", "another-order", "a-field-more", "padded", "none"],
)
def test_calendar_entries_are_read_in_every_form(body, entries):
    arm = EvenG1Arm(L, max_packet=244)
    arm.receive_packet(bytes.fromhex("06 00 00 01 03 01 00 01 00 01 03 03" + body), 0.0)
    assert drain(arm)[0].message == SetCalendar(entries)


@pytest.mark.parametrize("body", ["01 01 05 41", "02 01 01 41", "01 02 01 41", "09 01 01 41"])
def test_a_damaged_calendar_is_refused(body):
    arm = EvenG1Arm(L, max_packet=244)
    with pytest.raises(RemoteViolation, match="06 03"):
        arm.receive_packet(bytes.fromhex("06 00 00 01 03 01 00 01 00 01 03 03" + body), 0.0)
    assert drain(arm) == []


# ------------------------------------------------------------------ the rest


@pytest.mark.parametrize(
    ("packet", "answer"),
    [
        ("26 08 00 05 02 01 04 0A", "26 06 00 05 02 CA"),
        ("06 07 00 08 06 00 09", "06 CA" + " 00" * 18),
        ("03 01", "03 CA" + " 00" * 18),
    ],
    ids=["depth-10", "pane-9", "silent-01"],
)
def test_values_that_no_source_has_are_refused_in_the_form_of_the_answer(packet, answer):
    """§5 26: reply 26 06 00 seq sub CA (WK); §3 generic."""
    arm = EvenG1Arm(L, max_packet=244)
    with pytest.raises(RemoteViolation):
        arm.receive_packet(bytes.fromhex(packet), 0.0)
    assert hexes(arm.packets_to_send(0.0)) == [answer]


@pytest.mark.parametrize("size", [201, 202, 203, 230])
def test_a_note_of_any_length_is_taken_although_its_length_is_in_the_answer(pair, size):
    """§3, §10: the answer begins 1E len, and C9, CA and CB are also lengths (WK-cap)."""
    assert isinstance(pair.ask(SetNote(1, "t", "x" * (size - 15))), Done)
    assert pair.told[L][-1][:2] == bytes((0x1E, size))
    assert len(pair.shown[R]) == len(pair.shown[L]) == 1


def test_charging_is_remembered_until_the_charge_is_known(pair):
    """§15 09, 0A."""
    pair = Pair(up=(L,), air=lambda *_: [])
    pair.tell(L, b"\xf5\x09\x01")
    assert pair.events()[1:] == []
    pair.tell(L, b"\xf5\x0a\x40")
    assert pair.events()[1:] == [BatteryChanged(64, charging=True, side=L)]


@pytest.mark.parametrize(("padded", "packet"), [(True, "F5 0F 32 00"), (False, "F5 0F 32")])
def test_the_case_is_told_in_four_bytes_or_three(padded, packet):
    """§15 0F: MA wants at least 4 bytes."""
    pair = Pair(glasses=Dialect(case_padded=padded))
    pair.greet()
    pair.arms[R].send(CaseChanged(50), pair.now)
    pair.run()
    assert hexes(pair.told[R]) == [packet]
    assert pair.events() == [CaseChanged(50)]


def test_looking_up_tells_what_is_seen_and_a_right_tap_turns_the_page(pair):
    """§9 status notifications (WK)."""
    pair.ask(SetDashboard(DashboardLayout.DUAL, DashboardPane.CALENDAR))
    pair.told[R].clear()
    for gesture in (Gesture.TAP, Gesture.HEAD_UP, Gesture.TAP, Gesture.HEAD_DOWN, Gesture.TAP):
        pair.arms[R].send(Gestured(gesture), pair.now)
    pair.run()
    assert hexes(pair.told[R]) == [
        "F5 01",
        "F5 02",
        "22 0A 00 00 01 00 00 01 03 00",
        "F5 01",
        "22 08 00 00 02 01 03 01",
        "F5 03",
        "F5 01",
    ]
    seen = [event for event in pair.events() if isinstance(event, DashboardSeen)]
    dual = DashboardLayout.DUAL, DashboardPane.CALENDAR
    assert seen == [DashboardSeen(*dual, 0, unread=0, low_power=False), DashboardSeen(*dual, 1)]


def test_looking_up_hides_nothing_where_it_opens_nothing(pair):
    pair.ask(SetHeadUpAction(dashboard=False))
    pair.arms[R].send(Gestured(Gesture.HEAD_UP), pair.now)
    pair.run()
    assert pair.events() == [Gestured(Gesture.HEAD_UP)]
    pair.ask(SetHeadUpAction(dashboard=True))
    pair.arms[R].send(Gestured(Gesture.HEAD_UP), pair.now)
    pair.run()
    assert HidingChanged(Hiding.LOOKED_UP, hidden=True) in pair.events()


def test_an_arm_that_was_away_gets_what_the_wearer_prefers(pair):
    pair.news(R, up=False)
    pair.ask(SetHeadUpAction(dashboard=True))
    pair.ask(SetLanguage("de"))
    pair.ask(SetHeadUpAction(dashboard=False))
    assert pair.shown[R] == []
    pair.news(R, up=True)
    pair.run()
    assert pair.shown[R] == [SetHeadUpAction(dashboard=False), SetLanguage("de")]
    assert len(pair.shown[L]) == 3, "the other arm notices nothing"


def test_the_list_lacks_a_spoken_note_that_was_deleted(pair):
    pair.arms[R].send(VoiceNotesChanged((VoiceNote(1, 5), VoiceNote(2, 6))), pair.now)
    pair.run()
    pair.ask(DeleteVoiceNote(2))
    assert pair.events()[-1] == VoiceNotesChanged((VoiceNote(1, 5),))


def test_a_calibration_is_confirmed_by_a_tap_with_the_next_number():
    """§5 10 (WK-cap)."""
    arm = EvenG1Arm(L, max_packet=244)
    arm.receive_packet(bytes.fromhex("10 05 00 04 01"), 0.0)
    for _ in range(2):
        arm.send(Gestured(Gesture.TAP), 0.0)
    padding = " 00" * 14
    assert hexes(arm.packets_to_send(0.0)) == [
        "10 06 00 04 01 C9" + padding,
        "F5 01",
        "10 06 00 05 01 C9" + padding,
        "F5 01",
    ]
    for packet in ("10 07 00 05 02 01 00", "10 07 00 0D 02 01 01"):
        arm.receive_packet(bytes.fromhex(packet), 0.0)
    arm.send(Gestured(Gesture.TAP), 0.0)
    assert len(arm.packets_to_send(0.0)) == 3, "what was acknowledged is over"


def test_an_arm_logs_only_while_its_log_is_on():
    """§5 23 6C; §15 F4 + NUL-ended ASCII (WK)."""
    arm = EvenG1Arm(L, max_packet=244)
    for packet in ("18", "23 6C 00", "18", "23 6C C1", "18"):
        arm.receive_packet(bytes.fromhex(packet), 0.0)
    logged = [packet for packet in arm.packets_to_send(0.0) if packet[0] == 0xF4]
    assert logged == [b"\xf4got 18\0"]


def test_how_long_notifications_stay_is_answered_as_it_was_set():
    """§5 4F, 3C C9 enabled seconds (WK)."""
    arm = EvenG1Arm(L, max_packet=244)
    arm.receive_packet(bytes.fromhex("4F 01 0C"), 0.0)
    arm.receive_packet(b"\x3c", 0.0)
    arm.receive_packet(bytes.fromhex("4F 00 0C"), 0.0)
    arm.receive_packet(b"\x3c", 0.0)
    answers = [packet[:4] for packet in arm.packets_to_send(0.0) if packet[0] == 0x3C]
    assert hexes(answers) == ["3C C9 01 0C", "3C C9 00 00"]


def test_the_running_function_is_told_before_the_answer(pair):
    pair.arms[L].facts.app = 0x13
    pair.arms[R].facts.app = 0x13
    assert isinstance(pair.ask(GetRunningApp()), Done)
    kinds = [type(incoming.message) for incoming in pair.heard]
    assert kinds == [RunningAppChanged, RunningAppChanged, Done]
    assert pair.events()[0] == RunningAppChanged(0x13)


def test_a_restart_is_not_answered_and_done_when_it_was_sent(pair):
    number = pair.central.send(Restart(), pair.now)
    pair.run(for_s=0.1)
    assert isinstance(pair.answer(number), Done)
    assert pair.told == {L: [], R: []}
    assert pair.shown == {L: [Restart()], R: [Restart()]}


def test_what_both_arms_say_of_the_case_is_told_once(pair):
    pair.tell(L, b"\xf5\x0f\x32", b"\xf5\x0e\x01")
    pair.tell(R, b"\xf5\x0f\x32", b"\xf5\x0e\x01")
    assert pair.events() == [CaseChanged(50), CaseChanged(50, charging=True)]
    pair.tell(R, b"\xf5\x0f\x65")
    assert [violation.reason for violation in pair.refused] == ["bad_message"]


def test_a_release_on_the_right_does_not_end_a_press_on_the_left(pair):
    pair.tell(L, b"\xf5\x17")
    pair.tell(R, b"\xf5\x12")
    assert pair.events() == [Gestured(Gesture.BUTTON_LONG, L)]
    pair.tell(L, b"\xf5\x18")
    pair.tell(R, b"\xf5\x12")
    assert pair.events()[1:] == [ButtonReleased(L), ButtonReleased(R)]


def test_what_an_arm_says_of_its_own_functions_is_understood(pair):
    events = [
        CaseChanged(40, charging=False),
        VoiceNotesChanged((VoiceNote(1, 1_700_000_000, 7), VoiceNote(2, 5))),
        VoiceNoteFetched(1, bytes(1000)),
        VoiceNoteFetched(2, b""),
        RunningAppChanged(3),
        ButtonReleased(R),
    ]
    for event in events:
        pair.arms[R].send(event, pair.now)
    pair.run()
    assert pair.events() == [CaseChanged(charging=False), *events]


# ------------------------------------------------------------------ any command, any bytes

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
COMMANDS = st.one_of(
    st.builds(SetDashboard, st.sampled_from(DashboardLayout), st.sampled_from(DashboardPane)),
    st.builds(
        SetWeather,
        st.integers(0, 2**32 - 1),
        st.sampled_from(list(Sky)[1:]),
        st.integers(-99, 99),
        st.booleans(),
        st.booleans(),
    ),
    st.builds(
        SetCalendar,
        st.lists(st.builds(CalendarEntry, WORDS, WORDS, WORDS), max_size=8).map(tuple),
    ),
    st.builds(
        lambda x, y, pixels: SetMap(arrow=Tile(x, y, 32, 32, 1, pixels)),
        st.integers(0, 65535),
        st.integers(0, 65535),
        st.binary(min_size=128, max_size=128),
    ),
    st.builds(SetNote, st.integers(1, 4), WORDS, WORDS),
    st.builds(ClearNotification, st.integers(1, 2**32 - 1)),
    st.builds(ShowTranslation, WORDS.filter(bool)),
    st.builds(
        Navigate,
        st.sampled_from(list(Turn)[:11]),
        *[WORDS] * 5,
    ),
    st.builds(Navigate, st.sampled_from(list(Turn)[11:21]), WORDS, left_traffic=st.booleans()),
)


@settings(max_examples=150, deadline=None)
@given(COMMANDS)
def test_any_command_arrives_as_it_was_sent(command):
    pair = Pair()
    pair.greet()
    assert isinstance(pair.ask(command), Done)
    arms = (L,) if isinstance(command, ClearNotification) else (L, R)
    for side in arms:
        assert pair.shown[side] == [command]
    assert pair.refused == []


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(OWN_SAID), st.integers(0, 200), st.integers(0, 255))
def test_a_damaged_packet_is_refused_or_means_something_and_the_arm_goes_on(golden, at, byte):
    for packet in golden.packets:
        arm = EvenG1Arm(L, max_packet=244)
        damaged = bytearray(packet)
        damaged[at % len(damaged)] = byte
        for each in (bytes(damaged), packet[: at % len(packet)]):
            with suppress(RemoteViolation):
                arm.receive_packet(each, 0.0)
            drain(arm)
            arm.packets_to_send(0.0)
        arm.receive_packet(b"\x18", 0.0)
        assert [incoming.message for incoming in drain(arm)] == [ClearPage()]


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([*(told.packet for told in OWN_TOLD), *(asked.answer for asked in OWN_ASKED)]),
    st.integers(0, 200),
    st.integers(0, 255),
)
def test_a_damaged_report_never_stops_the_pair(packet, at, byte):
    pair = Pair()
    pair.greet()
    damaged = bytearray(packet)
    damaged[at % len(damaged)] = byte
    pair.tell(R, bytes(damaged), packet[: at % len(packet)])
    assert isinstance(pair.ask(HI), Done)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([0x06, 0x0A, 0x0D, 0x0F, 0x1C, 0x1E, 0x21, 0x23, 0x26, 0x39, 0x4C]),
    st.binary(max_size=40),
)
def test_no_bytes_of_an_own_function_crash_an_arm_or_the_central(op, rest):
    packet = bytes((op,)) + rest
    arm = EvenG1Arm(R, max_packet=244)
    with suppress(RemoteViolation):
        arm.receive_packet(packet, 0.0)
    pair = Pair()
    pair.greet()
    pair.tell(L, packet)
    assert isinstance(pair.ask(HI), Done)
