"""Story: the wearer goes back: to the page before, to the last results; and live values change in
place. On mocks and on the simulated G1.
"""

import asyncio

import pytest

from edge.ports import Wait
from firmware_bridge.codecs.even_g1.events import SAME_TAP_S
from firmware_bridge.messages import Gesture
from firmware_bridge.sides import Side
from tests.scenarios.world import until, world

pytestmark = pytest.mark.asyncio(loop_scope="session")
LEFT, RIGHT = Side.LEFT, Side.RIGHT
LONG = " ".join(f"word{n}" for n in range(160))
DARK_S = 1.0
"""Longer than the time in which a tap is meant for the page that just left."""
MODELS = [("mock:full", {}), ("sim:even_g1", {"glasses": {"model": "even_g1"}})]


async def begin(place):
    await place.switch_glasses_on(speed=8.0, mtu=251)
    await place.start_daemon()
    await place.ready()


def tap(place, *sides):
    """A tap that each of these sides reports."""
    for side in sides:
        assert place.mock.glasses.gesture(Gesture.TAP, side=side), "nobody is connected to notice"


def page(place):
    return place.daemon.stage.lens()["page"]


async def is_on_page(place, number):
    await until(lambda: page(place) == number, lambda: f"page {number}; it is {page(place)}")


async def dark(place):
    await until(lambda: page(place) == 0, "a dark lens")
    await asyncio.sleep(DARK_S)


@pytest.mark.requirement("I13-page-back")
@pytest.mark.parametrize(("model", "sections"), MODELS, ids=[model for model, _ in MODELS])
async def test_the_wearer_turns_pages_on_and_back(tmp_path, model, sections):
    async with world(tmp_path, model, **sections) as place:
        await begin(place)
        place.start_call("glasses:show_text", {"text": LONG, "duration_s": 600})
        await is_on_page(place, 1)
        first = place.lens()
        for number in (2, 3):
            tap(place, RIGHT)
            await is_on_page(place, number)
        for number in (2, 1):
            await asyncio.sleep(SAME_TAP_S + 0.1)
            tap(place, LEFT)
            await is_on_page(place, number)
        assert place.lens() == first


@pytest.mark.requirement("I13-page-back")
async def test_a_tap_that_both_arms_of_a_g1_report_turns_one_page(tmp_path):
    async with world(tmp_path, "sim:even_g1", glasses={"model": "even_g1"}) as place:
        await begin(place)
        place.start_call("glasses:show_text", {"text": LONG, "duration_s": 600})
        await is_on_page(place, 1)
        for number in (2, 3):
            tap(place, RIGHT, LEFT)
            await is_on_page(place, number)
            await asyncio.sleep(0.5)
            assert page(place) == number


@pytest.mark.requirement("I13-recall")
@pytest.mark.parametrize(("model", "sections"), MODELS, ids=[model for model, _ in MODELS])
async def test_taps_on_the_dark_lens_bring_back_the_last_results(tmp_path, model, sections):
    async with world(tmp_path, model, **sections) as place:
        await begin(place)
        for text in ("Platform 9", "Gate B12", "Room 204"):
            await place.call("glasses:show_text", {"text": text, "duration_s": 1.6})
        await dark(place)
        for text, where in (
            ("Room 204", "1 of 3"),
            ("Gate B12", "2 of 3"),
            ("Platform 9", "3 of 3"),
        ):
            tap(place, RIGHT)
            await place.lens_shows(text, where)
        tap(place, RIGHT)
        await until(lambda: place.lens() == [], lambda: f"a dark lens; it shows {place.lens()}")

        await place.stop_daemon()
        await place.start_daemon()
        await place.ready()
        await asyncio.sleep(DARK_S)
        tap(place, RIGHT)
        await place.call("glasses:wait_for_event", {"events": ["tap"], "after": 0, "timeout_s": 5})
        assert place.lens() == [], "a restart forgets them"


@pytest.mark.requirement("I13-scene")
@pytest.mark.parametrize(("model", "sections"), MODELS, ids=[model for model, _ in MODELS])
async def test_a_live_value_changes_in_place(tmp_path, model, sections):
    async with world(tmp_path, model, **sections) as place:
        await begin(place)

        for minutes in (5, 4, 3):
            card = {"title": "Bus 42", "lines": ["to the harbour", f"{minutes} min"]}
            live = {**card, "scene": "bus", "duration_s": 60}
            answer = await place.call("glasses:show_card", live, wait=Wait.ANSWER)
            assert answer.meta["delivery"] == ("acknowledged" if sections else "shown"), "at once"
            await place.lens_shows("Bus 42", f"{minutes} min")
            assert page(place) == 1
        pages = [drawn["lines"] for drawn in place.drawn()]
        assert all(lines[:2] == ["Bus 42", "to the harbour"] for lines in pages), pages
