"""A session of the Even G2 from the first packet on: both roles of the codec, joined."""

from itertools import groupby, pairwise

import pytest

from firmware_bridge.codecs.even_g2 import FILE, SOUND, lanes, pages
from firmware_bridge.codecs.even_g2.central import BATTERY_EVERY_S, MAX_REQUESTS
from firmware_bridge.codecs.even_g2.conflicts import OTHERS
from firmware_bridge.codecs.even_g2.hub import Cmd, Rect
from firmware_bridge.codecs.even_g2.model import CONFLICTS
from firmware_bridge.codecs.even_g2.peripheral import PAGE_S, Variant
from firmware_bridge.codecs.even_g2.picture import pictures
from firmware_bridge.codecs.even_g2.wire import PACE_S, Dialect, Kind, cut
from firmware_bridge.errors import CommandRefused, LocalMisuse, LostReason
from firmware_bridge.messages import (
    AllowApps,
    App,
    AudioFormat,
    BatteryChanged,
    ClearPage,
    Done,
    ExitToDashboard,
    Failed,
    GlassesInfo,
    Hello,
    Hiding,
    HidingChanged,
    MicrophoneChunk,
    PageClosed,
    Ping,
    SetBrightness,
    SetClock,
    SetDoubleTap,
    SetHeadUpAngle,
    SetSilentMode,
    SetWearDetection,
    ShowNotification,
    ShowPage,
    SideChanged,
    StartAudio,
    StartMicrophone,
    StopMicrophone,
    TextLine,
    Tile,
    UpdatePage,
)
from firmware_bridge.packets import channel_of
from firmware_bridge.protobuf import encode
from firmware_bridge.sim.even_g2.quirks import QUIRKS, firmware
from tests.codecs.even_g2.pair import L, Pair, R, page

LIT = Tile(100, 50, 40, 30, 1, b"\xff" * 150)
FRAMES = tuple(bytes([at]) * 40 for at in range(5))


def mute(sid: int, cmd: int | None = None, *, way: str = "up"):
    """An air in which messages of one service (and command) are lost."""

    def air(_side, heading, packet):
        fits = packet[6:7] == bytes([sid]) and (cmd is None or packet[8:10] == bytes([8, cmd]))
        return [] if heading == way and fits else [packet]

    return air


# ------------------------------------------------------------------ session


def test_a_session_begins_on_both_arms():
    pair = Pair()
    info = pair.ask(Hello("test", "0"))
    assert info == GlassesInfo("G2", "2.2.20", "", {}, {})
    assert [packet[6] for packet in pair.said[R]][:6] == [0x80, 0x80, 0x10, 0x0D, 0x04, 0x07]
    assert [packet[6] for packet in pair.said[L]] == [0x80, 0x09]
    assert BatteryChanged(87, False, L) in pair.events()
    assert pair.refused == []


def test_a_session_needs_no_answers_at_its_start():
    pair = Pair(air=mute(0x80))
    assert isinstance(pair.ask(Hello("test", "0")), GlassesInfo)


def test_the_left_arm_alone_greets_and_shows_nothing():
    pair = Pair(up=(L,))
    assert isinstance(pair.ask(Hello("test", "0")), GlassesInfo)
    assert pair.ask(Ping()) == Done()
    assert pair.ask(page("Hi")) == Failed("busy", "the right side is away")


def test_commands_wait_for_the_first_arm():
    pair = Pair(up=())
    number = pair.send(Hello("test", "0"))
    pair.run(for_s=1.0)
    assert pair.answer(number) is None
    pair.news(R, up=True)
    pair.run(for_s=4.0)
    assert isinstance(pair.answer(number), GlassesInfo)


def test_a_quiet_arm_gets_heartbeats():
    pair = Pair().ready()
    pair.said[L].clear()
    pair.run(for_s=3 * lanes.BEAT_S + 1)
    beats = [packet for packet in pair.said[L] if packet[6:10] == bytes([0x80, 0, 8, 14])]
    assert len(beats) == 3


def test_an_arm_with_a_page_gets_its_own_heartbeats_too():
    pair = Pair().ready()
    pair.ask(page("Hi"))
    pair.said[R].clear()
    pair.run(for_s=3 * lanes.BEAT_S + 1)
    assert [m.integer(1) for m in pair.messages(R, sid=0x80)] == [14] * 3
    assert [m.integer(1) for m in pair.messages(R)].count(Cmd.BEAT) == 6


