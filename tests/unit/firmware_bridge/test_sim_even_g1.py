"""The simulated Even G1: two radios, and on each what its fact sheet (§) says; the packets here
are written by hand from it.
"""

import asyncio
import json
import time
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from bleak import BleakScanner

from firmware_bridge import lc3
from firmware_bridge.catalog import find
from firmware_bridge.codecs.even_g1 import peripheral
from firmware_bridge.codecs.even_g1.answers import ArmFacts
from firmware_bridge.codecs.even_g1.conflicts import CONFLICTS
from firmware_bridge.errors import LinkLost, RadioError, RemoteViolation
from firmware_bridge.lc3 import Decoder
from firmware_bridge.messages import Gesture
from firmware_bridge.metrics import metrics_for
from firmware_bridge.sides import Side
from firmware_bridge.sim.even_g1 import glasses as even_g1
from firmware_bridge.sim.even_g1.firmware import FirmwareArm
from firmware_bridge.sim.even_g1.glasses import more_follow
from firmware_bridge.sim.even_g1.quirks import QUIRKS, firmware
from firmware_bridge.sim.faults import parse_fault
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.inproc import Mock, start_mock
from firmware_bridge.sim.model_specs import parts_of
from firmware_bridge.sim.quirks import QuirkError
from firmware_bridge.transports.ble import open_radio, scan, scan_all
from firmware_bridge.transports.ble_connection import BleTransport, connect
from tests.system import needs
from tests.unit.firmware_bridge.sim_helpers import DEADLINE_S, Ear, loudness

pytestmark = pytest.mark.enable_socket

L, R = Side.LEFT, Side.RIGHT
QUIET_S = 0.15
SPEED = 30.0


class Arm:
    """One link, as a host that writes bytes sees it."""

    def __init__(self, transport: BleTransport) -> None:
        self.transport = transport
        self._arriving = transport.packets()

    async def ask(self, packet: bytes | str) -> bytes:
        await self.transport.write(bytes.fromhex(packet) if isinstance(packet, str) else packet)
        return await self.heard()

    async def heard(self) -> bytes:
        async with asyncio.timeout(DEADLINE_S):
            return await anext(self._arriving)

    async def lost(self) -> bool:
        async with asyncio.timeout(DEADLINE_S):
            async for _ in self._arriving:
                pass
        return True

    async def silent(self, packet: str) -> bool:
        """Say something and hear nothing."""
        await self.transport.write(bytes.fromhex(packet))
        try:
            async with asyncio.timeout(QUIET_S):
                await asyncio.shield(asyncio.ensure_future(anext(self._arriving)))
        except TimeoutError:
            return True
        return False


class Pair:
    def __init__(self, radio, mock: Mock, ear: Ear, arms: dict[Side, Arm]) -> None:
        self.radio, self.mock, self.ear, self.arms = radio, mock, ear, arms
        self.left, self.right = arms[L], arms[R]

    async def inject(self, word: str) -> bool:
        return await self.mock.injector.inject(parse_fault(word))

    async def again(self, side: Side) -> Arm:
        return Arm(
            await connect(
                self.radio,
                await scan(
                    self.radio,
                    timeout_s=DEADLINE_S,
                    address=self.mock.identities[side].address,
                    arms=False,
                ),
                timeout_s=DEADLINE_S,
            )
        )


@asynccontextmanager
async def even(out: Path, *quirks: str) -> AsyncIterator[Pair]:
    radio = await open_radio("inproc")
    ear = Ear()
    mock = await start_mock(
        "sim:even_g1", radio.air, out_dir=out, tell=ear, speed=SPEED, quirks=quirks
    )
    try:
        arms = {}
        for side in Side:
            address = mock.identities[side].address
            arms[side] = Arm(
                await connect(
                    radio,
                    await scan(radio, timeout_s=DEADLINE_S, address=address, arms=False),
                    timeout_s=DEADLINE_S,
                )
            )
        for side in Side:
            await ear.wait("subscribed", where=lambda e, side=side: e["side"] is side)
        yield Pair(radio, mock, ear, arms)
    finally:
        await radio.close()
        await mock.close()


@pytest.fixture
async def pair(tmp_path) -> AsyncIterator[Pair]:
    async with even(tmp_path) as pair:
        yield pair


