"""What a recording leaves out, what it replaces, and that the rest is as it was: with real
simulated glasses, and with packets that are made for it.
"""

import asyncio
import base64
import json
import random
import time
from contextlib import asynccontextmanager
from types import SimpleNamespace

import msgspec
import pytest

from firmware_bridge import lc3
from firmware_bridge.catalog import find
from firmware_bridge.codec import Incoming
from firmware_bridge.driver import Passing
from firmware_bridge.messages import (
    AudioChunk,
    AudioFormat,
    BatteryChanged,
    MicrophoneChunk,
    PhotoTaken,
    Ping,
    ShowPage,
    StartAudio,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
    TextLine,
    VoiceNoteFetched,
)
from firmware_bridge.own_commands import (
    BlinkLight,
    FetchVoiceNote,
    GetWifi,
    HotspotChanged,
    LightColor,
    MotionRead,
    SetDisplayPosition,
    WifiChanged,
    WifiFound,
    WifiNetwork,
)
from firmware_bridge.packets import ChannelPacket
from firmware_bridge.recording.files import MAX_BYTES, read, write
from firmware_bridge.recording.lines import Line, from_tree, line_of, to_tree
from firmware_bridge.recording.make import RecordingMaker
from firmware_bridge.recording.media import leave_out
from firmware_bridge.recording.names import anonymise
from firmware_bridge.recording.playback import play_to_central, play_to_glasses
from tests.unit.firmware_bridge.sim_helpers import DEADLINE_S, worn

SOUND = random.Random(1).randbytes(1280)
JPEG = random.Random(2).randbytes(3000)


class Session:
    """A driver whose tap feeds a recording."""

    def __init__(self, mock, driver, _ear):
        self.mock, self.driver = mock, driver
        self.maker = RecordingMaker()
        self.events = []
        self.news = asyncio.Event()
        transport = SimpleNamespace(max_packet=driver._transport.max_packet)
        self.take(time.monotonic(), Passing.CONNECTED, (mock.glasses.model, transport))
        driver.tap = self.take

    def take(self, now, passing, value):
        event = {"event": "passed", **msgspec.to_builtins(line_of(now, passing, value))}
        if passing is Passing.CONNECTED:
            model, transport = value
            more = {"model": model.key, "mtu": transport.max_packet + 3, "glassd": "1"}
            event |= {"event": "connected", "names": [self.mock.address], **more}
        self.maker.add(event)

    async def listen(self):
        async for event in self.driver.events():
            self.events.append(event)
            self.news.set()

    async def until(self, kind, count=1):
        async with asyncio.timeout(DEADLINE_S):
            while sum(isinstance(event, kind) for event in self.events) < count:
                self.news.clear()
                await self.news.wait()


@asynccontextmanager
async def a_session(model, tmp_path, sound_format):
    """A page or a question, some sound of the microphone, a battery."""
    async with worn(model, tmp_path, Session) as session:
        page = ShowPage("s", lines=(TextLine(0, "hello"),))
        can_show = session.mock.glasses.capabilities["display"]
        await session.driver.request(page if can_show else GetWifi(), timeout_s=DEADLINE_S)
        await session.driver.request(StartMicrophone(1, sound_format), timeout_s=DEADLINE_S)
        session.mock.glasses.say("one two three")
        await session.until(MicrophoneChunk, 12)
        await session.driver.request(StopMicrophone(1), timeout_s=DEADLINE_S)
        session.mock.glasses.set_battery(41)
        await session.until(BatteryChanged)
        yield session


FAMILIES = [
    ("mock:full", AudioFormat.PCM16),
    pytest.param(
        "even_g1",
        AudioFormat.LC3,
        marks=pytest.mark.skipif(bool(lc3.why_not()), reason="needs liblc3"),
    ),
    pytest.param(
        "sim:mentra_live",
        AudioFormat.LC3,
        marks=pytest.mark.skipif(bool(lc3.why_not()), reason="needs liblc3"),
    ),
]


