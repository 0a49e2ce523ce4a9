"""Both arms of an Even G1 as one pair of glasses: order, skew, loss, refusal, a lost side,
staying awake, the microphone.
"""

from itertools import count

import pytest
from hypothesis import given, settings, strategies as st

from firmware_bridge.codecs.even_g1.events import REPEAT_S, SAME_TAP_S
from firmware_bridge.codecs.even_g1.scheduler import ANSWER_S, MAX_REQUESTS, TRIES
from firmware_bridge.codecs.even_g1.wire import SHUT_DOWN_S, SUPERVISION_S, arm_of, name_of
from firmware_bridge.errors import (
    CommandRefused,
    LinkLost,
    LocalMisuse,
    LostReason,
    RemoteViolation,
)
from firmware_bridge.messages import (
    App,
    AudioChunk,
    AudioFormat,
    BatteryChanged,
    ButtonReleased,
    ClearPage,
    Done,
    DoubleTap,
    EndPrompt,
    Failed,
    Gesture,
    Gestured,
    GlassesInfo,
    Hello,
    MicrophoneChunk,
    PageClosed,
    Ping,
    Prompt,
    SetBrightness,
    SetClock,
    SetDoubleTap,
    SetSilentMode,
    ShowNotification,
    ShowPage,
    SideChanged,
    StartAudio,
    StartMicrophone,
    StopMicrophone,
    TextLine,
    Tile,
    UncertainTap,
    UpdatePage,
    WornChanged,
)
from firmware_bridge.sides import Side, SideNews, SidePacket
from tests.codecs.g1_pair import HOP_S, L, Pair, R, accepts, drain

HI = ShowPage("hi", lines=(TextLine(0, "Hi"),))
HI_HEARD = ShowPage("g1", lines=HI.lines)
YOU = ShowPage("you", lines=(TextLine(0, "you"),))
LONG = ShowPage("long", lines=tuple(TextLine(row, "0123456789" * 8) for row in range(5)))
PICTURE = ShowPage("picture", tiles=(Tile(0, 0, 16, 8, 1, b"\xaa\x55" * 8),))
MIC = StartMicrophone(7, AudioFormat.LC3)
SOUND = b"\xf1\x00" + bytes(200)


@pytest.fixture
def pair():
    pair = Pair()
    pair.greet()
    return pair


def lossy(which):
    """An air that loses the packets for which `which(count, side, way, packet)`; count runs."""
    packets = count()
    return lambda side, way, packet: [] if which(next(packets), side, way, packet) else [packet]


# ------------------------------------------------------------------ left first


@pytest.mark.requirement("I4-g1-left-first")
def test_the_right_arm_gets_a_page_after_the_left(pair):
    assert isinstance(pair.ask(LONG), Done)
    steps = [(side, way) for side, way, packet in pair.order if packet[0] == 0x4E]
    assert steps == [(L, "down"), (L, "up")] * 3 + [(R, "down"), (R, "up")] * 3
    assert pair.shown[L] == pair.shown[R]


@pytest.mark.requirement("I4-g1-skew")
def test_the_skew_is_measured_and_reported(pair):
    done = pair.ask(HI)
    assert done.skew_s == pytest.approx(2 * HOP_S)
    assert pair.central.skew_s == done.skew_s
    pair.ask(LONG)
    assert pair.central.skew_s == pytest.approx(6 * HOP_S)
    pair.ask(HI)
    assert pair.central.worst_skew_s == pytest.approx(6 * HOP_S)


@pytest.mark.requirement("I4-g1-skew")
def test_a_right_arm_that_takes_no_page_in_time_is_dropped():
    pair = Pair(air=lambda side, way, packet: [] if side is R and packet[0] == 0x4E else [packet])
    pair.greet()
    pair.arms[R].receive_packet = lambda _packet, _now: None
    begun = pair.now
    assert pair.ask(HI) == Done()
    assert pair.now - begun < TRIES * (ANSWER_S + 0.2) + 1
    assert pair.given_up == [SideNews(R, up=False, reason="silent")]


def test_pictures_go_to_both_arms_at_the_same_time(pair):
    done = pair.ask(PICTURE)
    assert done.skew_s == 0.0
    pictures = [side for side, _, packet in pair.order if packet[0] == 0x15]
    assert len(pictures) == 102
    assert pictures[:4] == [L, R, L, R]
    assert pair.shown[L] == pair.shown[R]


