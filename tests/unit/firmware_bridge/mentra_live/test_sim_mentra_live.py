"""The simulated Mentra Live over bleak and bumble: photo with losses, gestures, sound, return."""

import asyncio
import contextlib
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from firmware_bridge.codecs.mentra_live.conflicts import CONFLICTS
from firmware_bridge.errors import LinkLost
from firmware_bridge.lc3 import Decoder
from firmware_bridge.messages import (
    AudioChunk,
    AudioFormat,
    BatteryChanged,
    Done,
    EndAudio,
    Event,
    Gesture,
    Gestured,
    MicrophoneChunk,
    PhotoFailed,
    PhotoSize,
    PhotoTaken,
    Ping,
    StartAudio,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
)
from firmware_bridge.own_commands import (
    BlinkLight,
    EndStream,
    ForgetWifi,
    GalleryChanged,
    GetGallery,
    GetMotion,
    GetVideo,
    GetWifi,
    HotspotChanged,
    JoinWifi,
    KeepPictures,
    LeaveWifi,
    LightColor,
    MotionRead,
    RecordVideo,
    Restart,
    ScanWifi,
    SetHotspot,
    StreamChanged,
    StreamVideo,
    SwitchLightOff,
    VideoChanged,
    WifiChanged,
    WifiFound,
)
from firmware_bridge.sim.faults import parse_fault
from firmware_bridge.sim.mentra_live.glasses import HOTSPOT, STILL, more_follow
from firmware_bridge.sim.mentra_live.quirks import QUIRKS, dialect
from firmware_bridge.sim.quirks import QuirkError
from tests.system import needs
from tests.unit.firmware_bridge.sim_helpers import DEADLINE_S, loudness, worn

pytestmark = pytest.mark.enable_socket

SPEED = 20.0


class Live:
    """The glasses as they are worn, and what the driver heard of them."""

    def __init__(self, mock, driver, ear) -> None:
        self.mock, self.driver, self.ear = mock, driver, ear
        self.events: list[Event] = []
        self.lost = False
        self._news = asyncio.Event()

    async def listen(self) -> None:
        async for event in self.driver.events():
            self.events.append(event)
            self._news.set()
        self.lost = True
        self._news.set()

    async def until(self, fits):
        async with asyncio.timeout(DEADLINE_S):
            while not (found := fits()):
                self._news.clear()
                await self._news.wait()
        return found

    async def heard(self, *kinds: type, count: int = 1):
        return await self.until(
            lambda: [e for e in self.events if isinstance(e, kinds)][count - 1 :]
        )

    async def ask(self, command):
        return await self.driver.request(command, timeout_s=DEADLINE_S)

    async def inject(self, word: str) -> None:
        await self.mock.injector.inject(parse_fault(word))


@asynccontextmanager
async def live(out, *quirks: str, speed: float = SPEED, **options):
    async with worn("sim:mentra_live", out, Live, quirks=quirks, speed=speed, **options) as glasses:
        yield glasses


@pytest.fixture
async def glasses(tmp_path):
    async with live(tmp_path) as glasses:
        yield glasses


async def test_a_photo_is_taken_and_arrives_as_the_picture_in_front(glasses):
    assert await glasses.ask(TakePhoto(4, PhotoSize.SMALL)) == Done()
    [taken] = await glasses.heard(PhotoTaken, PhotoFailed)
    assert taken.photo == 4
    with Image.open(BytesIO(taken.jpeg)) as picture:
        assert (picture.format, picture.size) == ("JPEG", (320, 240))
        red, green, blue = picture.convert("RGB").getpixel((60, 120))
    assert red > 200
    assert green > 200
    assert blue < 60, "the second bar is yellow"


@pytest.mark.parametrize("every", [3, 7])
async def test_a_photo_arrives_over_a_link_that_loses_packets(tmp_path, every):
    async with live(tmp_path) as glasses:
        await glasses.inject(f"lose-acks:{every}")
        await glasses.ask(TakePhoto(1, PhotoSize.SMALL))
        [taken] = await glasses.heard(PhotoTaken, PhotoFailed)
        assert isinstance(taken, PhotoTaken)
        Image.open(BytesIO(taken.jpeg)).load()


async def test_a_broken_camera_is_said(glasses):
    glasses.mock.glasses.set_capabilities({"camera": False})
    await glasses.ask(TakePhoto(1))
    [failed] = await glasses.heard(PhotoTaken, PhotoFailed)
    assert failed == PhotoFailed(1, "no camera")


