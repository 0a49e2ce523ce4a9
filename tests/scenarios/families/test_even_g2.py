"""Story: an arm of Even G2 is lost and returns; pages are acknowledged, not seen to be lit."""

import pytest

from firmware_bridge.sides import Side
from tests.scenarios.world import until, world

KEY = "even_g2"
SIM = f"sim:{KEY}"
G2 = {"glasses": {"model": KEY}}
L, R = Side.LEFT, Side.RIGHT


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
        await place.heard("call.answered", tool="notes:add", delivery="acknowledged")
        await place.lens_shows("in the bowl")
        place.mock.servers[L].come_back()
        await until(lambda: status().sides[L].state == "up", "the left arm back")
        assert status().link == 1, "one link all the while"
