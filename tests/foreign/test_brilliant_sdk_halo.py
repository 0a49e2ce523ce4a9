"""brilliant-sdk 1.0.0 (brilliant-ble 3.5.1, brilliant-msg 7.3.0), the maker's, at the simulated
Halo.
"""

import asyncio
from collections.abc import AsyncIterator
from io import BytesIO

import pytest
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

TEXT, CAPTURE, SPRITE = 0x0A, 0x0D, 0x20
LIBRARIES = ["data", "camera", "plain_text", "sprite", "tap"]
PATIENCE_S = 20.0


@pytest.fixture
async def worn(wear):
    return await wear("sim:halo")


@pytest.fixture
async def host(worn) -> AsyncIterator[BrilliantMsg]:
    host = BrilliantMsg()
    await host.connect()
    yield host
    await host.disconnect()


@pytest.fixture
async def app(host, tmp_path) -> BrilliantMsg:
    """The host, with an app of its libraries that runs on the glasses."""
    await host.upload_stdlua_libs(LIBRARIES)
    app = tmp_path / "app.lua"
    app.write_text("local data = require('data.min')\nwhile true do frame.sleep(1) end\n")
    await host.upload_frame_app(str(app))
    await host.start_frame_app()
    return host


async def test_it_is_a_halo(host):
    assert host.type is BrilliantDeviceType.HALO
    assert host.name.startswith("Halo ")


async def test_the_battery_is_read_at_the_prompt(host, worn):
    worn[0].glasses.set_battery(31)
    level = await host.send_lua("print(frame.battery_level())", await_print=True)
    assert float(level) == 31


async def test_a_text_message_is_on_the_lens(app, worn):
    await app.send_message(TEXT, TxPlainText("Hi there", 50, 61).pack())
    await app.wait_for_acks()
    lens = await worn[1].wait("lens", where=lambda lens: lens["lines"])
    assert [line for line in lens["lines"] if line] == ["Hi there"]


async def test_a_sprite_is_on_the_lens(app, worn):
    png = BytesIO()
    Image.radial_gradient("L").resize((64, 48)).save(png, "PNG")
    await app.send_message(SPRITE, TxSprite.from_image_bytes(png.getvalue()).pack())
    await app.wait_for_acks()
    await worn[1].wait("lens", where=lambda lens: lens["lit"] > 1000 and not lens["lines"])


async def test_a_photo_arrives(app):
    photos = await RxPhoto(upright=True, quality="HIGH", resolution=512).attach(app)
    await app.send_message(CAPTURE, TxCaptureSettings(resolution=512, quality_index=3).pack())
    jpeg = await asyncio.wait_for(photos.get(), PATIENCE_S)
    with Image.open(BytesIO(jpeg)) as image:
        assert image.format == "JPEG"


async def test_taps_say_how_many_they_are(app, worn):
    taps = await RxTap().attach(app)
    worn[0].glasses.gesture(Gesture.DOUBLE_TAP)
    assert await asyncio.wait_for(taps.get(), PATIENCE_S) == 2
