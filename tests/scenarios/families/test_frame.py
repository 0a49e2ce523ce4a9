"""Story: what a Brilliant Labs Frame has of its own: letters it lacks, photos on their side, and a
motion sensor, as Halo has; and the light of a Monocle.
"""

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


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("key", ["frame", "halo"])
async def test_its_motion_sensor_is_read(tmp_path, key):
    async with world(tmp_path, f"sim:{key}", glasses={"model": key}) as place:
        await place.switch_glasses_on(speed=20.0)
        await place.start_daemon()
        await place.ready()
        read = await place.call("glasses:motion", {})
        assert read.ok, read.error
        assert read.data["acceleration"] == [0.0, 0.0, 1.0]


@pytest.mark.asyncio(loop_scope="session")
async def test_the_light_of_a_monocle_shines(tmp_path):
    async with world(tmp_path, "sim:monocle", glasses={"model": "monocle"}) as place:
        await place.switch_glasses_on(speed=20.0)
        await place.start_daemon()
        await place.ready()
        lit = await place.call("glasses:light", {"color": "green"})
        assert lit.ok, lit.error
        refused = await place.call("glasses:light", {"color": "blue"})
        assert not refused.ok
        assert "red or green" in str(refused.error)