def text(
    words: str,
    *,
    number: int = 0,
    status: int = 0x71,
    page: int = 1,
    pages: int = 1,
    room: int = 191,
) -> list[bytes]:
    """§6, by hand."""
    data = words.encode()
    pieces = [data[at : at + room] for at in range(0, len(data), room)]
    return [
        bytes([0x4E, number, len(pieces), i, status, 0, 0, page, pages]) + piece
        for i, piece in enumerate(pieces)
    ]


def bitmap(rows: list[bytes]) -> bytes:
    """A Windows BMP of 576 × 136, bottom row first, header of 62 bytes (§4)."""
    pixels = b"".join(reversed(rows))
    head = b"BM" + (62 + len(pixels)).to_bytes(4, "little") + bytes(4) + (62).to_bytes(4, "little")
    info = (
        (40).to_bytes(4, "little")
        + (576).to_bytes(4, "little")
        + (136).to_bytes(4, "little")
        + b"\1\0\1\0"
        + bytes(24)
    )
    return head + info + b"\0\0\0\0\xff\xff\xff\0" + pixels


async def send_bitmap(arm: Arm, file: bytes, *, spoil: int = 0) -> tuple[bytes, bytes]:
    """§7; gives the answers to 20 and to 16."""
    pieces = [file[at : at + 194] for at in range(0, len(file), 194)]
    for n, piece in enumerate(pieces):
        await arm.transport.write(bytes([0x15, n]) + (b"\0\x1c\0\0" if n == 0 else b"") + piece)
    over = await arm.ask("20 0D 0E")
    crc = (zlib.crc32(b"\0\x1c\0\0" + file) ^ spoil).to_bytes(4, "big")
    return over, await arm.ask(b"\x16" + crc)


# ------------------------------------------------------------------ who they are


async def test_two_arms_advertise_one_channel_and_each_its_serial(
    tmp_path: Path,
) -> None:
    radio = await open_radio("inproc")
    mock = await start_mock("sim:even_g1", radio.air, out_dir=tmp_path)
    try:
        heard = {}
        async with asyncio.timeout(DEADLINE_S):
            while len(heard) < 2:
                heard |= {s.name: s for s in await scan_all(radio, timeout_s=0.3)}
        seen = list(heard.values())
        async with BleakScanner(backend=radio.scanner) as scanner:
            _device, data = await anext(scanner.advertisement_data())
    finally:
        await radio.close()
        await mock.close()
    assert sorted(s.name.split("_")[:3] for s in seen) == [
        ["Even G1", "47", "L"],
        ["Even G1", "47", "R"],
    ]
    for sighting in seen:
        assert sighting.name.endswith("_" + sighting.address.replace(":", "")[-6:])
        assert sighting.entry.key == "even_g1"
    assert data.manufacturer_data == {0xFFFF: b"S100LAAL103842"}


async def test_an_arm_offers_an_mtu_of_251(pair: Pair) -> None:
    assert [arm.transport.max_packet for arm in pair.arms.values()] == [248, 248]


async def test_an_answer_takes_what_captures_took(pair: Pair) -> None:
    assert 0.026 <= pair.mock.glasses.faults[L].latency_s * SPEED <= 0.040
    pair.mock.glasses.faults[R].latency_s = 0.2
    began = time.monotonic()
    await pair.right.ask("18")
    assert time.monotonic() - began >= 0.2


# ------------------------------------------------------------------ §5: every command is answered


GENERIC = [
    ("01 15 00", "01 C9"),
    ("03 0C", "03 C9"),
    ("03 0A 00", "03 C9"),
    ("07 01", "07 C9"),
    ("08 06 00 01 03 02", "08 C9"),
    ("09 01", "09 C9"),
    ("0A 06 00 01 00 01", "0A C9"),
    ("0B 1E 01", "0B C9"),
    ("0D 01 01 00 00 00 20 0D 48 69", "0D C9"),
    ("0F 01 01 00 00 00 00 0D", "0F C9"),
    ("10 05 00 07 01", "10 06 00 07 01 C9"),
    ("18", "18 C9"),
    ("1C 00 01 02", "1C C9"),
    ("20 0D 0E", "20 C9"),
    ("23 6C 00", "23 C9"),
    ("23 6C C1", "23 C9"),
    ("27 01", "27 C9"),
    ("29", "29 65"),
    ("2B", "2B 69 0A 06"),
    ("2D", "2D C9"),
    ("2E", "2E C9"),
    ("32", "32 C9"),
    ("35", "35 C9 2F"),
    ("36", "36 C9"),
    ("37", "37 49 1A"),
    ("3A", "3A C9"),
    ("3B", "3B C9"),
    ("3C", "3C C9"),
    ("3D 06 00 01 01 02", "3D C9"),
    ("3E", "3E C9"),
    ("3F 05", "3F C9"),
    ("4C 00 00 00 1B", "4C C9"),
    ("4D FB", "4D C9"),
    ("4F 01 05", "4F C9"),
    ("58", "58 C9"),
    ("F4 01", "F4 C9"),
    ("99", "99 CA"),
]


