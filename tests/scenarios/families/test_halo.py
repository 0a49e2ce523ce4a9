"""Story of a Brilliant Labs Halo, beyond what it shares with a Frame: it shows and speaks, and its
button answers.
"""

import pytest

from firmware_bridge.messages import Gesture
from tests.scenarios.families.story import drop_and_return, glassd, worn
from tests.scenarios.world import until, world
from tests.system import needs
from tools_cache.api.tool import CallOrigin

MODEL = "sim:halo"


def test_it_is_found_paired_shown_a_page_and_comes_back(tmp_path):
    with worn(tmp_path, MODEL) as halo:
        assert "Brilliant Labs Halo" in glassd(halo, "scan")
        assert "Paired and saved" in glassd(halo, "up", "--yes")
        assert halo.status()["glasses"]["firmware"] == "0.8.20"

        envelope = halo.call("notes:add", text="the car is on level three")
        assert envelope["meta"]["delivery"] == "shown"
        halo.wait_for_lens("level three")

        halo.mock.do("battery 41")
        halo.wait_for(lambda: halo.status()["glasses"]["battery"] == 41, what="the battery")

        drop_and_return(halo)
        halo.call("notes:add", text="the keys are in the bowl")
        halo.wait_for_lens("in the bowl")  # maybe after the page that is still being read


@needs("liblc3")
@pytest.mark.asyncio(loop_scope="session")
async def test_speech_is_heard_to_its_end(tmp_path):
    async with world(tmp_path, MODEL, glasses={"model": "halo"}) as place:
        await place.switch_glasses_on(mtu=512)
        await place.start_daemon()
        await place.ready()
        said = await place.call("glasses:say", {"text": "The kettle is ready."})
        assert said.ok, said.error
        assert place.mock.glasses.speaker.last.seconds > 0.5
        assert place.mock.glasses.speaker.last.bad_frames == 0


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(
    ("gesture", "said"), [(Gesture.BUTTON, "yes"), (Gesture.BUTTON_LONG, "no")]
)
async def test_a_question_is_answered_by_the_button(tmp_path, gesture, said):
    async with world(tmp_path, MODEL, glasses={"model": "halo"}) as place:
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()
        place.start_call(
            "glasses:ask", {"question": "Shall I?", "wait_s": 60}, origin=CallOrigin.MCP
        )
        await place.lens_shows("Shall I?")
        await place.answer_page(gesture)
        assert (await place.answer()).data == {"answer": said}


@pytest.mark.asyncio(loop_scope="session")
async def test_what_its_font_lacks_is_drawn(tmp_path):
    async with world(tmp_path, MODEL, glasses={"model": "halo"}) as place:
        await place.switch_glasses_on(speed=20.0)
        await place.start_daemon()
        await place.ready()
        said = await place.call("notes:add", {"text": "Привет, мир"})
        assert said.ok
        await until(place.drawn, "a page")
        await until(lambda: place.mock.glasses.lens.lit > 50, "letters as a picture")
        assert "Привет" not in " ".join(place.lens())
