"""Story: what a Brilliant Labs Frame has of its own: letters it lacks, and photos on their side."""

import base64
from io import BytesIO

import pytest
from PIL import Image

from edge.mcp.server.results import result
from firmware_bridge.messages import Gesture
from tests.scenarios.world import until, world
from tools_cache.api.tool import CallOrigin

MODEL = "sim:frame"


@pytest.mark.asyncio(loop_scope="session")
async def test_what_its_font_lacks_is_drawn_and_photos_come_whole(tmp_path):
    async with world(tmp_path, MODEL, glasses={"model": "frame"}) as place:
        await place.switch_glasses_on(speed=20.0)
        await place.start_daemon()
        await place.ready()
        said = await place.call("notes:add", {"text": "Привет, мир"})
        assert said.ok
        await until(place.drawn, "a page")
        await until(lambda: place.mock.glasses.lens.lit > 100, "letters as a picture")
        assert "Привет" not in " ".join(place.lens())

        place.start_call("glasses:take_photo", {"size": "small"}, origin=CallOrigin.MCP)
        await until(place._may_answer, "the question whether a photo may be taken")
        await place.answer_page(Gesture.TAP)
        response = await place.answer()
        assert response.ok, response.error
        assert response.data["turned"] == 270
        picture = result(response.to_json())["content"][1]
        with Image.open(BytesIO(base64.b64decode(picture["data"]))) as photo:
            assert photo.size == (320, 320)
