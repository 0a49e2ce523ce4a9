"""halo-emulator 2.3.0 and halo-ws-simulator 0.1.0, the maker's Lua machine of a Halo: driven by our
driver, which uploads its program and starts it there.

The emulator has no camera, and plays no sound.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from math import pi, sin
from typing import Any

import pytest

from firmware_bridge.codecs.frame.program import FILE, program
from firmware_bridge.driver import Driver
from firmware_bridge.messages import (
    AudioChunk,
    AudioFormat,
    BatteryChanged,
    ClearPage,
    Done,
    EndAudio,
    Gesture,
    Gestured,
    Hello,
    MicrophoneChunk,
    PhotoFailed,
    Ping,
    SetBrightness,
    ShowPage,
    StartAudio,
    StartMicrophone,
    StopMicrophone,
    TakePhoto,
    TextLine,
    Tile,
)
from firmware_bridge.transports.ble import scan
from firmware_bridge.transports.ble_connection import connect
from tests.foreign.halo_on_air import EmulatedHalo, halo_on_air
from tests.unit.firmware_bridge.sim_helpers import DEADLINE_S, loudness

RATE = 16_000
LEFT, TOP = 32, 44
"""Where our page begins on the emulator's 256 × 256 pixels."""
TONE = b"".join(
    round(8000 * sin(2 * pi * 440 * at / RATE)).to_bytes(2, "little", signed=True)
    for at in range(RATE)
)


class Worn:
    """An emulated Halo, and what our driver hears of it."""

    def __init__(self, halo: EmulatedHalo, driver: Driver[Any]) -> None:
        self.halo, self.driver = halo, driver
        self.emulator = halo.emulator
        self.heard: list[Any] = []
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

    def seen(self):
        """What is on the lens, in greys."""
        return self.emulator.get_framebuffer().convert("L")


@pytest.fixture
async def worn(radio, tmp_path) -> AsyncIterator[Worn]:
    async with halo_on_air(radio, tmp_path, model="halo", name="Halo F0") as halo:
        sighting = await scan(radio, timeout_s=DEADLINE_S)
        assert sighting.entry.key == "halo"
        transport = await connect(radio, sighting, timeout_s=DEADLINE_S)
        codec = sighting.entry.codec(transport.max_packet)
        driver: Driver[Any] = Driver(transport, codec, clock=time.monotonic)
        worn = Worn(halo, driver)
        running = [asyncio.ensure_future(driver.run()), asyncio.ensure_future(worn.listen())]
        try:
            await worn.ask(Hello("glassd", "test"))
            await worn.ask(Ping())
            yield worn
        finally:
            for task in running:
                task.cancel()
            await asyncio.wait(running)
            await transport.close()


async def test_our_program_is_stored_and_runs(worn, tmp_path):
    assert (tmp_path / "flash" / FILE).read_text() == program("halo").text
    assert (await worn.ask(Hello("glassd", "test"))).firmware == "0.8.12-emulator"


async def test_its_battery_is_known(worn):
    assert (await worn.wait(BatteryChanged))[0].level == 85
    worn.emulator.set_battery_level(31)
    assert await worn.ask(Ping()) == Done()
    assert (await worn.wait(BatteryChanged, 2))[-1].level == 31


async def test_a_text_is_on_its_lens(worn):
    page = ShowPage("s", lines=(TextLine(0, "Hello Halo"), TextLine(3, "second", 8)))
    done = await worn.ask(page)
    assert (done.drawn, done.clipped) == (9 + 6, 0)
    seen = worn.seen()
    first = seen.crop((0, 0, 256, TOP + 12)).getbbox()
    assert LEFT <= first[0] < LEFT + 8 < first[2] <= LEFT + 10 * 8
    below = seen.crop((0, TOP + 36, 256, 256)).getbbox()
    assert LEFT + 8 <= below[0] < LEFT + 16
    assert below[3] <= 12
    assert await worn.ask(ClearPage())
    assert worn.seen().getbbox() is None


async def test_a_picture_is_on_its_lens(worn):
    levels = bytes(0x11 * level for level in range(16))
    tile = Tile(8, 100, 32, 1, 4, levels)
    assert (await worn.ask(ShowPage("s", tiles=(tile,)))).drawn == 30
    seen = worn.seen()
    row = [seen.getpixel((LEFT + 8 + x, TOP + 100)) for x in range(32)]
    assert row == [17 * (x // 2) for x in range(32)]
    assert seen.getbbox() == (LEFT + 10, TOP + 100, LEFT + 40, TOP + 101)


async def test_its_brightness_is_set(worn):
    for level in (100, 25):
        assert await worn.ask(SetBrightness(level)) == Done()
        assert worn.emulator._display.brightness() == level


async def test_taps_and_button_are_gestures(worn):
    for kind in ("single", "double"):
        worn.emulator.inject_imu_tap(kind)
    worn.emulator.inject_button_single()
    worn.emulator.inject_button_long()
    seen = [event.gesture for event in await worn.wait(Gestured, 4)]
    assert seen == [Gesture.TAP, Gesture.DOUBLE_TAP, Gesture.BUTTON, Gesture.BUTTON_LONG]


async def test_looking_up_is_a_gesture(worn):
    worn.emulator.set_imu_direction(40, 0, 0)
    assert (await worn.wait(Gestured))[0].gesture is Gesture.HEAD_UP
    worn.emulator.set_imu_direction(0, 0, 0)
    assert (await worn.wait(Gestured, 2))[1].gesture is Gesture.HEAD_DOWN


async def test_its_microphone_is_heard(worn):
    await worn.ask(StartMicrophone(7, AudioFormat.PCM16, RATE))
    worn.emulator.inject_microphone_data(TONE)
    heard, count = b"", 0
    while len(heard) < len(TONE):
        count += 1
        chunk = (await worn.wait(MicrophoneChunk, count))[count - 1]
        assert chunk.stream == 7
        heard += b"".join(chunk.frames)
    assert heard == TONE
    assert loudness(heard) > 4000
    await worn.ask(StopMicrophone(7))
    assert worn.emulator._microphone.status() == "stopped"


async def test_its_speaker_is_opened_fed_and_closed(worn):
    await worn.ask(StartAudio(3, AudioFormat.PCM16, RATE))
    assert worn.emulator._speaker._streaming
    frames = tuple(TONE[at : at + 640] for at in range(0, 3200, 640))
    await worn.driver.post(AudioChunk(3, 0, frames))
    await worn.ask(EndAudio(3))
    assert not worn.emulator._speaker._streaming
    assert sum(map(len, worn.halo.sound)) > 0


async def test_a_photo_fails_with_a_reason(worn):
    """The emulator has no camera."""
    await worn.ask(TakePhoto(4))
    failed = (await worn.wait(PhotoFailed))[0]
    assert failed.photo == 4
    assert "camera" in failed.detail