def test_an_arm_that_refuses_keeps_the_other_from_showing_something_else(pair):
    pair.reply = accepts(R)
    assert pair.ask(HI) == Failed("busy", "the left side refused")
    assert pair.shown == {L: [HI_HEARD] * TRIES, R: []}


def test_a_refused_page_is_sent_again_until_it_is_taken(pair):
    answers = iter([Failed("busy"), Done()])
    pair.reply = lambda side, _command: next(answers) if side is L else Done()
    assert isinstance(pair.ask(HI), Done)
    assert pair.shown == {L: [HI_HEARD] * 2, R: [HI_HEARD]}


def test_one_arm_is_enough_where_they_disagree_about_a_setting(pair):
    pair.reply = accepts(R)
    assert pair.ask(SetBrightness(50)) == Done()


@pytest.mark.parametrize(
    ("command", "refusal"),
    [
        (SetClock(0), "06 15 00 01 01 01 00 01 00 01"),  # §9: result 00 is success (WK-cap)
        (
            SetDoubleTap(DoubleTap.NOTHING),
            "26 06 00 01 05 CA",
        ),  # §5: reply 26 06 00 seq sub C9/CA (WK)
        (SetClock(0), "06 CA" + " 00" * 18),  # §3: CA refused, padded (ED, WK-cap)
    ],
    ids=["dashboard", "settings", "generic"],
)
def test_a_refusal_is_understood_where_its_answer_looks_different(pair, command, refusal):
    assert isinstance(pair.ask(command), Done)
    answer = bytes.fromhex(refusal)
    pair.air = lambda _side, way, packet: (
        [answer] if way == "up" and packet[0] == answer[0] else [packet]
    )
    assert pair.ask(command) == Failed("busy", "the left side refused")


def test_a_picture_whose_checksum_fails_is_sent_again_as_a_whole(pair):
    broken = iter([True])
    pair.air = lambda side, _way, packet: (
        [packet[:-1] + b"\xff"]
        if side is L and packet[:2] == b"\x15\x07" and next(broken, False)
        else [packet]
    )
    assert isinstance(pair.ask(PICTURE), Done)
    assert sum(packet[0] == 0x15 for packet in pair.said[L]) == 102
    assert sum(packet[0] == 0x15 for packet in pair.said[R]) == 51
    assert pair.shown[L] == pair.shown[R]


def test_a_picture_that_never_comes_right_is_refused_in_the_end(pair):
    pair.air = lambda _side, _way, packet: (
        [packet[:-1] + b"\xff"] if packet[:2] == b"\x15\x07" else [packet]
    )
    assert pair.ask(PICTURE) == Failed("busy", "the left side refused")
    assert sum(packet[0] == 0x15 for packet in pair.said[L]) == 51 * TRIES


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**30))
def test_whatever_single_packet_is_lost_the_page_comes_to_both_arms(seed):
    lost_at = seed % 12
    pair = Pair()
    pair.greet()
    pair.air = lossy(lambda at, _side, _way, _packet: at == lost_at)
    assert isinstance(pair.ask(LONG), Done)
    assert pair.shown[L][-1] == pair.shown[R][-1] == ShowPage("g1", lines=LONG.lines)
    assert pair.given_up == []


def test_an_answer_from_elsewhere_does_not_count(pair):
    pair.air = lambda _side, way, packet: [] if way == "up" else [packet]
    pair.central.send(HI, pair.now)
    pair.run(for_s=0.1)
    pair.tell(L, b"\x18\xc9", b"\x4e\x00", b"\x4e")
    pair.tell(R, b"\x4e\xc9")
    pair.run(for_s=0.1)
    assert pair.said[R] == []
    pair.tell(L, b"\x4e\xc9")
    pair.run(for_s=0.1)
    assert len(pair.said[R]) == 1


def test_every_second_answer_lost_is_slow_but_sure():
    pair = Pair()
    pair.greet()
    answers = count(1)
    pair.air = lambda _side, way, packet: [] if way == "up" and next(answers) % 2 == 0 else [packet]
    for page in (HI, LONG, YOU):
        assert isinstance(pair.ask(page), Done)
    assert pair.shown[L][-1] == pair.shown[R][-1] == ShowPage("g1", lines=YOU.lines)


