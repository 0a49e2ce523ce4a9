"""Story: the wearer asks for the way. Each step has a page of its own on the lens, a tap goes to
the next one, and the step is still there after a lost link and after a restart. On mocks and on the
simulated G1; the services of the maps are recorded ones on loopback.
"""

import asyncio

import pytest

from firmware_bridge.codecs.even_g1.events import SAME_TAP_S
from firmware_bridge.messages import Gesture
from firmware_bridge.sides import Side
from tests.scenarios.test_reconnect import drop
from tests.scenarios.world import until, world
from tests.unit.tools import recorded_services as recorded

pytestmark = pytest.mark.asyncio(loop_scope="session")
STATION = {"to": "Bergen stasjon"}
STEPS = [
    recorded.step("depart", name="Bryggen", metres=421.3),
    recorded.step("turn", "left", "Kaigaten", 1198.9),
    recorded.step("turn", "right", "Strømgaten", 60),
    recorded.step("arrive", "right", "Strømgaten", 0),
]
PAGES = [
    "1.6 km, 20 min on foot to Bergen stasjon 1. Head south on Bryggen, 420 m 1/4",
    "2. Turn left onto Kaigaten, 1.2 km 2/4",
    "3. Turn right onto Strømgaten, 60 m 3/4",
    "4. You have arrived: Bergen stasjon, on the right 4/4",
]
MODELS = [("mock:display", {}), ("sim:even_g1", {"glasses": {"model": "even_g1"}})]
BOTH = pytest.mark.parametrize(("model", "more"), MODELS, ids=[model for model, _ in MODELS])


@pytest.fixture
def service():
    made = recorded.Service()
    made.answers = {
        "/search": recorded.places,
        "/route/v1/foot/5.3166,60.3972;5.3333,60.3903": recorded.osrm(STEPS),
    }
    yield made
    made.close()


def maps(service):
    home = {"latitude": 60.3972, "longitude": 5.3166}
    return {"maps": {"search_url": service.url, "route_url": service.url, **home}}


async def begin(place):
    await place.switch_glasses_on(mtu=251)
    await place.start_daemon()
    await place.ready()


def lenses(place):
    """Return what is on each lens, decoded by the glasses from what came over the air."""
    glasses = place.mock.glasses
    shown = glasses.lenses.values() if glasses.lenses else [glasses.lens]
    return {" ".join(" ".join(lens.text()).split()) for lens in shown}


async def shows(place, number):
    await until(
        lambda: lenses(place) == {PAGES[number - 1]},
        lambda: f"step {number}; the lens shows {lenses(place)}",
    )
    # A tap counts for this page once the glasses have acknowledged it.
    await until(lambda: place.daemon.stage.lens()["page"] == number, f"step {number} is there")


async def tap(place, side):
    await asyncio.sleep(SAME_TAP_S + 0.1)
    assert place.mock.glasses.gesture(Gesture.TAP, side=side)


@pytest.mark.requirement("I15-maps", "I15-separate-pages")
@BOTH
async def test_taps_go_through_the_steps_of_a_route_and_back(tmp_path, service, model, more):
    async with world(tmp_path, model, tool=maps(service), **more) as place:
        await begin(place)
        answer = await place.call("maps:route", STATION)
        assert answer.meta["delivery"] == ("acknowledged" if more else "shown")
        await shows(place, 1)
        for number in (2, 3, 4):
            await tap(place, Side.RIGHT)
            await shows(place, number)
        for number in (3, 2):
            await tap(place, Side.LEFT)
            await shows(place, number)


@pytest.mark.requirement("I15-maps", "I15-separate-pages", "K3-scene")
async def test_the_step_is_on_the_lens_again_after_a_lost_link_and_after_a_restart(
    tmp_path, service
):
    async with world(tmp_path, tool=maps(service)) as place:
        await begin(place)
        await place.call("maps:route", STATION)
        for number in (2, 3):
            place.tap()
            await shows(place, number)
        asked = len(service.asked)
        place.mark()
        await drop(place)
        await shows(place, 3)
        # A page that is still being drawn when the daemon stops is cleared by the next one.
        await place.heard("lens.acknowledged", page=3)

        await place.stop_daemon()
        place.mock.glasses.lens.clear()
        await place.start_daemon()
        await place.ready()
        await shows(place, 3)
        place.tap()
        await shows(place, 4)
        assert len(service.asked) == asked, "nothing is asked again"


@pytest.mark.requirement("I15-maps")
async def test_the_wearer_asks_for_the_way_and_for_the_next_step_by_voice(tmp_path, service):
    async with world(tmp_path, tool=maps(service)) as place:
        await begin(place)
        await place.wearer_says("how do I get to Bergen stasjon")
        await shows(place, 1)
        await place.wearer_says("next step")
        await place.lens_shows("Turn left onto Kaigaten, 1.2 km", "Step 2 of 4")
        await place.wearer_says("one step back")
        await place.lens_shows("Head south on Bryggen, 420 m", "Step 1 of 4")
