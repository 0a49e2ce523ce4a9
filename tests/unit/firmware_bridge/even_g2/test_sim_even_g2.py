"""The simulated Even G2: two radios over bleak and bumble; the packets are those of its sources."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from bleak import BleakScanner

from firmware_bridge.catalog import find
from firmware_bridge.codecs.even_g2 import FILE, FILE_ANSWER, SOUND
from firmware_bridge.codecs.even_g2.model import CONFLICTS
from firmware_bridge.codecs.even_g2.wire import Joiner, Kind, cut
from firmware_bridge.errors import CommandRefused
from firmware_bridge.lc3 import Decoder
from firmware_bridge.messages import (
    AllowApps,
    App,
    AudioFormat,
    BatteryChanged,
    ButtonReleased,
    CaseChanged,
    ClearPage,
    Done,
    Gesture,
    Gestured,
    Hiding,
    HidingChanged,
    MicrophoneChunk,
    PageClosed,
    Ping,
    SetBrightness,
    SetClock,
    ShowNotification,
    ShowPage,
    SideChanged,
    StartMicrophone,
    StopMicrophone,
    TextLine,
    Tile,
    WornChanged,
)
from firmware_bridge.own_commands import (
    CalendarEntry,
    GetMotion,
    SetCalendar,
    SetDisplayPosition,
    SetNote,
    SetWeather,
    Sky,
)
from firmware_bridge.packets import ChannelPacket, channel_of
from firmware_bridge.protobuf import Message, encode
from firmware_bridge.sides import Side
from firmware_bridge.sim.even_g2.glasses import LEVEL, _identity, more_follow
from firmware_bridge.sim.even_g2.quirks import QUIRKS
from firmware_bridge.sim.faults import parse_fault
from firmware_bridge.sim.gatt import Subscription
from firmware_bridge.sim.inproc import Mock, start_mock
from firmware_bridge.sim.quirks import QuirkError
from firmware_bridge.transports.ble import open_radio, scan, scan_all
from firmware_bridge.transports.ble_connection import BleTransport, connect
from tests.system import needs
from tests.unit.firmware_bridge.sim_helpers import DEADLINE_S, Ear, loudness, worn

pytestmark = pytest.mark.enable_socket

L, R = Side.LEFT, Side.RIGHT
SPEED = 20.0
LIT = Tile(100, 50, 40, 30, 1, b"\xff" * 150)
AUTH = "aa21010c010180000804100d1a0408011004a704"
CREATE = "aa2120200101e0201080011a1908011a1218c00420a00248015202743158016202486928904eedb6"
TEXT = "aa2121150101e02008051081014a0c08011202743120022a024f4bc4be"
QUERY = "aa210c0a010109200802102122020801a8da"


class Wearing:
    """Worn glasses: `events` are what the driver reported."""

    def __init__(self, mock: Mock, driver: Any, ear: Ear) -> None:
        self.mock, self.driver, self.ear = mock, driver, ear
        self.events: list[Any] = []
        self._news = asyncio.Event()

    async def listen(self) -> None:
        async for event in self.driver.events():
            self.events.append(event)
            self._news.set()

    async def until(self, *wanted: Any) -> None:
        """Wait until each of these events was reported."""
        async with asyncio.timeout(DEADLINE_S):
            while not all(each in self.events for each in wanted):
                self._news.clear()
                await self._news.wait()

    async def chunks(self, count: int) -> list[MicrophoneChunk]:
        async with asyncio.timeout(DEADLINE_S):
            while len(found := [e for e in self.events if isinstance(e, MicrophoneChunk)]) < count:
                self._news.clear()
                await self._news.wait()
        return found

    async def ask(self, command: Any) -> Any:
        return await self.driver.request(command, timeout_s=DEADLINE_S)

    async def inject(self, word: str) -> bool:
        return await self.mock.injector.inject(parse_fault(word))

    @property
    def lens(self) -> dict[str, Any]:
        return self.mock.glasses.lens_report()


def wearing(out: Path, *quirks: str):
    return worn("sim:even_g2", out, Wearing, speed=SPEED, quirks=quirks)


def page(*texts: str, tiles=()) -> ShowPage:
    return ShowPage("s", lines=tuple(TextLine(*line) for line in enumerate(texts)), tiles=tiles)


@asynccontextmanager
async def arm(out: Path, side: Side, *quirks: str) -> AsyncIterator[BleTransport]:
    """One arm, as a host that writes bytes sees it."""
    radio, ear = await open_radio("inproc"), Ear()
    mock = await start_mock("sim:even_g2", radio.air, out_dir=out, tell=ear, quirks=quirks)
    try:
        address = mock.identities[side].address
        heard = await scan(radio, timeout_s=DEADLINE_S, address=address, arms=False)
        transport = await connect(radio, heard, timeout_s=DEADLINE_S)
        await ear.wait("subscribed")
        yield transport
        await transport.close()
    finally:
        await radio.close()
        await mock.close()


async def answer(transport: BleTransport, *packets: bytes, sid: int) -> Message:
    """Write packets; return the next message of a service."""
    for packet in packets:
        await transport.write(packet)
    joiner = Joiner(Kind.GLASSES)
    async with asyncio.timeout(DEADLINE_S):
        async for packet in transport.packets():
            received = joiner.add(packet)
            if received is not None and received.sid == sid and received.payload:
                return Message(received.payload)
    raise AssertionError("the link was lost")


# ------------------------------------------------------------------ who they are


async def test_two_arms_advertise_one_serial_and_no_service(tmp_path: Path) -> None:
    radio = await open_radio("inproc")
    mock = await start_mock("sim:even_g2", radio.air, out_dir=tmp_path)
    try:
        heard: dict[str, Any] = {}
        async with asyncio.timeout(DEADLINE_S):
            while len(heard) < 2:
                heard |= {s.name: s for s in await scan_all(radio, timeout_s=0.3)}
        async with BleakScanner(backend=radio.scanner) as scanner:
            device, data = await anext(scanner.advertisement_data())
    finally:
        await radio.close()
        await mock.close()
    names = [sighting.name.split("_")[:3] for sighting in heard.values()]
    assert sorted(names) == [["Even G2", "32", "L"], ["Even G2", "32", "R"]]
    for sighting in heard.values():
        assert sighting.name.endswith("_" + sighting.address.replace(":", "")[-6:])
        assert (sighting.entry.key, sighting.pair) == ("even_g2", "G2_32")
    turned = bytes.fromhex(device.address.replace(":", ""))[::-1]
    assert data.manufacturer_data == {0x5245: b"S211GABB090499" + turned + b"\x02"}
    assert data.service_uuids == []


def test_the_advertisement_is_the_captured_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "firmware_bridge.sim.even_g2.glasses.address_of", lambda _key: "E8:9D:EF:A4:DE:80"
    )
    right = _identity(find("even_g2"), R)
    assert right.advertised.hex() == "02010618ff4552533231314741424230393034393980dea4ef9de802"
    assert right.scan_response.hex() == "14094576656e2047325f33325f525f413444453830"


async def test_a_host_that_writes_the_captured_bytes_is_answered(tmp_path: Path) -> None:
    async with arm(tmp_path, R) as right:
        assert right.max_packet == 244
        for packet in (AUTH, CREATE):
            await right.write(bytes.fromhex(packet))
        taken = await answer(right, sid=0xE0)
        assert (taken.integer(1), taken.integer(2), 4 in taken) == (1, 128, True)


async def test_the_table_of_the_glasses_is_whole(tmp_path: Path) -> None:
    async with arm(tmp_path, R) as right:
        found = {
            each.uuid[-4:] if each.uuid.startswith("00002760") else each.uuid[:8]: each.properties
            for service in right._client.services
            for each in service.characteristics
        }
    both = {"write", "write-without-response"}
    for uuid in ("5401", "6401", "7401", "0001", "6e400002"):
        assert set(found[uuid]) == both, uuid
    for uuid in ("5402", "6402", "7402", "0002", "6e400003"):
        assert set(found[uuid]) == {"notify"}, uuid


@pytest.mark.parametrize(("quirk", "asked"), [("bonding=after-auth", 1), ("bonding=none", 0)])
async def test_a_host_is_asked_to_pair_after_its_first_message(
    tmp_path: Path, quirk: str, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks: list[bool] = []
    ask = Subscription.ask_for_bond
    monkeypatch.setattr(
        Subscription, "ask_for_bond", lambda link: asks.append(link.encrypted) or ask(link)
    )
    async with arm(tmp_path, R, quirk) as right:
        assert (await answer(right, bytes.fromhex(AUTH), sid=0x80)).data(3) == b""
        assert (await answer(right, sid=0x80)).message(3).integer(1) == 1
    assert asks == [False] * asked


async def test_files_have_their_own_characteristics(tmp_path: Path) -> None:
    async with arm(tmp_path, R) as right:
        head = b"\0" * 9 + b"\0\0\0\0" + b"user/notify_whitelist.json".ljust(80, b"\0")
        for packet in cut(head, Kind.HOST, 1, 0xC4, 0, max_packet=244):
            await right.write(ChannelPacket(packet, FILE))
        async with asyncio.timeout(DEADLINE_S):
            said = await anext(right.packets())
        assert (channel_of(said), said[6:].hex()) == (FILE_ANSWER, "c40000000f1d")


def test_more_follows_a_fragment_but_the_last() -> None:
    first, last = cut(bytes(300), Kind.HOST, 1, 0xE0, 0x20, max_packet=244)
    assert more_follow(first)
    assert not more_follow(last)
    assert not more_follow(b"")


# ------------------------------------------------------------------ the whole way


async def test_a_page_is_shown_on_both_lenses(tmp_path: Path) -> None:
    async with wearing(tmp_path) as glasses:
        assert await glasses.ask(page("Good morning", "second row")) == Done()
        lens = glasses.lens
        assert (lens["lines"], lens["same"]) == (["Good morning", "second row"], True)
        await glasses.ask(page("Good evening"))
        assert glasses.lens["lines"] == ["Good evening"]
        await glasses.ask(ClearPage())
        assert (glasses.lens["lines"], glasses.lens["lit"]) == ([], 0)


async def test_a_long_page_and_a_picture_are_shown(tmp_path: Path) -> None:
    async with wearing(tmp_path) as glasses:
        rows = ["many words in one row " * 4] * 10
        await glasses.ask(page(*rows))
        assert glasses.lens["lines"] == rows
        await glasses.ask(page(tiles=(LIT,)))
        assert glasses.lens["lit"] == 40 * 30


async def test_gestures_come_from_arms_and_ring(tmp_path: Path) -> None:
    async with wearing(tmp_path) as glasses:
        assert glasses.mock.glasses.gesture(Gesture.TAP) is False
        await glasses.ask(page("Hi"))
        assert glasses.mock.glasses.gesture(Gesture.TAP) is True
        assert glasses.mock.glasses.gesture(Gesture.DOUBLE_TAP, side=L) is True
        assert glasses.mock.glasses.gesture(Gesture.BUTTON_LONG, side=R) is True
        assert glasses.mock.glasses.gesture(Gesture.NOD) is False
        await glasses.until(
            Gestured(Gesture.TAP),
            Gestured(Gesture.DOUBLE_TAP, L),
            Gestured(Gesture.BUTTON_LONG, R),
            ButtonReleased(R),
        )


async def test_the_dashboard_is_filled_and_motion_is_read(tmp_path: Path) -> None:
    async with wearing(tmp_path, "motion-request=20", "motion-numbers=64") as glasses:
        settings = glasses.mock.glasses.settings
        await glasses.ask(SetWeather(1_790_000_000, Sky.RAIN, 11))
        assert settings["weather"]["celsius"] == 11
        await glasses.ask(SetCalendar((CalendarEntry("Tea", "16:00", "home"),)))
        assert [entry["title"] for entry in settings["calendar"]["entries"]] == ["Tea"]
        await glasses.ask(SetNote(1, "Milk"))
        assert settings["note"]["title"] == "Milk"
        await glasses.ask(SetDisplayPosition(8, 9))
        assert (settings["height"], settings["depth"]) == (8, 9)
        assert await glasses.ask(GetMotion()) == Done()
        await glasses.until(LEVEL)


async def test_charging_ends_the_page(tmp_path: Path) -> None:
    async with wearing(tmp_path) as glasses:
        await glasses.until(CaseChanged(90, False))
        await glasses.ask(page("Before"))
        session = glasses.mock.glasses._visits[R]
        session.tell(BatteryChanged(50, charging=True))
        assert glasses.lens["lines"] == []
        await glasses.until(PageClosed())


async def test_states_are_reported(tmp_path: Path) -> None:
    async with wearing(tmp_path) as glasses:
        await glasses.until(BatteryChanged(87, False, L), BatteryChanged(87, False, R))
        glasses.mock.glasses.set_worn(worn=False)
        glasses.mock.glasses.hide(Hiding.SILENT, hidden=True)
        glasses.mock.glasses.hide(Hiding.DASHBOARD, hidden=True)
        await glasses.until(
            WornChanged(False),
            HidingChanged(Hiding.SILENT, True),
            HidingChanged(Hiding.DASHBOARD, True),
        )
        assert await glasses.ask(Ping()) == Done()


async def test_settings_and_notifications_are_taken(tmp_path: Path) -> None:
    async with wearing(tmp_path) as glasses:
        await glasses.ask(SetBrightness(40))
        assert glasses.mock.glasses.settings["brightness"] == 40
        app = App("org.example", "Example")
        assert await glasses.ask(ShowNotification(app, "Title", "Words")) == Done()
        hidden = await glasses.ear.wait("notification")
        assert (hidden["app"], hidden["listed"]) == ("org.example", False)
        await glasses.ask(AllowApps((app,)))
        assert await glasses.ask(ShowNotification(app, "Title", "Words")) == Done()
        shown = await glasses.ear.wait("notification", count=2)
        assert shown["lines"] == ["Example: Title", "Words"]
        assert shown["app"] == "org.example"


@needs("liblc3")
@pytest.mark.parametrize("arms", ["left", "both", "right"])
async def test_the_microphone_is_heard(tmp_path: Path, arms: str) -> None:
    async with wearing(tmp_path, f"sound-arm={arms}") as glasses:
        assert await glasses.ask(StartMicrophone(3, AudioFormat.LC3)) == Done()
        glasses.mock.glasses.say("some words to be heard")
        chunks = await glasses.chunks(20)
        assert [chunk.index for chunk in chunks[:20]] == list(range(20))
        decoder = Decoder(40)
        pcm = b"".join(decoder.decode(frame) for chunk in chunks for frame in chunk.frames)
        assert loudness(pcm) > 500
        assert await glasses.ask(StopMicrophone(3)) == Done()
        await glasses.ear.wait("microphone", where=lambda e: not e["open"])


async def test_a_lost_right_arm_gets_its_page_again(tmp_path: Path) -> None:
    async with wearing(tmp_path) as glasses:
        await glasses.ask(page("Before"))
        await glasses.inject("drop:right")
        await glasses.until(SideChanged(R, False, "lost"))
        await glasses.ear.wait("lens", where=lambda e: e["lines"] == [])
        await glasses.until(SideChanged(R, True))
        await glasses.ear.wait("lens", count=2, where=lambda e: e["lines"] == ["Before"])


async def test_a_lost_left_arm_changes_nothing(tmp_path: Path) -> None:
    async with wearing(tmp_path) as glasses:
        await glasses.ask(page("Before"))
        await glasses.inject("drop:left")
        await glasses.until(SideChanged(L, False, "lost"))
        assert await glasses.ask(page("After")) == Done()
        await glasses.until(SideChanged(L, True))
        assert glasses.lens["lines"] == ["After"]


async def test_a_refused_page_is_not_shown(tmp_path: Path) -> None:
    async with wearing(tmp_path) as glasses:
        await glasses.ask(page("Before"))
        await glasses.inject("refuse:1:right")
        with pytest.raises(CommandRefused):
            await glasses.ask(page("After"))


# ------------------------------------------------------------------ conflicts

FIRMWARE = [f"{name}={value}" for name, values in QUIRKS.items() for value in values]


@pytest.mark.parametrize("quirk", FIRMWARE)
async def test_the_driver_uses_every_firmware(tmp_path: Path, quirk: str) -> None:
    async with wearing(tmp_path, quirk) as glasses:
        for text in ("words " * 40, "Hi", "words " * 80):
            await glasses.ask(page(text))
        await glasses.ask(page("Ho", tiles=(LIT,)))
        assert (glasses.lens["lines"], glasses.lens["lit"] > 1000) == (["Ho"], True)
        await glasses.ask(SetBrightness(40))
        await glasses.ask(SetClock(1_790_000_000))
        assert glasses.mock.glasses.settings == {"brightness": 40, "clock": 1_790_000_000}
        assert await glasses.ask(GetMotion()) == Done()
        await glasses.until(LEVEL, BatteryChanged(87, False, R))


async def test_a_refused_form_is_followed_by_the_other(tmp_path: Path) -> None:
    both = ("fragment-size=232", "zeros=written-only", "container-name=none", "widget-id=10000")
    async with wearing(tmp_path, *both, "image-session=container") as glasses:
        for text in ("Hi", "words " * 80, "Ho"):
            await glasses.ask(page(text))
        await glasses.ask(page("Ho", tiles=(LIT,)))
        assert (glasses.lens["lines"], glasses.lens["lit"] > 1000) == (["Ho"], True)


def test_every_quirk_is_in_the_catalogue() -> None:
    assert set(QUIRKS) <= {conflict.name for conflict in CONFLICTS}


async def test_an_unknown_quirk_is_refused(tmp_path: Path) -> None:
    with pytest.raises(QuirkError, match="sound-arm is 'top'"):
        await start_mock("sim:even_g2", out_dir=tmp_path, quirks=["sound-arm=top"])


async def test_the_settings_flag_is_a_quirk(tmp_path: Path) -> None:
    async with arm(tmp_path, L, "settings-reply-flag=01") as left:
        await left.write(bytes.fromhex(QUERY))
        async with asyncio.timeout(DEADLINE_S):
            said = await anext(left.packets())
        assert (said[6], said[7]) == (0x09, 0x01)
        assert channel_of(said) != SOUND
        assert Message(said[8:-2]).message(4).integer(12) == 87


async def test_a_session_may_need_authentication(tmp_path: Path) -> None:
    async with arm(tmp_path, R, "auth=needed") as right:
        beat = cut(encode({1: 14, 2: 1, 13: {}}), Kind.HOST, 9, 0x80, 0, max_packet=244)
        first = await answer(right, bytes.fromhex(CREATE), *beat, sid=0x80)
        assert first.integer(1) == 14  # nothing came back for the page
