"""Story: a pair of Even G2 is found and paired, shows, is tapped and heard, and comes back."""

import pytest

from firmware_bridge.catalog import find
from firmware_bridge.messages import Gesture
from firmware_bridge.sides import Side
from tests.scenarios.families.story import drop_and_return, glassd, worn
from tests.scenarios.world import until, world

KEY = "even_g2"
SIM = f"sim:{KEY}"
G2 = {"glasses": {"model": KEY}}
L, R = Side.LEFT, Side.RIGHT


def test_it_is_found_paired_shows_and_comes_back(tmp_path):
    """Scan → pair → ready → text shown → battery → drop and return."""
    with worn(tmp_path, SIM) as glasses:
        assert find(KEY).title in glassd(glasses, "scan")
        assert "Paired and saved" in glassd(glasses, "up", "--yes")
        glasses.wait_for(lambda: glasses.status()["glasses"]["state"] == "ready", what="ready")
        known = glasses.status()["glasses"]
        assert (known["model"], known["firmware"]) == (KEY, "2.2.20")
        glasses.wait_for(lambda: glasses.status()["glasses"]["battery"] == 87, what="the battery")
        glasses.call("notes:add", {"text": "the car is on level three"})
        glasses.wait_for_lens("level three")
        glasses.mock.do("battery 41")
        drop_and_return(glasses)
        glasses.wait_for(lambda: glasses.status()["glasses"]["battery"] == 41, what="the battery")
        glasses.call("notes:add", {"text": "the keys are in the bowl"})
        glasses.wait_for_lens("in the bowl")


@pytest.mark.asyncio(loop_scope="session")
async def test_a_question_is_answered_at_the_ring_and_pages_are_acknowledged(tmp_path):
    async with world(tmp_path, SIM, **G2) as place:
        await place.switch_glasses_on(speed=20.0)
        await place.start_daemon()
        await place.ready()
        assert (await place.call("notes:add", {"text": "the car is on level three"})).ok
        await place.heard("call.answered", tool="notes:add", delivery="acknowledged")
        await place.lens_shows("level three")
        place.start_call("glasses:ask", {"question": "Shall I?"})
        await place.lens_shows("Shall I?")
        await place.answer_question(Gesture.TAP)
        assert (await place.answer()).data


@pytest.mark.asyncio(loop_scope="session")
async def test_an_arm_walks_off_and_back(tmp_path):
    async with world(tmp_path, SIM, **G2) as place:
        await place.switch_glasses_on(speed=20.0)
        await place.start_daemon()
        await place.ready()
        status = place.daemon.link.status
        await until(
            lambda: {side: how.state for side, how in status().sides.items()} == {L: "up", R: "up"},
            "both arms up",
        )
        assert (status().model, status().address) == (KEY, "G2_32")
        place.mock.servers[L].leave()
        await until(lambda: status().sides[L].state == "lost", "the left arm lost")
        assert (await place.call("notes:add", {"text": "the keys are in the bowl"})).ok
        await place.lens_shows("in the bowl")
        place.mock.servers[L].come_back()
        await until(lambda: status().sides[L].state == "up", "the left arm back")
        assert status().link == 1, "one link all the while"