def test_batteries_are_asked_for_each_minute():
    pair = Pair().ready()
    pair.arms[L].facts.battery = 12
    pair.run(for_s=BATTERY_EVERY_S + 1)
    assert pair.events() == [BatteryChanged(12, False, L), BatteryChanged(87, False, R)]


def test_packets_keep_their_distance():
    pair = Pair().ready()
    pair.sent_at.clear()
    pair.ask(page("x" * 900))
    moments = [at for at, side in pair.sent_at if side is R]
    assert len(moments) >= 4
    gaps = [after - before for before, after in pairwise(moments)]
    assert min(gaps) > 0.99 * PACE_S


def test_a_dead_pair_is_noticed():
    pair = Pair().ready()
    pair.air = lambda _side, _way, _packet: []
    pair.run(for_s=60.0)
    assert pair.lost is not None
    assert pair.lost.reason is LostReason.SILENT


def test_one_dead_arm_is_given_up_alone():
    pair = Pair().ready()
    pair.air = lambda side, _way, packet: [] if side is L else [packet]
    pair.run(for_s=30.0)
    assert [news.side for news in pair.given_up] == [L]
    assert SideChanged(L, False, "silent") in pair.events()
    assert pair.lost is None


# ------------------------------------------------------------------ pages


def test_a_page_is_created_once_and_then_changed():
    pair = Pair().ready()
    for text in ("one", "two", "three"):
        assert pair.ask(page(text, "")) == Done()
        assert pair.shown[-1].lines == (TextLine(0, text),)
    assert pair.commands() == [Cmd.CREATE, Cmd.TEXT, Cmd.TEXT]


def test_a_page_is_done_only_when_acknowledged():
    pair = Pair().ready()
    pair.reply = lambda _command: None
    assert pair.ask(page("Hi"), for_s=30.0) is None
    pair = Pair().ready()
    pair.ask(page("Hi"))
    pair.reply = lambda _command: None
    assert pair.ask(page("Ho"), for_s=30.0) is None


def test_the_same_page_again_is_acknowledged_again():
    pair = Pair().ready()
    assert pair.ask(page("Hi")) == Done()
    assert pair.ask(page("Hi")) == Done()
    assert pair.commands() == [Cmd.CREATE, Cmd.TEXT]


def test_a_refused_page_is_refused():
    pair = Pair().ready()
    pair.reply = lambda command: Failed("busy") if isinstance(command, ShowPage) else Done()
    assert pair.ask(page("Hi")) == Failed("busy", "a container is wrong")


def test_a_page_of_an_earlier_link_is_rebuilt():
    pair = Pair().ready()
    pair.ask(page("old"))
    pair.central._hub.lost()
    assert pair.ask(page("new")) == Done()
    assert pair.commands() == [Cmd.CREATE, Cmd.CREATE, Cmd.REBUILD]
    assert pair.shown[-1].lines == (TextLine(0, "new"),)


@pytest.mark.parametrize("silent", [False, True])
def test_a_page_that_is_gone_is_created_again(silent):
    pair = Pair(variant=Variant(silent_without_page=silent)).ready()
    pair.ask(page("one"))
    pair.arms[R].page = None
    assert pair.ask(page("two")) == Done()
    assert pair.commands()[-1] == Cmd.CREATE
    assert pair.shown[-1].lines == (TextLine(0, "two"),)


def test_a_page_lives_by_its_heartbeat():
    pair = Pair().ready()
    pair.ask(page("Hi"))
    pair.run(for_s=5 * PAGE_S)
    assert pair.arms[R].page is not None
    assert ClearPage() not in pair.shown
    pair.air = mute(0xE0, Cmd.BEAT, way="down")
    pair.run(for_s=2 * PAGE_S)
    assert pair.shown[-1] == ClearPage()


def test_columns_become_spaces():
    pair = Pair().ready()
    pair.ask(ShowPage("s", lines=(TextLine(0, "left"), TextLine(0, "1/2", x=500))))
    assert pair.shown[-1].lines == (TextLine(0, "left" + " " * 46 + "1/2"),)


