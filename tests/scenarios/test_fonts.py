"""Story: fonts in a configured folder come before all others."""

import shutil

import pytest

from edge.display.fonts import family, find_fonts, font_folders
from tests.scenarios.world import world
from tools_cache.api.tool import Delivery

pytest.importorskip("uharfbuzz", reason="pip install 'glassd[scripts]'")
pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.enable_socket]

GREETING = "שלום לך"


async def test_text_is_drawn_with_the_fonts_of_the_configured_folder(tmp_path):
    """One that calls itself Hebrew and is Thai: what it draws instead of Hebrew are boxes."""
    wheels = {family(font): font for font in find_fonts(font_folders())}
    if "NotoSansThai" not in wheels:
        pytest.skip("no Noto fonts: pip install 'glassd[scripts]'")
    own = tmp_path / "fonts"
    own.mkdir()
    for name in wheels:  # of the system's Hebrew fonts none may stand in
        if "Hebrew" in name or name == "NotoSans":
            shutil.copy(wheels["NotoSansThai"], own / f"{name}-Regular.ttf")
    for fonts in ([], [str(own)]):
        async with world(
            tmp_path / str(len(fonts)), "mock:full", display={"fonts": fonts}
        ) as place:
            place.folder.mkdir()
            await place.switch_glasses_on()
            await place.start_daemon()
            await place.ready()
            response = await place.call("glasses:show_text", {"text": GREETING})
            assert (response.meta["delivery"] == Delivery.SHOWN) is not bool(fonts)
