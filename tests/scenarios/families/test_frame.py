"""Story: a Brilliant Labs Frame is found and paired, gets its program, shows pages, takes photos
and hears the wearer; it is lost and comes back.
"""

import base64
import subprocess
import sys
from io import BytesIO

import pytest
from PIL import Image

from edge.mcp.server.results import result
from edge.testing import WornGlasses
from firmware_bridge.messages import Gesture
from tests.scenarios.world import until, world
from tools_cache.api.tool import CallOrigin

MODEL = "sim:frame"


def glassd(frame: WornGlasses, *words: str) -> str:
    """Run a command against this daemon and return what it printed."""
    ran = subprocess.run(
        [sys.executable, "-m", "edge.cli", *words],
        env=frame.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def state(frame: WornGlasses) -> str:
    return str(frame.status()["glasses"]["state"])


def test_it_is_found_paired_shown_a_page_and_comes_back(tmp_path):
    with WornGlasses(tmp_path, MODEL) as frame:
        frame.start("", "")
        assert "Brilliant Labs Frame" in glassd(frame, "scan")
        assert "Paired and saved" in glassd(frame, "up", "--yes")
        frame.wait_for(lambda: state(frame) == "ready", what="ready after pairing")
        assert frame.status()["glasses"]["firmware"] == "v24.179.0818"

        envelope = frame.call("notes:add", text="the car is on level three")
        assert envelope["meta"]["delivery"] == "shown"
        frame.wait_for_lens("level three")

        frame.mock.do("battery 41")
        frame.wait_for(lambda: frame.status()["glasses"]["battery"] == 41, what="the battery")

        frame.mock.do("away:1")
        frame.wait_for(lambda: state(frame) != "ready", what="the link to be lost")
        frame.wait_for(lambda: state(frame) == "ready", what="it to be back", within_s=60.0)
        envelope = frame.call("notes:add", text="the keys are in the bowl")
        assert envelope["meta"]["delivery"] == "shown"
        frame.wait_for_lens("in the bowl")


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(("gesture", "said"), [(Gesture.TAP, "yes"), (Gesture.DOUBLE_TAP, "no")])
async def test_a_question_is_shown_and_answered_by_taps(tmp_path, gesture, said):
    async with world(tmp_path, MODEL, glasses={"model": "frame"}) as place:
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()
        asked = {"question": "Shall I?", "wait_s": 60}
        place.start_call("glasses:ask", asked, origin=CallOrigin.MCP)
        await place.lens_shows("Shall I?")
        await place.answer_page(gesture)
        assert (await place.answer()).data == {"answer": said}


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
