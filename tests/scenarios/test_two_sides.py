"""Story: glasses of two radios. Both sides show the answer; one is lost and the other carries
on; status says which.
"""

import pytest

from firmware_bridge.sides import Side
from tests.scenarios.world import until, world

pytestmark = pytest.mark.asyncio(loop_scope="session")
L, R = Side.LEFT, Side.RIGHT
G1 = {"glasses": {"model": "even_g1"}}


async def alone(place):
    await place.switch_glasses_on(mtu=251)
    await place.start_daemon()
    await place.ready()


def lines(place, side):
    return " ".join(place.mock.glasses.lenses[side].text())


async def both_show(place, words):
    await until(
        lambda: all(words in lines(place, side) for side in (L, R)),
        lambda: f"{words}: {[lines(place, s) for s in (L, R)]}",
    )


@pytest.mark.requirement("I4-g1-one-side")
async def test_one_side_walks_off_and_back_while_the_other_keeps_showing(tmp_path):
    async with world(tmp_path, "sim:even_g1", **G1) as place:
        await alone(place)
        status = place.daemon.link.status
        await until(
            lambda: {side: how.state for side, how in status().sides.items()} == {L: "up", R: "up"},
            "both sides up",
        )
        assert (status().model, status().address) == ("even_g1", "G1_47")
        await until(lambda: status().battery == 87, "their battery")
        assert (await place.call("notes:add", {"text": "the car is on level three"})).ok
        await both_show(place, "level three")
        await until(
            lambda: (place.daemon.status()["glasses"]["skew_ms"] or 0) > 0,
            "how far apart they were",
        )

        place.mock.servers[L].leave()
        await until(lambda: status().sides[L].state == "lost", "the left side lost")
        assert status().ready
        assert (await place.call("notes:add", {"text": "the keys are in the bowl"})).ok
        await until(lambda: "in the bowl" in lines(place, R), "the right side carries on")
        assert "level three" in lines(place, L)

        place.mock.servers[L].come_back()
        await both_show(place, "in the bowl")
        await until(lambda: status().sides[L].state == "up", "the left side back")
        assert status().link == 1, "one link all the while"


async def test_a_question_is_asked_on_a_page_and_answered_by_a_tap_on_either_arm(tmp_path):
    async with world(tmp_path, "sim:even_g1", **G1) as place:
        await alone(place)
        place.start_call("glasses:ask", {"question": "Shall I?"})
        await both_show(place, "Shall I?")
        await place.answer_question()
        assert (await place.answer()).data
