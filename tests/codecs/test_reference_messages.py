"""Messages of the reference profile: round trips, refusals, and what no bytes whatever may do."""

import contextlib

import msgpack
import pytest
from hypothesis import given, strategies as st

from firmware_bridge.codec import NEED_DATA, Incoming, Role
from firmware_bridge.codecs.reference.codec import ReferenceCodec
from firmware_bridge.codecs.reference.frames import FIRST, LAST, Frame, FrameType
from firmware_bridge.codecs.reference.messages import (
    MAX_MESSAGE_BYTES,
    RefusedMessage,
    decode,
    decode_info,
    encode,
    encode_info,
)
from firmware_bridge.codecs.reference.tiles import TileTable
from firmware_bridge.errors import LocalMisuse, RemoteViolation, Violation
from firmware_bridge.messages import (
    AudioChunk,
    AudioFormat,
    BatteryChanged,
    CapabilitiesChanged,
    Done,
    Failed,
    Gesture,
    Gestured,
    GlassesInfo,
    Hello,
    MicrophoneChunk,
    Ping,
    Prompt,
    ShowPage,
    StartAudio,
    TextLine,
    Tile,
    UpdatePage,
)
from firmware_bridge.sides import Side
from tests.codecs import strategies
from tests.codecs.pair import CodecPair, drain, info


def frame(body, seq=0):
    data = body if isinstance(body, bytes) else msgpack.packb(body)
    return Frame(FrameType.DATA, FIRST | LAST, seq, len(data).to_bytes(4, "little") + data).pack()


def refusal_of(body, *, role=Role.PERIPHERAL):
    """What a codec says to a body: the violation it raised (or None) and the `failed` it sends
    (or None).
    """
    codec = ReferenceCodec(role, max_packet=512)
    violation = None
    try:
        codec.receive_packet(frame(body), 0.0)
    except RemoteViolation as error:
        violation = error.reason
    assert codec.next_event() is NEED_DATA
    packets = [Frame.parse(packet) for packet in codec.packets_to_send(0.0)]
    answers = [
        msgpack.unpackb(packet.payload[4:]) for packet in packets if packet.type is FrameType.DATA
    ]
    assert len(answers) <= 1
    return violation, answers[0] if answers else None


# ------------------------------------------------------------------ round trips


@given(
    st.lists(strategies.answered_commands, min_size=1, max_size=4),
    st.sampled_from([20, 61, 185, 512]),
)
def test_every_command_arrives_as_it_was_sent_with_its_number(commands, max_packet):
    pair = CodecPair(max_packet=max_packet)
    numbers = [pair.central.send(command, 0.0) for command in commands]
    pair.settle()
    assert pair.heard[Role.PERIPHERAL] == [
        Incoming(command, number=number) for command, number in zip(commands, numbers, strict=True)
    ]
    assert numbers == list(range(1, len(commands) + 1))


@given(strategies.commands, strategies.replies, strategies.events, st.integers(0, 0xFFFFFFFF))
def test_everything_survives_the_wire(command, reply, event, re):
    for message, sender in (
        (command, Role.CENTRAL),
        (reply, Role.PERIPHERAL),
        (event, Role.PERIPHERAL),
    ):
        answer = re if sender is Role.PERIPHERAL and message is reply else None
        wire = encode(message, sender=sender, tiles=TileTable(), number=7, re=answer)
        back = decode(wire, sender=sender, tiles=TileTable())
        assert (back.message, back.re) == (message, answer)


@given(st.lists(strategies.events | strategies.replies, min_size=1, max_size=5))
def test_everything_the_glasses_say_arrives_in_order(messages):
    pair = CodecPair()
    for message in messages:
        pair.glasses.send(
            message, 0.0, re=3 if isinstance(message, Done | GlassesInfo | Failed) else None
        )
    pair.settle()
    assert pair.messages(Role.CENTRAL) == messages


def test_a_chunk_of_sound_carries_no_number():
    central = ReferenceCodec(Role.CENTRAL)
    assert central.send(AudioChunk(1, 0, (b"abc",)), 0.0) == 0
    assert central.send(Ping(), 0.0) == 1


def test_defaults_are_left_out_and_unknown_keys_are_ignored():
    wire = encode(StartAudio(1, AudioFormat.LC3), sender=Role.CENTRAL, tiles=TileTable(), number=1)
    assert set(msgpack.unpackb(wire)) == {"t", "n", "stream", "format"}
    body = {"t": "battery", "level": 5, "health": {"cycles": [1, 2]}}
    assert decode(
        msgpack.packb(body), sender=Role.PERIPHERAL, tiles=TileTable()
    ).message == BatteryChanged(5)