def test_a_part_of_a_page_is_changed():
    pair = Pair().ready()
    pair.ask(page("one", "two"))
    assert pair.ask(UpdatePage("s", lines=(TextLine(1, "three"),))) == Done()
    assert pair.shown[-1].lines == (TextLine(0, "one"), TextLine(1, "three"))
    with pytest.raises(CommandRefused, match="no_scene"):
        pair.send(UpdatePage("other", lines=(TextLine(1, "x"),)))


def test_a_cleared_page_stays_and_is_empty():
    pair = Pair().ready()
    pair.ask(page("one"))
    assert pair.ask(ClearPage()) == Done()
    assert pair.shown[-1] == ShowPage("g2")
    assert pair.arms[R].page is not None


def test_clearing_without_a_page_leaves_the_glasses_alone():
    pair = Pair().ready()
    assert pair.ask(ClearPage()) == Done()
    assert pair.commands() == [Cmd.LEAVE]
    assert pair.arms[R].page is None


def test_the_page_is_left_for_the_dashboard():
    pair = Pair().ready()
    pair.ask(page("one"))
    assert pair.ask(ExitToDashboard()) == Done()
    assert pair.shown[-1] == ClearPage()
    assert pair.arms[R].page is None
    pair.run(for_s=20.0)
    assert pair.commands() == [Cmd.CREATE, Cmd.LEAVE]


def test_a_page_too_large_is_refused_before_it_is_sent():
    pair = Pair().ready()
    with pytest.raises(CommandRefused, match="too_big"):
        pair.send(page("ä" * 501))
    assert pair.ask(page("ä" * 500)) == Done()


def test_a_newer_page_replaces_an_older_one():
    pair = Pair().ready()
    numbers = [pair.send(page(text)) for text in ("one", "two", "three")]
    pair.run(for_s=3.0)
    assert [pair.answer(number) for number in numbers] == [
        Failed("interrupted", "a newer page replaced it"),
        Failed("interrupted", "a newer page replaced it"),
        Done(),
    ]
    assert pair.shown[-1].lines == (TextLine(0, "three"),)


def test_too_many_commands_are_a_mistake_here():
    pair = Pair(up=())
    for _ in range(MAX_REQUESTS):
        pair.send(Ping())
    with pytest.raises(LocalMisuse):
        pair.send(Ping())


# ------------------------------------------------------------------ pictures


def test_a_picture_is_shown_where_it_belongs():
    pair = Pair().ready()
    assert pair.ask(ShowPage("p", tiles=(LIT,))) == Done()
    (tile,) = pair.shown[-1].tiles
    assert (tile.x, tile.y, tile.width, tile.height, tile.bpp) == (100, 50, 40, 30, 4)
    assert set(tile.pixels) == {0xFF}
    assert pair.commands() == [Cmd.CREATE, Cmd.IMAGE]


def test_greys_and_odd_widths_come_through():
    tile = Tile(3, 5, 21, 20, 4, bytes(range(0x10, 0xFA))[:220].ljust(220, b"\x12"))
    pair = Pair().ready()
    pair.ask(ShowPage("p", tiles=(tile,)))
    (shown,) = pair.shown[-1].tiles
    assert (shown.x, shown.y, shown.width, shown.height) == (2, 5, 22, 20), "whole bytes"
    rows = [shown.pixels[at : at + 11].hex() for at in range(0, 220, 11)]
    wanted = [tile.pixels[at : at + 11].hex() for at in range(0, 220, 11)]
    assert rows == ["0" + row[:21] for row in wanted]


def test_a_picture_over_the_whole_lens_takes_four_containers():
    pair = Pair().ready()
    whole = Tile(0, 0, 576, 288, 1, b"\xff" * (72 * 288))
    assert pair.ask(ShowPage("p", tiles=(whole,)), for_s=60.0) == Done()
    assert [(t.x, t.y, t.width, t.height) for t in pair.shown[-1].tiles] == [
        (0, 0, 288, 144),
        (288, 0, 288, 144),
        (0, 144, 288, 144),
        (288, 144, 288, 144),
    ]
    assert pair.commands().count(Cmd.IMAGE) == 4 * 6


