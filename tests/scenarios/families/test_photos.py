"""Story: an agent wants to see what the wearer sees. The wearer is asked, and decides."""

import base64
from contextlib import asynccontextmanager
from io import BytesIO

import pytest
from PIL import Image

from edge.mcp.server.results import result
from firmware_bridge.messages import Gesture
from tests.scenarios.world import world
from tools_cache.api.tool import CallOrigin, ErrorCode

pytestmark = pytest.mark.asyncio(loop_scope="session")
PHOTO = "glasses:take_photo"


@asynccontextmanager
async def wearing(folder, model):
    """Glasses and daemon, ready, without a cloud."""
    async with world(folder, model=model) as place:
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.heard("glasses.ready")
        yield place


async def test_a_photo_is_taken_after_a_yes_and_seen_by_the_agent(tmp_path):
    async with wearing(tmp_path, "mock:full") as place:
        place.start_call(PHOTO, {"size": "small"}, origin=CallOrigin.MCP)
        await place.answer_question()
        response = await place.answer()
        assert response.ok, response.error
        assert response.data["type"] == "image/jpeg"
        said, picture = result(response.to_json())["content"][:2]
        assert (said["type"], picture["type"], picture["mimeType"]) == (
            "text",
            "image",
            "image/jpeg",
        )
        with Image.open(BytesIO(base64.b64decode(picture["data"]))) as photo:
            assert (photo.format, photo.size) == ("JPEG", (320, 240))
        assert place.mock.glasses.camera.photos == 1


async def test_no_photo_is_taken_after_a_no(tmp_path):
    async with wearing(tmp_path, "mock:full") as place:
        place.start_call(PHOTO, {}, origin=CallOrigin.MCP)
        await place.answer_question(Gesture.DOUBLE_TAP)
        response = await place.answer()
        assert response.error.code is ErrorCode.DENIED
        assert place.mock.glasses.camera.photos == 0


async def test_glasses_without_a_camera_take_none(tmp_path):
    async with wearing(tmp_path, "mock:display") as place:
        response = await place.call(PHOTO, {})
        assert response.error.code is ErrorCode.HARDWARE_MISSING
