"""Story: where an answer of the glasses is lost on the radio, nothing is taken for seen that
may not be.
"""

import pytest

from firmware_bridge.sim.faults import parse_fault
from tests.scenarios.test_consent import SHORT, alone, asked, state
from tests.scenarios.test_two_sides import G1
from tests.scenarios.test_unseen import LONG_ENOUGH_S, from_cloud, tap_for
from tests.scenarios.world import world

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.requirement("I11-consent-alone")
async def test_nothing_is_asked_on_a_lens_that_may_be_dark(tmp_path):
    async with world(tmp_path, "sim:even_g1", **G1) as place:
        await alone(place)
        assert await place.mock.injector.inject(parse_fault("lose-acks:1"))
        assert (await from_cloud(place, "glasses:set", {"silent": True})).error is not None, (
            "the glasses' answer was lost"
        )
        assert await place.mock.injector.inject(parse_fault("lose-acks:0"))
        await place.ready()
        call, _ = await asked(place, SHORT)
        await tap_for(place, LONG_ENOUGH_S)
        assert "amount: 1" not in place.lens()
        assert await state(place, call) == "AWAITING_CONFIRMATION"
        assert (await from_cloud(place, "glasses:set", {"silent": False})).ok
        await asked(place, {"amount": 2})
        await place.lens_shows("amount: 2", "tap: yes")
