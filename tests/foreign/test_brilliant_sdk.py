"""brilliant-sdk 1.0.0 (brilliant-ble 3.5.1, brilliant-msg 7.3.0), the maker's, at the simulated
Frame and Halo.
"""

import asyncio
from collections.abc import AsyncIterator
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


@pytest.fixture(params=["sim:frame", "sim:halo"])
async def worn(wear, request):
    return await wear(request.param)


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


async def test_it_knows_which_glasses_they_are(host):
    kind, _, number = host.name.partition(" ")
    assert host.type is BrilliantDeviceType[kind.upper()]
    assert len(number) == 2


async def test_another_name_is_not_found(wear):
    await wear("sim:frame")
    with pytest.raises(Exception, match="No matching device"):
        await BrilliantMsg().ble.connect(name="Frame 4F", timeout=1)


async def test_the_battery_is_read_at_the_prompt(host):
    assert await host.send_lua("print(frame.battery_level())", await_print=True) == "87.0"


async def test_a_text_is_on_the_lens(app, worn):
    await app.send_message(TEXT, TxPlainText("A longer text " * 30, 50, 61).pack())
    await worn[1].wait("lens", where=lambda lens: "A longer text " * 30 in lens["lines"])


async def test_a_sprite_is_on_the_lens(app, worn):
    png = BytesIO()
    Image.radial_gradient("L").resize((64, 48)).save(png, "PNG")
    await app.send_message(SPRITE, TxSprite.from_image_bytes(png.getvalue()).pack())
    await worn[1].wait("lens", where=lambda lens: lens["lit"] > 1000 and not lens["lines"])


async def test_a_photo_arrives(app):
    photos = await RxPhoto(upright=True, quality="HIGH", resolution=512).attach(app)
    await app.send_message(CAPTURE, TxCaptureSettings(resolution=512, quality_index=3).pack())
    jpeg = await asyncio.wait_for(photos.get(), PATIENCE_S)
    with Image.open(BytesIO(jpeg)) as image:
        assert image.format == "JPEG"
        assert max(image.size) == 512


async def test_taps_are_counted(app, worn):
    taps = await RxTap().attach(app)
    worn[0].glasses.gesture(Gesture.DOUBLE_TAP)
    assert await asyncio.wait_for(taps.get(), PATIENCE_S) == 2


async def test_a_lost_link_ends_what_waits(host, worn):
    silent = "frame.display.text('x',1,1);frame.display.show()"
    waiting = asyncio.ensure_future(host.send_lua(silent, await_print=True))
    await worn[1].wait("lens", where=lambda lens: lens["lines"] == ["x"])
    await worn[0].injector.inject(parse_fault("drop"))
    with pytest.raises(NotConnectedError):
        await asyncio.wait_for(waiting, PATIENCE_S)
    assert not host.is_connected()
