"""The worked examples of the public sources (captured packets among them), in both directions."""

import pytest

from firmware_bridge.codecs.even_g2 import (
    FILE,
    FILE_ANSWER,
    SOUND,
    arm_of,
    config,
    files,
    hub,
    name_of,
)
from firmware_bridge.codecs.even_g2.answers import ArmFacts
from firmware_bridge.codecs.even_g2.files import FileIn
from firmware_bridge.codecs.even_g2.hub import Code, Rect
from firmware_bridge.codecs.even_g2.peripheral import EvenG2Arm, Variant
from firmware_bridge.codecs.even_g2.wire import (
    Cut,
    Dialect,
    Joiner,
    Kind,
    checksum,
    cut,
    nak,
)
from firmware_bridge.errors import RemoteViolation, Violation
from firmware_bridge.messages import (
    AudioFormat,
    BatteryChanged,
    ButtonReleased,
    ClearPage,
    Done,
    Gesture,
    Gestured,
    Hiding,
    HidingChanged,
    MicrophoneChunk,
    PageClosed,
    SetBrightness,
    SetClock,
    ShowPage,
    StartMicrophone,
    TextLine,
    WornChanged,
)
from firmware_bridge.packets import ChannelPacket, channel_of
from firmware_bridge.protobuf import Message, encode
from firmware_bridge.sides import Side
from tests.codecs.even_g2.pair import L, Pair, R, drain

AUTH = "aa21010c010180000804100d1a0408011004a704"
AUTH_TAKEN = "aa126108010180000804100d1a001a3f"
AUTHENTICATED = "aa125e0a010180010804105e1a020801d8aa"
ROLE = "aa21060a010180200805101222020801d021"
BEAT = "aa21240801018000080e10306a0019f6"
BEAT_TAKEN = "aa12530801018000080e10306a0019f6"
TIME = "aa2107120101802008800110148208080880f7c4d50610041081"
DASHBOARD = "aa122b0801010d0108011a020801e72d"
QUERY = "aa210c0a010109200802102122020801a8da"
SETTINGS = (
    "aa1264240101090008021021221c0801100c18062a08322e322e362e31303208322e322e362e3130604047d7"
)
BRIGHTNESS = "aa210d0c01010920080110221a040a0210147d31"
CREATE = "aa2120200101e0201080011a1908011a1218c00420a00248015202743158016202486928904eedb6"
CREATE_ZEROS = (
    "aa21202b0101e02008001080011a2208011a1e0800100018c00420a00228003000380040004801520274315801"
    "62024869886b"
)
CREATED = "aa1265090101e0000801108001220015a9"
TEXT = "aa2121150101e02008051081014a0c08011202743120022a024f4bc4be"
TEXT_TAKEN = "aa12660b0101e0000806108101520208087e43"
PAGE_BEAT = "aa2122090101e020080c10820172008104"
PAGE_BEAT_TAKEN = "aa12670b0101e000080d1082017a02100ce223"
SOUND_ON = "aa21230c0101e020080f10830192010208011cdb"
SOUND_TAKEN = "aa12680c0101e00008101083019a010208019b12"
LEAVE = "aa2125090101e02008091084015a0056ef"
IMAGE_TAKEN = "aa12691a0101e0000804108501321108021203706963180120e60238e6024004b9d6"
TAP = "aa126a0a0101e00108026a041a0210012511"
SCROLLED = "aa126b100101e00108026a0a12080801120274311801ad94"
LIST = "aa126c140101e00108026a0e0a0c080212026c311a024e6f20017d13"
EXIT = "aa126d0a0101e00108026a041a02080739fb"
NAK = "aa12870001010802"
WHOLE = {
    "host": f"""
        {AUTH} {ROLE} {BEAT} {TIME} {QUERY} {BRIGHTNESS} {CREATE} {CREATE_ZEROS} {TEXT} {PAGE_BEAT}
        {SOUND_ON} {LEAVE} aa21250a01010720080110311a020802399f
        aa21091e01010720080310652a16080010001800220e576861742069732032202b20323fc72b
        aa213e13010108200802220d080112064f66666963651a01029a79 aa212d0901010b2008ff0110385200f383
        """,
    "glasses": f"""
        {AUTH_TAKEN} {AUTHENTICATED} {BEAT_TAKEN} {DASHBOARD} {SETTINGS} {CREATED} {TEXT_TAKEN}
        {PAGE_BEAT_TAKEN} {SOUND_TAKEN} {IMAGE_TAKEN} {TAP} {SCROLLED} {LIST} {EXIT}
        aa126208010180000805101222002576 aa12630a01018000088001101482080022c8
        aa1210040101c40000000f1d
        """,
}
KINDS = {"host": Kind.HOST, "glasses": Kind.GLASSES}