def test_a_newer_page_replaces_one_on_its_way_on_both_arms(pair):
    first = pair.central.send(LONG, pair.now)
    second = pair.central.send(YOU, pair.now)
    pair.run()
    assert pair.answer(first) == Failed("interrupted", "a newer page replaced it")
    assert isinstance(pair.answer(second), Done)
    assert pair.shown == {
        L: [ShowPage("g1", lines=YOU.lines)],
        R: [ShowPage("g1", lines=YOU.lines)],
    }


def test_a_setting_does_not_wait_for_a_picture(pair):
    picture = pair.central.send(PICTURE, pair.now)
    setting = pair.central.send(SetSilentMode(on=False), pair.now)
    pair.run(for_s=0.2)
    assert pair.answer(setting) is not None
    assert pair.answer(picture) is None


def test_who_asks_for_ever_and_waits_for_nothing_is_stopped(pair):
    with pytest.raises(LocalMisuse, match="under way"):
        for _ in range(MAX_REQUESTS + 1):
            pair.central.send(SetSilentMode(on=True), pair.now)


# ------------------------------------------------------------------ one side lost


@pytest.mark.requirement("I4-g1-one-side")
@pytest.mark.parametrize("lost", [L, R])
def test_with_one_side_lost_the_other_goes_on_alone(pair, lost):
    pair.news(lost, up=False, reason="lost")
    assert pair.events() == [SideChanged(lost, up=False, reason="lost")]
    assert pair.ask(HI) == Done()
    other = R if lost is L else L
    assert pair.shown == {other: [HI_HEARD], lost: []}
    assert pair.said[lost] == []


@pytest.mark.requirement("I4-g1-one-side")
@pytest.mark.parametrize("lost", [L, R])
@pytest.mark.parametrize("page", [HI, PICTURE], ids=["text", "picture"])
def test_a_side_that_returns_gets_the_page_and_the_other_notices_nothing(pair, lost, page):
    other = R if lost is L else L
    pair.ask(page)
    pair.news(lost, up=False)
    for side in (L, R):
        pair.said[side].clear()
        pair.shown[side].clear()
    pair.news(lost, up=True)
    pair.run(for_s=2)
    assert [command.lines for command in pair.shown[lost]] == [page.lines]
    assert [bool(command.tiles) for command in pair.shown[lost]] == [bool(page.tiles)]
    assert pair.said[other] == []


def test_a_returned_side_with_small_packets_gets_no_picture(pair):
    pair.ask(PICTURE)
    pair.ask(SetBrightness(40))
    pair.news(L, up=False)
    pair.shown[L].clear()
    pair.central.set_max_packet(20)
    pair.news(L, up=True)
    pair.run()
    assert pair.shown[L] == [SetBrightness(40)]
    assert isinstance(pair.ask(HI), Done)


def test_a_returned_side_is_cleared_if_the_lens_was(pair):
    pair.ask(HI)
    pair.news(L, up=False)
    pair.ask(ClearPage())
    pair.shown[L].clear()
    pair.news(L, up=True)
    pair.run()
    assert pair.shown[L] == [ClearPage()]


def test_a_returned_side_gets_the_settings_and_the_microphone(pair):
    pair.ask(SetSilentMode(on=False))
    pair.ask(MIC)
    pair.news(R, up=False)
    pair.ask(SetBrightness(40))
    pair.shown[R].clear()
    pair.news(R, up=True)
    pair.run()
    assert pair.shown[R] == [
        SetSilentMode(on=False),
        SetBrightness(40),
        StartMicrophone(0, AudioFormat.LC3),
    ]


def test_a_side_lost_within_a_page_does_not_delay_it(pair):
    for lost in (L, R):
        number = pair.central.send(LONG, pair.now)
        pair.run(for_s=5 * HOP_S if lost is L else 9 * HOP_S)
        assert pair.answer(number) is None
        pair.news(lost, up=False)
        pair.run()
        assert pair.answer(number) == Done()
        pair.news(lost, up=True)
        pair.run()
    assert pair.shown[L][-1] == pair.shown[R][-1] == ShowPage("g1", lines=LONG.lines)


