"""Stories of the link, on whichever radio this run has: glasses come and go, radios break, and
nobody has to help.

make test                       on bumble's host stack
make vm-test ARGS="--suite trixie"   on BlueZ, the kernel and systemd of a Debian machine
"""

import asyncio

import pytest

from firmware_bridge.sides import Side
from tests.link.world import Stopwatch, percentiles

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.enable_socket,
    pytest.mark.timeout(900),
]

LONG = " ".join(f"Sentence number {n} says something that is worth reading." for n in range(1, 12))


async def test_glasses_are_found_connected_and_show_a_page(world):
    await world.glasses_on()
    await world.daemon_on()
    took = Stopwatch()
    glasses = await world.ready()
    world.note(f"ready {took.s:.1f} s after the daemon")
    assert (glasses["model"], glasses["mtu"], glasses["address"]) == (
        "mock:display",
        247,
        world.mock.address,
    )
    took = Stopwatch()
    await world.show("Hello from the daemon")
    world.note(f"page {took.s:.2f} s")
    assert "Hello from the daemon" in " ".join(world.mock.glasses.lens.text())


@pytest.mark.parametrize("mtu", [23, 185, 247, 517])
@pytest.mark.requirement("I4-radio-mtu")
async def test_every_mtu_carries_a_page_of_any_size(world, mtu):
    await world.linked(mtu=mtu)
    assert (await world.ready())["mtu"] == mtu
    await world.show(LONG)
    assert world.mock.glasses.lens.text()[0].startswith("Sentence number 1")


async def test_a_lost_link_comes_back_with_its_page(world):
    await world.linked()
    scene = await world.show("Read me again")
    took = Stopwatch()
    assert world.drop()
    world.mock.glasses.lens.clear()
    await world.lens_shows("Read me again")
    world.note(f"{took.s:.2f} s")
    assert world.mock.glasses.lens.scene == scene


@pytest.mark.requirement("I4-radio-random")
async def test_losses_at_random_moments_are_all_recovered_with_the_scene(world, losses):
    await world.linked()
    scene = await world.show("Still here")
    times, cut = [], 0
    for _ in range(losses):
        await asyncio.sleep(
            world.chance.uniform(0, 0.4)
        )  # the moment: anywhere from scanning to reading
        cut += world.drop()
        world.mock.glasses.lens.clear()
        took = Stopwatch()
        if world.chance.random() < 0.3:
            continue  # the next loss comes before this one is over
        await world.lens_shows("Still here", 30)
        await world.ready()
        times.append(took.s)
    await world.lens_shows("Still here", 30)
    await world.ready()
    assert world.mock.glasses.lens.scene == scene
    world.note(f"{losses} losses, {cut} of a live link, all recovered; {percentiles(times)}")


async def test_glasses_that_were_switched_off_are_found_when_they_are_on_again(world):
    await world.linked()
    await world.show("Good night")
    await world.glasses_off()
    assert (await world.away())["glasses"]["stale"]
    await world.glasses_on()
    await world.ready()
    await world.lens_shows("Good night")


@pytest.mark.requirement("I4-link-adapter")
async def test_an_unplugged_adapter_is_used_again_when_it_is_back(world):
    await world.linked()
    await world.show("Do not pull")
    await world.place.adapter_out()
    gone = await world.away()
    assert gone["next_action"]
    world.mock.glasses.lens.clear()
    await world.place.adapter_in()
    took = Stopwatch()
    await world.lens_shows("Do not pull", 40)
    world.note(f"{took.s:.1f} s after it was back")


@pytest.mark.requirement("I4-radio-killed")
async def test_a_killed_daemon_finds_the_glasses_it_left_connected(world):
    await world.linked()
    await world.show("I was killed")
    world.mock.glasses.lens.clear()
    took = Stopwatch()
    await world.daemon_killed()
    await world.lens_shows("I was killed", 40)
    await world.ready()
    world.note(f"{took.s:.1f} s")


@pytest.mark.requirement("I4-g1-one-side")
async def test_a_pair_is_one_and_one_arm_continues_alone(world):
    await world.linked("sim:even_g1")
    await world.show("Both arms", delivery="acknowledged")
    left, right = (world.mock.glasses.lenses[side] for side in (Side.LEFT, Side.RIGHT))

    async def arms() -> dict[str, str]:
        return {
            side: how["state"] for side, how in (await world.status())["glasses"]["sides"].items()
        }

    async def both_are(state: dict[str, str]) -> bool:
        return await arms() == state

    async def both_show() -> bool:
        return all("Both arms" in " ".join(lens.text()) for lens in (left, right))

    await world.until(lambda: both_are({"left": "up", "right": "up"}), "both arms are there")
    await world.until(
        both_show, "both arms show the page"
    )  # one that came later gets it a moment after it came
    took = Stopwatch()
    world.mock.servers[Side.LEFT].leave()
    await world.until(lambda: both_are({"left": "lost", "right": "up"}), "the left arm is missed")
    world.note(f"missed after {took.s:.1f} s")
    await world.show("One arm", delivery="acknowledged")
    assert "One arm" in " ".join(right.text())
    assert "Both arms" in " ".join(left.text())
    took = Stopwatch()
    world.mock.servers[Side.LEFT].come_back()
    await world.until(lambda: both_are({"left": "up", "right": "up"}), "the left arm is back", 60)

    async def caught_up() -> bool:
        return "One arm" in " ".join(left.text())

    await world.until(caught_up, "the left arm shows the page of the right one")
    world.note(f"back after {took.s:.1f} s")


@pytest.mark.needs("power switch")
@pytest.mark.requirement("I4-link-adapter")
async def test_a_switched_off_adapter_is_used_again_when_on(world):
    await world.linked()
    await world.show("Lights out")
    await world.place.power("off")
    await world.away()

    async def hinted() -> bool:
        return "power" in (await world.status())["adapter"]["hint"]

    await world.until(hinted, "a hint that the power is off")
    world.mock.glasses.lens.clear()
    await world.place.power("on")
    took = Stopwatch()
    await world.lens_shows("Lights out", 40)
    world.note(f"{took.s:.1f} s after it was on")


@pytest.mark.needs("bluetoothd")
async def test_a_restart_of_bluetoothd_costs_seconds_and_no_person(world):
    await world.linked()
    await world.show("Restart me")
    world.mock.glasses.lens.clear()
    took = Stopwatch()
    await world.place.bluetoothd_restarted()
    await world.lens_shows("Restart me", 40)
    await world.ready()
    world.note(f"{took.s:.1f} s")


@pytest.mark.needs("bluetoothd")
@pytest.mark.requirement("I4-link-adapter")
async def test_a_bluetoothd_that_dies_is_outlived(world):
    await world.linked()
    await world.show("Outlive it")
    world.mock.glasses.lens.clear()
    took = Stopwatch()
    await world.place.bluetoothd_killed()
    await world.lens_shows("Outlive it", 60)
    await world.ready()
    world.note(f"{took.s:.1f} s")