def joined(packet: str, kind: Kind = Kind.HOST):
    received = Joiner(kind).add(bytes.fromhex(packet))
    assert received is not None
    return received


def payload(packet: str, kind: Kind = Kind.HOST) -> bytes:
    return joined(packet, kind).payload or b""


# ------------------------------------------------------------------ frames


@pytest.mark.parametrize("way", list(Cut))
@pytest.mark.parametrize(
    ("kind", "packet"),
    [(KINDS[who], packet) for who, packets in WHOLE.items() for packet in packets.split()],
)
def test_frames_are_read_and_written_alike(kind, packet, way):
    got = joined(packet, kind)
    made = cut(got.payload, kind, got.seq, got.sid, got.flag, max_packet=244, way=way)
    assert [each.hex() for each in made] == [packet]


def test_the_checksum_is_the_known_one():
    assert checksum(b"123456789") == bytes.fromhex("b129")


def test_a_full_fragment_is_followed_by_the_checksum_alone():
    body = bytes(range(236))
    first, last = cut(body, Kind.HOST, 0x26, 0xE0, 0x20, max_packet=244)
    assert (len(first), first[:8].hex()) == (244, "aa2126ec0201e020")
    assert (last[:8].hex(), last[8:]) == ("aa2126020202e020", checksum(body))


@pytest.mark.parametrize("size", [1, 229, 230, 231, 232, 233, 234, 235, 236, 237, 463, 5000])
@pytest.mark.parametrize("way", list(Cut))
def test_every_dialect_is_joined_in_any_order(size, way):
    body = bytes(at % 251 for at in range(size))
    packets = cut(body, Kind.HOST, 1, 0xE0, 0x20, max_packet=244, way=way)
    assert max(map(len, packets)) <= (244 if way is Cut.A else 240)
    if way is Cut.B:
        assert len(packets[-1]) >= 10
    for order in (packets, packets[::-1], [packet for packet in packets for _ in range(2)]):
        joiner = Joiner(Kind.HOST)
        whole = [each for packet in order if (each := joiner.add(packet)) is not None]
        assert [each.payload for each in whole] == [body] * (len(order) if len(packets) == 1 else 1)


def test_a_split_checksum_is_sent_and_read():
    packets = cut(bytes(231), Kind.HOST, 1, 0xE0, 0x20, max_packet=244, way=Cut.SPLIT)
    assert [len(packet) for packet in packets] == [240, 9]
    packets = cut(bytes(231), Kind.HOST, 1, 0xE0, 0x20, max_packet=244, way=Cut.B)
    assert [len(packet) for packet in packets] == [239, 10]


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        ("", Violation.TRUNCATED),
        ("aa210108010180", Violation.TRUNCATED),
        ("ab" + BEAT[2:], Violation.UNKNOWN_FRAME),
        (BEAT_TAKEN, Violation.UNKNOWN_FRAME),
        (BEAT[:-2], Violation.TRUNCATED),
        (BEAT[:10] + "00" + BEAT[12:], Violation.BAD_ORDER),
        (BEAT[:10] + "02" + BEAT[12:], Violation.BAD_ORDER),
        (BEAT[:-2] + "00", Violation.BAD_MESSAGE),
    ],
)
def test_bad_packets_are_refused(packet, reason):
    with pytest.raises(RemoteViolation) as refused:
        Joiner(Kind.HOST).add(bytes.fromhex(packet))
    assert refused.value.reason is reason


def test_a_joiner_holds_little():
    joiner = Joiner(Kind.HOST)
    for seq in range(100):
        joiner.add(cut(bytes(300), Kind.HOST, seq, 0xE0, 0x20, max_packet=244)[0])
    assert len(joiner._open) == 8
    packets = cut(bytes(20_000), Kind.HOST, 1, 0xE0, 0x20, max_packet=244)
    with pytest.raises(RemoteViolation, match="more than 16384 bytes"):
        for packet in packets:
            joiner.add(packet)


def test_a_refusal_has_no_contents():
    assert nak(0x87, 0x08).hex() == NAK
    got = joined(NAK, Kind.GLASSES)
    assert (got.seq, got.sid, got.payload, got.result) == (0x87, 0x08, None, 1)


