"""Story: what the glasses can do is known to the cloud and decides what can be called; nothing
is pretended.
"""

import pytest

from edge.ports import Wait
from tests.scenarios.world import until, whole_world, world

pytestmark = pytest.mark.asyncio(loop_scope="session")

PHOTO = "com.example.photo:inspect"
PICTURE = {"image": "UDUgMSAxIDI1NSD/"}
"""A PGM of one white pixel."""


def hidden(place, tool):
    entry = place.daemon.registry.snapshot().find(tool)
    return entry.hidden


# ------------------------------------------------------------------ spoken to the cloud


async def test_the_report_is_retained_on_mqtt_with_origin_and_age_of_every_value(tmp_path, cloud):
    async with whole_world(
        tmp_path, "mock:full", cloud=cloud, glasses={"capabilities": {"light": False}}
    ) as place:
        in_force = {"version": place.daemon.registry.snapshot().version}
        async with place.onlooker() as cloud_side:
            await cloud_side.hears_on(
                "capabilities", connected=True, registry=in_force
            )  # the last word so far
        async with place.onlooker() as cloud_side:
            said = await cloud_side.hears_on("capabilities")
        assert said.retained
        assert 0 < said.expiry_s <= 7 * 24 * 3600
        report = said.body
        assert (report["model"], report["firmware"], report["stale"]) == (
            "mock:full",
            "1.0.0",
            False,
        )
        values = report["capabilities"]
        assert all(
            set(v) == {"value", "origin", "ageS"} and 0 <= v["ageS"] < 60 for v in values.values()
        )
        assert (values["camera"]["value"], values["camera"]["origin"]) == (True, "firmware")
        assert (values["light"]["value"], values["light"]["origin"]) == (False, "configured")
        assert values["display.width"]["value"] == 576
        assert report["registry"] == in_force
        tools = {tool["name"]: tool["inputSchema"] for tool in report["tools"]}
        assert {"timer:start", "glasses:show_text", "glasses:say", "clock:now"} <= set(tools)
        assert not any(name.startswith("com.") for name in tools), "only what lives on this edge"


@pytest.fixture(autouse=True)
def _soon_spoken(monkeypatch):
    """These stories wait until absence is spoken; that it takes 5 s is a story of
    test_reconnect.py.
    """
    monkeypatch.setattr("edge.cloud.reporter.QUIET_S", 0.2)


async def test_presence_follows_the_glasses_and_the_process(tmp_path, cloud):
    async with whole_world(tmp_path, cloud=cloud) as place, place.onlooker() as cloud_side:
        presence = await cloud_side.hears_on("presence", state="online", glasses="connected")
        assert set(presence.body) >= {"boot", "seq", "version"}
        place.mock.glasses.set_worn(worn=False)
        await cloud_side.hears_on("presence", state="online", glasses="asleep")
        since = len(cloud_side.heard)
        place.mock.glasses.set_worn(worn=True)
        await cloud_side.hears_on("presence", state="online", glasses="connected", since=since)
        await place.switch_glasses_off()
        await cloud_side.hears_on("presence", state="online", glasses="away")
        await cloud_side.hears_on("capabilities", connected=False, stale=True)
        since = len(cloud_side.heard)
        await place.switch_glasses_on()
        await cloud_side.hears_on("presence", state="online", glasses="connected", since=since)
        since = len(cloud_side.heard)
        await place.stop_daemon()
        await cloud_side.hears_on("presence", state="offline", since=since)


async def test_battery_and_gestures_reach_the_cloud(tmp_path, cloud):
    async with whole_world(tmp_path, cloud=cloud) as place, place.onlooker() as cloud_side:
        place.mock.glasses.set_battery(41)
        battery = await cloud_side.hears_on("event/battery")
        assert battery.body["data"]["level"] == 41
        await cloud_side.hears_on("capabilities", battery=41)
        place.tap()
        assert (await cloud_side.hears_on("event/tap")).body["data"] == {"gesture": "tap"}


# ------------------------------------------------------------------ what can be called


