"""The simulated Halo over bleak and bumble: what it has beyond a Frame."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from math import sin

import pytest
from bleak import BleakClient, BleakScanner
from PIL import Image

from firmware_bridge import lc3
from firmware_bridge.catalog import find, recognise
from firmware_bridge.errors import CommandRefused, LinkLost
from firmware_bridge.messages import (
    AudioChunk,
    AudioFormat,
    BatteryChanged,
    Done,
    EndAudio,
    Gesture,
    Gestured,
    PhotoSize,
    PhotoTaken,
    Ping,
    SetBrightness,
    ShowPage,
    StartAudio,
    StartMicrophone,
    TakePhoto,
    TextLine,
    Tile,
)
from firmware_bridge.models import Advertisement
from firmware_bridge.sim.faults import parse_fault
from firmware_bridge.sim.halo.quirks import QUIRKS
from firmware_bridge.sim.inproc import start_mock
from firmware_bridge.sim.model_specs import parts_of
from firmware_bridge.sim.quirks import QuirkError, choose
from firmware_bridge.transports.ble import open_radio, scan
from tests.system import needs
from tests.unit.firmware_bridge.frame.test_sim_frame import Wearing
from tests.unit.firmware_bridge.sim_helpers import DEADLINE_S, worn

pytestmark = pytest.mark.enable_socket
SERVICE = "7a230001-5475-a6a4-654c-8431f6ad49c4"
UPDATE_SERVICE = "8d53dc1d-1db7-4cd3-868b-8a527460aa84"
PAGE = ShowPage("s", lines=(TextLine(0, "first"), TextLine(13, "last row", 30)))
STREAM = 4
TONE = struct.pack("<8000h", *(round(9000 * sin(at * 0.3)) for at in range(8000)))
"""Half a second."""


def wearing(out, *, quirks=("running=glassd",), **options):
    return worn("sim:halo", out, Wearing, quirks=list(quirks), **options)


@pytest.fixture
async def halo(tmp_path) -> AsyncIterator[Wearing]:
    async with wearing(tmp_path, speed=8) as halo:
        yield halo


# ------------------------------------------------------------------ who it is


@pytest.mark.parametrize(("quirk", "name"), [("fourth-byte", 2), ("last-byte", 5)])
async def test_it_advertises_its_name_and_service(tmp_path, quirk, name):
    radio = await open_radio("inproc")
    mock = await start_mock("sim:halo", radio.air, out_dir=tmp_path, quirks=[f"name={quirk}"])
    try:
        async with BleakScanner(backend=radio.scanner) as scanner:
            _device, data = await anext(scanner.advertisement_data())
        sighting = await scan(radio, timeout_s=DEADLINE_S)
    finally:
        await radio.close()
        await mock.close()
    byte = mock.address.split(":")[name]
    assert (data.local_name, data.service_uuids[0]) == (f"Halo {byte}", SERVICE)
    assert sighting.entry is find("halo")
    assert mock.identities[None].scan_response == bytes.fromhex("03 19 c0 01 03 03 0f 18")


@pytest.mark.parametrize(
    ("name", "services", "key"),
    [
        ("Halo 4F", {SERVICE}, "halo"),
        ("Halo 4f", {SERVICE}, "halo"),
        ("Frame 4F", {SERVICE}, "frame"),
        ("Halo 4F", set(), None),
        ("Halo 4FA", {SERVICE}, None),
    ],
)
def test_it_is_told_from_a_frame_by_its_name(name, services, key):
    found = recognise(Advertisement(name, frozenset(services)))
    assert (found and found.key) == key


# ------------------------------------------------------------------ what it shows and sends


async def test_the_program_is_uploaded_and_a_page_is_on_the_lens(tmp_path):
    async with wearing(tmp_path, quirks=()) as halo:
        assert (await halo.ask(PAGE)).drawn == 5 + 7
        assert halo.lens.text() == ["first", *[""] * 12, "last row"]
        assert halo.driver._codec.startup.uploaded
        assert halo.driver._max_packet == 509


async def test_a_picture_of_the_whole_lens_arrives(halo):
    whole = Tile(0, 0, 192, 168, 4, b"\xff" * 16128)
    assert (await halo.ask(ShowPage("s", tiles=(whole,)))).drawn == 192 * 168
    assert halo.lens.lit == 192 * 168


async def test_gestures_of_the_wearer_arrive(halo):
    made = [
        Gesture.TAP,
        Gesture.DOUBLE_TAP,
        Gesture.BUTTON,
        Gesture.BUTTON_LONG,
        Gesture.HEAD_UP,
        Gesture.HEAD_DOWN,
    ]
    for gesture in made:
        assert halo.mock.glasses.gesture(gesture)
    assert await halo.wait(Gestured, len(made)) == [Gestured(gesture) for gesture in made]
    assert not halo.mock.glasses.gesture(Gesture.NOD)


async def test_its_battery_service_notifies(halo):
    halo.mock.glasses.set_battery(31)
    assert (await halo.wait(BatteryChanged, 2))[-1] == BatteryChanged(31)


async def test_a_photo_has_the_one_resolution_of_its_camera(halo):
    await halo.ask(TakePhoto(3, PhotoSize.SMALL))
    (photo,) = await halo.wait(PhotoTaken)
    with Image.open(BytesIO(photo.jpeg)) as picture:
        assert picture.size == (640, 480)


async def test_brightness_is_set(halo):
    await halo.ask(SetBrightness(75))
    assert halo.mock.glasses.settings == {"brightness": 75}


# ------------------------------------------------------------------ the speaker


async def speak(halo: Wearing, *, flush: bool = False) -> Done:
    await halo.ask(StartAudio(STREAM, AudioFormat.PCM16))
    for index, at in enumerate(range(0, len(TONE), 640)):
        chunk = AudioChunk(STREAM, index, (TONE[at : at + 640],))
        await halo.driver.post(chunk, timeout_s=DEADLINE_S)
    done = await halo.ask(EndAudio(STREAM, flush=flush))
    assert isinstance(done, Done)
    return done


@needs("liblc3")
async def test_speech_is_played_and_counted(tmp_path):
    async with wearing(tmp_path) as halo:
        assert (await speak(halo)).samples == 8000
        heard = await halo.ear.wait("speaker")
        assert heard["bad_frames"] == 0
        assert heard["seconds"] == pytest.approx(0.5)


async def test_speech_is_played_as_samples_without_lc3(tmp_path, monkeypatch):
    def missing():
        raise lc3.Lc3Missing("not installed")

    monkeypatch.setattr(lc3, "_load", missing)
    async with wearing(tmp_path) as halo:
        assert (await speak(halo)).samples == 8000


@needs("liblc3")
async def test_firmware_that_does_not_count_claims_nothing(tmp_path):
    async with wearing(tmp_path, quirks=["running=glassd", "sound-counts=no"]) as halo:
        assert (await speak(halo)).samples is None
        assert (await halo.ear.wait("speaker"))["seconds"] == pytest.approx(0.5)


@needs("liblc3")
async def test_speech_can_be_stopped(tmp_path):
    async with wearing(tmp_path) as halo:
        assert (await speak(halo, flush=True)).samples < 8000
        assert (await speak(halo)).samples == 8000


# ------------------------------------------------------------------ quirks


def test_the_first_value_of_each_quirk_is_what_its_documents_say_first():
    assert choose(QUIRKS, []) == {
        "acknowledgement": "three-bytes",
        "tap": "09",
        "tap-kinds": "yes",
        "sound-counts": "yes",
        "microphone": "free",
        "characteristics": "protocol",
        "name": "fourth-byte",
        "running": "nothing",
    }


def test_a_wrong_quirk_names_the_known_ones():
    with pytest.raises(QuirkError, match=r"characteristics=protocol\|services"):
        parts_of("sim:halo", ["colour=blue"])


@pytest.mark.parametrize(
    "quirk",
    [f"{n}={v}" for n, values in QUIRKS.items() for v in values if n not in ("name", "microphone")],
)
async def test_the_driver_works_whatever_the_firmware_and_other_programs_do(tmp_path, quirk):
    async with wearing(tmp_path, quirks=[quirk], speed=8) as halo:
        assert (await halo.ask(PAGE)).drawn == 12
        halo.mock.glasses.gesture(Gesture.DOUBLE_TAP)
        assert await halo.wait(Gestured) == [Gestured(Gesture.DOUBLE_TAP)]


@pytest.mark.parametrize(
    ("quirk", "count"), [("characteristics=protocol", 3), ("characteristics=services", 5)]
)
async def test_it_has_the_characteristics_of_either_document(tmp_path, quirk, count):
    radio = await open_radio("inproc")
    mock = await start_mock("sim:halo", radio.air, out_dir=tmp_path, quirks=[quirk])
    try:
        sighting = await scan(radio, timeout_s=DEADLINE_S)
        async with BleakClient(sighting.device, backend=radio.client) as client:
            found = client.services.get_service(SERVICE).characteristics
            battery = client.services.get_service("180f").characteristics
            (update,) = client.services.get_service(UPDATE_SERVICE).characteristics
            level = await client.read_gatt_char("2a19")
    finally:
        await radio.close()
        await mock.close()
    assert (len(found), bytes(level)) == (count, b"\x57")
    assert len(battery) == (1 if count == 3 else 2)
    assert update.uuid == "da2e7828-fbce-4e01-ae9e-261174997c48"


async def test_le_audio_keeps_the_microphone(tmp_path):
    async with wearing(tmp_path, quirks=["running=glassd", "microphone=le-audio"]) as halo:
        with pytest.raises(CommandRefused, match="LE Audio"):
            await halo.ask(StartMicrophone(1, AudioFormat.PCM16))
        assert (await halo.ask(PAGE)).drawn == 12


# ------------------------------------------------------------------ controls of other hosts


@asynccontextmanager
async def typing(out, gone) -> AsyncIterator[tuple[BleakClient, asyncio.Queue[bytes]]]:
    """A host that types at the prompt; `gone` is set when the connection is lost."""
    radio = await open_radio("inproc")
    mock = await start_mock("sim:halo", radio.air, out_dir=out)
    said: asyncio.Queue[bytes] = asyncio.Queue()
    try:
        sighting = await scan(radio, timeout_s=DEADLINE_S)
        async with BleakClient(
            sighting.device, lambda _client: gone.set(), backend=radio.client
        ) as client:
            await client.start_notify(find("halo").gatt.tx, lambda _, data: said.put_nowait(data))
            yield client, said
    finally:
        await radio.close()
        await mock.close()


async def test_a_reboot_ends_the_connection(tmp_path):
    gone = asyncio.Event()
    async with typing(tmp_path, gone) as (client, said):
        rx = find("halo").gatt.rx
        await client.write_gatt_char(rx, b"print(1)", response=True)
        assert await asyncio.wait_for(said.get(), DEADLINE_S) == b"1"
        await client.write_gatt_char(rx, b"\x02", response=False)
        await asyncio.wait_for(gone.wait(), DEADLINE_S)


async def test_a_lost_link_ends_the_speech(tmp_path):
    async with wearing(tmp_path) as halo:
        await halo.ask(StartAudio(STREAM, AudioFormat.PCM16))
        await halo.mock.injector.inject(parse_fault("drop"))
        with pytest.raises(LinkLost):
            await halo.ask(Ping())
        assert not halo.mock.glasses.speaker.playing