@pytest.mark.requirement("I4-sim-g1")
async def test_generic_answers_have_twenty_bytes_as_in_every_capture(pair: Pair) -> None:
    for packet, answer in GENERIC:
        for arm in pair.arms.values():
            said = await arm.ask(packet)
            assert said.startswith(bytes.fromhex(answer)), packet
            assert len(said) == 20


OWN_FORM = [
    (
        "06 15 00 07 01 00 00 00 00 00 00 00 00 00 00 00 00 10 05 00 01",
        "06 15 00 07 01 01 00 01 00 00",
    ),
    ("1E 10 00 E0 03 01 00 01 00 01 00 01 00 01 00 00", "1E 10 00 E0 03 01 00 01 00 00"),
    ("39 05 00 09 01", "39 05 00 09 01 00"),
    ("50 06 00 00 01 01", "50 06 00 00 01 01"),
    ("25 06 00 07 04 07", "25 06 00 07 04 07"),
    ("25 06 07 00 04 07", "25 06 07 00 04 07"),
    ("25 06 00 07 04 08", "25 06 00 07 04 08"),
    ("26 08 00 05 02 01 04 05", "26 06 00 05 02 C9"),
    ("0E 00", "0E C9 00"),
    ("34", "34 34" + b"S100LAAL103842".hex() + "00 00"),
]


@pytest.mark.requirement("I4-sim-g1")
async def test_answers_of_their_own_form_are_not_padded(pair: Pair) -> None:
    for packet, answer in OWN_FORM:
        assert await pair.right.ask(packet) == bytes.fromhex(answer)


async def test_the_firmware_tells_itself_without_an_opcode(pair: Pair) -> None:
    for ask in ("23 74", "6E 74"):
        assert (await pair.left.ask(ask)).startswith(b"net build time: ")


# ------------------------------------------------------------------ the lens of each arm


HOSTS = {
    "ED": (0x31, 1, 2, 191),
    "ED over": (0x41, 1, 1, 191),
    "MA chunk": (0x71, 1, 1, 176),
    "EG": (0x30, 1, 3, 180),
    "MA page": (0x71, 0, 1, 191),
    "G1B one packet": (0x71, 0, 2, 230),
}


@pytest.mark.requirement("I4-sim-g1")
async def test_text_of_every_host_is_drawn(pair: Pair) -> None:
    for number, (status, page, pages, room) in enumerate(HOSTS.values(), 253):
        words = f"{number}: Ärger in Zürich ✓\n" + "many words in many pieces " * 9 + "\n"
        for packet in text(
            words, number=number % 256, status=status, page=page, pages=pages, room=room
        ):
            assert (await pair.left.ask(packet))[:2] == b"\x4e\xc9"
        shown = pair.mock.glasses.lens_report()["sides"][L]
        assert shown["lines"] == words.splitlines()
        assert 1 <= shown["page"] <= shown["pages"]


@pytest.mark.requirement("I4-sim-g1")
async def test_each_arm_has_its_picture_and_the_lens_says_when_they_differ(pair: Pair) -> None:
    (packet,) = text("\n\nGood morning\n")
    await pair.left.ask(packet)
    shown = pair.mock.glasses.lens_report()
    assert shown["same"] is False
    assert (shown["side"], shown["lines"]) == (L, ["", "", "Good morning"])
    assert shown["sides"][R]["lines"] == []
    await pair.right.ask(packet)
    shown = pair.mock.glasses.lens_report()
    assert shown["same"] is True
    assert {Path(shown["sides"][side]["png"]).name for side in Side} == {
        "lens-left.png",
        "lens-right.png",
    }
    pictures = [Path(shown["sides"][side]["png"]).read_bytes() for side in Side]
    assert pictures[0] == pictures[1]
    await pair.left.ask("18")
    assert pair.mock.glasses.lens_report()["sides"][L]["lines"] == []


