"""Story: what a Mentra Live has of its own: photos over a bad link, and its Wi-Fi."""

import base64
import logging
from io import BytesIO

import pytest
from PIL import Image

from edge.mcp.server.results import result
from firmware_bridge.messages import Gesture, PhotoSize, PhotoTaken, TakePhoto
from tests.scenarios.world import until, world
from tools_cache.api.tool import CallOrigin

MODEL = "sim:mentra_live"


@pytest.mark.asyncio(loop_scope="session")
async def test_photos_come_whole_over_a_bad_link(tmp_path):
    async with world(tmp_path, MODEL, glasses={"model": "mentra_live"}) as place:
        await place.switch_glasses_on(mtu=512, speed=20.0)
        await place.start_daemon()
        await place.ready()
        photos = []
        place.daemon.link.receive_photos(photos.append)
        place.mock.glasses.faults[None].lose_every = 6
        await place.daemon.link.request(TakePhoto(1, PhotoSize.SMALL), timeout_s=30.0)
        await until(lambda: photos, "the photo")
        [taken] = photos
        assert isinstance(taken, PhotoTaken)
        assert Image.open(BytesIO(taken.jpeg)).size == (320, 240)
        place.mock.glasses.faults[None].lose_every = 0
        place.mark()
        place.wearer_does(Gesture.BUTTON)
        await place.heard("glasses.event")


@pytest.mark.asyncio(loop_scope="session")
async def test_a_photo_that_comes_as_avif_is_seen_by_the_agent_as_jpeg(tmp_path):
    async with world(tmp_path, MODEL, glasses={"model": "mentra_live"}) as place:
        await place.switch_glasses_on(mtu=512, speed=20.0, quirks=["picture=avif"])
        await place.start_daemon()
        await place.ready()
        place.start_call("glasses:take_photo", {"size": "small"}, origin=CallOrigin.MCP)
        await place.answer_question(Gesture.BUTTON)
        response = await place.answer()
        assert response.ok, response.error
        _, picture = result(response.to_json())["content"][:2]
        assert (picture["type"], picture["mimeType"]) == ("image", "image/jpeg")
        with Image.open(BytesIO(base64.b64decode(picture["data"]))) as photo:
            assert (photo.format, photo.size) == ("JPEG", (320, 240))
            red, green, blue = photo.convert("RGB").getpixel((60, 120))
        assert min(red, green) > 180 > 80 > blue, "the second bar is yellow"


def files_with(folder, words):
    """Return the files below a folder that have these words anywhere."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 3
    return [str(path.relative_to(folder)) for path in files if words.encode() in path.read_bytes()]


@pytest.mark.asyncio(loop_scope="session")
async def test_a_network_is_joined_after_a_yes_and_its_password_is_nowhere(tmp_path, caplog):
    for name in ("edge", "firmware_bridge", "tools_cache"):
        caplog.set_level(logging.DEBUG, logger=name)
    secret = "correct horse"
    glasses, audit = {"model": "mentra_live"}, {"args": True}
    async with world(tmp_path, MODEL, glasses=glasses, audit=audit) as place:
        await place.switch_glasses_on(mtu=512, speed=20.0)
        await place.start_daemon()
        await place.ready()
        listed = await place.call("glasses:wifi", {"scan": True})
        assert listed.data["connected"] is False
        assert [each["ssid"] for each in listed.data["networks"]] == ["Workshop", "Café"]

        join = {"ssid": "Workshop", "password": secret}
        place.start_call("glasses:join_wifi", join, origin=CallOrigin.MCP)
        asking = place.daemon.stage._prompter
        await until(lambda: asking.active, "the question")
        (question,) = place.daemon.calls.questions()
        assert question["args"] == {"ssid": "Workshop", "password": "***"}
        running = await place.daemon.store.get(question["call_id"])
        assert running["request"]["args"] == question["args"]
        await place.answer_question(Gesture.BUTTON)
        joined = await place.answer()
        assert joined.ok, joined.error
        assert joined.data["text"] == "Wi-Fi: Workshop"
        assert (await place.call("glasses:wifi")).data["ssid"] == "Workshop"

        stored = await place.daemon.store.get(question["call_id"])
        assert stored["request"]["args"] == {"ssid": "Workshop", "password": "***"}
        left = await place.call("glasses:light", {"color": "green", "times": 2})
        assert left.ok, left.error
        gallery = await place.call("glasses:gallery", {"keep": True})
        assert (gallery.data["photos"], gallery.data["videos"]) == (3, 1)
    assert files_with(tmp_path, "Workshop"), "the call is on disk, and in the audit log"
    assert files_with(tmp_path, secret) == []
    assert secret not in caplog.text


async def asked(place, tool, args):
    """Call a tool, agree, and return its data."""
    place.start_call(tool, args, origin=CallOrigin.MCP)
    await place.answer_question(Gesture.BUTTON)
    response = await place.answer()
    assert response.ok, response.error
    return response.data


@pytest.mark.timeout(180)
@pytest.mark.asyncio(loop_scope="session")
async def test_a_video_is_recorded_or_streamed_after_a_yes_and_ended(tmp_path):
    address = "rtmp://192.168.4.2/live/my-key"
    async with world(tmp_path, MODEL, glasses={"model": "mentra_live"}) as place:
        await place.switch_glasses_on(mtu=512, speed=20.0, quirks=["stream-orders=stream"])
        await place.start_daemon()
        await place.ready()
        assert (await asked(place, "glasses:record_video", {}))["recording"] is True
        assert (await place.call("glasses:gallery")).data["busy"] == "video"
        ended = await place.call("glasses:end_video")
        assert ended.data["recorded_s"] >= 0
        assert (await place.call("glasses:gallery")).data["videos"] == 2
        assert (await place.call("glasses:end_video")).data["text"] == "No video was recorded"

        await asked(place, "glasses:join_wifi", {"ssid": "Café"})
        streamed = await asked(place, "glasses:record_video", {"url": address})
        assert streamed == {"streaming": True, "text": "Streaming a video"}
        assert (await place.call("glasses:end_video")).data["streamed"] is True

        assert (await place.call("glasses:motion")).data["acceleration"] == [0.0, 0.0, 9.8125]
    assert [name for name in files_with(tmp_path, "my-key") if "glasses/" not in name] == []
