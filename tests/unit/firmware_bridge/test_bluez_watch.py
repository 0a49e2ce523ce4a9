"""BlueZ watched over a real D-Bus: whatever goes is told at once, whatever comes back is
noticed, and cures reach it.
"""

import asyncio

import pytest

from firmware_bridge.catalog import find
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.time import SimTime
from firmware_bridge.transports.bluez.recovery import BluezRecovery
from firmware_bridge.transports.bluez.watch import ADAPTER, DEVICE, BluezWatch
from tests.system import needs
from tests.unit.firmware_bridge.fake_bluez import ADDRESS, HCI0, Peer, private_bluez

pytestmark = [pytest.mark.enable_socket, needs("dbus-daemon")]

HCI1 = "/org/bluez/hci1"
SOON_S = 40.0


@pytest.fixture
async def bluez(tmp_path, monkeypatch):
    async with private_bluez(tmp_path, monkeypatch) as bluez:
        yield bluez


@pytest.fixture
async def watch(bluez):
    watch = BluezWatch()
    await watch.open()
    yield watch
    await watch.close()


@pytest.fixture
def glasses(tmp_path):
    return MockGlasses(
        find("mock:display"), out_dir=tmp_path, time=SimTime(50), tell=lambda _event: None
    )


async def soon(awaitable):
    async with asyncio.timeout(SOON_S):
        return await awaitable


async def gone(hurting, watch):
    """Hurt it, and wait until we have heard of it."""
    losing = asyncio.ensure_future(watch.lost())
    await asyncio.sleep(0)
    await hurting
    return await soon(losing)


async def power_off(bluez):
    await bluez.power(on=False)


async def unplug(bluez):
    await bluez.unplug()


async def die(bluez):
    await bluez.die()


async def kill_bus(bluez):
    bluez.bus.kill()


LOSSES = [
    (power_off, "the adapter hci0 is not powered"),
    (unplug, "the adapter hci0 is gone"),
    (die, "bluetoothd is gone"),
    (kill_bus, "D-Bus is gone"),
]


@pytest.mark.requirement("I4-link-adapter")
@pytest.mark.parametrize(("hurt", "why"), LOSSES)
async def test_every_loss_of_the_radio_reaches_waiters_and_listeners_at_once(
    bluez, watch, hurt, why
):
    told = []
    watch.on_lost(told.append)
    assert watch.usable
    assert await gone(hurt(bluez), watch) == why
    assert told == [why]
    assert not watch.usable


async def test_an_unregistered_listener_hears_nothing(bluez, watch):
    told = []
    stop = watch.on_lost(told.append)
    stop()
    stop()
    await gone(bluez.die(), watch)
    assert told == []


async def test_the_loss_of_another_adapter_is_not_reported(bluez, watch):
    bluez.plug_in(HCI1)
    ours, theirs = [], []
    watch.on_lost(ours.append, f"{HCI0}/dev_1")
    watch.on_lost(theirs.append, f"{HCI1}/dev_2")
    await gone(bluez.unplug(HCI1), watch)
    assert (ours, theirs) == ([], ["the adapter hci1 is gone"])
    assert watch.usable


async def test_an_adapter_is_back_when_it_is_on_again(bluez, watch):
    await soon(watch.back())
    await gone(bluez.power(on=False), watch)
    waiting = asyncio.ensure_future(watch.back())
    await soon(asyncio.sleep(0.05))
    assert not waiting.done()
    await bluez.power(on=True)
    await soon(waiting)
    await gone(bluez.unplug(), watch)
    waiting = asyncio.ensure_future(watch.back())
    bluez.plug_in(powered=False)
    await soon(asyncio.sleep(0.05))
    assert not waiting.done()
    await bluez.power(on=True)
    await soon(waiting)


async def test_a_new_bluetoothd_is_back_with_the_adapters_it_has(bluez, watch):
    await gone(bluez.die(), watch)
    waiting = asyncio.ensure_future(watch.back())
    await asyncio.sleep(0.05)
    assert not waiting.done()
    await bluez.start(HCI1)
    await soon(waiting)
    assert watch.usable