@pytest.mark.parametrize(("model", "sound_format"), FAMILIES)
async def test_the_sound_of_a_session_is_silence_and_all_else_is_understood(
    tmp_path, model, sound_format
):
    async with a_session(model, tmp_path, sound_format) as session:
        chunks = [e for e in session.events if isinstance(e, MicrophoneChunk)]
        without, whole = session.maker.recording(), session.maker.recording(sound=True)
    spoken = {f[at : at + 8] for c in chunks for f in c.frames for at in range(len(f) - 7)}
    spoken = {piece for piece in spoken if piece.count(0) < 4}
    assert spoken
    assert pieces(whole) & spoken
    assert not pieces(without) & spoken
    for recording in (without, whole):
        write(tmp_path / "r.jsonl", recording)
        again = read(tmp_path / "r.jsonl")
        assert again == recording
        assert not play_to_central(again).problems
        assert not play_to_glasses(again).problems
    assert (tmp_path / "r.jsonl").stat().st_mode & 0o077 == 0


def pieces(recording):
    """Every 8 bytes of every packet and message."""
    texts = [line.content for line in recording.lines if line.is_packet]
    frames = [f for line in recording.lines for f in (line.message or {}).get("frames", ())]
    texts += [bytes.fromhex(frame["hex"]) for frame in frames]
    return {text[at : at + 8] for text in texts for at in range(len(text) - 7)}


@pytest.mark.parametrize("photos", [True, False])
async def test_a_photo_of_a_session_is_left_out_unless_it_is_wanted(tmp_path, photos):
    async with worn("mock:full", tmp_path, Session) as session:
        await session.driver.request(TakePhoto(1), timeout_s=DEADLINE_S)
        await session.until(PhotoTaken)
        [jpeg] = [event.jpeg for event in session.events if isinstance(event, PhotoTaken)]
        recording = session.maker.recording(photos=photos)
    packets = b"".join(line.content[6:] for line in recording.lines if line.is_packet)
    places = range(0, len(jpeg) - 16, 16)
    left = [at for at in places if any(jpeg[at : at + 16]) and jpeg[at : at + 16] in packets]
    if photos:
        assert len(left) > 0.9 * len(places)
    else:
        assert not left
    assert not play_to_central(recording).problems
    assert not play_to_glasses(recording).problems


# ------------------------------------------------------------------ packets made for it


def to_us(at, data, **more):
    return line_of(at, Passing.IN, ChannelPacket(data, more.pop("channel", "")))


def meant(at, message):
    return line_of(at, Passing.MESSAGE, Incoming(message))


def wanted(at, command):
    return line_of(at, Passing.COMMAND, (command, 1))


def contents(lines):
    return b"".join(line.content for line in lines if line.is_packet)