def test_what_only_the_lost_side_can_do_is_refused_at_once(pair):
    pair.news(R, up=False)
    assert pair.ask(MIC) == Failed("busy", "the right side is away")
    pair.news(R, up=True)
    assert pair.ask(MIC) == Done()
    pair.news(L, up=False)
    assert pair.ask(ShowNotification(App("a", "A"), "t", "x")) == Failed(
        "busy", "the left side is away"
    )


def test_packets_of_a_side_that_is_gone_are_not_taken_for_news(pair):
    pair.news(L, up=False)
    pair.heard.clear()
    pair.tell(L, b"\xf5\x01")
    assert pair.heard == []


def test_the_same_news_twice_is_reported_once(pair):
    for _ in range(2):
        pair.news(L, up=False)
    for _ in range(2):
        pair.news(L, up=True)
    assert [event.up for event in pair.events() if isinstance(event, SideChanged)] == [False, True]


def test_without_the_left_arm_the_right_is_asked_for_its_identity():
    pair = Pair(up=(R,))
    number = pair.central.send(Hello("test", "0"), pair.now)
    pair.run()
    assert isinstance(pair.answer(number), GlassesInfo)


def test_a_greeting_before_any_side_is_there_waits_for_the_first():
    pair = Pair(up=())
    number = pair.central.send(Hello("test", "0"), pair.now)
    pair.run()
    assert pair.said == {L: [], R: []}
    pair.news(R, up=True)
    pair.run()
    assert isinstance(pair.answer(number), GlassesInfo)


# ------------------------------------------------------------------ staying awake, noticing silence


@pytest.mark.requirement("I4-g1-awake")
def test_arms_that_are_left_alone_for_an_hour_never_hang_up(pair):
    until = pair.now + 3600
    while pair.now < until:
        pair.run(for_s=5.0)
        for arm in pair.arms.values():
            arm.handle_timer(pair.now)
            assert arm.next_timer() - pair.now > SHUT_DOWN_S / 2
    assert pair.given_up == []


def test_an_arm_hangs_up_on_a_central_that_says_nothing(pair):
    arm = pair.arms[L]
    arm.handle_timer(arm.next_timer() - 0.1)
    with pytest.raises(LinkLost) as lost:
        arm.handle_timer(arm.next_timer())
    assert lost.value.reason is LostReason.SILENT


def test_a_silent_side_is_given_up_while_the_other_answers(pair):
    pair.arms[L].receive_packet = lambda _packet, _now: None
    pair.run(for_s=20)
    assert pair.given_up == [SideNews(L, up=False, reason="silent")]
    assert SideChanged(L, up=False, reason="silent") in pair.events()
    assert pair.ask(HI) == Done()


def test_two_silent_sides_are_a_lost_link(pair):
    for arm in pair.arms.values():
        arm.receive_packet = lambda _packet, _now: None
    with pytest.raises(LinkLost) as lost:
        pair.run(for_s=30)
    assert lost.value.reason is LostReason.SILENT


def test_a_ping_is_answered_when_either_side_lives(pair):
    pair.arms[L].receive_packet = lambda _packet, _now: None
    assert isinstance(pair.ask(Ping()), Done)


def test_an_arm_that_does_not_know_a_question_but_lives_is_kept(pair):
    pair.air = lambda _side, way, packet: [] if way == "down" and packet[0] == 0x03 else [packet]
    number = pair.central.send(SetSilentMode(on=True), pair.now)
    for _ in range(20):
        pair.run(for_s=0.5)
        pair.tell(L, b"\xf5\x1f")
        pair.tell(R, b"\xf5\x1f")
    assert pair.answer(number) is None
    assert pair.given_up == []


def test_both_batteries_are_queried_every_minute_and_reported_on_change(pair):
    pair.arms[R].facts.battery = 12
    pair.run(for_s=70)
    assert [e for e in pair.events() if isinstance(e, BatteryChanged)] == [
        BatteryChanged(12, side=R)
    ]


# ------------------------------------------------------------------ what the wearer does


def test_a_tap_reported_by_both_arms_is_one_tap(pair):
    pair.tell(L, b"\xf5\x02")
    pair.tell(R, b"\xf5\x02")
    pair.tell(R, b"\xf5\x01", b"\xf5\x01")
    gestures = [event for event in pair.events() if isinstance(event, Gestured)]
    assert gestures == [
        Gestured(Gesture.HEAD_UP),
        Gestured(Gesture.TAP, R),
        Gestured(Gesture.TAP, R),
    ]