async def test_a_new_bus_is_found_by_looking(bluez, watch, monkeypatch):
    monkeypatch.setattr("firmware_bridge.transports.bluez.watch.RETRY_S", 0.02)
    await gone(kill_bus(bluez), watch)
    waiting = asyncio.ensure_future(watch.back())
    await asyncio.sleep(0.05)
    bluez.bus.start()
    await bluez.start()
    await soon(waiting)


async def test_opening_where_there_is_no_bus_raises_and_leaves_nothing_open(tmp_path, monkeypatch):
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={tmp_path / 'nothing'}")
    watch = BluezWatch()
    with pytest.raises(FileNotFoundError):
        await watch.open()
    await watch.close()
    await watch.close()


async def test_a_bus_without_bluez_is_open_and_not_usable(bluez):
    await bluez.die()
    watch = BluezWatch()
    await soon(watch.open())
    assert not watch.usable
    await watch.close()


# ------------------------------------------------------------------ cures


def device(bluez, peer):
    return bluez.objects.get(peer.path, {}).get(DEVICE)


async def linked(bluez, glasses, **more):
    peer = bluez.put_near(Peer(glasses, **more))
    bluez.link(peer)
    return peer


async def test_fresh_ends_a_left_over_link_and_drops_what_is_remembered(bluez, watch, glasses):
    peer = await linked(bluez, glasses)
    await soon(BluezRecovery(watch).fresh(ADDRESS.lower()))
    assert not bluez.connected(peer)
    assert device(bluez, peer) is None
    assert ("RemoveDevice", HCI0) in bluez.calls


async def test_fresh_keeps_a_bond_and_leaves_strangers_alone(bluez, watch, glasses):
    peer = bluez.put_near(Peer(glasses))
    peer.paired = True
    bluez.link(peer)
    other = await linked(bluez, glasses, address="F0:00:00:00:00:01")
    await soon(BluezRecovery(watch).fresh(ADDRESS))
    async with asyncio.timeout(SOON_S):
        while bluez.connected(peer):
            await asyncio.sleep(0)
    assert device(bluez, peer) is not None
    assert bluez.connected(other)
    assert not [call for call in bluez.calls if call[0] == "RemoveDevice"]
    await bluez.walk_away(other)


async def test_reset_powers_the_adapter_off_and_on(bluez, watch, monkeypatch):
    monkeypatch.setattr("firmware_bridge.transports.bluez.recovery.OFF_S", 0.01)
    told = []
    watch.on_lost(told.append)
    await soon(BluezRecovery(watch).reset())
    await soon(watch.back())
    assert told == ["the adapter hci0 is not powered"]
    assert bluez.objects[HCI0][ADAPTER]["Powered"].value is True


async def test_reset_spares_an_adapter_that_somebody_uses_and_one_that_is_off(
    bluez, watch, glasses
):
    peer = await linked(bluez, glasses)
    await soon(BluezRecovery(watch).reset())
    assert not [call for call in bluez.calls if call[0] == "Set"]
    await bluez.walk_away(peer)
    await gone(bluez.power(on=False), watch)
    await soon(BluezRecovery(watch).reset())
    assert not [call for call in bluez.calls if call[0] == "Set"], (
        "somebody switched it off, and may want it so"
    )


async def test_a_reset_that_is_cut_short_leaves_the_adapter_on(bluez, watch):
    cutting = asyncio.ensure_future(BluezRecovery(watch).reset())
    async with asyncio.timeout(SOON_S):
        while bluez.objects[HCI0][ADAPTER]["Powered"].value:
            await asyncio.sleep(0)
        cutting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cutting
        while not bluez.objects[HCI0][ADAPTER]["Powered"].value:
            await asyncio.sleep(0)


async def test_cures_of_a_bluez_that_refuses_or_is_not_there_raise_nothing(bluez, watch, glasses):
    await linked(bluez, glasses)
    bluez.errors["Disconnect"] = [("org.bluez.Error.Failed", "no")]
    bluez.errors["Set"] = [("org.freedesktop.DBus.Error.AccessDenied", "no")]
    cure = BluezRecovery(watch)
    await soon(cure.fresh(ADDRESS))
    await soon(cure.reset())
    await bluez.die()
    await soon(cure.fresh(ADDRESS))
    await soon(cure.reset())