def test_names_tell_pair_and_side():
    assert arm_of("Even G2_32_R_A4DE80") == ("G2_32", R)
    assert arm_of("Even G2_32_L_000001") == ("G2_32", L)
    assert name_of(32, R, "E8:9D:EF:A4:DE:80") == "Even G2_32_R_A4DE80"
    for other in ("Even G1_32_R_A4DE80", "Even G2_32_X_A4DE80", "EVEN R1_A4DE80", "Even G2_32_R"):
        assert arm_of(other) is None


# ------------------------------------------------------------------ what a host says


@pytest.mark.parametrize(
    ("packet", "magic", "exchange"),
    [
        (AUTH, 0x0D, config.auth()),
        (ROLE, 0x12, config.start()[0]),
        (BEAT, 0x30, config.heartbeat()),
        (QUERY, 0x21, config.query()),
        (BRIGHTNESS, 0x22, config.setting(SetBrightness(20))),
    ],
)
def test_the_host_speaks_as_captured(packet, magic, exchange):
    first, *rest = exchange.fields.items()
    assert encode(dict([first, (2, magic), *rest]), zeros=False) == payload(packet)
    assert (exchange.sid, exchange.flag) == (joined(packet).sid, joined(packet).flag)


def with_magic(fields, packet: str, *, zeros: bool = False) -> bytes:
    first, *rest = fields.items()
    magic = Message(payload(packet)).integer(2)
    return encode(dict([first, (2, magic), *rest]), zeros=zeros)


def test_page_messages_are_those_of_the_examples():
    assert with_magic(hub.beat(), PAGE_BEAT) == payload(PAGE_BEAT)
    assert with_magic(hub.audio(on=True), SOUND_ON) == payload(SOUND_ON)
    assert with_magic(hub.leave(), LEAVE) == payload(LEAVE)


@pytest.mark.parametrize(
    ("example", "dialect"), [(CREATE, Dialect(widget=10000)), (CREATE_ZEROS, Dialect(zeros=True))]
)
def test_a_page_is_created_as_by_other_hosts(example, dialect, monkeypatch):
    monkeypatch.setattr(hub, "TEXT_NAME", "t1")
    fields = hub.page(hub.Cmd.CREATE, "Hi", (), dialect)
    made = with_magic(fields, example, zeros=dialect.zeros)
    assert made == payload(example)


def test_a_text_is_changed_as_by_other_hosts(monkeypatch):
    monkeypatch.setattr(hub, "TEXT_NAME", "t1")
    assert with_magic(hub.text_update("OK"), TEXT) == payload(TEXT)


def test_pictures_are_below_the_text():
    fields = hub.page(hub.Cmd.REBUILD, "", [Rect(0, 1, 20, 30)])
    body = Message(encode(fields)).message(7)
    assert body.integer(1) == 2
    assert body.message(4).integer(5) == hub.IMAGE_ID
    assert body.message(3).text(12) == " "


def test_a_picture_is_cut_into_numbered_pieces():
    made = [make(Dialect()) for make in hub.image_updates(1, bytes(5000), 7)]
    updates = [Message(encode(each)).message(5) for each in made]
    assert [(each.integer(6), each.integer(7), len(each.data(8))) for each in updates] == [
        (0, 4096, 4096),
        (1, 904, 904),
    ]
    assert {(each.integer(1), each.integer(3), each.integer(4)) for each in updates} == {
        (11, 7, 5000)
    }


@pytest.mark.parametrize(
    ("packet", "code"),
    [
        (CREATED, Code.CREATED),
        (TEXT_TAKEN, Code.TEXT_OK),
        (PAGE_BEAT_TAKEN, Code.BEAT),
        (SOUND_TAKEN, Code.AUDIO_OK),
        (IMAGE_TAKEN, Code.IMAGE_OK),
    ],
)
def test_answers_are_understood(packet, code):
    assert hub.code_of(Message(payload(packet, Kind.GLASSES))) == code


def test_the_file_checksum_is_the_known_one():
    assert files.checksum(b"123456789") == 0xC052A8C8


# ------------------------------------------------------------------ what the glasses say


def arm(side: Side = R, **facts) -> EvenG2Arm:
    made = EvenG2Arm(side, max_packet=244, facts=ArmFacts(**facts))
    made._seq = 0
    return made


def answers(glasses: EvenG2Arm, *packets: str) -> list[str]:
    """Return the answers without their heads: each sender numbers its own."""
    for packet in packets:
        glasses.receive_packet(bytes.fromhex(packet), 1.0)
        for incoming in drain(glasses):
            if incoming.number is not None:
                glasses.send(Done(), 1.0, re=incoming.number)
    return [packet[3:].hex() for packet in glasses.packets_to_send(1.0)]


