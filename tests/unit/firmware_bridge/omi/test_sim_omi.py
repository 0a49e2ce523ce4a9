"""The simulated Omi, OMI Glass and OpenGlass over bleak and bumble: what a host hears and sees."""

import asyncio
from array import array
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from edge.hearing.chunks import Chunks, Samples
from firmware_bridge.catalog import find
from firmware_bridge.errors import CommandRefused
from firmware_bridge.messages import (
    AudioFormat,
    BatteryChanged,
    ButtonReleased,
    Done,
    Gesture,
    Gestured,
    Hello,
    MicrophoneChunk,
    PhotoFailed,
    PhotoTaken,
    Ping,
    SetClock,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
)
from firmware_bridge.own_commands import (
    DimLight,
    GetMotion,
    MotionRead,
    SetMicrophoneGain,
    Vibrate,
    Vibration,
)
from firmware_bridge.packets import ChannelPacket
from firmware_bridge.sim.faults import parse_fault
from firmware_bridge.sim.model_specs import parts_of
from firmware_bridge.sim.omi.glasses import STILL
from firmware_bridge.sim.omi.sound import compress
from firmware_bridge.sim.quirks import QuirkError
from tests.unit.firmware_bridge.sim_helpers import DEADLINE_S, loudness, worn

pytestmark = pytest.mark.enable_socket

CAMERAS = ["omi_glass", "openglass"]
SPEED = 8.0
FORMS = {
    0: (AudioFormat.PCM16, 16000),
    1: (AudioFormat.PCM16, 8000),
    10: (AudioFormat.MULAW, 16000),
    11: (AudioFormat.MULAW, 8000),
    20: (AudioFormat.OPUS, 16000),
    21: (AudioFormat.OPUS, 16000),
}


class Wearing:
    """Simulated glasses, and what a host hears of them."""

    def __init__(self, mock: Any, driver: Any, ear: Any) -> None:
        self.mock, self.driver, self.ear = mock, driver, ear
        self.events: list[Any] = []
        self._news = asyncio.Event()

    async def listen(self) -> None:
        async for event in self.driver.events():
            self.events.append(event)
            self._news.set()

    async def ask(self, command: Any) -> Any:
        return await self.driver.request(command, timeout_s=DEADLINE_S)

    async def heard(self, kind: Any, count: int = 1) -> Any:
        """Return the `count`-th event of this type."""
        async with asyncio.timeout(DEADLINE_S):
            while len(found := [e for e in self.events if isinstance(e, kind)]) < count:
                self._news.clear()
                await self._news.wait()
        return found[count - 1]

    async def photo(self, number: int) -> PhotoTaken | PhotoFailed:
        count = 1
        while (found := await self.heard(PhotoTaken | PhotoFailed, count)).photo != number:
            count += 1
        return found


def wearing(key: str, out: Path, *quirks: str, **options: Any) -> Any:
    return worn(f"sim:{key}", out, Wearing, quirks=quirks, **{"speed": SPEED, **options})


def test_advertisements_fit_and_have_what_the_firmware_has():
    for key, in_packet, in_response in (
        ("omi", [0x01, 0x07, 0x09], [0x03]),
        ("omi_glass", [0x01, 0x07], [0x09]),
        ("openglass", [0x01, 0x07, 0x03], [0x09]),
    ):
        identity = parts_of(f"sim:{key}").identity(find(key), None)
        for data, types in (
            (identity.advertised, in_packet),
            (identity.scan_response, in_response),
        ):
            assert len(data) <= 31
            found, at = [], 0
            while at < len(data):
                found.append(data[at + 1])
                at += data[at] + 1
            assert found == types


@pytest.mark.parametrize("key", ["omi", *CAMERAS])
async def test_glasses_are_greeted_pinged_and_report_their_battery(key, tmp_path):
    async with wearing(key, tmp_path) as glasses:
        info = await glasses.ask(Hello("glassd", "test"))
        assert info.model == find(key).title
        assert await glasses.ask(Ping()) == Done()
        assert await glasses.heard(BatteryChanged) == BatteryChanged(87)
        assert glasses.mock.glasses.set_battery(40)
        assert await glasses.heard(BatteryChanged, 2) == BatteryChanged(40)


# ------------------------------------------------------------------ microphone