async def test_text_is_drawn_in_its_own_metrics_in_the_middle_488_pixels(pair: Pair) -> None:
    await pair.left.ask(text("W" * 20 + "\n")[0])
    box = pair.mock.glasses.lenses[L].image.getbbox()
    assert 44 <= box[0] <= 46
    assert abs((box[2] - box[0]) - metrics_for("g1-21").width("W" * 20)) <= 3
    assert metrics_for("g1-21").width("W" * 20) < metrics_for("lens-22").width("W" * 20)


async def test_a_picture_with_the_right_checksum_is_drawn_and_another_is_refused(
    pair: Pair,
) -> None:
    rows = [bytes([0xFF] * 72)] * 2 + [bytes([0x80]) + bytes(71)] * 134
    over, verdict = await send_bitmap(pair.left, bitmap(rows))
    assert over == bytes.fromhex("20 C9").ljust(20, b"\0")
    assert (verdict[:1], verdict[5:]) == (b"\x16", b"\xc9")
    lens = pair.mock.glasses.lenses[L]
    assert lens.lit == 2 * 576 + 134
    assert (lens.image.getpixel((300, 0)), lens.image.getpixel((0, 100))) == (255, 255)
    _, verdict = await send_bitmap(pair.right, bitmap(rows), spoil=1)
    assert verdict[5:] == b"\xca"
    assert pair.mock.glasses.lenses[R].lit == 0


async def test_a_notification_lies_over_the_page_for_a_while(pair: Pair) -> None:
    await pair.left.ask(text("the page\n")[0])
    body = json.dumps(
        {
            "ncs_notification": {
                "msg_id": 1,
                "app_identifier": "org.telegram",
                "title": "Ada",
                "subtitle": "",
                "message": "Lunch?\nAt one?" + "." * 90,
                "time_s": 1,
                "display_name": "Telegram",
            }
        },
        separators=(",", ":"),
    ).encode()
    pieces = [body[at : at + 176] for at in range(0, len(body), 176)]
    answers = [
        await pair.left.ask(bytes([0x4B, 7, len(pieces), i]) + piece)
        for i, piece in enumerate(pieces)
    ]
    assert [a[1] for a in answers] == [0xCB, 0xC9]
    told = await pair.ear.wait("notification")
    assert (told["app"], told["lines"][:2]) == ("org.telegram", ["Telegram: Ada", ""])
    await pair.ear.wait("lens", where=lambda e: e["sides"][L]["lines"] == ["the page"], count=2)


async def test_a_whitelist_in_pieces_is_continued_and_taken(pair: Pair) -> None:
    body = json.dumps(
        {
            "calendar_enable": True,
            "call_enable": True,
            "msg_enable": True,
            "ios_mail_enable": True,
            "app": {
                "list": [{"id": f"org.example.app{i}", "name": f"App {i}"} for i in range(5)],
                "enable": True,
            },
        }
    ).encode()
    pieces = [body[at : at + 177] for at in range(0, len(body), 177)]
    answers = [
        await pair.left.ask(bytes([0x04, len(pieces), i]) + piece) for i, piece in enumerate(pieces)
    ]
    assert [a[1] for a in answers] == [0xCB] * (len(pieces) - 1) + [0xC9]
    assert pair.mock.glasses.settings["apps"] == [f"org.example.app{i}" for i in range(5)]


# ------------------------------------------------------------------ what they notice


async def test_a_gesture_is_noticed_by_the_arm_it_is_made_at(pair: Pair) -> None:
    glasses = pair.mock.glasses
    assert glasses.gesture(Gesture.TAP)
    assert (await pair.right.heard())[:2] == b"\xf5\x01"
    assert glasses.gesture(Gesture.TAP, side=L)
    assert (await pair.left.heard())[:2] == b"\xf5\x01"
    assert glasses.gesture(Gesture.BUTTON_LONG)
    assert (await pair.left.heard())[:2] == b"\xf5\x17"
    assert glasses.gesture(Gesture.HEAD_UP)
    assert (await pair.right.heard())[:2] == b"\xf5\x02"
    assert glasses.say("they recognise no speech") is False