def tap(pair, *arms, after=0.0):
    """The arms report a tap, each so many seconds after the one before it; gives how many taps
    there were.
    """
    before = len(pair.events())
    for arm in arms:
        pair.now += after
        pair.tell(arm, b"\xf5\x01")
    return sum(isinstance(event, Gestured) for event in pair.events()[before:])


@pytest.mark.requirement("I11-consent-echo")
@pytest.mark.parametrize("after", [0.1, 0.6, 1.0, SUPERVISION_S - 0.5])
def test_a_tap_that_the_other_arm_reports_late_is_one_tap(pair, after):
    assert tap(pair, R, L, after=after) == 1
    pair.now += SUPERVISION_S
    assert tap(pair, L, R, after=after) == 1


@pytest.mark.requirement("I11-consent-echo")
@pytest.mark.parametrize(
    ("arms", "taps"),
    [
        ((R, L, R, L), 2),
        ((R, R, L, L), 2),
        ((R, L, L, R), 2),
        ((R, R, L, R, L, L), 3),
        ((R, R, R), 3),
        ((R, L, L), 2),
    ],
)
def test_each_late_report_of_the_other_arm_matches_one_tap(pair, arms, taps):
    assert tap(pair, *arms, after=1.0) == taps


@pytest.mark.requirement("I11-consent-echo")
def test_a_much_later_tap_on_the_other_arm_counts(pair):
    assert tap(pair, R, L, after=SUPERVISION_S + 0.1) == 2


@pytest.mark.requirement("I11-consent-echo")
def test_taps_without_end_on_one_arm_are_not_all_remembered(pair):
    assert tap(pair, *[R] * 500) == 500
    assert tap(pair, *[L] * 500) > 400


@pytest.mark.requirement("I13-page-back")
@pytest.mark.parametrize(("first", "other"), [(R, L), (L, R)])
@pytest.mark.parametrize(
    ("after", "uncertain"),
    [(0.1, False), (SAME_TAP_S, False), (SAME_TAP_S + 0.1, True), (SUPERVISION_S - 0.1, True)],
)
def test_a_tap_on_the_other_arm_a_moment_later_is_uncertain(pair, first, other, after, uncertain):
    pair.tell(first, b"\xf5\x01")
    pair.now += after
    pair.tell(other, b"\xf5\x01")
    expected = [Gestured(Gesture.TAP, first), *([UncertainTap(other)] if uncertain else [])]
    assert pair.events() == expected


@pytest.mark.requirement("I13-page-back")
def test_only_taps_are_uncertain(pair):
    pair.tell(R, b"\xf5\x00")
    pair.now += SAME_TAP_S + 1
    pair.tell(L, b"\xf5\x00")
    assert not [event for event in pair.events() if isinstance(event, UncertainTap)]


@pytest.mark.requirement("I13-questions-once")
@pytest.mark.parametrize(("after", "closes"), [(REPEAT_S, 1), (REPEAT_S + 0.1, 2)])
def test_a_double_tap_that_both_arms_report_closes_the_page_once(pair, after, closes):
    pair.tell(R, b"\xf5\x00")
    pair.now += after
    pair.tell(L, b"\xf5\x00")
    assert pair.events().count(PageClosed()) == closes, "a later one may be a second double tap"
    assert sum(isinstance(event, Gestured) for event in pair.events()) == 1


def test_a_long_press_that_repeats_is_one(pair):
    pair.tell(L, b"\xf5\x17", b"\xf5\x17")
    pair.now += 1
    pair.tell(L, b"\xf5\x17")
    assert pair.events() == [Gestured(Gesture.BUTTON_LONG, L)] * 2


@pytest.mark.requirement("I14-button-released")
def test_the_end_of_a_long_press_is_reported_once(pair):
    pair.tell(L, b"\xf5\x18")
    assert pair.events() == [], "the press was before we were connected"
    pair.tell(L, b"\xf5\x17", b"\xf5\x17")
    pair.now += 3
    pair.tell(L, b"\xf5\x18", b"\xf5\x18")
    assert pair.events() == [Gestured(Gesture.BUTTON_LONG, L), ButtonReleased(L)]