@pytest.mark.parametrize("conflict", CONFLICTS, ids=lambda conflict: conflict.name)
async def test_every_variant_is_greeted_and_takes_a_photo(tmp_path, conflict):
    for value in list(conflict.values)[1:]:
        async with live(tmp_path, f"{conflict.name}={value}") as glasses:
            assert await glasses.ask(Ping()) == Done()
            await glasses.ask(TakePhoto(1, PhotoSize.SMALL))
            [taken] = await glasses.heard(PhotoTaken, PhotoFailed)
            assert isinstance(taken, PhotoTaken)
            Image.open(BytesIO(taken.jpeg)).load()


def test_an_unknown_quirk_names_the_known_ones():
    assert set(QUIRKS) == {conflict.name for conflict in CONFLICTS}
    with pytest.raises(QuirkError, match="length-order=big"):
        dialect(["nonsense=1"])


async def test_gestures_and_battery_are_reported(glasses):
    wearer = glasses.mock.glasses
    made = [Gesture.TAP, Gesture.DOUBLE_TAP, Gesture.BUTTON, Gesture.BUTTON_LONG]
    for gesture in made:
        assert wearer.gesture(gesture)
    await glasses.heard(Gestured, count=4)
    assert [e.gesture for e in glasses.events if isinstance(e, Gestured)] == made
    wearer.set_battery(31)
    await glasses.until(lambda: BatteryChanged(31) in glasses.events)


@needs("liblc3")
async def test_what_the_wearer_says_comes_as_sound(tmp_path):
    async with live(tmp_path, speed=1.0) as glasses:
        await glasses.ask(StartMicrophone(3, AudioFormat.LC3))
        await glasses.ear.wait("microphone", where=lambda e: e["open"])
        glasses.mock.glasses.say("one two three")
        decoder, pcm = Decoder(40), b""

        def loud():
            nonlocal pcm
            chunks = [e for e in glasses.events if isinstance(e, MicrophoneChunk)]
            pcm = b"".join(decoder.decode(frame) for c in chunks for frame in c.frames)
            return loudness(pcm) > 500

        await glasses.until(loud)
        chunks = [e for e in glasses.events if isinstance(e, MicrophoneChunk)]
        assert {len(c.frames) for c in chunks} == {6}, "six frames fit 253 bytes"
        assert [c.index for c in chunks] == list(range(len(chunks)))
        await glasses.ask(StopMicrophone(3))
        await glasses.ear.wait("microphone", where=lambda e: not e["open"])


