"""Story: glasses of two radios. Both sides show the answer; one is lost and the other carries
on; status says which.
"""

import pytest

from firmware_bridge.codecs.even_g1 import events, position
from firmware_bridge.messages import Gesture
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


@pytest.mark.requirement("I4-amenities")
async def test_the_picture_is_moved_a_notification_taken_away_and_the_case_in_the_status(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(position, "PREVIEW_S", 0.3)
    async with world(tmp_path, "sim:even_g1", **G1) as place:
        await alone(place)
        sides = place.daemon.link.status
        await until(lambda: [how.state for how in sides().sides.values()] == ["up"] * 2, "both up")
        moved = await place.call("glasses:set", {"height": 2, "depth": 8})
        assert moved.data["text"] == "Picture: height 2, depth 8"
        assert place.mock.glasses.settings == {"position": [2, 8], "preview": False}
        told = [e for e in place.shown if e["event"] == "setting"]
        assert [(e["side"], e["preview"]) for e in told] == [
            (L, True),
            (R, True),
            (L, False),
            (R, False),
        ]

        none = await place.call("glasses:dismiss", {"notification": True})
        assert none.error.code == "NOT_ACCEPTED"
        assert "no notification was shown" in none.error.message
        assert (await place.call("glasses:show_text", {"text": "the page below"})).ok
        await both_show(place, "the page below")
        place.mock.glasses.time.speed = 0.01
        assert (await place.call("glasses:notify", {"title": "Door", "text": "Ann"})).ok
        await until(lambda: "glassd: Door" in lines(place, L), "the notification")
        assert (await place.call("glasses:dismiss", {"notification": True})).ok
        await both_show(place, "the page below")

        place.mock.glasses.set_case(60)
        await until(lambda: place.daemon.status()["glasses"]["case"] == 60, "the case's charge")
        assert "case 60 %" in (await place.call("glasses:status")).data["text"]


@pytest.mark.requirement("I13-recall")
async def test_a_tap_on_the_left_turns_a_page_back_and_one_on_the_right_a_page_on(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(events, "SAME_TAP_S", 0.0)  # no report is one of the other arm's tap
    async with world(tmp_path, "sim:even_g1", **G1) as place:
        await alone(place)
        text = "\n".join(f"line {number}" for number in range(1, 15))
        assert (await place.call("glasses:show_text", {"text": text, "duration_s": 600})).ok
        for side, page in ((R, "2/"), (R, "3/"), (L, "2/"), (L, "1/"), (L, "1/"), (R, "2/")):
            assert place.mock.glasses.gesture(Gesture.TAP, side=side)
            await both_show(place, page)


async def test_the_dashboard_of_the_glasses_is_filled(tmp_path):
    async with world(tmp_path, "sim:even_g1", **G1) as place:
        await alone(place)
        sides = place.daemon.link.status
        await until(lambda: [how.state for how in sides().sides.values()] == ["up"] * 2, "both up")
        filled = await place.call(
            "glasses:dashboard",
            {
                "layout": "dual",
                "pane": "calendar",
                "calendar": [{"title": "Dentist", "time": "14:30"}],
                "note": {"slot": 2, "title": "Shopping", "text": "Bread"},
            },
        )
        assert filled.ok, filled.error
        told = str(place.mock.glasses.settings)
        assert all(word in told for word in ("dual", "calendar", "Dentist", "Shopping", "Bread"))