def test_only_what_is_lit_is_sent():
    pair = Pair().ready()
    speck = Tile(0, 0, 576, 288, 1, bytes(72 * 287) + b"\0" * 71 + b"\x01")
    pair.ask(ShowPage("p", tiles=(speck,)))
    (tile,) = pair.shown[-1].tiles
    assert (tile.x, tile.y, tile.width, tile.height) == (556, 268, 20, 20)
    pair.ask(ShowPage("q", tiles=(Tile(0, 0, 8, 8, 1, bytes(8)),)))
    assert pair.shown[-1].tiles == ()


@pytest.mark.parametrize(
    ("ink", "place"),
    [
        ([(100, 50), (139, 89)], Rect(100, 50, 40, 40)),
        ([(300, 200)], Rect(300, 200, 20, 20)),
        ([(575, 287)], Rect(556, 268, 20, 20)),
        ([(40, 30), (10, 60)], Rect(10, 30, 32, 31)),
    ],
    ids=["both corners", "a pixel", "the last pixel", "the other corners"],
)
def test_only_the_area_that_is_lit_is_sent(ink, place):
    tiles = [Tile(x, y, 1, 1, 4, b"\x10") for x, y in ink]
    (picture,) = pictures(tiles)
    assert picture.place == place


def test_a_dark_picture_needs_no_container():
    assert pictures([Tile(0, 0, 8, 2, 4, bytes(8))]) == ()


def test_a_picture_follows_the_creation_of_its_page_later():
    pair = Pair().ready()
    began = pair.now
    pair.ask(ShowPage("p", tiles=(LIT,)))
    assert pair.now - began > pages.SETTLE_S
    again = pair.now
    pair.ask(ShowPage("q", tiles=(LIT,)))
    assert pair.now - again < pages.SETTLE_S


def test_the_same_picture_is_not_sent_twice():
    pair = Pair().ready()
    pair.ask(ShowPage("p", tiles=(LIT,)))
    assert pair.ask(ShowPage("q", lines=(TextLine(0, "Hi"),), tiles=(LIT,))) == Done()
    assert pair.commands() == [Cmd.CREATE, Cmd.IMAGE, Cmd.TEXT]


def test_a_lost_piece_of_a_picture_is_sent_again():
    lost = []

    def air(side, way, packet):
        if way == "up" and packet[6:10] == bytes([0xE0, 0, 8, 4]) and len(lost) < 1:
            lost.append(packet)
            return []
        return [packet]

    pair = Pair(air=air).ready()
    big = Tile(0, 0, 200, 100, 1, b"\xff" * 2500)
    assert pair.ask(ShowPage("p", tiles=(big,))) == Done()
    assert len(lost) == 1
    assert pair.commands().count(Cmd.IMAGE) == 4
    assert len(pair.shown[-1].tiles) == 1


def test_a_refused_picture_is_refused():
    pair = Pair().ready()
    pair.reply = lambda command: Failed("busy") if getattr(command, "tiles", ()) else Done()
    assert pair.ask(ShowPage("p", tiles=(LIT,))) == Failed("busy", "the picture failed")


def test_a_piece_too_large_is_refused():
    pair = Pair(dialect=Dialect(image_bytes=6144)).ready()
    big = Tile(0, 0, 288, 144, 1, b"\xff" * (36 * 144))
    assert pair.ask(ShowPage("p", tiles=(big,))) == Failed("busy", "result 7")


# ------------------------------------------------------------------ microphone


def sound(pair: Pair, index: int, side=L) -> None:
    pair.arms[side].send(MicrophoneChunk(0, index, FRAMES), pair.now)
    pair.run(for_s=0.05)


def chunks(pair: Pair) -> list[int]:
    return [event.index for event in pair.events() if isinstance(event, MicrophoneChunk)]


def listening(**options) -> Pair:
    pair = Pair(**options).ready()
    assert pair.ask(StartMicrophone(7, AudioFormat.LC3)) == Done()
    return pair


def test_the_microphone_makes_itself_a_page():
    pair = listening()
    assert pair.commands() == [Cmd.CREATE, Cmd.AUDIO]
    assert pair.shown[-1] == StartMicrophone(0, AudioFormat.LC3, 16000)
    sound(pair, 0)
    assert pair.events() == [MicrophoneChunk(7, 0, FRAMES)]