def test_being_put_on_is_reported_once_for_both_arms(pair):
    pair.tell(L, b"\xf5\x07")
    pair.tell(R, b"\xf5\x07", b"\xf5\x08")
    pair.tell(R, b"\xf5\x06")
    assert pair.events() == [WornChanged(worn=False), WornChanged(worn=True)]


def test_charging_is_reported_with_the_charge(pair):
    pair.tell(L, b"\xf5\x09\x01", b"\xf5\x0a\x58")
    assert pair.events() == [
        BatteryChanged(87, charging=True, side=L),
        BatteryChanged(88, charging=True, side=L),
    ]


@pytest.mark.parametrize("packet", [b"\xf5\x0a\x65", b"\x2c\x66\xff", b"\x2cA\x65\x01"])
def test_a_battery_over_full_is_nonsense(pair, packet):
    pair.tell(L, packet)
    assert pair.events() == []
    assert [violation.reason for violation in pair.refused] == ["bad_message"]


# ------------------------------------------------------------------ the microphone


def test_sound_of_an_open_microphone_comes_in_order_with_its_stream(pair):
    pair.ask(MIC)
    pair.tell(R, SOUND, b"\xf1\x01" + bytes(200))
    assert pair.events() == [MicrophoneChunk(7, at, (bytes(20),) * 10) for at in (0, 1)]


def test_a_recording_that_ends_by_itself_is_begun_again(pair):
    pair.ask(MIC)
    pair.tell(R, SOUND)
    pair.run(for_s=3)
    assert [packet for packet in pair.said[R] if packet[0] == 0x0E] == [b"\x0e\x01"] * 2
    pair.run(for_s=10)
    assert [packet for packet in pair.said[R] if packet[0] == 0x0E] == [b"\x0e\x01"] * 2


def test_unrequested_sound_is_switched_off_and_not_reported(pair):
    for _ in range(5):
        pair.tell(R, SOUND)
    pair.run()
    assert pair.events() == []
    assert pair.said[R] == [b"\x0e\x00"]


def test_one_microphone_at_a_time(pair):
    pair.ask(MIC)
    with pytest.raises(CommandRefused, match="busy"):
        pair.central.send(MIC, pair.now)
    with pytest.raises(CommandRefused, match="no_stream"):
        pair.central.send(StopMicrophone(8), pair.now)
    assert pair.ask(StopMicrophone(7)) == Done()
    assert pair.ask(MIC) == Done()


def test_a_microphone_that_was_refused_is_not_open(pair):
    pair.reply = accepts()
    assert pair.ask(MIC) == Failed("busy", "the right side refused")
    assert len([packet for packet in pair.said[R] if packet == b"\x0e\x01"]) == TRIES
    pair.reply = accepts(L, R)
    assert pair.ask(MIC) == Done()


# ------------------------------------------------------------------ what they cannot do


@pytest.mark.parametrize(
    "command",
    [
        Prompt(1, (), 5.0),
        EndPrompt(),
        StartAudio(1, AudioFormat.PCM16),
        AudioChunk(1, 0, ()),
        StartMicrophone(1, AudioFormat.PCM16),
        StartMicrophone(1, AudioFormat.LC3, 48000),
    ],
    ids=lambda command: type(command).__name__,
)
def test_what_they_cannot_do_is_refused_as_unsupported_and_nothing_is_sent(pair, command):
    with pytest.raises(CommandRefused, match="unsupported"):
        pair.central.send(command, pair.now)
    pair.run(for_s=0.1)
    assert pair.said == {L: [], R: []}


def test_a_change_is_the_whole_page_with_the_change_in_it(pair):
    page = ShowPage("list", 1, 2, (TextLine(0, "Milk"), TextLine(1, "Bread")))
    pair.ask(page)
    assert isinstance(pair.ask(UpdatePage("list", 1, (TextLine(1, "Jam"),))), Done)
    assert pair.shown[R][-1] == ShowPage("g1", 1, 2, (TextLine(0, "Milk"), TextLine(1, "Jam")))
    for other in (UpdatePage("other"), UpdatePage("list", 2)):
        with pytest.raises(CommandRefused, match="no_scene"):
            pair.central.send(other, pair.now)