async def spoken(glasses: Wearing, codec: int, seconds: float = 0.6) -> bytes:
    """Speak, and return what is heard of it at 16 kHz."""
    form, rate = FORMS[codec]
    assert await glasses.ask(StartMicrophone(3, form, rate)) == Done()
    glasses.mock.glasses.say("one two three four five")
    chunks, pcm, count = Chunks(form, rate=rate), bytearray(), 0
    while len(pcm) < 32000 * seconds:
        count += 1
        chunk = await glasses.heard(MicrophoneChunk, count)
        assert chunk.stream == 3
        pcm += b"".join(part.pcm for part in chunks.take(chunk, 0.0) if isinstance(part, Samples))
    assert chunks.lost == 0
    return bytes(pcm)


def test_mulaw_of_the_simulator_is_what_the_recogniser_expands():
    codes = bytes(code for code in range(256) if code != 0x7F)  # it is another zero
    [part] = Chunks(AudioFormat.MULAW).take(MicrophoneChunk(1, 0, (codes,)), 0.0)
    assert isinstance(part, Samples)
    assert bytes(map(compress, array("h", part.pcm))) == codes
    assert [compress(sample) for sample in (-32768, -1, 0, 1, 32767)] == [0, 0x7F, 0xFF, 0xFF, 0x80]


@pytest.mark.parametrize("codec", FORMS)
async def test_sound_is_heard_in_every_codec(codec, tmp_path):
    async with wearing("omi", tmp_path, f"codec={codec}", speed=1.0) as glasses:
        known = (await glasses.ask(Hello("glassd", "test"))).capabilities
        assert (known["microphone.codecs"], known["microphone.rate"]) == FORMS[codec]
        assert loudness(await spoken(glasses, codec)) > 2000


async def test_sound_of_8_bits_is_heard_like_that_of_16(tmp_path):
    async with wearing("openglass", tmp_path, "codec-1-width=8", speed=1.0) as glasses:
        pcm = await spoken(glasses, 1, seconds=1.0)
        assert 2000 < loudness(pcm[16000:]) < 8000


async def test_the_microphone_is_on_while_it_is_wanted(tmp_path):
    async with wearing("openglass", tmp_path) as glasses:
        assert not glasses.mock.glasses.microphone.open
        await spoken(glasses, 1)
        assert glasses.mock.glasses.microphone.open
        await glasses.ask(StopMicrophone(3))
        await glasses.ear.wait("microphone", where=lambda e: not e["open"])
        before = len(glasses.events)
        await glasses.ask(Ping())
        assert not glasses.mock.glasses.microphone.open
        assert not any(isinstance(event, MicrophoneChunk) for event in glasses.events[before:])
        await spoken(glasses, 1)


@pytest.mark.parametrize("rule", ["packet", "frame"])
async def test_frames_of_several_packets_are_heard_with_either_rule_of_numbers(rule, tmp_path):
    async with wearing(
        "omi", tmp_path, "codec=0", f"fragment-id={rule}", mtu=100, speed=1.0
    ) as glasses:
        assert loudness(await spoken(glasses, 0)) > 2000


async def test_opus_is_heard_where_pieces_are_cut_too_long(tmp_path):
    async with wearing("omi", tmp_path, "piece-length=mtu-3", speed=1.0) as glasses:
        assert loudness(await spoken(glasses, 21)) > 2000


# ------------------------------------------------------------------ camera


def picture(taken: PhotoTaken) -> Image.Image:
    """Return the photo, turned upright."""
    return Image.open(BytesIO(taken.jpeg)).convert("RGB").rotate(-taken.turned)