@pytest.mark.requirement("I14-button-released")
async def test_a_long_press_ends(pair: Pair) -> None:
    glasses = pair.mock.glasses
    for press in (lambda: glasses.gesture(Gesture.BUTTON_LONG), lambda: glasses.hold(3)):
        assert press()
        pressed_at = glasses.time.now()
        assert (await pair.left.heard())[:2] == b"\xf5\x17"
        assert (await pair.left.heard())[:2] == b"\xf5\x18"
        length = glasses.time.now() - pressed_at
        assert length >= 1
    assert length >= 3


async def test_each_arm_has_its_battery(pair: Pair) -> None:
    pair.mock.glasses.set_battery(31, side=R)
    packets = [await pair.right.heard(), await pair.right.heard()]
    assert b"\xf5\x0a\x1f" in [p[:3] for p in packets]
    assert (await pair.right.ask("2C 01"))[:3] == b"\x2c\x66\x1f"
    assert (await pair.left.ask("2C 02"))[:3] == b"\x2c\x66\x57"
    assert pair.mock.glasses.battery == 31


@needs("liblc3")
@pytest.mark.requirement("I4-sim-g1", "I14-sim-microphone")
async def test_the_microphone_of_the_right_arm_streams_ten_packets_a_second(pair: Pair) -> None:
    assert await pair.left.ask("0E 01") == bytes.fromhex("0E CA 01"), "the left has none"
    assert await pair.right.ask("0E 01") == bytes.fromhex("0E C9 01")
    pair.mock.glasses.say("hello")
    sound = [await pair.right.heard() for _ in range(4)]
    assert [s[:2] for s in sound] == [bytes([0xF1, n]) for n in range(4)]
    assert {len(s) for s in sound} == {202}
    decoder = Decoder(20)
    pcm = b"".join(decoder.decode(s[at : at + 20]) for s in sound for at in range(2, 202, 20))
    assert loudness(pcm) > 1000, "a word is a tone, in real LC3"
    await pair.right.transport.write(bytes.fromhex("0E 00"))
    async with asyncio.timeout(DEADLINE_S):
        while (await pair.right.heard())[:1] != b"\x0e":
            pass
    assert await pair.right.ask("0E 01") == bytes.fromhex("0E C9 01")
    assert (await pair.right.heard())[:2] == b"\xf1\x00", "counted anew"