def cut(data, head=b"\x07", size=200):
    return [head + data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("photos", [True, False])
def test_a_photo_in_pieces_is_left_out_unless_it_is_wanted(photos):
    packets = [to_us(1.0, piece) for piece in cut(JPEG)]
    lines = [wanted(0.5, TakePhoto(1)), *packets, meant(2.0, PhotoTaken(1, JPEG))]
    left = leave_out(lines, sound=False, photos=photos)
    assert (JPEG[200:400] in contents(left)) is photos
    assert [len(each.content) for each in left if each.is_packet] == [
        len(each.content) for each in packets
    ]
    assert (from_tree(left[-1].message).jpeg == JPEG) is photos
    assert len(from_tree(left[-1].message).jpeg) == len(JPEG)


def test_half_a_photo_is_left_out_too():
    lines = [wanted(0.5, TakePhoto(1)), *(to_us(1.0, piece) for piece in cut(JPEG[:900]))]
    left = contents(leave_out(lines, sound=False, photos=False))
    assert len(left) == len(contents(lines))
    assert not [at for at in range(0, 900, 8) if JPEG[at : at + 8] in left[201:]]


def test_sound_that_nobody_had_asked_for_is_left_out():
    lines = [
        wanted(0.5, StartMicrophone(1, AudioFormat.PCM16)),
        to_us(1.0, b"\xf1" + SOUND),
        to_us(1.1, b"\x2c\x66\x40" + bytes(30)),
        meant(1.1, BatteryChanged(64)),
    ]
    left = leave_out(lines, sound=False, photos=False)
    assert left[1].content == lines[1].content[:8] + bytes(len(SOUND) - 7)
    assert left[2:] == lines[2:]


def test_sound_that_the_packets_have_in_another_form_is_left_out():
    coded = bytes(byte ^ 0x55 for byte in SOUND)
    lines = [
        wanted(0.5, StartMicrophone(1, AudioFormat.PCM16)),
        *(to_us(1.0, piece) for piece in cut(coded)),
        meant(1.1, MicrophoneChunk(1, 0, (SOUND,))),
        to_us(1.2, b"\x2c\x66\x40"),
        meant(1.2, BatteryChanged(64)),
    ]
    left = leave_out(lines, sound=False, photos=False)
    assert coded[20:28] not in contents(left)
    assert left[-2:] == lines[-2:]


def test_speech_to_the_glasses_that_the_packets_have_in_another_form_is_left_out():
    coded = bytes(byte ^ 0x55 for byte in SOUND)
    lines = [
        wanted(0.5, StartAudio(1, AudioFormat.PCM16)),
        wanted(0.6, AudioChunk(1, 0, (SOUND,))),
        *(line_of(0.7, Passing.OUT, piece) for piece in cut(coded)),
    ]
    left = leave_out(lines, sound=False, photos=False)
    assert coded[20:28] not in contents(left)
    assert len(contents(left)) == len(contents(lines))
    assert leave_out(lines, sound=True, photos=True) == lines


def test_a_packet_with_zeros_as_sound_has_them_stays_whole():
    quiet = b"\x2a" * 8 + bytes(8) + SOUND[:64]
    lines = [
        wanted(0.5, StartMicrophone(1, AudioFormat.PCM16)),
        to_us(1.0, b"\xf1" + quiet),
        meant(1.0, MicrophoneChunk(1, 0, (quiet,))),
        to_us(1.1, b"\x2c\x2a\x2a" + bytes(30)),
        meant(1.1, BatteryChanged(42)),
    ]
    assert leave_out(lines, sound=False, photos=False)[-2:] == lines[-2:]


def test_before_a_microphone_is_open_nothing_is_emptied():
    lines = [to_us(1.0, b"\x6e" + SOUND), wanted(2.0, Ping())]
    assert leave_out(lines, sound=False, photos=False) == lines


ADDRESS = "F0:5A:6F:52:8B:15"


@pytest.mark.parametrize(
    "form",
    [
        ADDRESS.encode(),
        ADDRESS.lower().replace(":", "").encode(),
        bytes.fromhex(ADDRESS.replace(":", "")),
        bytes.fromhex(ADDRESS.replace(":", ""))[::-1],
        b"Anna's G1",
    ],
)
def test_an_address_and_a_name_are_replaced_in_packets(form):
    lines = [to_us(1.0, b"\x01" + form + b"\x02"), to_us(1.1, b"\x03" + form[:3])]
    lines += [to_us(1.2, b"\x09\x09" + form[3:])]
    left = anonymise(lines, [ADDRESS, "Anna's G1"])
    assert [len(each.content) for each in left] == [len(each.content) for each in lines]
    assert form not in left[0].content
    assert left[0].content[:1] + left[0].content[-1:] == b"\x01\x02"
    assert left[1].content + left[2].content[2:] != lines[1].content + lines[2].content[2:]
    assert form[3:] not in left[2].content


def test_names_are_replaced_in_messages_and_answers_too():
    said = {"check": "text", "asked": "?", "said": f"it says {ADDRESS}"}
    lines = [Line(0.0, answer=said), Line(0.1, "glassd", side="left", up=True, reason=ADDRESS)]
    left = msgspec.json.encode(anonymise(lines, [ADDRESS]))
    assert b"F0:5A" not in left
    assert b"X0:0X:0X:00:0X:00" in left


def test_a_serial_number_that_the_glasses_say_is_replaced():
    info = {"type": "GlassesInfo", "model": "m", "firmware": "1", "serial": "S110LAAL103842"}
    info |= {"capabilities": {}, "limits": {}}
    lines = [to_us(0.0, b"44S110LAAL103842"), Line(0.1, message=info)]
    left = anonymise(lines, [])
    assert left[0].content == b"44X000XXXX000000"
    assert left[1].message["serial"] == "X000XXXX000000"


def test_a_name_that_is_a_word_of_the_format_leaves_the_format_alone():
    lines = [meant(0.0, BatteryChanged(3)), Line(0.1, answer={"check": "Battery", "said": "x"})]
    left = anonymise(lines, ["Battery"])
    assert from_tree(left[0].message) == BatteryChanged(3)
    assert left[1].answer["check"] == "XXXXXXX"


# ------------------------------------------------------------------ making one


def connected(maker, model="even_g1"):
    facts = {"model": model, "mtu": 251, "glassd": "1", "names": []}
    maker.add({"event": "connected", "at": 5.0, "session": 248, **facts})


def test_what_comes_before_the_first_connection_is_left_out():
    maker = RecordingMaker()
    maker.add({"event": "passed", "at": 1.0, "to": "glasses", "data": "00"})
    assert maker.recording() is None
    connected(maker)
    maker.add({"event": "passed", "at": 6.5, "to": "glasses", "data": "4d01"})
    recording = maker.recording()
    assert [(line.at, line.data) for line in recording.lines] == [(0.0, None), (1.5, "4d01")]


def test_a_full_recording_takes_no_more_and_can_be_read(tmp_path):
    maker = RecordingMaker()
    connected(maker)
    packet = {"event": "passed", "at": 6.0, "to": "glasses", "data": "ab" * 512}
    while not maker.full:
        maker.add(packet)
    taken = maker.packets
    maker.add(packet)
    assert maker.packets == taken > 10
    write(tmp_path / "full.jsonl", maker.recording())
    assert (tmp_path / "full.jsonl").stat().st_size <= MAX_BYTES
    assert len(read(tmp_path / "full.jsonl").lines) == taken + 1


def test_every_message_is_written_and_read_again():
    for message in (
        ShowPage("s", lines=(TextLine(0, "x"),)),
        PhotoTaken(1, b"\xff" + bytes(40)),
        MicrophoneChunk(1, 2, (b"\1\2", bytes(30))),
        find("mock:full") and BatteryChanged(3),
    ):
        tree = msgspec.json.decode(msgspec.json.encode(to_tree(message)))
        assert from_tree(tree) == message


@pytest.mark.parametrize(
    ("tree", "says"),
    [({}, "there is no message"), ({"type": "BatteryChanged"}, "BatteryChanged: ")],
)
def test_a_message_that_there_is_not_is_refused(tree, says):
    with pytest.raises(ValueError, match=says):
        from_tree(tree)


@pytest.mark.parametrize(
    "message",
    [
        WifiFound((WifiNetwork("Home", -50, False), WifiNetwork("Open")), True),
        WifiChanged(True, "Home"),
        MotionRead((0.0, 1.0, 2.5), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
        SetDisplayPosition(3, 4),
        BlinkLight(LightColor.RED, level=5),
    ],
)
def test_what_only_some_glasses_have_is_recorded_too(message):
    assert from_tree(msgspec.json.decode(msgspec.json.encode(to_tree(message)))) == message


# ------------------------------------------------------------------ Wi-Fi


def about(*messages, packets=()):
    lines = [to_us(1.0, packet) for packet in packets]
    return anonymise([*lines, *(meant(2.0, message) for message in messages)], ())


def test_names_and_addresses_of_networks_are_replaced():
    network = WifiNetwork("Müller's Wi-Fi", -40)
    where = WifiChanged(connected=True, ssid="wifi", address="192.168.1.23")
    said = json.dumps({"type": "wifi_status", "ssid": "wifi", "ip": "192.168.1.23"}).encode()
    left = about(
        WifiFound((network,)),
        where,
        packets=[
            said,
            json.dumps({"C": json.dumps({"ssid": "Müller's Wi-Fi"})}).encode(),
            "\x0fMüller's Wi-Fi".encode(),
        ],
    )
    packets = [line.content for line in left if line.is_packet]
    assert packets[0] == said.replace(b'"wifi"', b'"XXXX"').replace(
        b"192.168.1.23", b"000.000.0.00"
    )
    assert json.loads(json.loads(packets[1])["C"])["ssid"] == "X" * len("M\\\\u00fcller's Wi-Fi")
    assert packets[2] == b"\x0fXXXXXXX'X XX-XX"
    messages = [from_tree(line.message) for line in left if line.message]
    assert messages[0].networks[0].ssid == "XXXXXXX'X XX-XX"
    assert messages[1] == WifiChanged(connected=True, ssid="XXXX", address="000.000.0.00")


def test_the_password_of_a_hotspot_is_replaced():
    said = b'{"hotspot":"on","ssid":"Live_A1B2","pw":"correct horse"}'
    left = about(HotspotChanged(True, "Live_A1B2", "correct horse", "10.0.0.1"), packets=[said])
    assert b"Live_A1B2" not in contents(left)
    assert b"correct" not in contents(left)
    [message] = [from_tree(line.message) for line in left if line.message]
    assert message == HotspotChanged(True, "XXXX_X0X0", "XXXXXXX XXXXX", "00.0.0.0")


def test_a_spoken_note_is_left_out():
    note = SOUND[:800]
    lines = [
        wanted(0.5, FetchVoiceNote(1)),
        *(to_us(1.0, piece) for piece in cut(note)),
        meant(1.1, VoiceNoteFetched(1, note)),
    ]
    left = leave_out(lines, sound=False, photos=False)
    assert not any(contents(left)[at : at + 8] in note for at in range(1, 150))
    assert from_tree(left[-1].message) == VoiceNoteFetched(1, bytes(800))
    assert leave_out(lines, sound=True, photos=False) == lines


def test_a_network_in_two_packets_is_replaced():
    left = about(
        WifiChanged(connected=True, ssid="Home of Ada"), packets=[b"#Home o", b"#f Ada more"]
    )
    assert contents(left) == b"#XXXX X#X XXX more"


# ------------------------------------------------------------------ what is kept beside a photo

FILE = b"\xff\xd8\xff" + bytes(range(1, 240)) * 4 + b"\xff\xd9"


def test_a_photo_that_is_left_out_can_be_recognised_as_one():
    packets = [to_us(1.0, piece) for piece in cut(FILE)]
    lines = [wanted(0.5, TakePhoto(1)), *packets, meant(2.0, PhotoTaken(1, FILE))]
    left = leave_out(lines, sound=False, photos=False)
    photo = from_tree(left[-1].message).jpeg
    assert photo == b"\xff\xd8\xff" + bytes(len(FILE) - 5) + b"\xff\xd9"
    sent = [line.content for line in left if line.is_packet]
    assert (sent[0][1:4], sent[-1][-2:]) == (b"\xff\xd8\xff", b"\xff\xd9")
    for before, after in zip(packets, sent, strict=True):
        assert sum(before.content) % 256 == sum(after) % 256, "a checksum stays right"
        assert sum(map(bool, after)) <= 8


def test_text_beside_speech_in_another_form_stays():
    words = json.dumps({"type": "get_wifi", "why": "the wearer asked for it"}).encode()
    coded = json.dumps({"sound": base64.b64encode(SOUND).decode()}).encode()
    lines = [
        wanted(0.5, StartAudio(1, AudioFormat.PCM16)),
        wanted(0.6, AudioChunk(1, 0, (SOUND,))),
        line_of(0.7, Passing.OUT, bytes(byte ^ 0x55 for byte in SOUND)),
        line_of(0.8, Passing.OUT, words),
        line_of(0.9, Passing.OUT, coded),
    ]
    left = [line.content for line in leave_out(lines, sound=False, photos=False)]
    assert left[3] == words
    assert left[4] == coded[:8] + bytes(len(coded) - 8), "sound may be written as text"


def test_a_problem_is_one_short_line(tmp_path):
    maker = RecordingMaker()
    connected(maker)
    maker.add({"event": "passed", "at": 6.0, "message": to_tree(PhotoTaken(1, JPEG))})
    maker.add({"event": "passed", "at": 7.0, "message": to_tree(WifiChanged(True, "n" * 900))})
    found = play_to_central(maker.recording()).problems
    assert found[0].endswith("not understood: PhotoTaken(1, 3000 bytes)")
    assert max(map(len, found)) <= 300
