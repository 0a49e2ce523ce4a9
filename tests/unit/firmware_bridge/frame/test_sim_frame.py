"""The simulated Frame over bleak and bumble: found, its program uploaded, driven, lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from bleak import BleakScanner
from PIL import Image

from firmware_bridge.catalog import find, recognise
from firmware_bridge.codecs.frame.program import FILE
from firmware_bridge.driver import Driver
from firmware_bridge.errors import CommandRefused, LinkLost, RadioError
from firmware_bridge.messages import (
    AudioFormat,
    BatteryChanged,
    ClearPage,
    Event,
    Gesture,
    Gestured,
    MicrophoneChunk,
    PhotoSize,
    PhotoTaken,
    Ping,
    Prompt,
    SetBrightness,
    ShowPage,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
    TextLine,
    Tile,
)
from firmware_bridge.models import Advertisement
from firmware_bridge.sim.faults import parse_fault
from firmware_bridge.sim.inproc import Mock, start_mock
from firmware_bridge.sim.model_specs import parts_of
from firmware_bridge.sim.quirks import QuirkError
from firmware_bridge.transports.ble import open_radio, scan
from firmware_bridge.transports.ble_connection import connect
from firmware_bridge.transports.pairing import pair as pair_with
from tests.unit.firmware_bridge.sim_helpers import DEADLINE_S, Ear, loudness, worn

pytestmark = pytest.mark.enable_socket
PAGE = ShowPage("s", lines=(TextLine(0, "Grüße"), TextLine(5, "last row", 30)))
SERVICE = "7a230001-5475-a6a4-654c-8431f6ad49c4"


class Wearing:
    """A driver on a simulated Frame, and everything it hears."""

    def __init__(self, mock: Mock, driver: Driver[Any], ear: Ear) -> None:
        self.mock, self.driver, self.ear = mock, driver, ear
        self.heard: list[Event] = []
        self._news = asyncio.Event()

    async def listen(self) -> None:
        async for event in self.driver.events():
            self.heard.append(event)
            self._news.set()

    async def wait(self, kind: type, count: int = 1) -> list[Any]:
        async with asyncio.timeout(DEADLINE_S):
            while len(found := [each for each in self.heard if isinstance(each, kind)]) < count:
                self._news.clear()
                await self._news.wait()
        return found

    async def ask(self, command: Any) -> Any:
        return await self.driver.request(command, timeout_s=DEADLINE_S)

    @property
    def lens(self):
        return self.mock.glasses.lens


def wearing(out: Path, **options: Any):
    return worn("sim:frame", out, Wearing, speed=8, **options)


@pytest.fixture
async def frame(tmp_path) -> AsyncIterator[Wearing]:
    async with wearing(tmp_path, quirks=["running=glassd"]) as frame:
        yield frame


# ------------------------------------------------------------------ who it is


async def test_it_advertises_as_the_firmware_does(tmp_path):
    """§1: 09 09 name, 02 01 06, 11 07 service; 31 bytes, no scan response."""
    radio = await open_radio("inproc")
    mock = await start_mock("sim:frame", radio.air, out_dir=tmp_path)
    try:
        async with BleakScanner(backend=radio.scanner) as scanner:
            _device, data = await anext(scanner.advertisement_data())
        sighting = await scan(radio, timeout_s=DEADLINE_S)
    finally:
        await radio.close()
        await mock.close()
    assert (data.local_name, data.service_uuids) == ("Frame F0", [SERVICE])
    assert sighting.entry is find("frame")
    advertised = mock.identities[None].advertised
    assert advertised[:10] == b"\x09\x09Frame F0"
    assert advertised[10:13] == b"\x02\x01\x06"
    assert advertised[13:15] == b"\x11\x07"
    assert len(advertised) == 31
    assert mock.identities[None].scan_response == b""


@pytest.mark.parametrize(
    ("name", "services"),
    [("Halo 4F", {SERVICE}), ("Frame 4F", set()), (None, {SERVICE}), ("Frame 4f", {SERVICE})],
)
def test_others_are_no_frame(name, services):
    found = recognise(Advertisement(name, frozenset(services)))
    assert found is None or found.key != "frame"


async def test_packets_have_244_bytes(frame):
    assert frame.mock.servers[None]._device.gatt_server.max_mtu == 247


# ------------------------------------------------------------------ the program


@pytest.mark.parametrize("running", ["nothing", "other-program"])
async def test_the_program_is_uploaded_and_shows_a_page(tmp_path, running):
    async with wearing(tmp_path, quirks=[f"running={running}"]) as frame:
        done = await frame.ask(PAGE)
        assert done.drawn == 5 + 7
        assert frame.lens.text() == ["Grüße", "", "", "", "", "last row"]
        assert frame.driver._codec.startup.uploaded


async def test_a_return_finds_the_program_running(tmp_path):
    radio, ear = await open_radio("inproc"), Ear()
    mock = await start_mock("sim:frame", radio.air, out_dir=tmp_path, tell=ear)
    try:
        for uploaded in (True, False):
            async with driven(radio, mock, ear) as frame:
                assert (await frame.ask(PAGE)).drawn == 12
                assert frame.driver._codec.startup.uploaded is uploaded
                await mock.injector.inject(parse_fault("drop"))
                with pytest.raises(LinkLost):
                    await frame.ask(Ping())
    finally:
        await radio.close()
        await mock.close()


@asynccontextmanager
async def driven(radio, mock: Mock, ear: Ear) -> AsyncIterator[Wearing]:
    sighting = await scan(radio, timeout_s=DEADLINE_S)
    transport = await connect(radio, sighting, timeout_s=DEADLINE_S)
    clock = asyncio.get_running_loop().time
    driver: Driver[Any] = Driver(transport, find("frame").codec(transport.max_packet), clock=clock)
    frame = Wearing(mock, driver, ear)
    running = [asyncio.ensure_future(driver.run()), asyncio.ensure_future(frame.listen())]
    try:
        yield frame
    finally:
        for task in running:
            task.cancel()
        await asyncio.wait(running)
        await transport.close()


# ------------------------------------------------------------------ what it shows and sends


async def test_text_and_pictures_are_on_the_lens_together(frame):
    tile = Tile(600, 300, 16, 2, 4, bytes.fromhex("0123456789abcdef" * 2))
    done = await frame.ask(ShowPage("s", lines=(TextLine(1, "beside", 100),), tiles=(tile,)))
    assert done.drawn == 6 + 30
    image = frame.lens.image
    assert [image.getpixel((600 + x, 300)) for x in range(16)] == [17 * x for x in range(16)]
    ink = image.crop((0, 0, 590, 400)).getbbox()
    assert ink[0] >= 100
    assert 60 <= ink[1] < ink[3] <= 120
    assert (await frame.ask(ClearPage())).drawn == 0
    assert frame.lens.lit == 0


async def test_a_full_picture_arrives(frame):
    done = await frame.ask(ShowPage("s", tiles=(Tile(0, 0, 640, 400, 4, b"\xff" * 128_000),)))
    assert done.drawn == 640 * 400
    assert frame.lens.lit == 640 * 400


async def test_taps_and_battery(frame):
    assert frame.mock.glasses.gesture(Gesture.TAP)
    assert await frame.wait(Gestured) == [Gestured(Gesture.TAP)]
    assert frame.mock.glasses.gesture(Gesture.DOUBLE_TAP)
    assert (await frame.wait(Gestured, 2))[1] == Gestured(Gesture.DOUBLE_TAP)
    frame.mock.glasses.set_battery(31)
    await frame.ask(Ping())
    assert (await frame.wait(BatteryChanged, 2))[-1] == BatteryChanged(31)
    assert not frame.mock.glasses.gesture(Gesture.NOD)


@pytest.mark.parametrize(("size", "pixels"), [(PhotoSize.SMALL, 320), (PhotoSize.LARGE, 720)])
async def test_a_photo_arrives_as_it_was_taken(frame, size, pixels):
    await frame.ask(TakePhoto(3, size))
    (photo,) = await frame.wait(PhotoTaken)
    assert (photo.photo, photo.turned) == (3, 270)
    with Image.open(BytesIO(photo.jpeg)) as picture:
        picture.load()
        assert picture.size == (pixels, pixels)
    assert frame.ear.count("photo") == 1


@pytest.mark.parametrize("rate", [16000, 8000])
async def test_sound_arrives_in_the_rate_that_was_asked_for(frame, rate):
    await frame.ask(StartMicrophone(2, AudioFormat.PCM16, rate))
    frame.mock.glasses.say("one two three four")
    await frame.ear.wait("heard")
    chunks = await frame.wait(MicrophoneChunk, 20)
    pcm = b"".join(part for chunk in chunks for part in chunk.frames)
    assert loudness(pcm) > 500
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    await frame.ask(StopMicrophone(2))
    await frame.ear.wait("microphone", where=lambda event: not event["open"])
    heard = (await frame.ear.wait("heard"))["seconds"]
    assert len(pcm) >= heard * rate * 2 * 0.9 or rate == 16000


async def test_brightness_is_set_and_a_prompt_refused(frame):
    await frame.ask(SetBrightness(75))
    assert frame.mock.glasses.settings == {"brightness": 75}
    with pytest.raises(CommandRefused, match="unsupported"):
        await frame.ask(Prompt(1, (TextLine(0, "?"),), 5))


# ------------------------------------------------------------------ security


async def test_nobody_writes_without_encryption_and_it_pairs_without_a_code(tmp_path):
    radio = await open_radio("inproc")
    mock = await start_mock("sim:frame", radio.air, out_dir=tmp_path, pairing="just_works")
    try:
        sighting = await scan(radio, timeout_s=DEADLINE_S)
        with pytest.raises(RadioError):
            await connect(radio, sighting, timeout_s=DEADLINE_S)
        person = Person()
        fresh = await scan(radio, timeout_s=DEADLINE_S)
        await pair_with(radio, fresh, person, timeout_s=DEADLINE_S)
        async with driven(radio, mock, Ear()) as frame:
            assert (await frame.ask(PAGE)).drawn == 12
            links = mock.servers[None]._device.connections.values()
            assert all(link.encryption for link in links)
    finally:
        await radio.close()
        await mock.close()


class Person:
    """Nobody is asked for a code."""

    async def code(self) -> int:
        raise AssertionError("a Frame has no code")

    async def same(self, code: int) -> bool:
        raise AssertionError("a Frame has no code")


# ------------------------------------------------------------------ quirks


def test_a_wrong_quirk_names_the_known_ones():
    with pytest.raises(QuirkError, match=r"sprite=compress-byte\|older"):
        parts_of("sim:frame", ["colour=blue"])


def test_the_file_of_our_program_is_the_packages():
    assert FILE == "glassd_app.lua"