# ------------------------------------------------------------------ what is answered


@pytest.mark.parametrize("role", Role)
@pytest.mark.requirement("K7-unknown")
def test_an_unknown_message_is_answered_and_no_violation(role):
    violation, answer = refusal_of({"t": "hologram", "n": 9}, role=role)
    assert violation is None
    assert answer == {"t": "failed", "re": 9, "code": "unsupported", "detail": "message hologram"}


def test_an_unknown_message_without_a_number_is_answered_too():
    assert refusal_of({"t": "hologram"}) == (
        None,
        {"t": "failed", "code": "unsupported", "detail": "message hologram"},
    )


@pytest.mark.parametrize(
    "body",
    [
        {"t": "gesture", "gesture": "tap"},
        {"t": "done", "re": 1},
        {"t": "mic", "stream": 1, "index": 0, "frames": []},
    ],
)
def test_what_only_glasses_say_is_unsupported_by_glasses(body):
    violation, answer = refusal_of(body | {"n": 4})
    assert violation is None
    assert (answer["code"], answer["re"]) == ("unsupported", 4)


def test_a_value_of_a_later_profile_is_unsupported_and_no_violation():
    assert refusal_of({"t": "gesture", "gesture": "wink"}, role=Role.CENTRAL)[0] is None
    violation, answer = refusal_of({"t": "audio_start", "n": 2, "stream": 1, "format": "flac"})
    assert violation is None
    assert (answer["code"], answer["re"], answer["detail"]) == (
        "unsupported",
        2,
        "AudioFormat 'flac'",
    )


@pytest.mark.parametrize("version", [0, 2, None, "1"])
def test_another_profile_version_is_refused_by_name(version):
    violation, answer = refusal_of(
        {"t": "hello", "n": 1, "v": version, "name": "x", "version": "y"}
    )
    assert violation is Violation.UNSUPPORTED_VERSION
    assert (answer["code"], answer["re"]) == ("unsupported", 1)
    assert "1 is supported" in answer["detail"]


