"""The link manager: seeks for ever, knows what the glasses can do, and says truthfully when they are away.

Below it: the real driver, the real codec in both roles, mock glasses joined in memory.
"""

import asyncio
import logging
from contextlib import asynccontextmanager

import pytest

from edge.bus import Bus
from edge.clock import Clock
from edge.core.backoff import Backoff
from edge.events import as_json
from edge.link_manager import NOTE, Found, LinkManager
from edge.ports import GlassesAway
from firmware_bridge import catalog
from firmware_bridge.errors import CommandRefused, LinkLost, LostReason, RadioError, RadioReason
from firmware_bridge.messages import AudioChunk, Gesture, ShowPage, TextLine, UpdatePage
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.peripheral import serve
from firmware_bridge.sim.time import SimTime
from firmware_bridge.transports.loopback import loopback_pair

MODEL = catalog.find("mock:display")
PAGE = ShowPage("s", lines=(TextLine(0, "hello"),))


class MemoryNotes:
    """`NotesPort` for a test: what is put is there."""

    def __init__(self):
        self.kept = {}

    async def get(self, name):
        return self.kept.get(name)

    async def put(self, name, value):
        self.kept[name] = value


class Near:
    """The glasses' end of a loopback, in the shape the mock wants."""

    def __init__(self, transport):
        self._transport = transport
        self.peer = "central"

    @property
    def max_packet(self):
        return self._transport.max_packet

    def packets(self):
        return self._transport.packets()

    async def notify(self, packet):
        await self._transport.write(packet)


class MemoryFinder:
    """Finds mock glasses without air. `failures` come first, one a seek."""

    def __init__(self, folder, failures=()):
        self.glasses = MockGlasses(MODEL, out_dir=folder, time=SimTime(50), tell=lambda event: None)
        self.failures = list(failures)
        self.seeks = 0
        self.ends = []
        self.closed = False
        self.wakes = []
        self.steps = []
        self.stir = asyncio.Event()
        self._serving = []

    async def seek(self):
        self.seeks += 1
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop(0)
        return MODEL

    async def connect(self, sighting):
        ours, theirs = loopback_pair(max_packet=244)
        self.ends.append(theirs)
        self._serving.append(asyncio.ensure_future(serve(self.glasses, Near(theirs))))
        return Found(ours, sighting)

    async def stirred(self, wake):
        self.wakes.append(wake)
        await self.stir.wait()

    async def fresh(self):
        self.steps.append("fresh")

    async def reset(self):
        self.steps.append("reset")

    async def walk_away(self):
        await self.ends[-1].close()

    async def close(self):
        self.closed = True
        for serving in self._serving:
            serving.cancel()
        await asyncio.wait(self._serving or [asyncio.ensure_future(asyncio.sleep(0))])


class Story:
    def __init__(self, folder, failures=(), notes=None, configured=None, clock=None):
        self.finder = MemoryFinder(folder, failures)
        self.bus = Bus()
        self.notes = notes or MemoryNotes()
        self.rests = []
        self.manager = LinkManager(
            self.finder, bus=self.bus, clock=clock or Clock(), notes=self.notes, configured=configured,
            backoff=Backoff(lambda: 1.0, first_s=0.5, most_s=4.0, stable_s=10.0), rest=self._rest,
        )  # fmt: skip

    async def _rest(self, seconds):
        self.rests.append(seconds)
        await asyncio.sleep(0)

    @asynccontextmanager
    async def running(self):
        with self.bus.listen() as self.heard:
            task = asyncio.ensure_future(self.manager.run())
            try:
                yield self
            finally:
                task.cancel()
                await asyncio.wait([task], timeout=5)
                assert task.cancelled()

    async def until(self, kind, **fields):
        async with asyncio.timeout(5):
            async for happening in self.heard:
                told = as_json(happening)
                if told["event"] == kind and fields.items() <= told.items():
                    return told


async def test_glasses_become_ready_with_merged_capabilities_of_known_origin(tmp_path):
    async with Story(tmp_path, configured={"display.lines": 4}).running() as story:
        ready = await story.until("glasses.ready")
        assert ready["model"] == "mock:display"
        assert ready["mtu"] == 247
        status = story.manager.status()
        assert status.ready
        assert not status.stale
        report = status.capabilities.report(Clock().boot())
        assert report["display.lines"]["value"] == 4
        assert report["display.lines"]["origin"] == "configured"
        assert report["display.width"]["origin"] == "firmware"


async def test_commands_reach_the_lens_and_refusals_come_back_as_what_they_are(tmp_path):
    async with Story(tmp_path).running() as story:
        await story.until("glasses.ready")
        done = await story.manager.request(PAGE)
        assert done.drawn > 0
        assert story.finder.glasses.lens.text() == ["hello"]
        with pytest.raises(CommandRefused) as refused:
            await story.manager.request(UpdatePage("another", lines=(TextLine(0, "x"),)))
        assert refused.value.code == "no_scene"


