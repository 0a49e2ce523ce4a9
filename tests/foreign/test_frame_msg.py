"""frame-ble 1.1.1 and frame-msg 5.2.1 at the simulated Frame."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from io import BytesIO

import pytest
from frame_msg import (
    FrameMsg,
    RxPhoto,
    RxTap,
    TxAutoExpSettings,
    TxCaptureSettings,
    TxImageSpriteBlock,
    TxManualExpSettings,
    TxPlainText,
    TxSprite,
    TxTextSpriteBlock,
)
from PIL import Image

from firmware_bridge.codecs.frame.device import FIRMWARE, FrameDevice
from firmware_bridge.messages import Gesture
from firmware_bridge.sim.faults import parse_fault

TEXT, CAPTURE, SPRITE, PLACE = 0x0A, 0x0D, 0x20, 0x21
"""Message codes of the package's examples."""
LIBRARIES = ["data", "camera", "plain_text", "sprite", "sprite_coords", "tap"]
APP = (
    "local data = require('data.min')\n"
    '-- "quotes", \\ and\ta tab\n'
    "while true do frame.sleep(1) end\n"
)
PATIENCE_S = 20.0


@asynccontextmanager
async def connected(initialize: bool = True) -> AsyncIterator[FrameMsg]:
    host = FrameMsg()
    await host.connect(initialize=initialize)
    try:
        yield host
    finally:
        await host.disconnect()


async def start_app(host: FrameMsg, folder) -> None:
    """Upload the package's libraries and an app, and start it, as its examples do."""
    await host.upload_stdlua_libs(LIBRARIES)
    app = folder / "app.lua"
    app.write_text(APP)
    await host.upload_frame_app(str(app))
    await host.start_frame_app()


def picture(width: int = 64, height: int = 48) -> bytes:
    png = BytesIO()
    Image.radial_gradient("L").resize((width, height)).save(png, "PNG")
    return png.getvalue()


async def test_lua_is_evaluated_at_the_prompt(wear):
    await wear("sim:frame")
    async with connected() as host:
        version = await host.send_lua("print(frame.FIRMWARE_VERSION)", await_print=True)
        assert version == FIRMWARE
        assert await host.send_lua("print(frame.battery_level())", await_print=True) == "87.0"


async def test_a_short_text_is_on_the_lens(wear):
    _mock, ear = await wear("sim:frame")
    async with connected() as host:
        await host.print_short_text("It's loading")
        await ear.wait("lens", where=lambda lens: lens["lines"] == ["It's loading"])


async def test_its_app_is_stored_as_it_is(wear, tmp_path):
    mock, _ear = await wear("sim:frame")
    async with connected() as host:
        await start_app(host, tmp_path)
    device: FrameDevice = mock._parts.serve.args[0]
    assert device.files["frame_app.lua"] == APP
    library = files("frame_msg").joinpath("lua/data.min.lua").read_text()
    assert device.files["data.min.lua"] == library.replace("\r", "")


async def test_a_text_message_is_on_the_lens(wear, tmp_path):
    _mock, ear = await wear("sim:frame")
    async with connected() as host:
        await start_app(host, tmp_path)
        await host.send_message(TEXT, TxPlainText("Grüße " * 60, 1, 61).pack())
        await ear.wait("lens", where=lambda lens: lens["lines"] == ["", "Grüße " * 60])


async def test_a_sprite_is_on_the_lens(wear, tmp_path):
    _mock, ear = await wear("sim:frame")
    async with connected() as host:
        await start_app(host, tmp_path)
        await host.send_message(SPRITE, TxSprite.from_image_bytes(picture()).pack())
        await ear.wait("lens", where=lambda lens: lens["lit"] > 1000 and not lens["lines"])


@pytest.mark.parametrize("compress", [False, True])
async def test_a_picture_in_strips_is_on_the_lens(wear, tmp_path, compress):
    _mock, ear = await wear("sim:frame")
    sprite = TxSprite.from_image_bytes(picture(), compress=compress)
    block = TxImageSpriteBlock(sprite, sprite_line_height=16)
    async with connected() as host:
        await start_app(host, tmp_path)
        await host.send_message(SPRITE, block.pack())
        for strip in block.sprite_lines:
            await host.send_message(SPRITE, strip.pack())
        await ear.wait("lens", where=lambda lens: lens["lit"] > 1000 and not lens["lines"])


