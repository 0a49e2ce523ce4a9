"""The simulated Mentra Display over bleak and bumble: text, pictures, sound, gestures."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from firmware_bridge.codecs.mentra_nex.conflicts import CONFLICTS
from firmware_bridge.errors import CommandRefused
from firmware_bridge.lc3 import Decoder
from firmware_bridge.messages import (
    AudioFormat,
    BatteryChanged,
    ClearPage,
    Done,
    Gesture,
    Gestured,
    MicrophoneChunk,
    Ping,
    SetBrightness,
    SetHeadUpAngle,
    SetSilentMode,
    ShowPage,
    StartMicrophone,
    StopMicrophone,
    TextLine,
    Tile,
)
from firmware_bridge.own_commands import GetMotion, MotionRead, Restart, SetDisplayPosition
from firmware_bridge.sides import Side
from firmware_bridge.sim.mentra_nex.glasses import more_follow
from firmware_bridge.sim.mentra_nex.quirks import QUIRKS
from tests.system import needs
from tests.unit.firmware_bridge.sim_helpers import DEADLINE_S, loudness, worn

pytestmark = pytest.mark.enable_socket

TEXT = ShowPage("t", lines=(TextLine(0, "Milk"), TextLine(1, "Bread, 2 loaves")))
PICTURE = ShowPage("p", tiles=(Tile(10, 10, 64, 32, 1, b"\xff" * 256),))


class Nex:
    """The glasses as they are worn, and what the driver heard of them."""

    def __init__(self, mock, driver, ear) -> None:
        self.mock, self.driver, self.ear = mock, driver, ear
        self.events = []
        self._news = asyncio.Event()

    async def listen(self) -> None:
        async for event in self.driver.events():
            self.events.append(event)
            self._news.set()

    async def until(self, fits):
        async with asyncio.timeout(DEADLINE_S):
            while not (found := fits()):
                self._news.clear()
                await self._news.wait()
        return found

    async def ask(self, command):
        return await self.driver.request(command, timeout_s=DEADLINE_S)

    @property
    def lens(self):
        return self.mock.glasses.lens


@asynccontextmanager
async def nex(out, *quirks: str, **options):
    async with worn("sim:mentra_nex", out, Nex, quirks=quirks, **options) as glasses:
        yield glasses


@pytest.mark.parametrize("conflict", CONFLICTS, ids=lambda conflict: conflict.name)
async def test_every_variant_shows_text_and_a_picture(tmp_path, conflict):
    for value in QUIRKS[conflict.name]:
        async with nex(tmp_path, f"{conflict.name}={value}") as glasses:
            assert await glasses.ask(TEXT) == Done()
            assert glasses.lens.text()[:2] == ["Milk", "Bread, 2 loaves"]
            assert await glasses.ask(PICTURE) == Done()
            assert glasses.lens.lit == 64 * 32
            assert await glasses.ask(ClearPage()) == Done()
            assert glasses.lens.lit == 0


async def test_small_packets_need_fragments(tmp_path):
    async with nex(tmp_path, "framing=fragments", mtu=100) as glasses:
        lines = tuple(TextLine(row, f"{row} " + "word " * 6) for row in range(4))
        assert await glasses.ask(ShowPage("long", lines=lines)) == Done()
        assert glasses.lens.text()[3].startswith("3 word word")


async def test_settings_arrive(tmp_path):
    async with nex(tmp_path) as glasses:
        assert await glasses.ask(SetBrightness(40)) == Done()
        assert await glasses.ask(SetHeadUpAngle(25)) == Done()
        assert glasses.mock.glasses.settings == {"brightness": 40, "head_up_angle": 25}


async def test_gestures_and_battery_are_reported(tmp_path):
    async with nex(tmp_path) as glasses:
        wearer = glasses.mock.glasses
        made = [Gesture.TAP, Gesture.BUTTON_LONG, Gesture.NOD, Gesture.HEAD_UP]
        for gesture in made:
            assert wearer.gesture(gesture)
        wearer.set_battery(31)
        await glasses.until(lambda: BatteryChanged(31) in glasses.events)
        seen = [e for e in glasses.events if isinstance(e, Gestured)]
        assert [e.gesture for e in seen] == made
        assert seen[0].side is Side.LEFT


@needs("liblc3")
@pytest.mark.parametrize("quirk", ["sound-second-byte=number", "sound-second-byte=id"])
async def test_what_the_wearer_says_comes_as_sound(tmp_path, quirk):
    async with nex(tmp_path, quirk) as glasses:
        await glasses.ask(StartMicrophone(3, AudioFormat.LC3))
        await glasses.ear.wait("microphone", where=lambda e: e["open"])
        glasses.mock.glasses.say("one two three")

        def chunks():
            return [e for e in glasses.events if isinstance(e, MicrophoneChunk)]

        def loud():
            decoder = Decoder(40)
            frames = (frame for chunk in chunks() for frame in chunk.frames)
            return loudness(b"".join(map(decoder.decode, frames))) > 500

        await glasses.until(loud)
        assert [c.index for c in chunks()] == list(range(len(chunks())))
        assert await glasses.ask(StopMicrophone(3)) == Done()
        await glasses.ear.wait("microphone", where=lambda e: not e["open"])
        assert await glasses.ask(Ping()) == Done()


def test_only_chunks_of_pictures_are_followed_by_more():
    assert more_follow(b"\xb0\x00\x2a\x00abc")
    assert not more_follow(b"\x02\x5a\x00")


async def test_the_motion_sensor_is_read_where_there_is_one(tmp_path):
    async with nex(tmp_path, "motion=yes") as glasses:
        assert await glasses.ask(GetMotion()) == Done()
        await glasses.until(lambda: [e for e in glasses.events if isinstance(e, MotionRead)])
    async with nex(tmp_path, "motion=no") as glasses:
        with pytest.raises(CommandRefused, match="unsupported"):
            await glasses.ask(GetMotion())


async def test_its_settings_are_kept_and_a_restart_ends_the_connection(tmp_path):
    async with nex(tmp_path) as glasses:
        assert await glasses.ask(SetSilentMode(on=True)) == Done()
        assert await glasses.ask(SetDisplayPosition(7, 9)) == Done()
        kept = glasses.mock.glasses.settings
        assert (kept["silent"], kept["height"], kept["depth"]) == (True, 7, 4)
        assert await glasses.ask(Restart()) == Done()
        await glasses.ear.wait("restart")