@needs("liblc3")
async def test_a_recording_ends_by_itself(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    assert even_g1.RECORDING_S == 30
    monkeypatch.setattr(even_g1, "RECORDING_S", 0.3)
    await pair.right.ask("0E 01")
    assert [(await pair.right.heard())[:2] for _ in range(3)] == [b"\xf1\0", b"\xf1\1", b"\xf1\2"]
    await pair.ear.wait("microphone", where=lambda e: not e["open"])
    assert (await pair.right.ask("25 06 00 00 04 00"))[0] == 0x25, (
        "and nothing more was said meanwhile"
    )


async def test_without_liblc3_the_microphone_is_refused(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lc3, "_NAMES", ("liblc3-that-is-not-there.so",))
    assert await pair.right.ask("0E 01") == bytes.fromhex("0E CA 01")
    told = await pair.ear.wait("microphone")
    assert told["open"] is False
    assert "liblc3-0" in told["problem"]


async def test_an_arm_disconnects_after_32_silent_seconds_and_advertises(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert peripheral.SHUT_DOWN_S == 32
    monkeypatch.setattr(peripheral, "SHUT_DOWN_S", 0.2)
    await pair.left.ask("25 06 00 00 04 00")
    assert await pair.left.lost()
    monkeypatch.undo()
    assert (await pair.right.ask("25 06 00 00 04 00"))[0] == 0x25
    assert (await (await pair.again(L)).ask("25 06 00 00 04 00"))[0] == 0x25


# ------------------------------------------------------------------ faults


@pytest.mark.requirement("I4-faults-deeds")
async def test_one_side_lost_the_other_carries_on(pair: Pair) -> None:
    assert await pair.inject("away:600:left")
    assert await pair.left.lost()
    (packet,) = text("still here\n")
    assert (await pair.right.ask(packet))[:2] == b"\x4e\xc9"
    shown = pair.mock.glasses.lens_report()
    assert (shown["side"], shown["lines"], shown["same"]) == (R, ["still here"], False)
    assert pair.mock.glasses.by_side() == {
        "left": {"connected": False, "battery": 87},
        "right": {"connected": True, "battery": 87},
    }
    with pytest.raises(RadioError):
        await scan(pair.radio, timeout_s=0.2)
    pair.mock.servers[L].come_back()
    assert (await (await pair.again(L)).ask(packet))[:2] == b"\x4e\xc9"
    assert pair.mock.glasses.lens_report()["same"] is True


async def test_a_drop_of_one_side_leaves_the_other_link_up(pair: Pair) -> None:
    assert await pair.inject("drop:right")
    assert await pair.right.lost()
    assert (await pair.left.ask("25 06 00 00 04 00"))[0] == 0x25


@pytest.mark.requirement("I4-faults-deeds")
async def test_a_refusal_is_ca_and_nothing_is_drawn(pair: Pair) -> None:
    await pair.inject("refuse:1:left")
    (packet,) = text("no\n")
    assert (await pair.left.ask(packet))[:2] == b"\x4e\xca"
    assert (await pair.right.ask(packet))[:2] == b"\x4e\xc9"
    assert pair.mock.glasses.lens_report()["sides"][L]["lines"] == []
    await pair.inject("refuse:0")
    assert (await pair.left.ask(packet))[:2] == b"\x4e\xc9"


async def test_an_acknowledgement_can_be_lost_though_the_page_is_drawn(pair: Pair) -> None:
    await pair.inject("lose-acks:1:left")
    assert await pair.left.silent(text("unheard\n")[0].hex())
    async with asyncio.timeout(DEADLINE_S):
        while pair.mock.glasses.lens_report()["sides"][L]["lines"] != ["unheard"]:
            await asyncio.sleep(0.005)


async def test_a_link_can_end_within_a_page_or_picture(pair: Pair) -> None:
    await pair.inject("cut:left")
    first, _second = text("x" * 300)
    await pair.left.ask("25 06 00 00 04 00")
    await pair.left.transport.write(first)
    assert await pair.left.lost()
    assert pair.mock.glasses.lens_report()["sides"][L]["lines"] == []
    with pytest.raises(LinkLost):
        await pair.left.transport.write(first)


@pytest.mark.parametrize(
    ("packet", "more"),
    [
        ("4E 00 02 00 71 00 00 01 01 41", True),
        ("4E 00 02 01 71 00 00 01 01 41", False),
        ("4E 00 01 00 71 00 00 01 01 41", False),
        ("15 00 00 1C 00 00 42", True),
        ("20 0D 0E", True),
        ("16 00 00 00 00", False),
        ("04 02 00 7B", True),
        ("04 02 01 7D", False),
        ("4B 07 02 00 7B", True),
        ("4B 07 02 01 7D", False),
        ("25 06 00 00 04 00", False),
        ("4E 00", False),
        ("", False),
    ],
)
def test_a_message_in_pieces_goes_on_until_its_last(packet: str, more: bool) -> None:
    assert more_follow(bytes.fromhex(packet)) is more


@pytest.mark.requirement("I4-faults-deeds")
async def test_at_the_smallest_mtu_everything_still_fits_in_pieces(pair: Pair) -> None:
    await pair.inject("mtu:23:left")
    assert await pair.left.lost()
    left = await pair.again(L)
    assert left.transport.max_packet == 20
    for packet in text("in many small pieces\n", room=11):
        assert (await left.ask(packet)) == bytes.fromhex("4E C9").ljust(20, b"\0")
    assert pair.mock.glasses.lens_report()["sides"][L]["lines"] == ["in many small pieces"]
    assert pair.right.transport.max_packet == 248, "the other side was left in peace"


# ------------------------------------------------------------------ §17: every conflict is a switch

CAPITALS = json.dumps({"Calendar_Enable": True, "app": {"list": [], "enable": True}}).encode().hex()
SNAKE = json.dumps({"calendar_enable": True, "app": {"list": [], "enable": True}}).encode().hex()
NOTE = {"title": "t", "message": "m", "app_identifier": "a", "display_name": "A"}


def note(number: int, **more) -> str:
    outer = {"ncs_notification": {**NOTE, **{k: v for k, v in more.items() if k != "outer"}}}
    return (bytes([0x4B, number, 1, 0]) + json.dumps(outer).encode()).hex()


def long_whitelist(size: int) -> str:
    return (bytes([0x04, 2, 0]) + b'{"calendar_enable":true,"x":"'.ljust(size, b"x")).hex()


def t(status: int = 0x71, page: int = 1, pages: int = 1, size: int = 1) -> str:
    return (bytes([0x4E, 0, 1, 0, status, 0, 0, page, pages]) + b"x" * size).hex()


SWITCHES = [
    ("heartbeat-field-order=zero-first", L, "25 06 00 05 04 05", "25 06 05 00 04 05"),
    ("heartbeat-field-order=counter-first", L, "25 06 05 00 04 05", "25 06 00 05 04 05"),
    ("newscreen=71", L, t(0x71), t(0x31)),
    ("newscreen=31", L, t(0x41), t(0x71)),
    ("newscreen=30", L, t(0x40), t(0x71)),
    ("page-base=1", L, t(page=1), t(page=0)),
    ("page-base=0", L, t(page=0), t(page=1)),
    ("text-chunk=191", L, t(size=191), t(size=192)),
    ("text-chunk=180", L, t(size=180), t(size=181)),
    ("text-chunk=176", L, t(size=176), t(size=177)),
    ("microphone-arm=right", R, "0E 01", None),
    ("microphone-arm=left", L, "0E 01", None),
    ("microphone-arm=left", R, None, "0E 01"),
    ("microphone-arm=any", L, "0E 01", None),
    ("brightness-top=41", L, "01 29 00", "01 2A 00"),
    ("brightness-top=42", L, "01 2A 00", "01 2B 00"),
    ("brightness-top=63", L, "01 3F 00", "01 40 00"),
    ("silent-length=2", L, "03 0C", "03 0C 00"),
    ("silent-length=3", L, "03 0C 00", "03 0C"),
    ("whitelist-chunk-and-case=177", L, long_whitelist(177), long_whitelist(178)),
    ("whitelist-chunk-and-case=176", L, long_whitelist(176), long_whitelist(177)),
    ("whitelist-chunk-and-case=snake", L, f"04 01 00 {SNAKE}", f"04 01 00 {CAPITALS}"),
    ("whitelist-chunk-and-case=capital", L, f"04 01 00 {CAPITALS}", f"04 01 00 {SNAKE}"),
    ("notification-id-and-keys=running", L, note(1), note(0)),
    ("notification-id-and-keys=0", L, note(0), note(1)),
    ("notification-id-and-keys=1", L, note(1), note(0)),
    ("notification-id-and-keys=action", L, note(0, action=0), note(0)),
    ("notification-id-and-keys=type", L, note(0, type=1), note(0)),
    ("debug-off=C1", L, "23 6C C1", "23 6C 31"),
    ("debug-off=31", L, "23 6C 31", "23 6C C1"),
    ("double-tap-sub=05", L, "26 06 00 01 05 04", "26 06 00 01 04 04"),
    ("double-tap-sub=04", L, "26 06 00 01 04 04", "26 06 00 01 05 04"),
]


@pytest.fixture
def glasses(tmp_path: Path) -> MockGlasses:
    return MockGlasses(find("even_g1"), out_dir=tmp_path, tell=lambda _: None, sides=(L, R))


def objects(glasses: MockGlasses, quirks: list[str], side: Side, packet: str) -> bool:
    """Whether an arm answers CA."""
    arm = FirmwareArm(side, 248, firmware(quirks), ArmFacts(), glasses)
    arm.receive_packet(bytes.fromhex(packet), 0.0)
    return any(0xCA in said[:6] for said in arm.packets_to_send(0.0))


@pytest.mark.parametrize(
    ("quirk", "side", "taken", "refused"), SWITCHES, ids=[f"{q}-{s}" for q, s, *_ in SWITCHES]
)
@pytest.mark.requirement("I4-sim-g1-quirks")
def test_a_quirk_insists_on_one_form_and_stock_takes_both(
    glasses, quirk, side, taken, refused
) -> None:
    if taken:
        assert not objects(glasses, [quirk], side, taken)
    if refused:
        assert objects(glasses, [quirk], side, refused)
        assert not objects(glasses, ["microphone-arm=any"], side, refused)


def test_a_firmware_quirk_refuses_nothing_else(glasses: MockGlasses) -> None:
    everything = [
        f"{name}={list(values)[-1]}" for name, values in QUIRKS.items() if name != "first-packet"
    ]
    for packet in ("F4 01", "25 06 00 00 04 00", "2C 01", "18", "4E", "26", "4B", "0E"):
        with suppress(RemoteViolation):
            objects(glasses, everything, R, packet)
    assert not objects(glasses, everything, R, "18")


async def test_battery_reply_b_tells_both_sides(tmp_path: Path) -> None:
    async with even(tmp_path, "battery-reply=B") as pair:
        pair.mock.glasses.batteries.update({L: 50, R: 60})
        said = await pair.left.ask("2C 01")
    assert said[:4] == b"\x2cA" + bytes([50, 60])


async def test_the_checksum_can_be_answered_with_c9_alone_and_pixels_be_inverted(
    tmp_path: Path,
) -> None:
    async with even(tmp_path, "crc-reply-length=2", "picture-polarity=inverted") as pair:
        _, verdict = await send_bitmap(pair.left, bitmap([bytes(72)] * 136))
        assert verdict == b"\x16\xc9"
        assert pair.mock.glasses.lenses[L].lit == 576 * 136


@pytest.mark.requirement("I4-sim-g1-quirks")
@pytest.mark.parametrize(
    ("quirks", "zeros"), [((), 2), (("serial-length=18",), 2), (("serial-length=16",), 0)]
)
async def test_the_serial_is_padded_to_18_bytes_without_the_quirk(
    tmp_path: Path, quirks: tuple[str, ...], zeros: int
) -> None:
    async with even(tmp_path, *quirks) as pair:
        for arm in pair.arms.values():
            said = await arm.ask("34")
            assert said == b"44S100LAAL103842" + bytes(zeros)
            assert said[2:18].rstrip(b"\0") == b"S100LAAL103842", (
                "bytes 2 to 17, as a known host reads them"
            )


@pytest.mark.parametrize(("quirk", "hours"), [("1-is-12h", 12), ("1-is-24h", 24)])
async def test_which_hours_01_means_is_a_quirk(tmp_path: Path, quirk: str, hours: int) -> None:
    async with even(tmp_path, f"hour-format={quirk}") as pair:
        await pair.left.ask("06 15 00 07 01 10 00 00 00 00 00 00 00 00 00 00 00 10 FB 00 01")
        told = await pair.ear.wait("dashboard")
    assert (told["hours"], told["celsius"], told["local_s"]) == (hours, -5, 16)


@pytest.mark.parametrize("first", ["F401", "4D01", "4DFB", "6E74"])
def test_some_wait_for_their_first_packet_before_they_answer_anything(
    glasses: MockGlasses, first: str
) -> None:
    arm = FirmwareArm(L, 248, firmware([f"first-packet={first}"]), ArmFacts(), glasses)
    arm.receive_packet(bytes.fromhex("25 06 00 00 04 00"), 0.0)
    assert arm.packets_to_send(0.0) == []
    for packet in (first, "25 06 00 00 04 00"):
        arm.receive_packet(bytes.fromhex(packet), 0.0)
    assert len(arm.packets_to_send(0.0)) == 2


@pytest.mark.requirement("I4-sim-g1-quirks")
def test_every_conflict_of_the_catalogue_is_a_switch_and_no_other() -> None:
    assert set(QUIRKS) == {conflict.name for conflict in CONFLICTS}


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("colour=red", "'colour=red' is not a quirk; known.*newscreen=any"),
        ("newscreen", "not a quirk"),
        ("newscreen=99", "newscreen is '99'; any, 71, 31, 30"),
    ],
)
def test_a_wrong_quirk_says_what_would_be_right(word: str, told: str) -> None:
    with pytest.raises(QuirkError, match=told):
        firmware([word])
    with pytest.raises(QuirkError, match="mock:full has no quirks"):
        parts_of("mock:full", ["newscreen=71"])