def rest(packet: str) -> str:
    return packet[6:]


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        (ROLE, "aa126208010180000805101222002576"),
        (BEAT, BEAT_TAKEN),
        (TIME, "aa12630a01018000088001101482080022c8"),
        (CREATE, CREATED),
        (CREATE_ZEROS, CREATED),
    ],
)
def test_the_glasses_answer_as_captured(asked, answered):
    assert answers(arm(), asked) == [rest(answered)]


def test_a_session_begins_as_captured():
    taken, notice = answers(arm(), AUTH)
    assert taken == rest(AUTH_TAKEN)
    got = Message(bytes.fromhex(notice)[5:-2])
    assert (notice[8:10], got.integer(1), got.message(3).integer(1)) == ("01", 4, 1)


def test_a_page_is_used_as_in_the_examples():
    glasses = arm()
    assert answers(glasses, CREATE, TEXT) == [rest(CREATED), rest(TEXT_TAKEN)]
    assert answers(glasses, PAGE_BEAT, SOUND_ON) == [rest(PAGE_BEAT_TAKEN), rest(SOUND_TAKEN)]
    (left,) = answers(glasses, LEAVE)
    assert hub.code_of(Message(bytes.fromhex(left)[5:-2])) == Code.LEFT


def test_the_glasses_show_what_was_sent():
    glasses = arm()
    for packet in (CREATE, TEXT, SOUND_ON, LEAVE, TIME, BRIGHTNESS):
        glasses.receive_packet(bytes.fromhex(packet), 1.0)
    shown = [incoming.message for incoming in drain(glasses)]
    assert shown[0] == ShowPage("g2", lines=(TextLine(0, "Hi"),))
    assert shown[1] == ShowPage("g2", lines=(TextLine(0, "OK"),))
    assert shown[2] == StartMicrophone(0, AudioFormat.LC3, 16000)
    assert ClearPage() in shown[3:]
    assert shown[-2:] == [SetClock(1_790_003_600), SetBrightness(20)]


def test_settings_come_as_in_the_example():
    (answer,) = answers(arm(battery=64, firmware="2.2.6.10"), QUERY)
    theirs = Message(payload(SETTINGS, Kind.GLASSES)).message(4)
    ours = Message(bytes.fromhex(answer)[5:-2]).message(4)
    for field in (5, 6):
        assert ours.text(field) == theirs.text(field)
    assert ours.integer(12) == theirs.integer(12) == 64
    assert answer[8:10] == "00"


def test_the_left_arm_answers_little():
    left = arm(L)
    assert answers(left, ROLE, TIME, BRIGHTNESS, CREATE, SOUND_ON) == []
    assert answers(left, BEAT) == [rest(BEAT_TAKEN)]
    assert len(answers(left, AUTH, QUERY)) == 3


def test_damaged_messages_are_refused_by_number():
    glasses = arm()
    with pytest.raises(RemoteViolation):
        glasses.receive_packet(bytes.fromhex("aa21870801010820" + "00" * 8), 1.0)
    assert [packet.hex() for packet in glasses.packets_to_send(1.0)] == [NAK]


def test_foreign_bytes_are_ignored():
    glasses = arm()
    with pytest.raises(RemoteViolation):
        glasses.receive_packet(b"\x25\x06\x00\x01\x04\x01", 1.0)
    assert glasses.packets_to_send(1.0) == []


def events(glasses: EvenG2Arm, *sent) -> list[str]:
    for event in sent:
        glasses.send(event, 1.0)
    return [packet[3:].hex() for packet in glasses.packets_to_send(1.0)]


def test_events_are_those_of_the_examples():
    glasses = arm()
    answers(glasses, CREATE)
    assert events(glasses, Gestured(Gesture.TAP, R)) == [rest(TAP)]
    assert events(glasses, HidingChanged(Hiding.DASHBOARD, True)) == [rest(DASHBOARD)]
    assert events(glasses, PageClosed()) == [rest(EXIT)]
    assert glasses.page is None


def test_gestures_without_a_page_are_the_glasses_own():
    assert events(arm(), Gestured(Gesture.TAP, R), ButtonReleased(R)) == []


# ------------------------------------------------------------------ what a host hears