def test_sound_is_numbered_through_the_wrap():
    pair = listening()
    for index in range(250, 262):
        sound(pair, index)
    assert chunks(pair) == list(range(12))


def test_lost_sound_leaves_a_gap_and_doubles_are_dropped():
    pair = listening()
    sound(pair, 0)
    pair.run(for_s=0.1)
    for index in (3, 3, 4):
        sound(pair, index)
    assert chunks(pair) == [0, 3, 4]


def test_the_left_arm_is_heard_where_both_speak():
    pair = listening()
    for index in range(4):
        sound(pair, 100 + index, R)
        sound(pair, index, L)
    heard = chunks(pair)
    assert heard == sorted(set(heard))
    assert len(heard) == 5


def test_the_right_arm_is_heard_where_the_left_is_silent():
    pair = listening()
    sound(pair, 0, L)
    pair.run(for_s=1.0)
    sound(pair, 0, R)
    sound(pair, 1, R)
    assert len(chunks(pair)) == 3


def test_a_microphone_that_falls_silent_is_switched_on_again():
    pair = listening()
    sound(pair, 0)
    pair.run(for_s=3.0)
    assert pair.commands().count(Cmd.AUDIO) == 2


def test_only_one_stream_is_open():
    pair = listening()
    with pytest.raises(CommandRefused, match="busy"):
        pair.send(StartMicrophone(8, AudioFormat.LC3))
    with pytest.raises(CommandRefused, match="no_stream"):
        pair.send(StopMicrophone(8))
    assert pair.ask(StopMicrophone(7)) == Done()
    assert pair.shown[-1] == StopMicrophone(0)


def test_a_refused_microphone_is_closed_again():
    pair = Pair().ready()
    pair.reply = lambda c: Failed("busy") if isinstance(c, StartMicrophone) else Done()
    refused = pair.ask(StartMicrophone(7, AudioFormat.LC3))
    assert refused == Failed("busy", "the glasses refused the microphone")
    pair.reply = lambda _command: Done()
    assert pair.ask(StartMicrophone(8, AudioFormat.LC3)) == Done()


def test_sound_nobody_asked_for_is_switched_off():
    pair = Pair().ready()
    for index in range(5):
        sound(pair, index)
    assert chunks(pair) == []
    assert pair.commands() == [Cmd.AUDIO]


def test_sound_of_another_length_is_refused():
    pair = listening()
    pair.tell(L, b"\0" * 203, channel=SOUND)
    assert len(pair.refused) == 1


# ------------------------------------------------------------------ settings and files


@pytest.mark.parametrize(
    "command",
    [
        SetBrightness(20),
        SetBrightness(0, auto=True),
        SetSilentMode(on=True),
        SetSilentMode(on=False),
        SetWearDetection(on=False),
        SetHeadUpAngle(45),
        SetHeadUpAngle(0),
        SetClock(1_790_000_000),
        AllowApps((App("a.b", "Äpp"), App("c", "C"))),
        AllowApps(()),
        ShowNotification(App("a.b", "Äpp"), "Title", "Text\nmore", "sub", 1_790_000_000),
    ],
)
def test_a_setting_comes_through(command):
    pair = Pair().ready()
    assert pair.ask(command) == Done()
    assert pair.shown == [command]
    assert pair.refused == []


def test_files_go_to_their_own_characteristic():
    pair = Pair().ready()
    pair.ask(AllowApps(tuple(App(f"app.{at}", "x" * 40) for at in range(100))))
    channels = {channel_of(packet) for packet in pair.said[R]}
    assert channels == {FILE}
    assert len(pair.shown[0].apps) == 100


def test_a_refused_setting_is_refused():
    pair = Pair().ready()
    pair.reply = lambda _command: Failed("busy")
    assert pair.ask(SetBrightness(1)) == Failed("busy", "the glasses refused it with result 7")
    assert isinstance(pair.ask(AllowApps(())), Failed)


@pytest.mark.parametrize(
    "command",
    [SetDoubleTap("nothing"), StartAudio(1, AudioFormat.OPUS), StartMicrophone(1, "pcm16")],
)
def test_what_these_glasses_lack_is_refused(command):
    with pytest.raises(CommandRefused, match="unsupported"):
        Pair().ready().send(command)


