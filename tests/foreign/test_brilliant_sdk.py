"""brilliant-sdk 1.0.0 (brilliant-ble 3.5.1, brilliant-msg 7.3.0), the maker's, at the simulated
Frame.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO

import pytest
from brilliant_ble import NotConnectedError
from brilliant_sdk import (
    BrilliantDeviceType,
    BrilliantMsg,
    RxPhoto,
    RxTap,
    TxCaptureSettings,
    TxPlainText,
    TxSprite,
)
from PIL import Image

from firmware_bridge.messages import Gesture
from firmware_bridge.sim.faults import parse_fault

TEXT, CAPTURE, SPRITE = 0x0A, 0x0D, 0x20
LIBRARIES = ["data", "camera", "plain_text", "sprite", "tap"]
PATIENCE_S = 20.0


@asynccontextmanager
async def connected(name: str | None = None) -> AsyncIterator[BrilliantMsg]:
    host = BrilliantMsg()
    await host.connect(name=name)
    try:
        yield host
    finally:
        await host.disconnect()


async def start_app(host: BrilliantMsg, folder) -> None:
    await host.upload_stdlua_libs(LIBRARIES)
    app = folder / "app.lua"
    app.write_text("local data = require('data.min')\nwhile true do frame.sleep(1) end\n")
    await host.upload_frame_app(str(app))
    await host.start_frame_app()


async def test_it_is_a_frame_of_this_name(wear):
    await wear("sim:frame")
    async with connected("Frame F0") as host:
        assert host.type is BrilliantDeviceType.FRAME
        assert host.name == "Frame F0"


async def test_another_name_is_not_found(wear):
    await wear("sim:frame")
    with pytest.raises(Exception, match="No matching device"):
        await BrilliantMsg().ble.connect(name="Frame 4F", timeout=1)


async def test_the_battery_is_read_at_the_prompt(wear):
    await wear("sim:frame")
    async with connected() as host:
        assert await host.send_lua("print(frame.battery_level())", await_print=True) == "87.0"


async def test_a_short_text_is_on_the_lens(wear):
    _mock, ear = await wear("sim:frame")
    async with connected() as host:
        await host.print_short_text("Loading")
        await ear.wait("lens", where=lambda lens: lens["lines"] == ["Loading"])


async def test_text_and_sprite_messages_are_on_the_lens(wear, tmp_path):
    _mock, ear = await wear("sim:frame")
    png = BytesIO()
    Image.radial_gradient("L").resize((64, 48)).save(png, "PNG")
    async with connected() as host:
        await start_app(host, tmp_path)
        await host.send_message(TEXT, TxPlainText("A longer text " * 30, 1, 61).pack())
        await ear.wait("lens", where=lambda lens: lens["lines"] == ["", "A longer text " * 30])
        await host.send_message(SPRITE, TxSprite.from_image_bytes(png.getvalue()).pack())
        await ear.wait("lens", where=lambda lens: lens["lit"] > 1000 and not lens["lines"])


async def test_a_photo_arrives(wear, tmp_path):
    await wear("sim:frame")
    async with connected() as host:
        await start_app(host, tmp_path)
        photos = await RxPhoto(upright=True, quality="HIGH", resolution=512).attach(host)
        await host.send_message(CAPTURE, TxCaptureSettings(resolution=512, quality_index=3).pack())
        jpeg = await asyncio.wait_for(photos.get(), PATIENCE_S)
        with Image.open(BytesIO(jpeg)) as image:
            assert (image.format, image.size) == ("JPEG", (512, 512))


async def test_taps_are_counted(wear, tmp_path):
    mock, _ear = await wear("sim:frame")
    async with connected() as host:
        await start_app(host, tmp_path)
        taps = await RxTap().attach(host)
        mock.glasses.gesture(Gesture.DOUBLE_TAP)
        assert await asyncio.wait_for(taps.get(), PATIENCE_S) == 2


async def test_a_lost_link_ends_what_waits(wear):
    mock, ear = await wear("sim:frame")
    silent = "frame.display.text('x',1,1);frame.display.show()"
    async with connected() as host:
        waiting = asyncio.ensure_future(host.send_lua(silent, await_print=True))
        await ear.wait("lens", where=lambda lens: lens["lines"] == ["x"])
        await mock.injector.inject(parse_fault("drop"))
        with pytest.raises(NotConnectedError):
            await asyncio.wait_for(waiting, PATIENCE_S)
        assert not host.is_connected()