async def test_without_a_connection_every_command_says_that_the_glasses_are_away(tmp_path):
    manager = Story(tmp_path).manager
    with pytest.raises(GlassesAway):
        await manager.request(PAGE)
    with pytest.raises(GlassesAway):
        await manager.post(AudioChunk(1, 0, (b"x",)))


async def test_a_lost_link_is_told_capabilities_turn_stale_and_it_comes_back(tmp_path):
    async with Story(tmp_path).running() as story:
        await story.until("glasses.ready")
        await story.finder.walk_away()
        await story.until("glasses.lost")
        await story.until("capabilities.changed", stale=True)
        assert story.manager.status().stale or story.manager.status().ready
        await story.until("glasses.ready")
        assert story.manager.status().stale is False
        assert story.finder.seeks == 2


async def test_a_request_in_flight_when_the_link_dies_ends_as_away(tmp_path):
    async with Story(tmp_path).running() as story:
        await story.until("glasses.ready")
        for serving in story.finder._serving:
            serving.cancel()  # the glasses fall silent, so the request stays open
        asking = asyncio.ensure_future(story.manager.request(PAGE, timeout_s=5))
        await asyncio.sleep(0)
        await story.finder.walk_away()
        with pytest.raises(GlassesAway):
            await asyncio.wait_for(asking, 5)


@pytest.mark.requirement("M-never-gives-up")
async def test_it_never_gives_up_rests_longer_each_time_and_warns_once(tmp_path, caplog):
    gone = [RadioError(RadioReason.NOT_FOUND, "no glasses", "switch them on") for _ in range(6)]
    with caplog.at_level(logging.DEBUG, "edge.link_manager"):
        async with Story(tmp_path, failures=gone).running() as story:
            await story.until("link.state", state="RESTING")
            assert story.manager.status().hint == "switch them on"
            await story.until("glasses.ready")
    assert story.rests == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]
    warnings = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert story.manager.status().hint == ""


@pytest.mark.requirement("M-caps-live")
async def test_capabilities_that_change_at_run_time_are_learned(tmp_path):
    async with Story(tmp_path).running() as story:
        await story.until("glasses.ready")
        story.finder.glasses.set_capabilities({"camera": True})
        await story.until("capabilities.changed", stale=False)
        await story.until("glasses.event")
        assert story.manager.status().capabilities.get("camera") is True


async def test_what_the_wearer_does_is_on_the_bus(tmp_path):
    async with Story(tmp_path).running() as story:
        await story.until("glasses.ready")
        story.finder.glasses.gesture(Gesture.TAP)
        said = await story.until("glasses.event")
        assert said["said"] == {"type": "Gestured", "gesture": "tap"}


async def test_after_a_restart_the_last_known_glasses_are_known_stale_and_older(tmp_path):
    notes = MemoryNotes()
    async with Story(tmp_path, notes=notes).running() as story:
        await story.until("glasses.ready")
    notes.kept[NOTE]["wall"] -= 100  # they were last seen 100 s ago
    never = [RadioError(RadioReason.NOT_FOUND, "no glasses")] * 500
    async with Story(tmp_path, notes=notes, failures=never).running() as later:
        await later.until("capabilities.changed", stale=True)
        status = later.manager.status()
        assert status.stale
        assert status.model == "mock:display"
        assert status.capabilities.report(Clock().boot())["display"]["ageS"] >= 100


@pytest.mark.parametrize("damage", [{"model": 1}, {"model": "m", "report": {"display": {}}, "wall": 0}, "text", None])
async def test_a_damaged_note_is_left_aside(tmp_path, damage):
    notes = MemoryNotes()
    notes.kept[NOTE] = damage
    async with Story(tmp_path, notes=notes).running() as story:
        await story.until("glasses.ready")


async def test_stopping_closes_the_connection_and_the_radio(tmp_path):
    async with Story(tmp_path).running() as story:
        await story.until("glasses.ready")
    assert story.finder.closed
    assert story.manager.status().state == "OFF"
    assert not story.manager.status().ready


async def test_a_dying_connection_is_closed_whole_and_its_own_reason_is_kept(tmp_path):
    async with Story(tmp_path).running() as story:
        await story.until("glasses.ready")
        transport, closing = story.manager._driver._transport, []
        close = transport.close

        async def slow_close():
            if closing:  # like BLE's: whoever asks again finds nothing left to do
                return
            closing.append("begun")
            await asyncio.sleep(0.05)
            closing.append("done")
            await close()

        async def refuse(_packet):
            raise LinkLost(LostReason.WRITE_FAILED, "the radio is stuck")

        transport.close, transport.write = slow_close, refuse
        with pytest.raises(GlassesAway):
            await story.manager.request(PAGE)
        lost = await story.until("glasses.lost")
        assert closing == ["begun", "done"]
        assert "the radio is stuck" in lost["reason"]


async def test_a_full_disk_costs_the_memory_of_the_glasses_not_the_glasses(tmp_path):
    class Full(MemoryNotes):
        async def put(self, name, value):
            raise OSError("no space left on device")

    async with Story(tmp_path, notes=Full()).running() as story:
        await story.until("glasses.ready")
        assert (await story.manager.request(PAGE)).drawn > 0
