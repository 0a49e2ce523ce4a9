"""Pairs on real Bluetooth stacks (bumble): both arms found, connected left first, lost one at a
time, joined again.
"""

import asyncio
import time
from contextlib import asynccontextmanager
from itertools import groupby

import pytest

from firmware_bridge.catalog import CATALOG, find
from firmware_bridge.driver import Driver
from firmware_bridge.errors import LinkLost, RadioError, RadioReason
from firmware_bridge.messages import Done, GlassesInfo, Hello, ShowPage, SideChanged, TextLine
from firmware_bridge.sim.air import Air
from firmware_bridge.transports import ble
from firmware_bridge.transports.side_radio import SideJoiner, connect_any
from tests.unit.firmware_bridge.two_arms import ADDRESS, DEADLINE_S, L, R, TwoArms


def page(text):
    return ShowPage(text, lines=(TextLine(0, text),))


def shows(text):
    return ShowPage("g1", lines=(TextLine(0, text),))


@pytest.fixture
async def air():
    return Air()


@pytest.fixture
async def radio(air):
    radio = await ble.open_radio("inproc", air=air)
    yield radio
    await radio.close()


@asynccontextmanager
async def paired(radio):
    """Found, connected, driven and greeted."""
    sighting = await ble.scan(radio, timeout_s=DEADLINE_S)
    transport = await connect_any(radio, sighting, timeout_s=DEADLINE_S)
    driver = Driver(transport, sighting.entry.codec(transport.max_packet), clock=time.monotonic)
    running = asyncio.ensure_future(driver.run())
    try:
        assert isinstance(
            await driver.request(Hello("test", "0"), timeout_s=DEADLINE_S), GlassesInfo
        )
        yield driver, transport
    finally:
        running.cancel()
        await asyncio.wait([running])
        if not running.cancelled():
            assert isinstance(running.exception(), LinkLost)


async def news(driver, side, *, up):
    async with asyncio.timeout(DEADLINE_S):
        async for event in driver.events():
            if isinstance(event, SideChanged) and (event.side, event.up) == (side, up):
                return


async def test_both_arms_are_one_sighting_and_the_left_is_connected_first(air, radio, tmp_path):
    async with TwoArms(air, tmp_path).worn(R, L) as arms:
        sighting = await ble.scan(radio, timeout_s=DEADLINE_S)
        assert (sighting.pair, [arm.side for arm in sighting.arms]) == ("G1_47", [L, R])
        order = []
        for side in (L, R):
            arms.servers[side]._device.on("connection", lambda _c, side=side: order.append(side))
        transport = await connect_any(radio, sighting, timeout_s=DEADLINE_S)
        await transport.close()
    assert order == [L, R]


async def test_the_address_of_either_arm_names_the_pair(air, radio, tmp_path):
    async with TwoArms(air, tmp_path).worn(L, R):
        for side in (L, R):
            sighting = await ble.scan(radio, timeout_s=DEADLINE_S, address=ADDRESS[side].lower())
            assert [arm.address for arm in sighting.arms] == [ADDRESS[L], ADDRESS[R]]
        with pytest.raises(RadioError) as refused:
            await ble.scan(radio, timeout_s=0.5, address="F0:00:00:00:00:01")
        assert refused.value.reason is RadioReason.NOT_FOUND


async def test_one_arm_alone_is_taken_after_a_grace_and_shows_alone(
    air, radio, tmp_path, monkeypatch
):
    monkeypatch.setattr(ble, "ARMS_GRACE_S", 0.3)
    async with TwoArms(air, tmp_path).worn(R) as arms, paired(radio) as (driver, transport):
        assert transport.address == "G1_47"
        assert await driver.request(page("alone"), timeout_s=DEADLINE_S) == Done()
        assert arms.commands(R) == [shows("alone")]


@pytest.mark.requirement("I4-g1-skew")
async def test_fifty_pages_reach_both_arms_with_a_small_skew(air, radio, tmp_path, record_property):
    skews = []
    async with TwoArms(air, tmp_path).worn(L, R) as arms, paired(radio) as (driver, _):
        for number in range(50):
            done = await driver.request(page(f"page {number}"), timeout_s=DEADLINE_S)
            skews.append(done.skew_s)
    for side in (L, R):  # a slow answer is asked for again, and the page with it
        assert [page for page, _ in groupby(arms.commands(side))] == [
            shows(f"page {number}") for number in range(50)
        ]
    skews.sort()
    record_property("skew_ms", {"p50": skews[25] * 1000, "max": skews[-1] * 1000})
    assert 0 < skews[25] < 2.4, (
        "three tries of one packet; the bound itself is "
        "tests/codecs/test_g1_pair.py's, by its own clock"
    )