def test_what_hides_the_page_is_reported_once():
    pair = Pair().ready()
    pair.ask(SetSilentMode(on=True))
    pair.event(HidingChanged(Hiding.SILENT, True))
    pair.event(HidingChanged(Hiding.SILENT, False))
    pair.event(HidingChanged(Hiding.DASHBOARD, True))
    pair.event(HidingChanged(Hiding.DASHBOARD, False))
    pair.ask(SetBrightness(0))
    assert pair.events() == [
        HidingChanged(Hiding.SILENT, True),
        HidingChanged(Hiding.SILENT, False),
        HidingChanged(Hiding.DASHBOARD, True),
        HidingChanged(Hiding.DASHBOARD, False),
        HidingChanged(Hiding.DARK, True),
    ]


# ------------------------------------------------------------------ exits and losses


def test_a_page_the_wearer_closed_is_reported():
    pair = Pair().ready()
    pair.ask(page("Hi"))
    pair.event(PageClosed())
    pair.run(for_s=3.0)
    assert pair.events() == [PageClosed()]
    assert pair.ask(page("Ho")) == Done()
    assert pair.shown[-1].lines == (TextLine(0, "Ho"),)


def test_a_page_that_stayed_is_not_reported_as_closed():
    pair = Pair(variant=Variant(exit_keeps_page=True)).ready()
    pair.ask(page("Hi"))
    pair.event(PageClosed())
    pair.run(for_s=3.0)
    assert pair.events() == []
    assert pair.commands() == [Cmd.CREATE, Cmd.TEXT]


def test_the_microphone_comes_back_after_an_exit():
    pair = listening()
    pair.event(PageClosed())
    assert pair.shown[-1] == StopMicrophone(0)
    pair.run(for_s=3.0)
    assert pair.shown[-1] == StartMicrophone(0, AudioFormat.LC3, 16000)


def test_a_returning_arm_gets_page_and_microphone_again():
    pair = listening()
    pair.ask(page("Hi"))
    pair.news(R, up=False)
    assert pair.ask(page("Ho")) == Failed("busy", "the right side is away")
    pair.shown.clear()
    pair.said[R].clear()
    pair.news(R, up=True)
    pair.run(for_s=4.0)
    assert pair.commands()[0] == Cmd.CREATE, "nothing is left of the page there"
    assert pair.shown[0].lines == (TextLine(0, "Ho"),)
    assert StartMicrophone(0, AudioFormat.LC3, 16000) in pair.shown
    assert [event for event in pair.events() if isinstance(event, SideChanged)] == [
        SideChanged(R, False),
        SideChanged(R, True),
    ]


def test_the_loss_of_the_left_arm_changes_no_page():
    pair = Pair().ready()
    pair.ask(page("Hi"))
    pair.news(L, up=False)
    assert pair.ask(page("Ho")) == Done()
    pair.news(L, up=True)
    pair.run(for_s=2.0)
    assert pair.commands() == [Cmd.CREATE, Cmd.TEXT]


def test_a_page_under_way_is_refused_when_the_arm_is_lost():
    pair = Pair().ready()
    number = pair.send(page("Hi"))
    pair.news(R, up=False)
    assert pair.answer(number) == Failed("busy", "the right side is away")


@pytest.mark.parametrize("way", ["up", "down"])
def test_every_third_packet_may_be_lost(way):
    count = iter(range(10**6))

    def air(_side, heading, packet):
        return [] if heading == way and next(count) % 3 == 0 else [packet]

    pair = Pair(air=air)
    assert isinstance(pair.ask(Hello("t", "0")), GlassesInfo)
    for text in ("one", "two"):
        assert pair.ask(page(text)) == Done()
        assert pair.shown[-1].lines == (TextLine(0, text),)


def test_doubled_packets_change_nothing():
    pair = Pair(air=lambda _side, _way, packet: [packet, packet]).ready()
    pair.ask(page("x" * 900))
    big = Tile(0, 0, 200, 100, 1, b"\xff" * 2500)
    assert pair.ask(ShowPage("p", tiles=(big,))) == Done()
    assert pair.commands().count(Cmd.IMAGE) == 3
    assert [bool(page.tiles) for page, _ in groupby(pair.shown)] == [False, False, True]