def test_events_are_understood():
    pair = Pair().ready()
    pair.tell(R, TAP, SCROLLED, LIST, DASHBOARD, AUTHENTICATED, NAK)
    assert pair.events() == [
        Gestured(Gesture.TAP, R),
        Gestured(Gesture.TAP),
        HidingChanged(Hiding.DASHBOARD, True),
    ]
    assert pair.refused == []


@pytest.mark.parametrize(
    ("system", "event"),
    [
        ({2: 1}, Gestured(Gesture.TAP, R)),
        ({2: 2}, Gestured(Gesture.TAP)),
        ({2: 3}, Gestured(Gesture.TAP, L)),
        ({}, Gestured(Gesture.TAP)),
        ({1: 3, 2: 3}, Gestured(Gesture.DOUBLE_TAP, L)),
        ({1: 9, 2: 1}, Gestured(Gesture.BUTTON_LONG, R)),
        ({1: 10, 2: 1}, ButtonReleased(R)),
        ({1: 1, 2: 1}, None),
        ({1: 4}, None),
        ({1: 8, 3: {1: 0.5, 2: 1.0, 3: 0.0}}, None),
        ({1: 99}, None),
    ],
)
def test_gestures_have_a_source(system, event):
    pair = Pair().ready()
    wire = encode({1: 2, 13: {3: system}}, zeros=False)
    pair.tell(R, *cut(wire, Kind.GLASSES, 9, 0xE0, 1, max_packet=244))
    assert pair.events() == ([] if event is None else [event])


def test_wear_is_understood():
    pair = Pair().ready()
    for worn in (0, 1):
        wire = encode({1: 3, 5: {1: 1, 2: worn}}, zeros=False)
        pair.tell(R, *cut(wire, Kind.GLASSES, worn, 0x10, 1, max_packet=244))
    assert pair.events() == [WornChanged(False), WornChanged(True)]


def test_the_captured_settings_give_battery():
    pair = Pair(up=(R,), air=lambda _side, way, packet: [packet] if way == "down" else [])
    pair.run(for_s=4.0)
    asked = next(each for each in pair.said[R] if each[6] == 0x09)
    magic = asked[11]
    body = payload(SETTINGS, Kind.GLASSES)
    answer = body[:3] + bytes([magic]) + body[4:]
    pair.tell(R, *cut(answer, Kind.GLASSES, 1, 0x09, 1, max_packet=244))
    pair.run(for_s=0.1)
    assert BatteryChanged(64, False, R) in pair.events()


def test_sound_is_five_frames_of_forty_bytes():
    glasses = arm()
    frames = tuple(bytes([at]) * 40 for at in range(5))
    glasses.send(MicrophoneChunk(0, 258, frames), 1.0)
    (packet,) = glasses.packets_to_send(1.0)
    assert (len(packet), packet[204], channel_of(packet)) == (205, 2, SOUND)
    assert packet[:200] == b"".join(frames)


# ------------------------------------------------------------------ files


def test_a_file_is_announced_with_its_checksum():
    flow = files._transfer(files.NOTIFICATION, b"123456789")
    head = next(flow).raw
    assert len(head) == 93
    assert head[:13].hex() == "00" + "01000000" + "09000000" + "c8a852c0"
    assert head[13:].rstrip(b"\0") == b"user/notify_whitelist.json"


def test_files_are_answered_as_captured():
    glasses = arm()
    head = files._HEAD.pack(0, 0, 2, files.checksum(b"{}"), files.NAME)
    sent = cut(head, Kind.HOST, 1, 0xC4, 0, max_packet=244)
    sent += cut(b"{}", Kind.HOST, 2, 0xC5, 0, max_packet=244)
    for packet in sent:
        glasses.receive_packet(ChannelPacket(packet, FILE), 1.0)
    start, data = glasses.packets_to_send(1.0)
    assert start[6:].hex() == "c40000000f1d"
    assert data[6:].hex() == "c50001003e2e"
    assert channel_of(start) == FILE_ANSWER
    other = FileIn()
    other._file = b""
    assert other.command(b"\2") == b"\2\0"
    assert checksum(b"\2\0").hex() == "6d7b"


def test_a_damaged_file_is_refused():
    intake = FileIn()
    intake.command(files._HEAD.pack(0, 0, 2, 7, files.NAME))
    assert intake.data(b"{}") == b"\1\2"
    assert intake.command(b"\2") == b"\2\7"


def test_zeros_are_written_where_a_firmware_does():
    glasses = EvenG2Arm(R, max_packet=244, variant=Variant(zeros=True))
    (answer,) = answers(glasses, CREATE)
    assert bytes.fromhex(answer)[5:-2].hex() == "080110800122020800"
