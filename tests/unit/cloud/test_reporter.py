"""The reporter: what the glasses are and do reaches the registry and the cloud."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from edge.cloud.reporter import CapabilityReporter, as_event
from edge.core.tools.snapshot import Entry, Snapshot
from edge.ports import GlassesStatus
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import (
    CapabilitiesLearned,
    ConfigurationReloaded,
    GlassesLost,
    GlassesReady,
    GlassesSaid,
)
from firmware_bridge.capabilities import Capabilities, Origin
from firmware_bridge.messages import (
    BatteryChanged,
    Gesture,
    Gestured,
    MicrophoneChunk,
    Reading,
    Transcript,
    WornChanged,
)
from tools_cache.api.tool import Source, ToolDefinition

CAPS = Capabilities.of("mock:display", {"display": True}, origin=Origin.FIRMWARE, now=90.0)
READY = GlassesStatus(
    state="READY", ready=True, model="mock:display", firmware="1", capabilities=CAPS
)


def tool(name, source):
    return ToolDefinition(
        name=name, description="d", input_schema={"type": "object"}, source=source
    )


SNAPSHOT = Snapshot.of(
    "1.0.12345678",
    (
        Entry(tool("notes:add", Source.LOCAL), "Notes"),
        Entry(tool("glasses:say", Source.GLASSES), "Glasses", hidden="needs a speaker"),
        Entry(tool("com.x:y", Source.CLOUD), "X"),
        Entry(tool("files:read", Source.UPSTREAM), "Files"),
    ),
)


class Desk:
    def __init__(self):
        self.judged = []

    def snapshot(self):
        return SNAPSHOT

    def set_capabilities(self, record, *, stale):
        self.judged.append((record, stale))


class Uplink:
    def __init__(self):
        self.announced = []
        self.events = []
        self.news = asyncio.Event()

    async def announce(self, *, capabilities, glasses):
        self.announced.append((capabilities, glasses))
        self.news.set()

    async def tell_event(self, kind, data):
        self.events.append((kind, dict(data)))
        self.news.set()


class Glasses:
    def __init__(self):
        self.now = READY

    def status(self):
        return self.now


@asynccontextmanager
async def running_reporter():
    bus, glasses, uplink, service = Bus(), Glasses(), Uplink(), Desk()
    clock = Clock(boot=lambda: 100.0, wall=lambda: 1000.0)
    made = CapabilityReporter(
        bus=bus,
        glasses=glasses,
        uplink=uplink,
        registry=service,
        clock=clock,
        host={"speech": True},
    )
    running = asyncio.ensure_future(made.run())
    await reported(uplink, lambda: uplink.announced)
    try:
        yield bus, glasses, uplink, service
    finally:
        running.cancel()
        await asyncio.wait([running])


async def reported(uplink, condition):
    async with asyncio.timeout(20):
        while not condition():
            uplink.news.clear()
            await uplink.news.wait()


async def test_the_report_has_all_values_and_only_tools_of_this_edge():
    async with running_reporter() as (_, _, uplink, service):
        report, presence = uplink.announced[0]
        assert presence == "connected"
        assert report["capabilities"]["display"] == {
            "value": True,
            "origin": "firmware",
            "ageS": 10.0,
        }
        assert [t["name"] for t in report["tools"]] == ["notes:add"]
        assert report["registry"] == {"version": "1.0.12345678"}
        assert service.judged == [(CAPS, False)]


async def test_presence_follows_the_glasses_and_their_last_capabilities_go_stale():
    async with running_reporter() as (bus, glasses, uplink, service):
        glasses.now = replace(READY, ready=False, state="RESTING", stale=True)
        bus.publish(GlassesLost("gone"))
        bus.publish(CapabilitiesLearned("mock:display", stale=True))
        await reported(uplink, lambda: uplink.announced[-1][1] == "away")
        assert uplink.announced[-1][0]["stale"] is True
        assert service.judged[-1] == (CAPS, True)


@pytest.mark.parametrize(
    ("status", "presence"),
    [
        (READY, "connected"),
        (replace(READY, worn=False), "asleep"),
        (replace(READY, ready=False), "away"),
        (GlassesStatus(), "none"),
    ],
)
async def test_presence_has_four_values(status, presence):
    async with running_reporter() as (bus, glasses, uplink, _):
        glasses.now = status
        bus.publish(GlassesReady("m", "1", "a", 247, "tcp"))
        await reported(uplink, lambda: uplink.announced[-1][1] == presence)


async def test_glasses_that_were_never_seen_have_no_report():
    async with running_reporter() as (bus, glasses, uplink, _):
        glasses.now = GlassesStatus()
        bus.publish(GlassesLost("x"))
        await reported(uplink, lambda: uplink.announced[-1] == (None, "none"))


async def test_many_changes_at_once_make_one_report():
    async with running_reporter() as (bus, _, uplink, _):
        before = len(uplink.announced)
        for _ in range(20):
            bus.publish(CapabilitiesLearned("mock:display", stale=False))
        await reported(uplink, lambda: len(uplink.announced) > before)
        assert len(uplink.announced) <= before + 2


@pytest.mark.parametrize(
    ("event", "told_as"),
    [
        (Gestured(Gesture.DOUBLE_TAP), ("tap", {"gesture": "double_tap"})),
        (Gestured(Gesture.BUTTON_LONG), ("button", {"gesture": "button_long"})),
        (Gestured(Gesture.NOD), ("head", {"gesture": "nod"})),
        (BatteryChanged(40, charging=True), ("battery", {"level": 40, "charging": True})),
        (WornChanged(worn=False), ("worn", {"worn": False})),
        (Transcript("hi"), ("transcript", {"text": "hi", "final": True})),
        (
            Transcript("hi", True, 7.0, 8.256, 0.876, (Reading("hi", -1.0),), addressed=True),
            (
                "transcript",
                {
                    "text": "hi",
                    "final": True,
                    "confidence": 0.88,
                    "duration_s": 1.26,
                    "addressed": True,
                },
            ),
        ),
        (MicrophoneChunk(1, 0, (b"x",)), None),
    ],
)
def test_what_the_glasses_say_has_its_topic_and_sound_has_none(event, told_as):
    assert as_event(event) == told_as


def test_every_gesture_has_a_topic():
    assert all(as_event(Gestured(g)) is not None for g in Gesture)


async def test_events_are_sent_and_a_battery_renews_the_report():
    async with running_reporter() as (bus, glasses, uplink, _):
        glasses.now = replace(READY, battery=40)
        bus.publish(GlassesSaid(BatteryChanged(40)))
        await reported(uplink, lambda: uplink.events)
        assert uplink.events == [("battery", {"level": 40, "charging": False})]
        await reported(uplink, lambda: uplink.announced[-1][0]["battery"] == 40)


@pytest.mark.requirement("I4-link-quiet")
async def test_only_a_long_absence_of_the_glasses_is_reported(
    monkeypatch,
):
    monkeypatch.setattr("edge.cloud.reporter.QUIET_S", 60.0)
    async with running_reporter() as (bus, glasses, uplink, _):
        before = len(uplink.announced)
        glasses.now = replace(READY, ready=False, stale=True, gone_at=100.0)
        bus.publish(GlassesLost("gone"))
        await asyncio.sleep(
            0.1
        )  # longer than a report needs to settle, shorter than a drop that is reported
        assert len(uplink.announced) == before
        glasses.now = READY
        bus.publish(GlassesReady("m", "1", "a", 247, "tcp"))
        await reported(uplink, lambda: len(uplink.announced) > before)
        assert {presence for _, presence in uplink.announced} == {"connected"}
        monkeypatch.setattr("edge.cloud.reporter.QUIET_S", 0.05)
        glasses.now = replace(READY, ready=False, stale=True, gone_at=100.0)
        bus.publish(GlassesLost("gone"))
        await reported(uplink, lambda: uplink.announced[-1][1] == "away")


async def test_a_change_of_offered_tools_renews_the_report():
    async with running_reporter() as (bus, _, uplink, _):
        before = len(uplink.announced)
        bus.publish(ConfigurationReloaded(("policy.cloud_may",)))
        await reported(uplink, lambda: len(uplink.announced) > before)
