"""The link on BlueZ's own terms: whatever happens to bluetoothd, its adapter and its bus, the link
comes back by itself.

Real D-Bus, real bleak, the real finder and link manager, real mock glasses; only bluetoothd is
played (fake_bluez.py).
"""

import asyncio
import logging
from contextlib import asynccontextmanager

import pytest
from dbus_fast import Variant

from edge.core.backoff import Backoff
from edge.core.recovery import Wake
from edge.link.discovery import BleFinder
from edge.link.glasses_state import GlassesState
from edge.link.manager import LinkManager
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from firmware_bridge.catalog import find
from firmware_bridge.errors import RadioError
from firmware_bridge.messages import ShowPage, TextLine
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.time import SimTime
from firmware_bridge.transports.ble import left_over
from tests.system import needs
from tests.unit.firmware_bridge.fake_bluez import (
    ADDRESS,
    HCI0,
    Peer,
    no_bluetoothctl,
    private_bluez,
)
from tests.unit.link.test_manager import MemoryNotes

pytestmark = [pytest.mark.enable_socket, needs("dbus-daemon")]

SOON_S = 40.0
PAGE = ShowPage("s", lines=(TextLine(0, "hello"),))


class Story:
    def __init__(self, bluez, folder, *, ours=lambda: None, scan_s=0.2):
        self.bluez = bluez
        self.peer = Peer(
            MockGlasses(
                find("mock:display"), out_dir=folder, time=SimTime(50), tell=lambda _event: None
            )
        )
        self.finder = BleFinder(
            "bluez", address=None, model="mock:display", scan_s=scan_s, connect_s=5.0, ours=ours
        )
        self.bus = Bus()
        clock = Clock()
        self.link = LinkManager(
            self.finder,
            GlassesState(self.bus, clock, MemoryNotes(), {}),
            bus=self.bus,
            clock=clock,
            backoff=Backoff(lambda: 0.5, first_s=0.05, most_s=0.1),
        )
        self._was, self._read = [], 0
        publish = self.bus.publish
        self.bus.publish = lambda happening: (
            self._was.append(self.link.status()),
            publish(happening),
        )

    async def until(self, condition, what):
        try:
            async with asyncio.timeout(SOON_S):
                while not condition():
                    await asyncio.sleep(0.005)
        except TimeoutError:
            raise AssertionError(f"{what}: {self.link.status()}") from None

    async def ready(self, link):
        await self.until(
            lambda: self.link.status().ready and self.link.status().link >= link, f"link {link}"
        )
        assert (await self.link.request(PAGE)).drawn > 0

    def mark(self):
        """What was before is past."""
        self._read = len(self._was)

    async def issue(self, word):
        """The status of the next moment that had this issue, however short: each change of the
        link is kept.
        """

        def had():
            return next(
                (
                    at
                    for at, was in enumerate(self._was[self._read :], self._read)
                    if was.issue == word
                ),
                None,
            )

        await self.until(lambda: had() is not None, word)
        self._read = had() + 1
        return self._was[self._read - 1]


@pytest.fixture
async def bluez(tmp_path, monkeypatch):
    no_bluetoothctl(monkeypatch)
    monkeypatch.setattr("firmware_bridge.transports.bluez.watch.RETRY_S", 0.02)
    monkeypatch.setattr("firmware_bridge.transports.ble_connection.CLOSE_TIMEOUT_S", 0.3)
    async with private_bluez(tmp_path, monkeypatch) as bluez:
        yield bluez


@asynccontextmanager
async def running(story):
    task = asyncio.ensure_future(story.link.run())
    try:
        yield story
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=40)
        assert task.cancelled(), task


@pytest.fixture
async def story(bluez, tmp_path):
    story = Story(bluez, tmp_path)
    bluez.put_near(story.peer)
    async with running(story):
        await story.ready(1)
        yield story


async def test_the_link_comes_up_and_closes_with_the_daemon(bluez, tmp_path):
    story = Story(bluez, tmp_path)
    bluez.put_near(story.peer)
    async with running(story):
        await story.ready(1)
        assert (story.link.status().transport, story.link.status().mtu) == ("bluez", 247)
    assert not bluez.connected(story.peer)


