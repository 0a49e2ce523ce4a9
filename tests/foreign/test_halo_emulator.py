"""halo-emulator 2.3.0 and halo-ws-simulator 0.1.0, the Lua machine of a Halo: driven by our driver
of a Frame, whose program a Halo runs too.

A Halo draws with other functions and has no camera, so pages and photos are left out.
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
    AudioFormat,
    BatteryChanged,
    Done,
    Gesture,
    Gestured,
    Hello,
    MicrophoneChunk,
    Ping,
    SetBrightness,
    StartMicrophone,
    StopMicrophone,
)
from firmware_bridge.transports.ble import scan
from firmware_bridge.transports.ble_connection import connect
from tests.foreign.halo_on_air import EmulatedHalo, halo_on_air
from tests.unit.firmware_bridge.sim_helpers import DEADLINE_S, loudness

RATE = 16_000


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


@pytest.fixture
async def worn(radio, tmp_path) -> AsyncIterator[Worn]:
    async with halo_on_air(radio, tmp_path, model="frame", name="Frame F0") as halo:
        sighting = await scan(radio, timeout_s=DEADLINE_S)
        transport = await connect(radio, sighting, timeout_s=DEADLINE_S)
        codec = sighting.entry.codec(transport.max_packet)
        driver: Driver[Any] = Driver(transport, codec, clock=time.monotonic)
        worn = Worn(halo, driver)
        running = [asyncio.ensure_future(driver.run()), asyncio.ensure_future(worn.listen())]
        try:
            yield worn
        finally:
            for task in running:
                task.cancel()
            await asyncio.wait(running)
            await transport.close()


async def test_our_program_is_uploaded_and_runs(worn, tmp_path):
    info = await worn.ask(Hello("glassd", "test"))
    assert info.firmware == "0.8.12-emulator"
    stored = (tmp_path / "flash" / FILE).read_text()
    assert stored == program().text
    assert await worn.wait(BatteryChanged) == [BatteryChanged(85)]


async def test_it_answers_pings_and_takes_settings(worn):
    await worn.ask(Hello("glassd", "test"))
    assert await worn.ask(Ping()) == Done()
    assert await worn.ask(SetBrightness(100)) == Done()
    assert worn.emulator._display.get_brightness() == 2
    assert await worn.ask(SetBrightness(0)) == Done()
    assert worn.emulator._display.get_brightness() == -2


async def test_its_taps_are_gestures(worn):
    await worn.ask(Hello("glassd", "test"))
    await worn.ask(Ping())
    worn.emulator.inject_imu_tap("single")
    assert await worn.wait(Gestured) == [Gestured(Gesture.TAP)]


async def test_its_microphone_is_heard(worn):
    await worn.ask(Hello("glassd", "test"))
    await worn.ask(StartMicrophone(7, AudioFormat.PCM16, RATE))
    tone = b"".join(
        round(8000 * sin(2 * pi * 440 * at / RATE)).to_bytes(2, "little", signed=True)
        for at in range(RATE)
    )
    worn.emulator.inject_microphone_data(tone)
    heard = b""
    count = 0
    while len(heard) < len(tone):
        count += 1
        chunk = (await worn.wait(MicrophoneChunk, count))[count - 1]
        assert chunk.stream == 7
        heard += b"".join(chunk.frames)
    assert heard == tone
    assert loudness(heard) > 4000
    await worn.ask(StopMicrophone(7))
    assert worn.emulator._microphone.status() == "stopped"