@needs("liblc3")
async def test_speech_is_played_by_the_speaker(glasses):
    tone = b"".join(
        (8000 if at // 20 % 2 else -8000).to_bytes(2, "little", signed=True) for at in range(3200)
    )
    await glasses.ask(StartAudio(1, AudioFormat.PCM16))
    for index in range(5):
        await glasses.driver.post(AudioChunk(1, index, (tone[:640],) * 5))
    assert await glasses.ask(EndAudio(1)) == Done()
    heard = await glasses.ear.wait("speaker")
    assert heard["seconds"] == pytest.approx(0.5, abs=0.05)
    assert loudness(Path(heard["wav"]).read_bytes()[44:]) > 2000


async def test_glasses_that_return_are_greeted_again(tmp_path):
    async with live(tmp_path) as glasses:
        await glasses.inject("drop")
        await glasses.until(lambda: glasses.lost)
        with pytest.raises(LinkLost):
            await glasses.ask(Ping())
    async with live(tmp_path) as glasses:
        assert await glasses.ask(Ping()) == Done()


def test_only_unfinished_frames_and_speech_are_followed_by_more():
    assert more_follow(b"##0\x10\x00abc")
    assert not more_follow(b"##0\x01\x00a$$")


async def test_no_notification_is_larger_than_the_chip_sends(tmp_path):
    async with live(tmp_path, "file-packet=400") as glasses:
        sizes = []
        take = glasses.driver._codec.receive_packet

        def receive(packet, now):
            sizes.append(len(packet))
            take(packet, now)

        glasses.driver._codec.receive_packet = receive
        await glasses.ask(TakePhoto(1, PhotoSize.SMALL))
        await glasses.heard(PhotoTaken)
        assert max(sizes) == 253


async def test_the_glasses_join_a_network_with_its_password_only(glasses):
    await glasses.ask(ScanWifi())
    first, last = (await glasses.heard(WifiFound, count=2), glasses.events)[1][-2:]
    assert (first.is_last, last.is_last) == (False, True)
    assert {n.ssid: n.is_open for n in first.networks + last.networks} == {
        "Workshop": False,
        "Café": True,
    }
    for order, state in (
        (JoinWifi("Workshop", "wrong"), WifiChanged(False)),
        (JoinWifi("Workshop", "correct horse"), WifiChanged(True, "Workshop", "192.168.4.20")),
        (GetWifi(), WifiChanged(True, "Workshop", "192.168.4.20")),
        (JoinWifi("Café"), WifiChanged(True, "Café", "192.168.4.20")),
        (ForgetWifi("Café"), WifiChanged(False)),
        (LeaveWifi(), WifiChanged(False)),
    ):
        glasses.events.clear()
        assert await glasses.ask(order) == Done()
        assert (await glasses.heard(WifiChanged))[0] == state


async def test_light_and_gallery_answer(glasses):
    assert await glasses.ask(BlinkLight(LightColor.GREEN, times=3)) == Done()
    lit = await glasses.ear.wait("light")
    assert (lit["color"], lit["times"]) == ("green", 3)
    assert await glasses.ask(SwitchLightOff()) == Done()
    await glasses.ear.wait("light", where=lambda e: e["color"] is None)
    assert await glasses.ask(KeepPictures(True)) == Done()
    await glasses.ear.wait("setting", where=lambda e: e["keep_pictures"] is True)
    assert await glasses.ask(GetGallery()) == Done()
    assert (await glasses.heard(GalleryChanged))[0].photos == 3


async def report_of(glasses, order, kind):
    """Return the first report of this kind after an order."""
    glasses.events.clear()
    assert await glasses.ask(order) == Done()
    return (await glasses.heard(kind))[0]


async def test_a_video_is_recorded_and_kept_and_no_photo_taken_meanwhile(glasses):
    assert await report_of(glasses, RecordVideo(True), VideoChanged) == VideoChanged(True)
    assert (await report_of(glasses, GetVideo(), VideoChanged)).recording
    assert (await report_of(glasses, GetGallery(), GalleryChanged)).busy == "video"
    await glasses.ask(TakePhoto(1))
    [failed] = await glasses.heard(PhotoTaken, PhotoFailed)
    assert failed == PhotoFailed(1, "a video is being recorded")
    assert await report_of(glasses, RecordVideo(False), VideoChanged) == VideoChanged(False)
    assert (await report_of(glasses, GetGallery(), GalleryChanged)).videos == 2
    assert await report_of(glasses, GetVideo(), VideoChanged) == VideoChanged(False, 0.0)


async def test_no_video_with_an_empty_battery(glasses):
    glasses.mock.glasses.set_battery(5)
    await glasses.until(lambda: BatteryChanged(5) in glasses.events)
    said = await report_of(glasses, RecordVideo(True), VideoChanged)
    assert said == VideoChanged(False, problem="battery_low")


@pytest.mark.parametrize("name", ["rtmp_stream", "stream"])
async def test_the_camera_is_streamed_in_a_network_only(tmp_path, name):
    async with live(tmp_path, f"stream-orders={name}") as glasses:
        order = StreamVideo("rtmp://192.168.4.2/live")
        said = await report_of(glasses, order, StreamChanged)
        assert said == StreamChanged(False, "error", "no Wi-Fi connection")
        await report_of(glasses, JoinWifi("Café"), WifiChanged)
        assert (await report_of(glasses, order, StreamChanged)).streaming
        told = await glasses.ear.wait("stream")
        assert told["to"] == "rtmp://192.168.4.2/live"
        assert (await report_of(glasses, GetGallery(), GalleryChanged)).busy == "stream"
        ended = await report_of(glasses, EndStream(), StreamChanged)
        assert ended == StreamChanged(False, "stopped")


async def test_the_hotspot_and_the_motion_sensor_answer(glasses):
    assert await report_of(glasses, SetHotspot(True), HotspotChanged) == HOTSPOT
    off = await report_of(glasses, SetHotspot(False), HotspotChanged)
    assert off == HotspotChanged(False)
    assert await report_of(glasses, GetMotion(), MotionRead) == STILL


async def test_glasses_that_restart_are_lost(glasses):
    with contextlib.suppress(LinkLost):
        await glasses.ask(Restart())
    await glasses.until(lambda: glasses.lost)