@pytest.mark.requirement("I4-link-adapter")
async def test_a_killed_bluetoothd_ends_the_link_and_its_successor_is_used(story):
    await story.bluez.die()
    status = await story.issue("adapter_lost")
    assert not status.ready
    assert "bluetoothd is gone" in status.reason
    assert "systemctl start bluetooth" in (await story.issue("no_service")).hint
    await story.bluez.start()
    await story.ready(2)
    assert story.link.status().issue == ""


@pytest.mark.requirement("I4-link-adapter")
async def test_a_lost_adapter_ends_the_link_and_is_used_again_later(story):
    await story.bluez.power(on=False)
    assert "bluetoothctl power on" in (await story.issue("powered_off")).hint
    await story.bluez.power(on=True)
    await story.ready(2)
    await story.bluez.unplug()
    await story.issue("no_adapter")
    story.bluez.plug_in()
    await story.ready(3)


@pytest.mark.requirement("I4-link-adapter")
async def test_a_lost_bus_ends_the_link_and_its_successor_is_used(story):
    story.bluez.bus.kill()
    await story.until(lambda: not story.link.status().ready, "noticed")
    await story.bluez.die()
    await story.issue("no_service")
    story.bluez.bus.start()
    await story.bluez.start()
    await story.ready(2)


async def test_nothing_is_believed_any_more_of_a_bluetoothd_that_died(story):
    story.peer.hides = True
    await story.bluez.die()
    await story.issue("no_service")
    await story.bluez.start()
    await story.issue("not_found")
    assert await left_over(await story.finder.radio()) == [], "bleak still knows the old link"


async def test_a_lost_link_is_made_again(story):
    for link in (2, 3, 4):
        await story.bluez.walk_away(story.peer)
        await story.ready(link)


@pytest.mark.requirement("I4-link-left-over")
async def test_a_link_of_a_killed_daemon_is_taken_over_without_scan(bluez, tmp_path):
    story = Story(bluez, tmp_path)
    bluez.put_near(story.peer)
    bluez.link(story.peer)
    async with running(story):
        await story.ready(1)
    assert not [call for call in bluez.calls if call[0] in ("StartDiscovery", "Connect")]


@pytest.mark.requirement("I4-link-left-over")
async def test_a_link_that_another_program_holds_is_named_and_ended(story, caplog):
    caplog.set_level(logging.DEBUG, "edge.link.manager")

    def named():
        return "another program here holds the glasses" in caplog.text

    story.peer.hides = True
    for _ in range(20):
        story.mark()
        await story.bluez.walk_away(story.peer)
        await story.issue("not_found")
        story.bluez.link(story.peer)  # somebody on this machine was quicker
        await story.until(lambda: named() or story.link.status().ready, "named")
        if named():
            break  # else it was listening at that very moment, heard of the link and took it over
    assert named()
    story.peer.hides = False
    await story.ready(2)


async def test_a_scan_that_is_in_progress_passes(bluez, tmp_path):
    story = Story(bluez, tmp_path)
    bluez.put_near(story.peer)
    bluez.errors["StartDiscovery"] = [
        ("org.bluez.Error.InProgress", "Operation already in progress")
    ] * 3
    async with running(story):
        status = await story.issue("busy")
        assert "another program is scanning" in status.hint
        await story.ready(1)


async def test_a_scan_that_is_stuck_costs_a_reset_of_the_adapter(bluez, tmp_path, monkeypatch):
    monkeypatch.setattr("firmware_bridge.transports.bluez.recovery.OFF_S", 0.01)
    story = Story(bluez, tmp_path)
    bluez.put_near(story.peer)
    stuck = bluez.errors["StartDiscovery"] = [
        ("org.bluez.Error.InProgress", "Operation already in progress")
    ] * 1000
    async with running(story):
        await story.until(lambda: ("Set", HCI0) in bluez.calls, "reset")
        stuck.clear()
        await story.ready(1)


@pytest.mark.requirement("I4-link-bond-lost")
async def test_a_bonded_link_that_fails_three_times_is_a_lost_bond(bluez, tmp_path, caplog):
    story = Story(bluez, tmp_path)
    story.peer.paired = True
    story.peer.connect_error = ("org.bluez.Error.Failed", "br-connection-canceled")
    bluez.put_near(story.peer)
    with caplog.at_level(logging.WARNING, "edge.link.manager"):
        async with running(story):
            await story.until(lambda: story.link.status().step == "ask", "it asks")
            status = story.link.status()
            assert (status.issue, "glassd pair" in status.hint) == ("bond_doubt", True)
            tried = len([call for call in bluez.calls if call[0] == "Connect"])
            assert tried == 3
            await asyncio.sleep(0.3)  # three rests' worth: nothing may happen in it
            assert len([call for call in bluez.calls if call[0] == "Connect"]) == tried
            story.peer.connect_error = None
            story.link.resume()
            await story.ready(1)
    warned = [
        record.getMessage() for record in caplog.records if record.name == "edge.link.manager"
    ]
    assert ["× 1: fresh" in text or "× 3: ask" in text for text in warned] == [True, True], (
        "the first failure, and that somebody has to come"
    )