@pytest.mark.requirement("M-caps-live")
async def test_a_camera_that_goes_hides_its_tool_and_one_that_comes_brings_it_back(tmp_path, cloud):
    async with (
        whole_world(tmp_path, "mock:full", cloud=cloud) as place,
        place.onlooker() as cloud_side,
    ):
        assert (await place.call(PHOTO, PICTURE, wait=Wait.ANSWER)).ok
        place.mark()
        place.mock.glasses.set_capabilities({"camera": False})
        await place.heard("registry.synced")
        assert (
            hidden(place, PHOTO)
            == "needs a camera; these glasses (Mock glasses with everything) have none"
        )
        await cloud_side.hears(
            "that the camera is gone",
            lambda s: (
                s.tail == "capabilities" and s.body["capabilities"]["camera"]["value"] is False
            ),
        )
        refused = await place.call(PHOTO, PICTURE, wait=Wait.ANSWER)
        assert (refused.error.type, refused.error.code) == ("PERMANENT", "HARDWARE_MISSING")
        assert "camera" in refused.error.message.lower()
        assert refused.error.details["missing"] == ["CAMERA"]
        assert await place.runs(refused.meta["callId"]) is None, "nothing left this machine"
        assert (
            await place.call("com.example.calc:evaluate", {"expression": "1"}, wait=Wait.ANSWER)
        ).ok
        place.mark()
        place.mock.glasses.set_capabilities({"camera": True})
        await place.heard("registry.synced")
        assert (await place.call(PHOTO, PICTURE, wait=Wait.ANSWER)).ok


async def test_a_display_that_goes_is_noticed_by_the_next_answer(tmp_path, cloud):
    async with whole_world(tmp_path, "mock:full", cloud=cloud) as place:
        place.mark()
        place.mock.glasses.set_capabilities({"display": False})
        await place.heard("registry.synced")
        answer = await place.call("com.example.calc:evaluate", {"expression": "1+1"})
        assert answer.meta["delivery"] == {"state": "spoken", "downgrade": "display→speech"}
        spoken = await place.call("glasses:show_text", {"text": "x"}, wait=Wait.DELIVERY)
        assert spoken.meta["delivery"] == {"state": "spoken", "downgrade": "display→speech"}
        dark = await place.call("glasses:clear", wait=Wait.ANSWER)
        assert dark.error.details["missing"] == ["DISPLAY"]


async def test_glasses_that_were_never_known_fail_closed_and_say_so(tmp_path, cloud):
    async with world(tmp_path) as place:
        place.cloud = cloud
        await place.start_daemon()
        await until(lambda: place.daemon.registry.describe()["origin"] == "cloud", "the registry")
        for tool, args in (
            (PHOTO, PICTURE),
            ("glasses:show_text", {"text": "x"}),
            ("glasses:say", {"text": "x"}),
        ):
            assert (await place.call(tool, args)).error.code == "HARDWARE_MISSING", tool
        note = await place.call("notes:add", {"text": "without glasses"})
        assert note.ok
        assert note.meta["delivery"] == {"state": "dropped", "reason": "no glasses"}
        async with place.onlooker() as cloud_side:
            await cloud_side.hears_on("presence", state="online", glasses="none")
            assert not [s for s in cloud_side.heard if s.tail == "capabilities"]
        assert place.daemon.status()["glasses"]["state"] == "never seen"


async def test_glasses_that_went_away_are_remembered_and_marked_stale(tmp_path, cloud):
    async with whole_world(tmp_path, "mock:display", cloud=cloud) as place:
        await place.switch_glasses_off()
        await place.heard("glasses.lost")
        await remembers_stale_display_glasses(place)


async def test_after_a_restart_with_the_glasses_away_they_are_still_remembered_and_stale(
    tmp_path, cloud
):
    async with whole_world(tmp_path, "mock:display", cloud=cloud) as place:
        await place.switch_glasses_off()
        await place.stop_daemon()
        await place.start_daemon()
        await until(lambda: place.daemon.registry.describe()["origin"] == "cloud", "the registry")
        await until(lambda: place.daemon.uplink.status().up, "the uplink")
        await remembers_stale_display_glasses(place)
        await place.switch_glasses_on()
        await place.heard("glasses.ready")
        assert place.daemon.status()["glasses"]["stale"] is False


async def remembers_stale_display_glasses(place):
    """Judge by what they could do, say that it is only remembered, and tell the cloud the same."""
    status = place.daemon.status()
    assert (status["glasses"]["state"], status["glasses"]["stale"]) == ("away", True)
    assert status["glasses"]["capabilities"]["display.width"]["value"] == 576
    refused = await place.call(PHOTO, PICTURE, wait=Wait.ANSWER)
    assert refused.error.code == "HARDWARE_MISSING"
    assert "as last known" in refused.error.message
    assert hidden(place, "glasses:show_text") == ""
    async with place.onlooker() as cloud_side:
        report = (await cloud_side.hears_on("capabilities", connected=False)).body
        assert (report["stale"], report["capabilities"]["display"]["value"]) == (True, True)
        await cloud_side.hears_on("presence", state="online", glasses="away")
