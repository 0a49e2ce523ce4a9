"""Contradictions between the public sources on the Even G1: each form is sent and understood."""

import pytest
from msgspec.structs import replace

from firmware_bridge.catalog import find
from firmware_bridge.codecs.even_g1.commands import CommandEncoder
from firmware_bridge.codecs.even_g1.conflicts import CONFLICTS
from firmware_bridge.codecs.even_g1.wire import STOCK, BatteryForm, Dialect
from firmware_bridge.messages import (
    AllowApps,
    App,
    AudioFormat,
    BatteryChanged,
    Done,
    DoubleTap,
    Hello,
    Ping,
    SetBrightness,
    SetClock,
    SetDebugLog,
    SetDoubleTap,
    SetSilentMode,
    ShowNotification,
    ShowPage,
    StartMicrophone,
    TextLine,
    Tile,
)
from tests.codecs.g1_pair import L, Pair, R, six_wide

CHAT = App("com.chat", "Chat")
WORDS = ShowPage("s", 1, 3, (TextLine(0, "x" * 185),))
PICTURE = ShowPage("p", tiles=(Tile(0, 0, 576, 136, 1, b"\xf0" * (72 * 136)),))

# conflict → the command whose packets show it; None: it concerns what the glasses send
BROUGHT_OUT = {
    "heartbeat-field-order": Ping(),
    "newscreen": WORDS,
    "page-base": WORDS,
    "text-chunk": WORDS,
    "microphone-arm": StartMicrophone(0, AudioFormat.LC3),
    "brightness-top": SetBrightness(80),
    "silent-length": SetSilentMode(on=True),
    "battery-reply": None,
    "crc-reply-length": None,
    "hour-format": SetClock(1735689600, twelve_hour=True),
    "picture-polarity": PICTURE,
    "whitelist-chunk-and-case": AllowApps(tuple(App(f"com.app{n}", f"App {n}") for n in range(9))),
    "notification-id-and-keys": ShowNotification(CHAT, "Ann", "Hi", at=1735689600),
    "first-packet": None,
    "debug-off": SetDebugLog(on=False),
    "double-tap-sub": SetDoubleTap(DoubleTap.DASHBOARD),
    "serial-length": None,
    "functions-answered": None,
    "case-event-length": None,
}
CONTRADICTIONS = [
    "heartbeat field order",
    "newscreen 30 or 31/71",
    "page base",
    "chunk limit 191/180/176",
    "mic arm",
    "brightness top value",
    "silent 2 or 3 bytes",
    "battery reply A or B",
    "CRC reply length",
    "hour-format byte",
    "bitmap polarity",
    "whitelist chunk 177/176 and key case",
    "notify id and keys",
    "first packet F4 01 / 4D 01 / 4D FB / 6E 74",
    "debug-off value",
    "26 sub for double tap",
]
FOUND_LATER = [
    "serial of 16 or 18 bytes",
    "navigation and translation answered or not",
    "events of the case of 3 or 4 bytes",
]
EVERY_WAY = [
    pytest.param(conflict, dialect, id=f"{conflict.name}-{number}")
    for conflict in CONFLICTS
    if BROUGHT_OUT[conflict.name] is not None
    for number, dialect in enumerate((STOCK, *conflict.others))
]


@pytest.mark.requirement("I4-g1-conflicts")
def test_every_conflict_of_the_sources_is_in_the_catalogue_and_tested_here():
    assert len(CONFLICTS) == len(CONTRADICTIONS + FOUND_LATER) == len(BROUGHT_OUT)
    assert [conflict.name for conflict in CONFLICTS] == list(BROUGHT_OUT)
    quirks = {quirk.name: quirk.reason for quirk in find("even_g1").quirks}
    for conflict in CONFLICTS:
        assert conflict.reason in quirks[conflict.name]
        assert conflict.others
        assert STOCK not in conflict.others


def packets(dialect, command):
    encoder = CommandEncoder(max_packet=244, width=six_wide, dialect=dialect)
    encoder.beat()  # the first heartbeat counts 0, which looks the same in every order
    request = encoder.of(command)
    return {side: [step.packet for step in steps] for side, steps in request.steps.items()}


