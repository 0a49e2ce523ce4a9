"""Story: a Mentra Display is found, paired, shows notes, asks, and comes back after it was lost."""

import pytest

from firmware_bridge.messages import Gesture
from tests.scenarios.families.story import drop_and_return, glassd, wearers_answer, worn
from tests.scenarios.world import world

MODEL = "sim:mentra_nex"


def test_it_is_found_paired_and_shows_text_and_comes_back(tmp_path):
    with worn(tmp_path, MODEL) as nex:
        assert "Mentra Display" in glassd(nex, "scan")
        assert "Paired and saved" in glassd(nex, "up", "--yes")
        assert nex.call("notes:add", text="the car is on level three")["ok"]
        nex.wait_for_lens("level three")

        nex.mock.do("battery 41")
        nex.wait_for(lambda: nex.status()["glasses"]["battery"] == 41, what="the battery")

        drop_and_return(nex)
        nex.wait_for_lens("level three")
        assert nex.call("notes:add", text="keys in the bowl")["ok"]
        nex.wait_for_lens("in the bowl")


@pytest.mark.asyncio(loop_scope="session")
async def test_a_question_is_shown_and_answered_by_a_tap(tmp_path):
    async with world(tmp_path, MODEL, glasses={"model": "mentra_nex"}) as place:
        await place.switch_glasses_on(mtu=517)
        await place.start_daemon()
        await place.ready()
        place.start_call("glasses:ask", {"question": "Shall I go?"})
        await place.lens_shows("Shall I go?")
        await place.answer_question(Gesture.TAP)
        assert await wearers_answer(place) == "yes"