@pytest.mark.filterwarnings("ignore:Image.Image.getdata:DeprecationWarning")
async def test_text_as_sprites_is_on_the_lens(wear, tmp_path):
    _mock, ear = await wear("sim:frame")
    block = TxTextSpriteBlock(width=300, font_size=20, max_display_rows=3, text="one\ntwo\nthree")
    async with connected() as host:
        await start_app(host, tmp_path)
        await host.send_message(SPRITE, block.pack())
        for line in block.sprites:
            await host.send_message(SPRITE, line.pack())
        await ear.wait("lens", where=lambda lens: lens["lit"] > 100 and not lens["lines"])


async def test_its_exposure_settings_are_taken(wear, tmp_path):
    await wear("sim:frame")
    async with connected() as host:
        await start_app(host, tmp_path)
        await host.send_message(0x0E, TxAutoExpSettings().pack())
        await host.send_message(0x0F, TxManualExpSettings().pack())


async def test_a_raw_photo_lacks_the_header_of_a_full_one(wear, tmp_path):
    """Not with `is_raw`: frame-msg 5.2.1 then puts the header before it twice."""
    await wear("sim:frame")
    taken = []
    async with connected() as host:
        await start_app(host, tmp_path)
        photos = await RxPhoto(upright=False).attach(host)
        for raw in (False, True):
            order = TxCaptureSettings(resolution=512, quality_index=3, raw=raw)
            await host.send_message(CAPTURE, order.pack())
            taken.append(await asyncio.wait_for(photos.get(), PATIENCE_S))
    full, rest = taken
    with Image.open(BytesIO(full[:623] + rest)) as image:
        image.load()
        assert image.size == (512, 512)


async def test_a_photo_arrives(wear, tmp_path):
    await wear("sim:frame")
    async with connected() as host:
        await start_app(host, tmp_path)
        photos = await RxPhoto(upright=True, quality="HIGH", resolution=512).attach(host)
        await host.send_message(CAPTURE, TxCaptureSettings(resolution=512, quality_index=3).pack())
        jpeg = await asyncio.wait_for(photos.get(), PATIENCE_S)
        with Image.open(BytesIO(jpeg)) as image:
            assert (image.format, image.size) == ("JPEG", (512, 512))


@pytest.mark.parametrize(("quirk", "code"), [("tap=09", 0x09), ("tap=04", 0x04)])
async def test_taps_are_counted(wear, tmp_path, quirk, code):
    mock, _ear = await wear("sim:frame", quirk)
    async with connected() as host:
        await start_app(host, tmp_path)
        taps = await RxTap(tap_flag=code).attach(host)
        mock.glasses.gesture(Gesture.TAP)
        assert await asyncio.wait_for(taps.get(), PATIENCE_S) == 1
        mock.glasses.gesture(Gesture.DOUBLE_TAP)
        assert await asyncio.wait_for(taps.get(), PATIENCE_S) == 2


async def test_a_stopped_app_leaves_the_prompt(wear, tmp_path):
    await wear("sim:frame")
    async with connected() as host:
        await start_app(host, tmp_path)
        await host.stop_frame_app()
        assert await host.send_lua("print(1)", await_print=True) == "1"


async def test_an_app_that_does_not_acknowledge_is_noticed(wear, tmp_path):
    await wear("sim:frame", "acknowledgement=none")
    async with connected() as host:
        await start_app(host, tmp_path)
        with pytest.raises(Exception, match="didn't respond"):
            await host.send_message(TEXT, TxPlainText("x").pack())


async def test_an_app_with_older_sprites_refuses_its_sprite(wear, tmp_path):
    await wear("sim:frame", "sprite=older")
    async with connected() as host:
        await start_app(host, tmp_path)
        printed: list[str] = []
        host.attach_print_response_handler(printed.append)
        await host.send_message(SPRITE, TxSprite.from_image_bytes(picture()).pack())
        assert "Error in data accumulator" in printed[0]


async def test_a_lost_link_is_noticed(wear):
    mock, _ear = await wear("sim:frame")
    async with connected() as host:
        lost = asyncio.Event()
        host.ble._user_disconnect_handler = lost.set
        await mock.injector.inject(parse_fault("drop"))
        await asyncio.wait_for(lost.wait(), PATIENCE_S)
        assert not host.is_connected()