def test_a_refused_message_is_repeated_at_once():
    broken = []

    def air(_side, way, packet):
        if way == "down" and packet[6] == 0xE0 and not broken:
            broken.append(packet)
            return [packet[:-1] + bytes([packet[-1] ^ 1])]
        return [packet]

    pair = Pair(air=air).ready()
    began = pair.now
    assert pair.ask(page("Hi" * 200)) == Done()
    assert pair.now - began < lanes.ANSWER_S


def test_late_answers_of_a_repeated_message_count():
    held = []

    def air(_side, way, packet):
        if way == "up" and packet[6] == 0x09 and not held:
            held.append(packet)
            return []
        return [packet]

    pair = Pair().ready()
    pair.air = air
    number = pair.send(SetBrightness(5))
    pair.run(for_s=lanes.ANSWER_S + 0.01)
    assert pair.answer(number) is None
    pair.tell(R, *held)
    pair.run(for_s=0.001)
    assert pair.answer(number) == Done()


def test_an_answer_to_another_request_is_ignored():
    pair = Pair().ready()
    pair.air = mute(0x09)
    number = pair.send(SetBrightness(5))
    pair.run(for_s=0.1)
    asked = pair.messages(sid=0x09)[-1].integer(2)
    for magic in (asked + 1, 0, asked):
        assert pair.answer(number) is None
        wire = encode({1: 1, 2: magic, 3: {}}, zeros=False)
        pair.tell(R, *cut(wire, Kind.GLASSES, magic, 0x09, 0, max_packet=244))
        pair.run(for_s=0.001)
    assert pair.answer(number) == Done()


def test_an_answer_that_cannot_be_read_harms_nothing():
    pair = Pair().ready()
    pair.air = mute(0xE0)
    number = pair.send(page("Hi"))
    pair.run(for_s=0.1)
    magic = pair.messages()[-1].integer(2)
    wire = encode({1: 1, 2: magic, 4: b"\x0a\xff"}, zeros=False)
    pair.tell(R, *cut(wire, Kind.GLASSES, 77, 0xE0, 0, max_packet=244))
    pair.run(for_s=0.1)
    assert isinstance(pair.answer(number), Failed)
    pair.air = lambda _side, _way, packet: [packet]
    assert pair.ask(page("Ho")) == Done()


# ------------------------------------------------------------------ conflicts


def story(pair: Pair) -> None:
    pair.ready()
    assert pair.ask(page("one " * 100)) == Done()
    assert pair.ask(page("two")) == Done()
    assert pair.ask(ShowPage("p", tiles=(LIT,))) == Done()
    assert pair.ask(StartMicrophone(7, AudioFormat.LC3)) == Done()
    assert pair.ask(SetBrightness(20)) == Done()
    assert pair.ask(AllowApps((App("a", "A"),) * 20)) == Done()
    assert pair.refused == []


@pytest.mark.parametrize(
    ("name", "dialect"), [(name, each) for name, others in OTHERS.items() for each in others]
)
def test_the_glasses_take_what_other_hosts_send(name, dialect):
    assert name in {conflict.name for conflict in CONFLICTS}
    story(Pair(dialect=dialect))


@pytest.mark.parametrize(
    "variant",
    [
        Variant(zeros=True),
        Variant(settings_flag=1),
        Variant(needs_auth=True),
        Variant(silent_without_page=True),
        Variant(exit_keeps_page=True),
        Variant(max_name=14),
    ],
)
def test_the_host_takes_what_other_firmware_sends(variant):
    story(Pair(variant=variant))


@pytest.mark.parametrize(
    "quirk", [f"{name}={value}" for name, values in QUIRKS.items() for value in values]
)
def test_a_page_lives_with_every_firmware(quirk):
    pair = Pair(variant=firmware([quirk]).variant)
    story(pair)
    pair.shown.clear()
    pair.run(for_s=40.0)
    assert ClearPage() not in pair.shown
    assert pair.arms[R].page is not None


def test_a_page_needs_authentication_where_firmware_says_so():
    pair = Pair(dialect=Dialect(auth=False), variant=Variant(needs_auth=True)).ready()
    assert pair.ask(page("Hi"), for_s=20.0) is None


@pytest.mark.parametrize("max_packet", [20, 23, 100, 182, 244, 509])
def test_any_packet_size_works(max_packet):
    story(Pair(max_packet=max_packet))
