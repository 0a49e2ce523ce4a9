"""Story: an agent wants to see what the wearer sees. The wearer is asked, and decides."""

import base64
from contextlib import asynccontextmanager
from io import BytesIO

import httpx
import pytest
from PIL import Image

from edge.mcp.server.results import result
from firmware_bridge.messages import Gesture
from tests.scenarios.world import whole_world, world
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


async def test_a_photo_for_the_cloud_is_uploaded_and_its_result_links_to_it(tmp_path, cloud):
    async with (
        whole_world(tmp_path, "mock:full", cloud=cloud) as place,
        place.onlooker() as cloud_side,
    ):
        await cloud_side.hears_on("capabilities", model="mock:full")
        invocation = await cloud_side.invokes(PHOTO, {"size": "small"})
        await place.answer_question()
        response = await cloud_side.answer_to(invocation)
        assert response["ok"], response
        said, link = response["meta"]["content"]
        assert (said["type"], link["type"], link["mimeType"]) == (
            "text",
            "resource_link",
            "image/jpeg",
        )
        assert link["uri"].startswith(cloud["http"])
        async with httpx.AsyncClient(trust_env=False) as client:
            found = await client.get(link["uri"], headers={"X-User-Id": "local"})
            other = await client.get(link["uri"], headers={"X-User-Id": "eve"})
        assert len(found.content) == link["size"] == response["data"]["bytes"]
        with Image.open(BytesIO(found.content)) as photo:
            assert (photo.format, photo.size) == ("JPEG", (320, 240))
        assert other.status_code == 401


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
