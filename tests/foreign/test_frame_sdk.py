"""frame-sdk 1.2.4, the maker's first, at the simulated Frame."""

import asyncio
import sys
from collections.abc import AsyncIterator
from io import BytesIO
from types import ModuleType

import pytest
from PIL import Image

from firmware_bridge.codecs.frame.device import FrameDevice
from firmware_bridge.messages import Gesture
from tests.unit.firmware_bridge.sim_helpers import loudness

# it only plays sound at the host, is built from C at installation, and needs ALSA for that
sys.modules.setdefault("simpleaudio", ModuleType("simpleaudio"))

from frame_sdk import Frame  # noqa: E402 - as above
from frame_sdk.display import Alignment, PaletteColors  # noqa: E402 - as above

PATIENCE_S = 30.0


@pytest.fixture
async def worn(wear):
    return await wear("sim:frame")


@pytest.fixture
async def host(worn) -> AsyncIterator[Frame]:
    async with Frame() as host:
        yield host


async def test_the_battery_is_read(host, worn):
    assert await host.get_battery_level() == 87
    worn[0].glasses.set_battery(31)
    assert await host.get_battery_level() == 31
    assert await host.evaluate("frame.battery_level()") == "31.0"


async def test_its_text_is_on_the_lens(host, worn):
    await host.display.show_text("Hello sdk")
    await worn[1].wait("lens", where=lambda lens: lens["lines"] == ["Hello sdk"])


async def test_a_long_text_is_wrapped_and_centred(host, worn):
    words = "several words that do not fit into a single row of this display"
    await host.display.show_text(words, align=Alignment.TOP_CENTER)
    lens = await worn[1].wait("lens", where=lambda lens: len(lens["lines"]) > 1)
    assert " ".join(lens["lines"]) == words
    assert all(piece["x"] > 0 for piece in lens["pieces"])


async def test_a_rectangle_is_on_the_lens(host, worn):
    await host.display.draw_rect(101, 51, 64, 30, PaletteColors.WHITE)
    # it does not wait until the prompt took that, and the prompt keeps only the last text
    device: FrameDevice = worn[0]._parts.serve.args[0]
    async with asyncio.timeout(PATIENCE_S):
        while not device.tiles:
            await asyncio.sleep(0)
    await host.display.show()
    await worn[1].wait("lens", where=lambda lens: lens["lit"] == 64 * 30)
    image = worn[0].glasses.lens.image
    assert image.getbbox() == (100, 50, 164, 80)


async def test_files_are_written_and_removed(host):
    await host.files.write_file("notes.txt", b"line one " * 60, checked=True)
    assert await host.files.file_exists("notes.txt")
    assert not await host.files.file_exists("other.txt")
    assert await host.files.delete_file("notes.txt")
    assert not await host.files.file_exists("notes.txt")


async def test_a_photo_is_taken_and_processed(host):
    jpeg = await asyncio.wait_for(
        host.camera.take_photo(autofocus_seconds=1, resolution=512), PATIENCE_S
    )
    with Image.open(BytesIO(jpeg)) as image:
        assert (image.format, image.size) == ("JPEG", (512, 512))


async def test_taps_are_reported(host, worn):
    taps = asyncio.Queue()
    await host.motion.run_on_tap(callback=lambda: taps.put_nowait("tap"))
    worn[0].glasses.gesture(Gesture.TAP)
    assert await asyncio.wait_for(taps.get(), PATIENCE_S) == "tap"


@pytest.mark.parametrize(("rate", "bits"), [(8000, 16), (16000, 16), (8000, 8)])
async def test_the_microphone_is_heard_until_it_is_silent(host, worn, rate, bits):
    host.microphone.sample_rate, host.microphone.bit_depth = rate, bits
    recording = asyncio.ensure_future(
        host.microphone.record_audio(silence_cutoff_length_in_seconds=1, max_length_in_seconds=20)
    )
    await worn[1].wait("microphone", where=lambda heard: heard["open"])
    worn[0].glasses.say("one two three four five six seven eight")
    samples = await asyncio.wait_for(recording, PATIENCE_S)
    assert len(samples) > rate
    assert samples.dtype.itemsize == bits // 8
    loud = samples.astype("int16") * (1 if bits == 16 else 256)
    assert loudness(loud.tobytes()) > 300
    await worn[1].wait("microphone", where=lambda heard: not heard["open"])