GOOD = {
    "show": {"t": "show", "n": 1, "scene": "s", "lines": [[0, "x"]]},
    "tile": {"t": "show", "n": 1, "scene": "s", "tiles": [[0, 0, 8, 1, 1, 5, 0, b"\x00"]]},
    "audio_start": {"t": "audio_start", "n": 1, "stream": 1, "format": "opus"},
    "audio": {"t": "audio", "n": 1, "stream": 1, "index": 0, "frames": [b"a"]},
    "prompt": {"t": "prompt", "n": 1, "prompt": 1, "lines": [], "timeout_s": 5},
    "prompt_end": {"t": "prompt_end", "n": 1},
    "battery": {"t": "battery", "n": 1, "level": 50},
    "transcript": {"t": "transcript", "n": 1, "text": "hi"},
    "info": {
        "t": "info",
        "n": 1,
        "v": 1,
        "model": "m",
        "firmware": "f",
        "serial": "s",
        "capabilities": {},
        "limits": {},
    },
    "done": {"t": "done", "n": 1, "re": 1},
}
TO_GLASSES = ("show", "tile", "audio_start", "audio", "prompt", "prompt_end")
BAD = [
    ("show", "scene", None),
    ("show", "scene", "x" * 129),
    ("show", "scene", b"s"),
    ("show", "scene", ["s"]),
    ("show", "page", 0),
    ("show", "page", 2),
    ("show", "page", True),
    ("show", "page", 1.0),
    ("show", "pages", 65536),
    ("show", "lines", "x"),
    ("show", "lines", [["x", 0]]),
    ("show", "lines", [[0]]),
    ("show", "lines", [[0, "x", 1, 2]]),
    ("show", "lines", [[32, "x"]]),
    ("show", "lines", [[-1, "x"]]),
    ("show", "lines", [[0, "x", 4096]]),
    ("show", "lines", [[0, "a\nb"]]),
    ("show", "lines", [[0, "x"]] * 33),
    ("show", "lines", [[0, "x" * 4097]] * 2),
    ("show", "lines", {"0": "x"}),
    ("show", "lines", None),
    ("tile", "tiles", [[0, 0, 8, 1, 1, 5]]),
    ("tile", "tiles", [[0, 0, 8, 1, 1, 5, 0]]),
    ("tile", "tiles", [[0, 0, 8, 1, 3, 5, 0, b"\0"]]),
    ("tile", "tiles", [[0, 0, 8, 1, 1, 5, 0, b"\0\0"]]),
    ("tile", "tiles", [[0, 0, 8, 1, 1, 5, 0, "x"]]),
    ("tile", "tiles", [[0, 0, 8, 1, 1, 5, 2, b"\0"]]),
    ("tile", "tiles", [[0, 0, 0, 1, 1, 5, 0, b""]]),
    ("tile", "tiles", [[-1, 0, 8, 1, 1, 5, 0, b"\0"]]),
    ("tile", "tiles", [[0, 0, 4096, 1, 1, 5, 0, b"\0"]]),
    ("tile", "tiles", [[0, 0, 8.0, 1, 1, 5, 0, b"\0"]]),
    ("tile", "tiles", [[0, 0, 4095, 4095, 4, 5, 1, b"\x81\0" * 99]]),
    ("tile", "tiles", [7]),
    ("tile", "tiles", "x"),
    ("tile", "tiles", [[0, 0, 640, 480, 4, 5, 1, b"\x81\0" * 1200 + b"\xff\0"]] * 2),
    ("audio_start", "stream", 65536),
    ("audio_start", "stream", -1),
    ("audio_start", "stream", "1"),
    ("audio_start", "rate", 7999),
    ("audio_start", "rate", 48001),
    ("audio_start", "frame_ms", 0),
    ("audio_start", "format", 1),
    ("audio", "frames", [b"x" * 2049] * 2),
    ("audio", "frames", ["x"]),
    ("audio", "frames", b"x"),
    ("audio", "index", -1),
    ("audio", "index", 2**32),
    ("prompt", "timeout_s", 0),
    ("prompt", "timeout_s", 601),
    ("prompt", "timeout_s", float("nan")),
    ("prompt", "timeout_s", float("inf")),
    ("prompt", "timeout_s", True),
    ("prompt", "timeout_s", "5"),
    ("prompt_end", "prompt", -1),
    ("prompt_end", "prompt", 2**32),
    ("prompt_end", "prompt", "7"),
    ("prompt_end", "prompt", None),
    ("battery", "level", 101),
    ("battery", "level", -1),
    ("battery", "level", 50.0),
    ("battery", "charging", 1),
    ("transcript", "text", "x" * 8193),
    ("transcript", "text", 5),
    ("transcript", "final", None),
    ("info", "capabilities", {"a": None}),
    ("info", "capabilities", {"a": [1]}),
    ("info", "capabilities", []),
    ("info", "capabilities", {"a": float("nan")}),
    ("info", "capabilities", {"a": "x" * 257}),
    ("info", "capabilities", {"x" * 129: 1}),
    ("info", "capabilities", {str(i): i for i in range(129)}),
    ("info", "limits", {"window": -1}),
    ("info", "limits", {"window": "8"}),
    ("info", "limits", {"window": 2**32}),
    ("info", "limits", {"window": True}),
    ("done", "re", -1),
    ("done", "re", "1"),
    ("done", "drawn", -1),
    ("done", "drawn", None),
    ("done", "clipped", "0"),
]


@pytest.mark.parametrize(("name", "key", "value"), BAD)
def test_a_malformed_field_is_a_bad_message_and_says_which(name, key, value):
    body = GOOD[name]
    role = Role.PERIPHERAL if name in TO_GLASSES else Role.CENTRAL
    sound = ReferenceCodec(role)
    sound.receive_packet(frame(body), 0.0)
    assert len(drain(sound)) == 1, "the sound one is taken"

    violation, answer = refusal_of(body | {key: value}, role=role)

    assert violation is Violation.BAD_MESSAGE
    assert (answer["t"], answer["code"], answer["re"]) == ("failed", "bad_message", 1)
    assert len(answer["detail"].encode()) <= 256


@pytest.mark.parametrize("name", GOOD)
def test_every_required_field_is_missed(name):
    role = Role.PERIPHERAL if name in TO_GLASSES else Role.CENTRAL
    required = set(GOOD[name]) - {"t", "v", "n", "re", "lines", "tiles", "drawn"}
    if name == "prompt":
        required.add("lines")
    for key in required:
        body = {k: v for k, v in GOOD[name].items() if k != key}
        violation, answer = refusal_of(body, role=role)
        assert violation is Violation.BAD_MESSAGE
        assert key in answer["detail"]