def test_columns_become_spaces_that_end_where_the_column_begins(pair):
    pair.ask(
        ShowPage(
            "s", lines=(TextLine(0, "Milk"), TextLine(0, "2 l", x=240), TextLine(1, "in", x=13))
        )
    )
    [line, indented] = pair.shown[L][0].lines
    assert line.text == "Milk" + " " * 36 + "2 l"
    assert indented.text == "  in"


def test_words_go_before_tiles_for_the_lens_takes_one_or_the_other(pair):
    pair.ask(ShowPage("s", lines=HI.lines, tiles=PICTURE.tiles))
    assert pair.shown[L] == [HI_HEARD]


def test_a_picture_that_the_smallest_packets_cannot_number_is_refused():
    pair = Pair(max_packet=20)
    with pytest.raises(CommandRefused, match="too_big"):
        pair.central.send(PICTURE, pair.now)
    assert isinstance(pair.ask(HI), Done)


def test_a_picture_in_smaller_pieces_arrives_the_same():
    """MTU 185 leaves 182 bytes: less than the 194 of a piece."""
    pair = Pair(max_packet=182)
    pair.greet()
    assert isinstance(pair.ask(PICTURE), Done)
    assert pair.shown[L][0].tiles[0].pixels[:2] == b"\xaa\x55"


# ------------------------------------------------------------------ names, and anything at all


def test_arms_are_known_by_their_names():
    """§1: names seen by ED#44, the suffix from the address."""
    assert arm_of("Even G1_47_L_CC89D6") == ("G1_47", L)
    assert arm_of("Even G1_47_R_8CA1D5") == ("G1_47", R)
    assert arm_of("G1_45_L_92333") == ("G1_45", L), "the sample of a comment (ED)"
    assert name_of(47, L, "E1:73:64:CC:89:D6") == "Even G1_47_L_CC89D6"
    for other in (
        "Even G1_47_X_CC89D6",
        "Even G1_47_L",
        "Even G1__L_1",
        "My G1_45_L_92333",
        "Even G2_47_L_CC89D6",
        "Even G1_4_7_L_1",
        "",
    ):
        assert arm_of(other) is None


packets = st.one_of(
    st.binary(max_size=220),
    st.builds(
        lambda op, rest: bytes((op,)) + rest,
        st.sampled_from(
            [0x2C, 0x2B, 0xF5, 0xF1, 0xF4, 0x22, 0x25, 0x4E, 0x16, 0x20, 0x0E, 0x34, 0x6E]
        ),
        st.binary(max_size=40),
    ),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(Side), packets), max_size=30))
def test_whatever_an_arm_says_the_pair_lives_on(said):
    pair = Pair()
    pair.greet()
    number = pair.central.send(LONG, pair.now)
    for side, packet in said:
        pair.central.receive_packet(SidePacket(side, b"\x4e\xc9"), pair.now)
        pair.tell(side, packet)
        pair.run(for_s=0.01)
    pair.run()
    assert pair.answer(number) is not None
    pair.reply = accepts(L, R)
    assert isinstance(pair.ask(YOU), Done)
    assert pair.shown[L][-1] == pair.shown[R][-1] == ShowPage("g1", lines=YOU.lines)


@settings(max_examples=50, deadline=None)
@given(st.lists(packets, max_size=30))
def test_any_bytes_to_an_arm_raise_only_violations(said):
    pair = Pair()
    pair.greet()
    for packet in said:
        try:
            pair.arms[L].receive_packet(packet, pair.now)
        except RemoteViolation:
            continue
    pair.arms[L].packets_to_send(pair.now)
    drain(pair.arms[L])
    assert isinstance(pair.ask(YOU), Done)
    assert pair.shown[L][-1] == ShowPage("g1", lines=YOU.lines)


def test_an_arm_that_streams_unasked_fills_no_memory(
    pair,
):
    pair.air = lambda _side, way, packet: [] if way == "up" and packet[0] == 0x0E else [packet]
    for _ in range(600):
        pair.tell(R, SOUND)
        pair.run(for_s=0.5)
    assert pair.central.backlog() < 20
    assert pair.ask(SetSilentMode(on=True)) == Done(skew_s=pytest.approx(2 * HOP_S, abs=5))