@pytest.mark.parametrize(
    ("key", "quirk"), [("omi_glass", "stock"), ("omi_glass", "none"), ("openglass", "stock")]
)
async def test_a_photo_is_taken_and_upright(key, quirk, tmp_path):
    async with wearing(key, tmp_path, f"orientation={quirk}", "photos-unasked=no") as glasses:
        assert await glasses.ask(TakePhoto(7)) == Done()
        taken = await glasses.photo(7)
        assert isinstance(taken, PhotoTaken)
        image = picture(taken)
        known = find(key).capabilities
        assert image.size == (known["camera.width"], known["camera.height"])
        left, right = (image.getpixel((x, image.height // 2)) for x in (20, image.width - 20))
        assert min(left) > 200, "the first bar is white"
        assert max(right) < 50, "and the last one black"


async def test_photos_are_numbered_as_they_were_asked_for(tmp_path):
    async with wearing("openglass", tmp_path) as glasses:
        for number in (7, 8):
            await glasses.ask(TakePhoto(number))
            assert isinstance(await glasses.photo(number), PhotoTaken)
        await spoken(glasses, 1)
        assert glasses.mock.glasses.camera.photos == 2, "and no more"


async def test_omi_glass_takes_no_photos_unasked_once_it_is_greeted(tmp_path):
    async with wearing("omi_glass", tmp_path, speed=200.0) as glasses:
        await glasses.ear.wait("setting", where=lambda e: e.get("interval") == 0)
        await glasses.ask(TakePhoto(7))
        assert isinstance(await glasses.photo(7), PhotoTaken)


@pytest.mark.parametrize(
    ("key", "quirk", "seconds"),
    [("openglass", "stock", 5.0), ("openglass", "30", 30.0), ("omi_glass", "steps", 5.0)],
)
async def test_an_interval_is_understood_as_the_firmware_does(key, quirk, seconds, tmp_path):
    async with wearing(
        key, tmp_path, f"interval={quirk}", "photos-unasked=no", speed=200.0
    ) as glasses:
        transport = glasses.driver._transport
        await transport.write(ChannelPacket(b"\x09", "control"))
        for count in (1, 2):
            assert (await glasses.heard(PhotoTaken, count)).photo == 0
        assert glasses.mock.glasses.settings["interval"] == seconds
        await transport.write(ChannelPacket(b"\x00", "control"))
        await glasses.ear.wait("setting", where=lambda e: e.get("interval") == 0)


async def test_a_photo_that_loses_packets_fails(tmp_path):
    async with wearing("omi_glass", tmp_path, "photos-unasked=no") as glasses:
        await glasses.mock.injector.inject(parse_fault("lose-acks:5"))
        await glasses.ask(TakePhoto(7))
        failed = await glasses.photo(7)
        assert isinstance(failed, PhotoFailed)
        assert "due" in failed.detail
        await glasses.mock.injector.inject(parse_fault("lose-acks:0"))
        await glasses.ear.wait("photo")
        await glasses.ask(TakePhoto(8))
        assert isinstance(await glasses.photo(8), PhotoTaken)


# ------------------------------------------------------------------ button and clock


async def test_presses_of_the_button_are_reported_but_long_ones(tmp_path):
    async with wearing("omi", tmp_path) as glasses:
        does = glasses.mock.glasses.gesture
        assert does(Gesture.BUTTON)
        assert not does(Gesture.BUTTON_LONG)
        assert not does(Gesture.NOD)
        assert does(Gesture.DOUBLE_TAP)
        presses = [await glasses.heard(Gestured, count) for count in (1, 2)]
        assert [each.gesture for each in presses] == [Gesture.BUTTON, Gesture.DOUBLE_TAP]


async def test_a_firmware_that_reports_long_presses_reports_their_end(tmp_path):
    async with wearing("omi", tmp_path, "long-press=reported") as glasses:
        assert glasses.mock.glasses.hold(2.0)
        assert await glasses.heard(Gestured) == Gestured(Gesture.BUTTON_LONG)
        assert await glasses.heard(ButtonReleased) == ButtonReleased()


@pytest.mark.parametrize("quirk", ["yes", "no"])
async def test_features_say_whether_there_is_a_button(quirk, tmp_path):
    async with wearing("omi", tmp_path, f"button={quirk}") as glasses:
        info = await glasses.ask(Hello("glassd", "test"))
        assert info.capabilities["button"] is (quirk == "yes")


async def test_the_clock_of_an_omi_is_set(tmp_path):
    async with wearing("omi", tmp_path) as glasses:
        assert await glasses.ask(SetClock(1_800_000_000)) == Done()
        await glasses.ear.wait("setting", where=lambda e: e.get("clock") == 1_800_000_000)


async def test_light_and_gain_of_an_omi_are_set(tmp_path):
    async with wearing("omi", tmp_path) as glasses:
        known = (await glasses.ask(Hello("glassd", "test"))).capabilities
        assert known["light.brightness"] is known["microphone.gain"] is known["clock"] is True
        assert await glasses.ask(DimLight(30)) == Done()
        await glasses.ear.wait("setting", where=lambda e: e.get("dim") == 30)
        assert await glasses.ask(SetMicrophoneGain(25)) == Done()
        await glasses.ear.wait("setting", where=lambda e: e.get("gain") == 2)


async def test_an_omi_vibrates(tmp_path):
    async with wearing("omi", tmp_path) as glasses:
        assert await glasses.ask(Vibrate(Vibration.LONG)) == Done()
        await glasses.ear.wait("vibrated", where=lambda e: e["length"] == "long")


async def test_motion_is_read_where_it_is_built_in(tmp_path):
    async with wearing("omi", tmp_path, "features=motion") as glasses:
        for count in (1, 2):
            assert await glasses.ask(GetMotion()) == Done()
            assert await glasses.heard(MotionRead, count) == STILL
    async with wearing("omi", tmp_path) as glasses:
        with pytest.raises(CommandRefused, match="unsupported"):
            await glasses.ask(GetMotion())


@pytest.mark.parametrize(("mtu", "is_heard"), [(99, False), (100, True)])
async def test_an_omi_sends_sound_only_in_packets_that_are_large_enough(mtu, is_heard, tmp_path):
    async with wearing("omi", tmp_path, "codec=20", mtu=mtu) as glasses:
        assert await glasses.ask(StartMicrophone(3, AudioFormat.OPUS)) == Done()
        if is_heard:
            await glasses.heard(MicrophoneChunk)
        else:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.0):
                    await glasses.heard(MicrophoneChunk)


# ------------------------------------------------------------------ what only other hosts do


async def read(glasses: Wearing, number: str) -> bytes:
    """Read a characteristic as a host without our driver does."""
    client = glasses.driver._transport._client
    return bytes(await client.read_gatt_char(number))


OWN = "19b1{}-e8f2-537e-4f6c-d104768a1214"
SIG = "0000{}-0000-1000-8000-00805f9b34fb"


@pytest.mark.parametrize(
    ("key", "values"),
    [
        (
            "omi",
            {
                SIG.format("2a29"): b"Based Hardware",
                SIG.format("2a24"): b"Omi",
                OWN.format("0001"): b"",
                OWN.format("0002"): b"\x15",
                OWN.format("0013"): b"\0",
                OWN.format("0021"): b"\xac\x01\0\0",
                "23ba7925-0000-1000-7450-346eac492e92": bytes(8),
                "32403791-0000-1000-7450-bf445e5829a2": b"\x06\0\0\0",
                OWN.format("0041"): b"\x01" + bytes(8) + b"\x04\x10" + bytes(14),
            },
        ),
        (
            "omi_glass",
            {
                SIG.format("2a26"): b"2.3.2",
                SIG.format("2a27"): b"ESP32-S3-v1.0",
                OWN.format("0005"): b"",
                OWN.format("0011"): b"\0\0",
            },
        ),
        (
            "openglass",
            {
                SIG.format("2a26"): b"1.0.1",
                SIG.format("2a27"): b"Seeed Xiao ESP32S3 Sense",
                SIG.format("2a19"): b"\x57",
            },
        ),
    ],
)
async def test_every_value_can_be_read(key, values, tmp_path):
    async with wearing(key, tmp_path) as glasses:
        assert {uuid: await read(glasses, uuid) for uuid in values} == values


async def test_another_host_updates_the_firmware_and_the_glasses_restart(tmp_path):
    async with wearing("omi_glass", tmp_path) as glasses:
        client = glasses.driver._transport._client
        reports: asyncio.Queue[bytes] = asyncio.Queue()
        await client.start_notify(
            OWN.format("0012"), lambda _at, data: reports.put_nowait(bytes(data))
        )
        for command in (b"\x01\x04Home\x00", b"\x05\x00\x0ahttp://a.b"):
            await client.write_gatt_char(OWN.format("0011"), command, response=True)
            assert await asyncio.wait_for(reports.get(), DEADLINE_S) == b"\0\0"
        await client.write_gatt_char(OWN.format("0011"), b"\x02", response=True)
        assert await asyncio.wait_for(reports.get(), DEADLINE_S) == b"\x10\0"
        assert (await read(glasses, OWN.format("0011")))[1:] == b"\0"
        while await asyncio.wait_for(reports.get(), DEADLINE_S) != b"\x40\0":
            pass
        await glasses.ear.wait("restart")
        await glasses.ear.wait("disconnected")


async def test_an_omi_built_without_them_says_so(tmp_path):
    async with wearing("omi", tmp_path, "features=none") as glasses:
        known = (await glasses.ask(Hello("glassd", "test"))).capabilities
        assert known["light"] is known["microphone.gain"] is known["button"] is False
        with pytest.raises(CommandRefused, match="unsupported"):
            await glasses.ask(DimLight(30))


async def test_an_unknown_quirk_is_refused():
    with pytest.raises(QuirkError, match="codec-1-width"):
        parts_of("sim:omi", ["nonsense=1"])
    with pytest.raises(QuirkError, match="stock, sent, none"):
        parts_of("sim:omi_glass", ["orientation=sideways"])