@pytest.mark.parametrize("number", [None, -1, 2**32, "1", 1.0, True])
def test_a_command_without_a_readable_number_is_refused_without_one(number):
    violation, answer = refusal_of({"t": "ping", "n": number})
    assert violation is Violation.BAD_MESSAGE
    assert "re" not in answer


@pytest.mark.parametrize(
    "body",
    [
        msgpack.packb({"t": "ping", "n": 6})[:-3] + b"\xa1n\x06\xc1",  # a byte msgpack never uses
        b"\x83\xa1n\x06\xa1t\xa4ping\xa1x",  # ends inside
        b"\x83\xa1n\x06\xa1t\xa2\xff\xfe\xa1x\x00",  # a text that is no UTF-8
        msgpack.packb({"n": 6, "t": "ping", "x": list(range(300))}),  # an array over the bound
        msgpack.packb({"n": 6, "t": "ping"}) + b"\x00",  # junk behind
        msgpack.packb({"n": 6, "t": "ping", "x": [[[[1]]]]}),  # too deep
        b"\x82\xa1n\x06\xa1x" + b"\x91" * 5000,  # very deep
        b"\x83\xa1n\x06\xa1t\xa4ping\xdd\xff\xff\xff\xff",  # a huge array announced
    ],
)
def test_damaged_msgpack_is_answered_when_its_number_can_be_read(body):
    violation, answer = refusal_of(body)
    assert violation is Violation.BAD_MESSAGE
    assert (answer["code"], answer["re"]) == ("bad_message", 6)


@pytest.mark.parametrize(
    "body", [b"", b"\xc1", b"\x01", b"\x90", b"\xa1t", b"\xdf\xff\xff\xff\xff", b"\x81\x01\x02"]
)
def test_damage_without_a_number_is_answered_without_one(body):
    violation, answer = refusal_of(body)
    assert violation is Violation.BAD_MESSAGE
    assert answer["code"] == "bad_message"
    assert "re" not in answer


def test_a_refusal_that_reaches_the_glasses_is_not_passed_on_or_answered():
    pair = CodecPair()
    pair.glasses.receive_packet(frame({"t": "failed", "code": "unsupported"}), 0.0)
    assert drain(pair.glasses) == []
    pair.settle()
    assert pair.heard == {role: [] for role in Role}
    assert [p[0] for p in pair.sent[Role.PERIPHERAL]] == [2]


def test_remote_text_in_a_refusal_is_made_harmless():
    _, answer = refusal_of({"t": "x\x1b[31m\u202e" + "é" * 200, "n": 1})
    assert answer["detail"].isascii()
    assert answer["detail"].isprintable()


# ------------------------------------------------------------------ any bytes whatever

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=10)
    | st.binary(max_size=10)
    | st.just(msgpack.Timestamp(5, 6))
    | st.just(msgpack.ExtType(7, b"x")),
    lambda inner: (
        st.lists(inner, max_size=9) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)
keys = st.sampled_from(sorted({key for body in GOOD.values() for key in body}))
types = st.sampled_from(
    [
        "hello",
        "update",
        "clear",
        "audio_end",
        "mic_start",
        "mic_stop",
        "worn",
        "mic",
        "answer",
        "failed",
        "capabilities",
        *GOOD,
    ]
)


@given(st.binary(max_size=200), st.sampled_from(Role))
def test_any_bytes_as_a_message_are_a_message_or_refused(body, sender):
    with contextlib.suppress(RefusedMessage):
        assert isinstance(decode(body, sender=sender, tiles=TileTable()), Incoming)


@given(types, st.dictionaries(keys, anything, max_size=8), st.integers(0, 9))
def test_any_values_in_any_fields_are_a_message_or_refused(type_, body, number):
    for role in Role:
        codec = ReferenceCodec(role)
        with contextlib.suppress(RemoteViolation):
            codec.receive_packet(frame(msgpack.packb({"t": type_, "n": number, **body})), 0.0)
        drain(codec)
        codec.packets_to_send(0.0)


@given(st.binary(max_size=200) | st.dictionaries(keys, anything, max_size=8).map(msgpack.packb))
def test_any_info_value_is_an_info_or_a_violation(value):
    with contextlib.suppress(RemoteViolation):
        assert isinstance(decode_info(value), GlassesInfo)


# ------------------------------------------------------------------ our own misuse


