"""Deadlines: what must end and does not starves the watchdog; idleness, failure and a sleeping
machine do not.
"""

import asyncio

import pytest

from edge.cloud.mqtt.client import STEP_S, MqttUplink, UplinkOptions
from edge.core.backoff import Backoff
from edge.display.presenter import DRAW_S, Presenter
from edge.link.glasses_state import GlassesState
from edge.link.manager import LinkManager
from edge.runtime.bus import HANDLED_S, Bus
from edge.runtime.clock import Clock
from edge.runtime.deadlines import Deadlines
from edge.runtime.events import LinkChanged
from edge.tools.registry import SYNC_S, ToolRegistry
from firmware_bridge.errors import RadioError, RadioReason

A_DAY = 86400.0


class Time:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def open_deadlines(time):
    return Deadlines(time)


async def until(true):
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0.002)


class Running:
    """A service that runs while the block does."""

    def __init__(self, work):
        self._work = work

    async def __aenter__(self):
        self._task = asyncio.ensure_future(self._work)

    async def __aexit__(self, *_):
        self._task.cancel()
        await asyncio.wait([self._task], timeout=40)


# ------------------------------------------------------------------ the bound


def test_a_step_is_overdue_only_beyond_its_time(open_deadlines, time):
    with open_deadlines.within(10.0, "link: seeking"):
        time.now = 10.0
        assert open_deadlines.overdue() == []
        time.now = 13.0
        assert open_deadlines.overdue() == ["link: seeking (3 s late)"]
    assert open_deadlines.overdue() == []


def test_a_step_that_fails_has_ended_too(open_deadlines, time):
    with pytest.raises(OSError, match="gone"), open_deadlines.within(1.0, "x"):
        raise OSError("gone")
    time.now = A_DAY
    assert open_deadlines.overdue() == []


def test_the_next_step_has_its_own_time_and_done_ends_it(open_deadlines, time):
    with open_deadlines.within(10.0, "a") as step:
        time.now = 9.0
        step.again(10.0, "b")
        time.now = 15.0
        assert open_deadlines.overdue() == []
        time.now = 20.0
        assert open_deadlines.overdue() == ["b (1 s late)"]
        step.done()
        assert open_deadlines.overdue() == []
        step.again(1.0, "c")
        time.now = 30.0
        assert open_deadlines.overdue() == ["c (9 s late)"]
    assert open_deadlines.overdue() == []


# ------------------------------------------------------------------ listeners


async def test_a_stuck_listener_is_overdue_and_an_idle_one_is_not(open_deadlines, time):
    bus, handling, release = Bus(open_deadlines.within), asyncio.Event(), asyncio.Event()

    async def reporter():
        with bus.listen() as heard:
            async for _ in heard:
                handling.set()
                await release.wait()

    task = asyncio.create_task(reporter(), name="reporter")
    await asyncio.sleep(0)
    time.now = A_DAY
    assert open_deadlines.overdue() == []  # a day without news
    bus.publish(LinkChanged("READY", ""))
    await asyncio.wait_for(handling.wait(), 40)
    time.now += HANDLED_S + 5
    assert open_deadlines.overdue() == ["reporter: LinkChanged (5 s late)"]
    release.set()
    await until(lambda: not open_deadlines.overdue())
    task.cancel()
    await asyncio.wait([task])


async def test_a_crashed_listener_is_not_overdue(open_deadlines, time):
    bus, kept = Bus(open_deadlines.within), []

    async def crashes():
        with bus.listen() as heard:
            bus.publish(LinkChanged("READY", ""))
            iteration = aiter(heard)
            await anext(iteration)
            kept.append(iteration)
            raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        await crashes()
    time.now = A_DAY
    assert open_deadlines.overdue() == []
    await kept[0].aclose()


# ------------------------------------------------------------------ the services


class Stuck:
    """A radio, a cloud and a pair of glasses that never come back, whatever deadline stands
    around them.
    """

    def __init__(self):
        self.entered = asyncio.Event()

    async def for_ever(self, *_, **__):
        self.entered.set()
        await asyncio.Event().wait()

    seek = fetch = for_ever
    url = "https://cloud.example"

    async def close(self):
        pass

    fresh = reset = close