@pytest.mark.requirement("I4-g1-one-side")
@pytest.mark.parametrize("lost", [L, R])
async def test_a_returned_side_shows_the_page_while_the_other_keeps_it(air, radio, tmp_path, lost):
    other = R if lost is L else L
    async with TwoArms(air, tmp_path).worn(L, R) as arms, paired(radio) as (driver, _):
        await driver.request(page("before"), timeout_s=DEADLINE_S)
        assert arms.servers[lost].drop()
        await news(driver, lost, up=False)
        await driver.request(page("meanwhile"), timeout_s=DEADLINE_S)
        await news(driver, lost, up=True)
        await arms.until(lambda: arms.commands(lost)[-1] == shows("meanwhile"))
        assert (arms.links[lost], arms.links[other]) == (2, 1)
        assert [page for page, _ in groupby(arms.commands(other))] == [
            shows("before"),
            shows("meanwhile"),
        ]


STRANGER = {L: "E1:00:00:00:00:01", R: "E1:00:00:00:00:02"}


async def test_a_stranger_on_the_same_channel_never_replaces_a_side(air, radio, tmp_path):
    strangers = TwoArms(air, tmp_path, addresses=STRANGER)
    async with (
        TwoArms(air, tmp_path).worn(L, R) as arms,
        paired(radio) as (driver, _),
        strangers.worn(L),
    ):
        arms.servers[L].leave()
        await news(driver, L, up=False)
        with pytest.raises(TimeoutError):
            await strangers.until(
                lambda: strangers.links[L], at_most_s=0.3
            )  # it advertises forty times a second
        arms.servers[L].come_back()
        await news(driver, L, up=True)
        assert (arms.links[L], strangers.links[L]) == (2, 0)


def heard(name, address):
    return ble.sided(ble.Sighting(find("even_g1"), address, name, -50, None))


@pytest.mark.parametrize(
    ("side", "name", "address", "joins"),
    [
        (R, "Even G1_47_R_8CA1D5", ADDRESS[R], True),
        (R, "Even G1_47_R_000002", STRANGER[R], False),
        (L, "Even G1_47_L_CC89D6", ADDRESS[L], True),
        (L, "Even G1_47_R_8CA1D5", ADDRESS[R], False),
        (L, "Even G1_48_L_CC89D6", ADDRESS[L], False),
        (L, "Even G1_47_L_000001", STRANGER[L], False),
    ],
    ids=["known", "known-elsewhere", "never-heard", "other-side", "other-pair", "not-wanted"],
)
def test_which_arm_may_join_a_pair_with_a_known_right_arm(side, name, address, joins):
    known = heard("Even G1_47_R_8CA1D5", ADDRESS[R])
    joiner = SideJoiner(None, known, CATALOG, lambda arm: arm.address in ADDRESS.values(), 1.0)
    assert joiner._is(heard(name, address), side) is joins


async def test_an_arm_that_is_not_wanted_is_none_of_the_pair(air, radio, tmp_path, monkeypatch):
    monkeypatch.setattr(ble, "ARMS_GRACE_S", 0.3)
    async with TwoArms(air, tmp_path, addresses={L: ADDRESS[L], R: STRANGER[R]}).worn(L, R):
        sighting = await ble.scan(
            radio, timeout_s=DEADLINE_S, wanted=lambda heard: heard.address in ADDRESS.values()
        )
        assert [arm.address for arm in sighting.arms] == [ADDRESS[L]]


async def test_a_side_that_is_deaf_is_given_up_and_joined_again(air, radio, tmp_path):
    async with TwoArms(air, tmp_path).worn(L, R) as arms, paired(radio) as (driver, _):
        arms.deaf.add(L)
        done = await driver.request(page("half"), timeout_s=DEADLINE_S)
        assert done == Done()
        arms.deaf.clear()
        await arms.until(lambda: arms.links[L] == 2 and shows("half") in arms.commands(L))


async def test_both_sides_walking_off_is_the_end_of_the_link(air, radio, tmp_path):
    async with TwoArms(air, tmp_path).worn(L, R) as arms, paired(radio) as (_, transport):
        for server in arms.servers.values():
            server.leave()
        async with asyncio.timeout(DEADLINE_S):
            async for _ in transport.packets():
                pass
