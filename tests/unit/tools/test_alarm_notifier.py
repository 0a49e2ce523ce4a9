"""The bell: an alarm is told until the wearer had it; glasses that are away are waited for."""

import asyncio
from contextlib import asynccontextmanager

from msgspec.structs import replace

from edge.ports import GlassesStatus
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import GlassesReady
from edge.tools.announcements import alarm_notifier
from edge.tools.announcements.alarm_notifier import AlarmNotifier
from edge.tools.announcements.alarms import Alarm
from tools_cache.api.tool import Delivery, DeliveryReport

READY = GlassesStatus(state="READY", ready=True)
AWAY = GlassesStatus(state="RESTING")


class Alarms:
    def __init__(self, *due):
        self.due = list(due)
        self.struck_off = []
        self.done = set()

    async def fired(self):
        for alarm in self.due:
            yield alarm
            self.struck_off.append(alarm.id)
        await asyncio.Event().wait()

    async def is_due(self, number):
        return number not in self.done


class Stage:
    """Shows when the glasses are there, else says what the real one says."""

    def __init__(self, glasses, refuses=False):
        self.glasses = glasses
        self.refuses = refuses
        self.told = []
        self.news = asyncio.Event()

    async def tell(self, text, *, scene="", brief=False, until_shown=False):
        assert until_shown
        self.told.append((scene, text))
        self.news.set()
        if self.refuses:
            return DeliveryReport(Delivery.DROPPED, "no display, no speaker")
        if self.glasses.now.ready:
            return DeliveryReport(Delivery.SHOWN)
        return DeliveryReport(Delivery.QUEUED, "glasses away")


class Glasses:
    def __init__(self, now):
        self.now = now

    def status(self):
        return self.now


class Times:
    now = 100.0


@asynccontextmanager
async def ringing(alarms, glasses, stage, times=Times):
    bus = Bus()
    clock = Clock(boot=lambda: times.now, wall=lambda: 0.0)
    running = asyncio.ensure_future(
        AlarmNotifier(alarms, stage=stage, glasses=glasses, bus=bus, clock=clock).run()
    )
    try:
        yield bus
    finally:
        running.cancel()
        await asyncio.wait([running])


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0)


async def test_alarms_are_announced_in_order_and_a_late_one_says_so():
    glasses = Glasses(READY)
    stage, alarms = (
        Stage(glasses),
        Alarms(Alarm(1, "tea", 5, 0), Alarm(2, "eggs", 5, 0, late_s=130.4)),
    )
    async with ringing(alarms, glasses, stage):
        await until(lambda: len(stage.told) == 2)
    assert stage.told == [("alarm-1", "tea"), ("alarm-2", "eggs (2 min late)")]


async def test_an_alarm_waits_for_absent_glasses_and_says_how_late_it_is():
    class Clocks(Times):
        now = 100.0

    glasses = Glasses(AWAY)
    stage, alarms = Stage(glasses), Alarms(Alarm(1, "tea", 5, 0), Alarm(2, "eggs", 5, 0))
    async with ringing(alarms, glasses, stage, Clocks) as bus:
        await until(lambda: stage.told)
        await asyncio.sleep(0.02)
        assert alarms.struck_off == []
        Clocks.now += 90.0
        glasses.now = replace(READY)
        bus.publish(GlassesReady("m", "1", "a", 247, "tcp"))
        await until(lambda: len(stage.told) == 3)
    assert stage.told[1:] == [("alarm-1", "tea (1 min late)"), ("alarm-2", "eggs")]


async def test_what_was_done_while_the_glasses_were_away_is_not_announced():
    glasses = Glasses(AWAY)
    stage, alarms = Stage(glasses), Alarms(Alarm(1, "tea", 5, 0), Alarm(2, "eggs", 5, 0))
    async with ringing(alarms, glasses, stage) as bus:
        await until(lambda: stage.told)
        alarms.done.add(1)
        glasses.now = replace(READY)
        bus.publish(GlassesReady("m", "1", "a", 247, "tcp"))
        await until(lambda: len(stage.told) == 2)
    assert stage.told[1:] == [("alarm-2", "eggs")]


async def test_glasses_that_can_neither_show_nor_speak_do_not_hold_the_bell():
    glasses = Glasses(READY)
    stage, alarms = (
        Stage(glasses, refuses=True),
        Alarms(Alarm(1, "tea", 5, 0), Alarm(2, "eggs", 5, 0)),
    )
    async with ringing(alarms, glasses, stage):
        await until(lambda: len(stage.told) == 2)


async def test_an_alarm_that_only_waits_for_the_lens_is_not_announced_yet(monkeypatch):
    monkeypatch.setattr(alarm_notifier, "AGAIN_S", 0.0)
    busy = [Delivery.QUEUED, Delivery.EXPIRED, Delivery.QUEUED, Delivery.SHOWN]

    class BusyStage(Stage):
        async def tell(self, text, **more):
            self.told.append((more["scene"], list(alarms.struck_off)))
            return DeliveryReport(busy.pop(0) if busy else Delivery.SHOWN)

    glasses = Glasses(READY)
    stage, alarms = BusyStage(glasses), Alarms(Alarm(1, "tea", 5, 0), Alarm(2, "eggs", 5, 0))
    async with ringing(alarms, glasses, stage):
        await until(lambda: alarms.struck_off == [1, 2])
    assert stage.told == [*[("alarm-1", [])] * 4, ("alarm-2", [1])]


async def test_what_was_done_while_it_waited_for_the_lens_is_not_announced(monkeypatch):
    monkeypatch.setattr(alarm_notifier, "AGAIN_S", 0.0)

    class BusyStage(Stage):
        async def tell(self, text, **more):
            alarms.done.add(1)
            self.told.append(text)
            return DeliveryReport(Delivery.QUEUED, "1 of 1")

    glasses = Glasses(READY)
    stage, alarms = BusyStage(glasses), Alarms(Alarm(1, "tea", 5, 0))
    async with ringing(alarms, glasses, stage):
        await until(lambda: alarms.struck_off == [1])
    assert stage.told == ["tea"]