@pytest.mark.parametrize(
    ("role", "message", "re"),
    [
        (Role.CENTRAL, Gestured(Gesture.TAP, Side.LEFT), None),
        (Role.CENTRAL, Done(), 1),
        (Role.PERIPHERAL, Ping(), None),
        (Role.PERIPHERAL, Done(), None),
        (Role.PERIPHERAL, info(), None),
        (Role.PERIPHERAL, Gestured(Gesture.TAP), 1),
        (Role.CENTRAL, Hello("x" * 129, ""), None),
        (Role.CENTRAL, Hello("\ud800", ""), None),
        (Role.CENTRAL, StartAudio(-1, AudioFormat.OPUS), None),
        (Role.CENTRAL, StartAudio(1, AudioFormat.OPUS, 1), None),
        (Role.CENTRAL, UpdatePage("s", lines=(TextLine(0, "x"),) * 33), None),
        (Role.CENTRAL, UpdatePage("s", lines=(TextLine(0, "x" * 5000),) * 2), None),
        (Role.CENTRAL, AudioChunk(1, 0, (b"",) * 257), None),
        (Role.CENTRAL, Prompt(-1, (), 5), None),
        (Role.PERIPHERAL, MicrophoneChunk(1, 0, (b"x" * 4097,)), None),
        (Role.PERIPHERAL, CapabilitiesChanged({"a": None}), None),
        (Role.PERIPHERAL, CapabilitiesChanged({"a": 2**70}), None),
        (Role.PERIPHERAL, CapabilitiesChanged({str(i): i for i in range(129)}), None),
        (Role.PERIPHERAL, Failed("busy", "x" * 257), 1),
        (Role.PERIPHERAL, Done(drawn=2**32), 1),
        (Role.CENTRAL, UpdatePage("s", tiles=(Tile(4096, 0, 8, 1, 1, b"x"),)), None),
        (Role.CENTRAL, UpdatePage("s", tiles=(Tile(0, 0, 4096, 1, 1, bytes(512)),)), None),
        (Role.CENTRAL, "hello", None),
    ],
)
def test_what_the_profile_cannot_say_is_refused_here_and_nothing_is_sent(role, message, re):
    codec = ReferenceCodec(role)
    with pytest.raises(LocalMisuse):
        codec.send(message, 0.0, re=re)
    assert codec.backlog() == 0


def test_a_refused_command_uses_up_no_number():
    central = ReferenceCodec(Role.CENTRAL)
    with pytest.raises(LocalMisuse):
        central.send(Hello("x" * 129, ""), 0.0)
    assert central.send(Ping(), 0.0) == 1


def test_a_message_over_the_bound_is_refused_with_advice():
    central = ReferenceCodec(Role.CENTRAL)
    noise = bytes(range(256)) * 600
    with pytest.raises(LocalMisuse, match="split its tiles"):
        central.send(ShowPage("big", tiles=(Tile(0, 0, 640, 480, 4, noise[:153600]),)), 0.0)
    assert central.backlog() == 0
    assert len(noise) > MAX_MESSAGE_BYTES


def test_an_info_that_no_attribute_can_hold_is_refused():
    many = {f"capability.number.{i}": True for i in range(40)}
    with pytest.raises(LocalMisuse, match="512"):
        encode_info(GlassesInfo("m", "f", "s", many, {}))


def test_a_full_mock_fits_the_info_characteristic():
    record = {
        "display": True,
        "display.width": 576,
        "display.height": 136,
        "display.bpp": 1,
        "display.lines": 5,
        "display.font": "lens-22",
        "display.line_height": 27,
        "display.page_bytes": 1000,
        "display.bitmap": True,
        "display.tiles": True,
        "speaker": True,
        "speaker.codecs": "opus,pcm16",
        "speaker.rate": 16000,
        "microphone": True,
        "microphone.codecs": "opus,pcm16",
        "camera": False,
        "imu": True,
        "button": True,
        "light": False,
        "wifi": False,
        "gestures": "tap,double_tap",
    }
    full = GlassesInfo(
        "mock:full", "1.0.0", "MOCK-0001", record, {"window": 32, "message": 65536, "tiles": 65536}
    )
    assert decode_info(encode_info(full)) == full


def test_another_message_in_the_info_characteristic_is_a_violation():
    with pytest.raises(RemoteViolation, match="another message"):
        decode_info(msgpack.packb({"t": "worn", "worn": True}))
