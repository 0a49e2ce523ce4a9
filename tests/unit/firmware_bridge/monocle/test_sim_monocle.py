"""The simulated Monocle over bleak and bumble: found, its program uploaded, driven, lost."""

from collections.abc import AsyncIterator
from io import BytesIO

import pytest
from bleak import BleakScanner
from PIL import Image

from firmware_bridge.catalog import find, recognise
from firmware_bridge.codecs.frame.program import program
from firmware_bridge.errors import CommandRefused, LinkLost
from firmware_bridge.messages import (
    AudioFormat,
    BatteryChanged,
    ClearPage,
    Gesture,
    Gestured,
    MicrophoneChunk,
    PhotoTaken,
    Ping,
    SetBrightness,
    ShowPage,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
    TextLine,
    Tile,
)
from firmware_bridge.models import Advertisement
from firmware_bridge.own_commands import BlinkLight, LightColor, SwitchLightOff
from firmware_bridge.sim.faults import parse_fault
from firmware_bridge.sim.inproc import start_mock
from firmware_bridge.sim.model_specs import parts_of
from firmware_bridge.sim.quirks import QuirkError
from firmware_bridge.transports.ble import open_radio, scan
from tests.unit.firmware_bridge.frame.test_sim_frame import Wearing
from tests.unit.firmware_bridge.sim_helpers import DEADLINE_S, loudness, worn

pytestmark = pytest.mark.enable_socket
SERVICE = "6e400001-b5a3-f393-e0a9-e50e24dcca9e"
PAGE = ShowPage("s", lines=(TextLine(0, "first"), TextLine(7, "last row", 48)))


def wearing(out, *, quirks=("running=glassd",), **options):
    return worn("sim:monocle", out, Wearing, speed=8, quirks=list(quirks), **options)


@pytest.fixture
async def monocle(tmp_path) -> AsyncIterator[Wearing]:
    async with wearing(tmp_path) as monocle:
        yield monocle


async def test_it_advertises_as_the_firmware_does(tmp_path):
    radio = await open_radio("inproc")
    mock = await start_mock("sim:monocle", radio.air, out_dir=tmp_path)
    try:
        async with BleakScanner(backend=radio.scanner) as scanner:
            _device, data = await anext(scanner.advertisement_data())
        sighting = await scan(radio, timeout_s=DEADLINE_S)
    finally:
        await radio.close()
        await mock.close()
    assert (data.local_name, data.service_uuids) == ("monocle", [SERVICE])
    assert sighting.entry is find("monocle")
    advertised = mock.identities[None].advertised
    assert advertised[:14] == b"\x08\x09monocle\x02\x01\x06\x11\x07"
    assert len(advertised) == 30


@pytest.mark.parametrize(
    ("name", "services", "key"),
    [
        ("monocle", {SERVICE}, "monocle"),
        ("monocle", set(), None),
        ("Monocle", {SERVICE}, None),
        (None, {SERVICE}, None),
    ],
)
def test_only_a_monocle_is_recognised(name, services, key):
    found = recognise(Advertisement(name, frozenset(services)))
    assert (found.key if found else None) == key


@pytest.mark.parametrize(
    "quirks", [(), ("running=other-program",), ("running=glassd",), ("mtu=128",)]
)
async def test_a_page_is_shown_whatever_ran_before(tmp_path, quirks):
    async with wearing(tmp_path, quirks=quirks) as monocle:
        device = monocle.mock._parts.serve.args[0]
        assert device.files["glassd_app.py"] == program("monocle").text
        done = await monocle.ask(PAGE)
        assert done.drawn == 12
        assert tuple(monocle.lens.lines) == PAGE.lines
        await monocle.ask(ClearPage())
        assert not monocle.lens.lines


def test_its_quirks_are_listed():
    with pytest.raises(QuirkError, match=r"mtu=256\|128"):
        parts_of("sim:monocle", ["wings=two"])


async def test_nobody_pairs(monocle):
    assert find("monocle").pairing == "none"
    assert await monocle.ask(Ping())


@pytest.mark.parametrize("gesture", [Gesture.TAP, Gesture.DOUBLE_TAP, Gesture.BUTTON])
async def test_pads_are_reported(monocle, gesture):
    monocle.mock.glasses.gesture(gesture)
    assert await monocle.wait(Gestured) == [Gestured(gesture)]


async def test_battery_and_brightness(monocle):
    monocle.mock.glasses.set_battery(41)
    await monocle.ask(Ping())
    assert BatteryChanged(41) in await monocle.wait(BatteryChanged)
    await monocle.ask(SetBrightness(100))
    assert monocle.mock.glasses.settings["brightness"] == 100


async def test_the_light_shines(monocle):
    await monocle.ask(BlinkLight(LightColor.RED, times=2))
    await monocle.ear.wait("light", where=lambda e: (e["color"], e["times"]) == ("red", 2))
    await monocle.ask(SwitchLightOff())
    await monocle.ear.wait("light", where=lambda e: e["color"] is None)


async def test_a_photo_arrives(monocle):
    await monocle.ask(TakePhoto(7))
    (photo,) = await monocle.wait(PhotoTaken)
    with Image.open(BytesIO(photo.jpeg)) as image:
        assert image.size == (640, 400)


@pytest.mark.parametrize("rate", [8000, 16000])
async def test_sound_is_heard(monocle, rate):
    await monocle.ask(StartMicrophone(2, AudioFormat.PCM16, rate))
    monocle.mock.glasses.say("one two three four")
    await monocle.ear.wait("heard")
    chunks = await monocle.wait(MicrophoneChunk, 20)
    pcm = b"".join(frame for chunk in chunks for frame in chunk.frames)
    assert 500 < loudness(pcm) < 8000, "noise of bytes in the wrong order is louder"
    await monocle.ask(StopMicrophone(2))


async def test_pictures_are_refused(monocle):
    with pytest.raises(CommandRefused):
        await monocle.ask(ShowPage("s", tiles=(Tile(0, 0, 8, 1, 1, b"\xff"),)))


async def test_a_lost_link_is_noticed(monocle):
    await monocle.mock.injector.inject(parse_fault("drop"))
    with pytest.raises(LinkLost):
        while True:
            await monocle.ask(Ping())