@pytest.mark.parametrize(("conflict", "dialect"), EVERY_WAY)
def test_each_way_is_spoken_differently_and_both_kinds_of_glasses_obey(conflict, dialect):
    """Glasses of the other opinion obey as well: neither end insists on its own."""
    command = BROUGHT_OUT[conflict.name]
    if dialect is not STOCK:
        assert packets(dialect, command) != packets(STOCK, command)
    for glasses in (dialect, STOCK, *conflict.others):
        pair = Pair(dialect=dialect, glasses=glasses)
        pair.greet()
        assert isinstance(pair.ask(command), Done), glasses
        assert pair.refused == []


@pytest.mark.parametrize(
    ("dialect", "packets_to_both"),
    [
        (STOCK, ["4E 00 02 00 71 00 00 01 03"]),
        (Dialect(page_base=0), ["4E 00 02 00 71 00 00 00 03"]),
        (Dialect(text_chunk=191), ["4E 00 02 00 71 00 00 01 03", "4E 00 02 01 71 00 00 01 03"]),
    ],
    ids=["from-1", "from-0", "191"],
)
def test_pages_are_counted_as_the_dialect_has_it(dialect, packets_to_both):
    long = ShowPage("s", 1, 3, (TextLine(0, "x" * 195),))
    said = packets(dialect, long)
    for side in (L, R):
        for expected, packet in zip(packets_to_both, said[side], strict=False):
            assert packet.startswith(bytes.fromhex(expected))


@pytest.mark.parametrize(("chunk", "sizes"), [(191, [191, 9]), (180, [180, 20]), (176, [176, 24])])
def test_text_is_cut_where_the_dialect_cuts(chunk, sizes):
    said = packets(Dialect(text_chunk=chunk), ShowPage("s", lines=(TextLine(0, "x" * 199),)))
    assert [len(packet) - 9 for packet in said[L]] == sizes


@pytest.mark.parametrize(
    "status", [STOCK.text_status, *(other.text_status for other in CONFLICTS[1].others)]
)
def test_an_arm_draws_text_of_every_status(status):
    pair = Pair(dialect=Dialect(text_status=status), glasses=STOCK)
    assert isinstance(pair.ask(WORDS), Done)
    assert [packet[4] for packet in pair.said[L] if packet[0] == 0x4E] == list(status)
    assert [command.lines for command in pair.shown[R]] == [WORDS.lines] * len(status)


@pytest.mark.parametrize("dialect", [Dialect(brightness_top=top) for top in (0x29, 0x2A, 0x3F)])
def test_full_brightness_is_the_top_of_the_dialect(dialect):
    assert packets(dialect, SetBrightness(100))[R] == [bytes((1, dialect.brightness_top, 0))]


@pytest.mark.parametrize("form", BatteryForm)
@pytest.mark.parametrize("ask", [b"\x2c\x01", b"\x2c\x02", b"\x2c"])
def test_batteries_are_understood_in_both_forms_however_they_were_asked_for(form, ask):
    pair = Pair(dialect=Dialect(battery_ask=ask), glasses=Dialect(battery_form=form))
    pair.arms[L].facts.battery = pair.arms[R].facts.other_battery = 40
    pair.arms[R].facts.battery = pair.arms[L].facts.other_battery = 60
    pair.run()
    charges = {
        event.side: event.level for event in pair.events() if isinstance(event, BatteryChanged)
    }
    assert charges == {L: 40, R: 60}


@pytest.mark.parametrize("padded", [True, False])
def test_a_serial_is_understood_with_and_without_the_zeros_behind_it(padded):
    pair = Pair(glasses=Dialect(serial_padded=padded))
    pair.run()
    number = pair.central.send(Hello("test", "0"), pair.now)
    pair.run()
    assert pair.answer(number).serial == "S100LAAL103842"


@pytest.mark.parametrize("echoed", [True, False])
def test_a_picture_is_taken_after_either_checksum_answer(echoed):
    pair = Pair(glasses=Dialect(crc_echoed=echoed))
    assert isinstance(pair.ask(PICTURE), Done)
    assert {side: len(packets) for side, packets in pair.shown.items()} == {L: 1, R: 1}