async def test_only_our_glasses_are_connected_to(bluez, tmp_path):
    story = Story(bluez, tmp_path, ours=lambda: frozenset({"F0:00:00:00:00:01"}))
    stranger = bluez.put_near(story.peer)
    async with running(story):
        await story.issue("not_found")
        assert not [call for call in bluez.calls if call[0] == "Connect"]
        ours = Story(bluez, tmp_path).peer
        mine = bluez.put_near(Peer(ours.glasses, address="F0:00:00:00:00:01"))
        await story.ready(1)
        assert bluez.connected(mine)
        assert not bluez.connected(stranger)


async def test_without_paired_glasses_nothing_is_scanned_for(bluez, tmp_path):
    known = set()
    story = Story(bluez, tmp_path, ours=lambda: frozenset(known))
    bluez.put_near(story.peer)
    async with running(story):
        status = await story.issue("not_paired")
        assert (status.step, "glassd up" in status.hint) == ("ask", True)
        assert not [call for call in bluez.calls if call[0] == "StartDiscovery"]
        known.add(ADDRESS)
        story.link.resume()
        await story.ready(1)


@pytest.mark.requirement("I4-link-named")
async def test_an_mtu_that_stays_at_23_is_named_and_worked_with(bluez, tmp_path, monkeypatch):
    monkeypatch.setattr("firmware_bridge.transports.ble_connection.MTU_SETTLE_S", 0.05)
    story = Story(bluez, tmp_path)
    story.peer.mtu = 23
    bluez.put_near(story.peer)
    async with running(story):
        await story.ready(1)
        status = story.link.status()
        assert (status.ready, status.mtu, status.issue) == (True, 23, "mtu_23")
        assert "20 bytes a packet" in status.hint


class Arm(Peer):
    """One arm of somebody's G1, as BlueZ knows it."""

    def __init__(self, glasses, letter, address):
        super().__init__(glasses, address=address)
        self.letter = letter

    def device(self):
        name = Variant("s", f"Even G1_47_{self.letter}_{self.address.replace(':', '')[-6:]}")
        return {
            **super().device(),
            "Name": name,
            "Alias": name,
            "UUIDs": Variant("as", [find("even_g1").gatt.service]),
        }


@pytest.mark.requirement("I4-link-left-over")
@pytest.mark.parametrize("theirs", ["L", "R"])
async def test_of_two_connected_arms_of_one_name_only_ours_is_used(bluez, tmp_path, theirs):
    glasses = Story(bluez, tmp_path).peer.glasses
    arms = {
        letter: Arm(glasses, letter, f"F0:00:00:00:00:0{number}")
        for number, letter in enumerate("LR")
    }
    ours = arms["LR".replace(theirs, "")].address
    for arm in arms.values():
        bluez.link(bluez.put_near(arm))
    finder = BleFinder(
        "bluez", address=None, model=None, scan_s=0.2, connect_s=5.0, ours=lambda: frozenset({ours})
    )
    try:
        sighting = await finder.seek()
        assert [arm.address for arm in sighting.arms] == [ours]
        await finder.fresh()
        assert [bluez.connected(arm) for arm in arms.values()] == [
            arm.address != ours for arm in arms.values()
        ]
    finally:
        await finder.close()


async def test_glasses_that_were_forgotten_after_they_were_heard_are_not_connected_to(
    bluez, tmp_path
):
    known = {ADDRESS, "F0:00:00:00:00:09"}
    story = Story(bluez, tmp_path, ours=lambda: frozenset(known))
    bluez.put_near(story.peer)
    try:
        async with asyncio.timeout(SOON_S):
            await story.finder.wait_to_wake(Wake.ADVERT)
        known.remove(ADDRESS)
        with pytest.raises(RadioError, match="no glasses heard"):
            await story.finder.seek()
    finally:
        await story.finder.close()