class Notes:
    async def get(self, *_):
        return None

    put = get


def link(finder, open_deadlines):
    bus, clock = Bus(open_deadlines.within), Clock.system()
    return LinkManager(
        finder,
        GlassesState(bus, clock, Notes(), {}),
        bus=bus,
        clock=clock,
        backoff=Backoff(lambda: 1.0, first_s=0.01, most_s=0.01, stable_s=1.0),
        within=open_deadlines.within,
        step_s=50.0,
        rest=lambda _s: asyncio.sleep(0),
    )


@pytest.mark.requirement("I4-watchdog")
async def test_a_link_stuck_in_a_scan_is_noticed(open_deadlines, time):
    finder = Stuck()
    async with Running(link(finder, open_deadlines).run()):
        await asyncio.wait_for(finder.entered.wait(), 40)
        time.now = 45.0
        assert open_deadlines.overdue() == []
        time.now = 51.0
        assert open_deadlines.overdue() == ["link: seeking (1 s late)"]


@pytest.mark.requirement("I4-watchdog")
async def test_glasses_that_are_away_for_days_starve_nobody(open_deadlines, time):
    """Trap 23: a watchdog tied to the link's progress restarts the daemon whenever BlueZ is
    slow.
    """

    class Away(Stuck):
        tries = 0

        async def seek(self):
            self.tries += 1
            time.now += 40.0  # below the bound, again and again
            await asyncio.sleep(0)
            raise RadioError(RadioReason.NOT_FOUND, "nothing heard")

        wait_to_wake = Stuck.for_ever

    finder = Away()
    async with Running(link(finder, open_deadlines).run()):
        await until(lambda: finder.tries >= 4 or open_deadlines.overdue())
    assert time.now >= 120.0
    assert open_deadlines.overdue() == []


async def test_a_registry_that_is_fetched_for_ever_is_noticed(open_deadlines, time, tmp_path):
    cloud = Stuck()
    cache = ToolRegistry(
        builtin=tmp_path / "none.json",
        state=tmp_path,
        bus=Bus(),
        clock=Clock.system(),
        cloud=cloud,
        within=open_deadlines.within,
    )
    async with Running(cache.run()):
        await asyncio.wait_for(cloud.entered.wait(), 40)
        time.now = SYNC_S + 1
        assert open_deadlines.overdue() == ["registry: fetching (1 s late)"]


async def test_a_drawing_that_never_ends_is_noticed(open_deadlines, time, monkeypatch):
    class Glasses:
        def status(self):
            from edge.ports import GlassesStatus

            return GlassesStatus()

    stuck = Stuck()
    monkeypatch.setattr(Presenter, "_take", stuck.for_ever)
    stage = Presenter(
        glasses=Glasses(),
        bus=Bus(),
        clock=Clock.system(),
        notes=Notes(),
        within=open_deadlines.within,
    )
    async with Running(stage.run()), Running(stage.tell("hello")):
        await asyncio.wait_for(stuck.entered.wait(), 40)
        time.now = DRAW_S + 1
        assert open_deadlines.overdue() == ["display: drawing (1 s late)"]


async def test_a_connection_to_the_broker_that_never_opens_is_noticed(
    open_deadlines, time, monkeypatch
):
    stuck = Stuck()

    class Connection:
        def __init__(self, *_):
            pass

        async def __aenter__(self):
            await stuck.for_ever()

        async def __aexit__(self, *_):
            pass

    class Empty:
        async def load(self):
            return []

        rows = pending = unanswered = load

    monkeypatch.setattr("edge.cloud.mqtt.client.MqttConnection", Connection)
    options = UplinkOptions(
        edge_id="e", host="broker.local", port=1883, tenant="t", pool="p", connect_timeout_s=10.0
    )
    uplink = MqttUplink(
        options,
        outbox=Empty(),
        inbox=Empty(),
        bus=Bus(),
        clock=Clock.system(),
        within=open_deadlines.within,
    )
    async with Running(uplink._one_link()):
        await asyncio.wait_for(stuck.entered.wait(), 40)
        time.now = STEP_S + 11
        assert open_deadlines.overdue() == ["uplink: connecting (1 s late)"]