@pytest.mark.parametrize("inverted", [True, False])
def test_glasses_of_the_same_polarity_show_the_picture_and_others_its_negative(inverted):
    for same in (True, False):
        pair = Pair(dialect=Dialect(inverted=inverted), glasses=Dialect(inverted=inverted is same))
        pair.ask(PICTURE)
        [shown] = pair.shown[L]
        assert shown.tiles[0].pixels == (b"\xf0" if same else b"\x0f") * (72 * 136)


@pytest.mark.parametrize(
    "first", [STOCK.first, *(other.first for other in CONFLICTS[13].others)], ids=bytes.hex
)
def test_the_first_packet_is_the_dialects_and_needs_no_answer(first):
    pair = Pair(
        dialect=Dialect(first=first),
        air=lambda _side, way, packet: [] if way == "up" and packet[0] == first[0] else [packet],
    )
    pair.run()
    assert [pair.said[side][0] for side in (L, R)] == [first, first]
    assert isinstance(pair.ask(WORDS), Done)


@pytest.mark.parametrize(
    ("hours", "twelve", "byte"), [(1, True, 1), (1, False, 0), (0, True, 0), (0, False, 1)]
)
def test_the_hour_byte_is_the_dialects(hours, twelve, byte):
    said = packets(Dialect(twelve_hour=hours), SetClock(0, twelve_hour=twelve))
    assert said[L][0][-1] == byte


def test_the_microphone_is_opened_on_the_dialects_arm_and_heard_on_either():
    for arm in (L, R):
        pair = Pair(dialect=Dialect(microphone=arm))
        pair.greet()
        pair.ask(StartMicrophone(3, AudioFormat.LC3))
        assert [side for side in (L, R) if bytes((0x0E, 1)) in pair.said[side]] == [arm]
        pair.tell(L, b"\xf1\x00" + bytes(200))
        pair.tell(R, b"\xf1\x01" + bytes(200))
        assert [event.index for event in pair.events()] == [0, 1]


NOTES = {
    "ED": (STOCK, 1, b'{"ncs_notification":{"msg_id":1,"app_identifier"', b'"time_s":1735689600,'),
    "WK": (
        Dialect(notification_numbered=False),
        0,
        b'{"ncs_notification":{"msg_id":1,"app_identifier"',
        b'"time_s":1735689600,',
    ),
    "FP": (
        CONFLICTS[12].others[1],
        1,
        b'{"ncs_notification":{"msg_id":1,"action":0,"app_identifier"',
        b'"date":"2025-01-01 00:00:00"',
    ),
    "EG": (
        CONFLICTS[12].others[2],
        1,
        b'{"type":"Add","ncs_notification":{"msg_id":1,"type":1,',
        b'"date":"2025-01-01 00:00:00"',
    ),
    "ED-demo": (
        Dialect(notification_ms=True),
        1,
        b'{"ncs_notification":{"msg_id":1,"app_identifier"',
        b'"time_s":1735689600000,',
    ),
}


@pytest.mark.parametrize(("dialect", "ident", "begins", "holds"), NOTES.values(), ids=NOTES.keys())
def test_a_notification_in_any_dialect_is_read(dialect, ident, begins, holds):
    command = BROUGHT_OUT["notification-id-and-keys"]
    pair = Pair(dialect=dialect, glasses=STOCK)
    pair.greet()
    pair.ask(command)
    text = b"".join(packet[4:] for packet in pair.said[L])
    assert {packet[1] for packet in pair.said[L]} == {ident}
    assert text.startswith(begins)
    assert holds in text
    heard = replace(command, number=1)
    assert pair.shown[L] == [heard]
    assert pair.shown[R] == ([heard] if R in dialect.notification_sides else [])


@pytest.mark.parametrize("dialect", [STOCK, *CONFLICTS[11].others])
def test_a_whitelist_in_any_dialect_is_read(dialect):
    command = BROUGHT_OUT["whitelist-chunk-and-case"]
    pair = Pair(dialect=dialect, glasses=STOCK)
    pair.greet()
    pair.ask(command)
    assert len(pair.said[L][0]) == dialect.whitelist_chunk + 3
    assert pair.said[L][-1].endswith(b"\0") is dialect.whitelist_ended
    assert (b"calendar_enable" in pair.said[L][0]) is (
        dialect.whitelist_case is STOCK.whitelist_case
    )
    assert pair.shown == {L: [command], R: []}
