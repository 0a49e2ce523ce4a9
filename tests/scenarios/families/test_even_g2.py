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


@pytest.mark.asyncio(loop_scope="session")
async def test_tools_reach_what_the_glasses_show_by_themselves(tmp_path):
    async with world(tmp_path, SIM, **G2) as place:
        await place.switch_glasses_on(speed=20.0)
        await place.start_daemon()
        await place.ready()
        settings = place.mock.glasses.settings
        parts = {
            "calendar": [{"title": "Dentist", "time": "14:30-15:00", "place": "Main St 4"}],
            "note": {"slot": 1, "title": "Shopping", "text": "Bread"},
        }
        assert (await place.call("glasses:dashboard", parts)).ok
        assert [entry["title"] for entry in settings["calendar"]["entries"]] == ["Dentist"]
        assert settings["note"]["title"] == "Shopping: Bread"
        refused = await place.call("glasses:dashboard", {"layout": "dual"})
        assert refused.error.code == "UNSUPPORTED"
        assert (await place.call("glasses:set", {"height": 8, "depth": 9})).ok
        assert (settings["height"], settings["depth"]) == (8, 9)
        motion = (await place.call("glasses:motion", {})).data
        assert (motion["acceleration"], motion["rotation"]) == ([0.0, 0.0, 1.0], None)
        case = lambda: place.daemon.link.status().case  # noqa: E731
        await until(lambda: case() == 90, "the charge of the case")
