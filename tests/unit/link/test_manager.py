"""The link manager: seeks for ever, knows what the glasses can do, and says truthfully when they
are away.

Below it: the real driver, the real codec in both roles, mock glasses joined in memory.
"""

import asyncio
import logging
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from edge.core.backoff import Backoff
from edge.core.recovery import DOUBT_S, LeftToSystemd, Wake
from edge.link.glasses_state import NOTE, GlassesState
from edge.link.manager import FoundGlasses, LinkManager
from edge.link.restore import MOST_GLASSES, RestoredSettings
from edge.ports import GlassesAway, SideStatus
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.deadlines import Deadlines
from edge.runtime.events import as_json
from firmware_bridge import catalog
from firmware_bridge.errors import CommandRefused, LinkLost, LostReason, RadioError, RadioReason
from firmware_bridge.messages import (
    AudioChunk,
    AudioFormat,
    BatteryChanged,
    CaseChanged,
    Gesture,
    Hiding,
    HidingChanged,
    Ping,
    SetBrightness,
    SetClock,
    SetSilentMode,
    ShowPage,
    SideChanged,
    StartMicrophone,
    StopMicrophone,
    TextLine,
    UpdatePage,
    VoiceNoteFetched,
)
from firmware_bridge.own_commands import Restart, SetHeadUpAction
from firmware_bridge.sides import Side
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.peripheral import serve
from firmware_bridge.sim.time import SimTime
from firmware_bridge.transports.loopback import loopback_pair

MODEL = catalog.find("mock:display")
PAGE = ShowPage("s", lines=(TextLine(0, "hello"),))


class MemoryNotes:
    """`Notes` for a test: what is put is there."""

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
        return FoundGlasses(ours, sighting)

    async def wait_to_wake(self, wake):
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
    def __init__(self, folder, failures=(), notes=None, configured=None, clock=None, **more):
        self.finder = MemoryFinder(folder, failures)
        self.bus = Bus()
        self.notes = notes or MemoryNotes()
        self.rests = []
        clock = clock or Clock()
        self.manager = LinkManager(
            self.finder,
            GlassesState(self.bus, clock, self.notes, configured or {}),
            bus=self.bus,
            clock=clock,
            backoff=Backoff(lambda: 1.0, first_s=0.5, most_s=4.0),
            rest=self._rest,
            **more,
        )

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
                await asyncio.wait([task], timeout=40)
                assert task.cancelled()

    async def until(self, kind, **fields):
        async with asyncio.timeout(40):
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


@pytest.mark.parametrize("has", [True, False])
async def test_glasses_with_a_clock_get_the_wearers_time_at_each_connection(tmp_path, has):
    times = iter((SetClock(1_800_000_000), SetClock(1_800_000_050), None))
    story, sent = Story(tmp_path, wearer_clock=lambda: next(times)), []
    story.finder.glasses.capabilities["clock"] = has

    def codec(max_packet):
        made = MODEL.codec(max_packet)
        send = made.send

        def note(message, now, **more):
            if isinstance(message, SetClock):
                sent.append(message)
                message = Ping()  # this profile has no clock; any command is answered
            return send(message, now, **more)

        made.send = note
        return made

    async def seek():
        return replace(MODEL, codec=codec)

    story.finder.seek = seek
    async with story.running():
        for _ in range(3):
            await story.until("glasses.ready")
            await story.finder.walk_away()
    assert sent == ([SetClock(1_800_000_000), SetClock(1_800_000_050)] if has else [])


async def test_glasses_that_refuse_the_time_become_ready_all_the_same(tmp_path):
    story = Story(tmp_path, wearer_clock=lambda: SetClock(1))
    story.finder.glasses.capabilities["clock"] = True
    async with story.running():
        await story.until("glasses.ready")


async def test_the_greeting_may_take_as_long_as_the_model_says(tmp_path):
    story = Story(tmp_path)

    async def silent(_sighting):
        ours, theirs = loopback_pair(max_packet=244)
        story.finder.ends.append(theirs)
        return FoundGlasses(ours, replace(MODEL, hello_s=0.2))

    story.finder.connect = silent
    async with story.running():
        async with asyncio.timeout(4):
            told = await story.until("link.state", state="RESTING")
        assert "Hello: no answer in 0.2 s" in told["reason"]


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


async def test_a_lost_link_makes_capabilities_stale_and_comes_back(tmp_path):
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
            await asyncio.wait_for(asking, 40)


@pytest.mark.requirement("M-never-gives-up")
async def test_it_never_gives_up_rests_longer_each_time_and_warns_once(tmp_path, caplog):
    gone = [RadioError(RadioReason.NOT_FOUND, "no glasses", "switch them on") for _ in range(6)]
    with caplog.at_level(logging.DEBUG, "edge.link.manager"):
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
        assert said["said"] == {"type": "Gestured", "gesture": "tap", "side": None}


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


@pytest.mark.parametrize(
    "damage", [{"model": 1}, {"model": "m", "report": {"display": {}}, "wall": 0}, "text", None]
)
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


# ------------------------------------------------------------------ the ladder, carried out


def failing(reason, times):
    return [RadioError(reason, "as it is", "do this") for _ in range(times)]


async def test_the_steps_of_the_ladder_are_carried_out_in_order(tmp_path):
    async with Story(tmp_path, failures=failing(RadioReason.BUSY, 5)).running() as story:
        await story.until("glasses.ready")
    assert story.finder.steps == ["fresh", "fresh", "reset", "fresh"]


async def test_a_cure_that_hangs_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr("edge.link.manager.CURE_S", 0.02)
    story = Story(tmp_path, failures=failing(RadioReason.STALE_CACHE, 1))
    story.finder.fresh = asyncio.Event().wait
    async with story.running():
        await story.until("glasses.ready")


@pytest.mark.requirement("I4-link-named")
async def test_status_names_issue_step_and_hint_until_the_link_is_up(tmp_path):
    async with Story(tmp_path, failures=failing(RadioReason.BUSY, 2)).running() as story:
        await story.until("link.state", state="RESTING")
        status = story.manager.status()
        assert (status.issue, status.step, status.hint) == ("busy", "reconnect", "do this")
        await story.until("glasses.ready")
        status = story.manager.status()
        assert (status.issue, status.step, status.hint) == ("", "", "")


@pytest.mark.requirement("I4-link-asks")
async def test_a_refusal_stops_the_attempts_until_resume(tmp_path):
    async with Story(tmp_path, failures=failing(RadioReason.BOND_LOST, 1)).running() as story:
        await story.until("link.state", state="RESTING")
        for _ in range(20):
            await asyncio.sleep(0)
        assert story.manager.status().step == "ask"
        assert (story.rests, story.finder.seeks, story.finder.wakes) == ([], 1, [])
        story.manager.resume()
        await story.until("glasses.ready")


@pytest.mark.requirement("I4-link-asks")
async def test_the_log_warns_again_when_a_person_is_needed(tmp_path, caplog):
    gone = (
        failing(RadioReason.NOT_FOUND, 2)
        + [RadioError(RadioReason.BOND_LOST, "no key", "pair again")] * 2
    )
    with caplog.at_level(logging.WARNING, "edge.link.manager"):
        async with Story(tmp_path, failures=gone).running() as story:
            for _ in range(2):
                async with asyncio.timeout(40):
                    while story.manager.status().step != "ask":
                        await asyncio.sleep(0)
                attempts = story.manager.status().attempts
                story.manager.resume()
                async with asyncio.timeout(40):
                    while story.manager.status().attempts == attempts:
                        await asyncio.sleep(0)
    assert len(caplog.records) == 2
    assert caplog.records[1].getMessage().endswith("; pair again")


@pytest.mark.requirement("I4-link-asks")
async def test_a_pairing_resumes_a_link_that_asked_for_one(tmp_path):
    async with Story(tmp_path, failures=failing(RadioReason.NOT_PAIRED, 1)).running() as story:
        await story.until("link.state", state="RESTING")
        async with story.manager.paused("pairing"):
            assert story.finder.seeks == 1
        await story.until("glasses.ready")


async def test_what_nothing_helped_is_left_to_systemd_and_only_to_systemd(tmp_path):
    story = Story(tmp_path, failures=failing(RadioReason.OTHER, 18))
    story.manager._watched = True
    with pytest.raises(LeftToSystemd, match=r"as it is \(other × 18, nothing helped\)"):
        async with asyncio.timeout(40):
            await story.manager.run()
    assert story.finder.closed
    assert story.manager.status().state == "OFF"
    async with Story(tmp_path, failures=failing(RadioReason.OTHER, 40)).running() as alone:
        await alone.until("glasses.ready")


async def test_a_rest_ends_early_when_the_glasses_are_heard(tmp_path):
    story = Story(tmp_path, failures=[RadioError(RadioReason.NOT_FOUND, "no glasses")])
    story.manager._rest_for = lambda _seconds: asyncio.Event().wait()
    async with story.running():
        await story.until("link.state", state="RESTING")
        await until(lambda: story.finder.wakes)
        assert story.finder.wakes == [Wake.ADVERT]
        story.finder.stir.set()
        await story.until("glasses.ready")


async def test_a_rest_without_ears_lasts_as_long_as_it_should(tmp_path):
    story = Story(tmp_path, failures=[RadioError(RadioReason.NOT_FOUND, "no glasses")])

    async def deaf(_wake):
        raise RadioError(RadioReason.BUSY, "cannot listen")

    resting = asyncio.Event()
    story.finder.wait_to_wake, story.manager._rest_for = deaf, lambda _seconds: resting.wait()
    async with story.running():
        await story.until("link.state", state="RESTING")
        await asyncio.sleep(0.05)
        assert story.manager.status().state == "RESTING"
        resting.set()
        await story.until("glasses.ready")


async def test_a_rest_grows_with_failures_of_its_own_kind_only(tmp_path):
    mixed = [*failing(RadioReason.NOT_FOUND, 4), *failing(RadioReason.LINK_FAILED, 2)]
    async with Story(tmp_path, failures=mixed).running() as story:
        await story.until("glasses.ready")
    assert story.rests == [0.5, 1.0, 2.0, 4.0, 0.5, 1.0]


async def test_a_radio_that_is_lost_while_we_listen_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr("edge.link.manager.RELISTEN_S", 0.01)
    story = Story(tmp_path, failures=[RadioError(RadioReason.NOT_FOUND, "no glasses")])
    story.manager._rest_for = lambda _seconds: asyncio.Event().wait()
    stirred, wakes = story.finder.wait_to_wake, []

    async def losing(wake):
        wakes.append(wake)
        if len(wakes) == 1:
            raise RadioError(RadioReason.NO_ADAPTER, "it is gone")
        await stirred(wake)

    story.finder.wait_to_wake = losing
    async with story.running():
        await until(lambda: len(wakes) == 2)
        assert wakes == [Wake.ADVERT, Wake.RADIO]
        story.finder.stir.set()
        await story.until("glasses.ready")


# ------------------------------------------------------------------ letting others have the radio


async def test_while_paused_the_link_is_closed_and_afterwards_sought_at_once(tmp_path, caplog):
    async with Story(tmp_path).running() as story:
        await story.until("glasses.ready")
        with caplog.at_level(logging.WARNING, "edge.link.manager"):
            async with asyncio.timeout(40), story.manager.paused("pairing"):
                status = story.manager.status()
                assert (status.state, status.ready) == ("RESTING", False)
                assert "pairing" in status.reason
                with pytest.raises(GlassesAway):
                    await story.manager.request(PAGE)
                for _ in range(20):
                    await asyncio.sleep(0)
                assert story.finder.seeks == 1
        assert (await story.until("glasses.lost"))["reason"] == "closed: pairing"
        await story.until("glasses.ready")
        assert not caplog.records, "nothing is wrong"
        assert story.rests == []


async def test_a_cure_that_takes_long_gives_way_to_who_wants_the_radio(tmp_path):
    story, at_it = Story(tmp_path, failing(RadioReason.STALE_CACHE, 1)), asyncio.Event()

    async def long_cure():
        at_it.set()
        await asyncio.Event().wait()

    story.finder.fresh = long_cure
    async with story.running(), asyncio.timeout(40):
        await at_it.wait()
        async with story.manager.paused("pairing"):
            assert story.manager.status().state == "RESTING"
        await story.until("glasses.ready")


async def test_two_who_pause_have_the_radio_one_after_the_other(tmp_path):
    order = []

    async def hold(story, name):
        async with story.manager.paused(name):
            order.append(f"{name} has it")
            await asyncio.sleep(0.01)
            order.append(f"{name} is done")

    async with Story(tmp_path).running() as story:
        await story.until("glasses.ready")
        async with asyncio.timeout(40):
            await asyncio.gather(hold(story, "a"), hold(story, "b"))
        await story.until("glasses.ready")
    assert order == ["a has it", "a is done", "b has it", "b is done"]


async def test_a_link_that_does_not_run_is_paused_already(tmp_path):
    async with asyncio.timeout(20), Story(tmp_path).manager.paused("pairing"):
        pass


async def test_an_error_during_a_pause_releases_the_radio(tmp_path):
    async with Story(tmp_path).running() as story:
        await story.until("glasses.ready")
        with pytest.raises(ZeroDivisionError):
            async with story.manager.paused("pairing"):
                1 / 0  # noqa: B018 - the point
        await story.until("glasses.lost")
        await story.until("glasses.ready")


# ------------------------------------------------------------------ as it was


@pytest.mark.requirement("I14-no-sound-in-events")
async def test_sound_has_one_taker_and_is_in_no_event(tmp_path):
    sound = asyncio.Queue()
    async with Story(tmp_path).running() as story:
        await story.until("glasses.ready")
        story.manager.listen_to(sound.put_nowait)
        await story.manager.request(StartMicrophone(4, AudioFormat.PCM16))
        async with asyncio.timeout(40):
            assert [(await sound.get()).index for _ in range(3)] == [0, 1, 2]
        await story.manager.request(StopMicrophone(4))
        story.finder.glasses.say("done")
        async with asyncio.timeout(40):
            async for happening in story.heard:
                report = as_json(happening)
                if report["event"] == "glasses.event":
                    break
    assert report["said"]["text"] == "done", "the sound before it was not published"


@pytest.mark.requirement("I14-microphone-stays-off")
async def test_an_open_microphone_is_not_opened_again_after_a_reconnect(tmp_path):
    async with Story(tmp_path).running() as story:
        await story.until("glasses.ready")
        await story.manager.request(StartMicrophone(3, AudioFormat.PCM16))
        heard = []
        take = story.finder.glasses.begin
        story.finder.glasses.begin = lambda session: (heard.append(spied(session)), take(session))
        await story.finder.walk_away()
        await story.until("glasses.ready")
    assert [[name for name in names if "Microphone" in name] for names in heard] == [[]]


def spied(session):
    """The commands of one visit, as they come."""
    names, handle = [], session._handle

    def note(incoming):
        names.append(type(incoming.message).__name__)
        handle(incoming)

    session._handle = note
    return names


async def test_a_setting_that_the_glasses_refuse_now_is_not_sent_again(tmp_path):
    story = Story(tmp_path)
    story.manager._settings.of("loopback:glasses")
    story.manager._settings.accept(SetBrightness(level=3))
    async with story.running():
        await story.until("glasses.ready")
        assert story.manager._settings.of("loopback:glasses") == ()


def test_the_newest_setting_of_each_kind_is_kept_per_glasses():
    settings = RestoredSettings()
    assert settings.of("a") == ()
    settings.accept(SetBrightness(level=3))
    settings.accept(PAGE)
    settings.accept(SetBrightness(level=5))
    settings.accept(SetSilentMode(on=True))
    settings.accept(SetHeadUpAction(dashboard=False))
    settings.accept(Restart())
    kept = SetBrightness(level=5), SetSilentMode(on=True), SetHeadUpAction(dashboard=False)
    assert settings.of("a") == kept
    assert settings.of("b") == ()
    assert settings.of("a") == ()


@pytest.mark.requirement("I11-consent-alone")
async def test_a_setting_that_was_cancelled_under_way_may_have_darkened_the_lens(tmp_path):
    class Silence:
        async def request(self, command, *, timeout_s):
            await asyncio.Event().wait()

    manager = Story(tmp_path).manager
    manager._ready_driver = Silence
    asked = asyncio.create_task(manager.request(SetSilentMode(on=True)))
    await asyncio.sleep(0)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert manager.status().unseen.startswith("perhaps ")


@pytest.mark.requirement("I11-consent-alone")
def test_glasses_left_dark_still_count_as_dark_later():
    settings = RestoredSettings()
    settings.of("a")
    settings.accept(SetSilentMode(on=True))
    settings.of("unsure")
    assert settings.unseen == ""
    settings.doubt(SetBrightness(level=0))
    settings.of("b")
    settings.report_hiding(HidingChanged(Hiding.DASHBOARD, hidden=True))
    assert settings.of("a") == ()
    assert settings.unseen == Hiding.SILENT.value
    settings.of("unsure")
    assert settings.unseen.startswith("perhaps ")
    assert settings.of("b") == ()
    assert (settings.unseen, settings.covered) == ("", "")
    settings.of("a")
    settings.report_hiding(HidingChanged(Hiding.SILENT, hidden=False))
    assert settings.unseen == "", "what the glasses say themselves is newer"
    settings.accept(SetSilentMode(on=True))
    for number in range(MOST_GLASSES + 1):
        settings.of(str(number))
    assert len(settings._others) == MOST_GLASSES
    settings.of("a")
    assert settings.unseen == "", "the glasses left longest ago are forgotten"


@pytest.mark.requirement("I11-consent-alone")
async def test_a_darkened_lens_counts_as_dark_after_a_reconnect(tmp_path):
    story = Story(tmp_path)
    story.manager._settings.of("loopback:glasses")
    story.manager._settings.accept(SetBrightness(level=0))
    async with story.running():
        await story.until(
            "glasses.ready"
        )  # these glasses refuse it now, so nobody knows how bright they are
        assert story.manager.status().unseen.startswith("perhaps ")
        story.manager._settings.accept(SetBrightness(level=0))
        await story.manager.request(PAGE)
        assert story.manager.status().unseen == "the brightness of the display is 0"
        story.manager._settings.of("other glasses")
        assert story.manager._settings.unseen == ""
        await story.finder.walk_away()
        await story.until("glasses.ready")
        assert story.manager.status().unseen == "the brightness of the display is 0"


@pytest.mark.requirement("I11-consent-alone")
@pytest.mark.parametrize(
    ("hiding", "showing"),
    [
        (SetSilentMode(on=True), SetSilentMode(on=False)),
        (SetBrightness(level=0), SetBrightness(level=3)),
    ],
)
def test_a_setting_without_an_answer_hides_the_lens_until_one_is_answered(hiding, showing):
    settings = RestoredSettings()
    settings.of("a")
    settings.doubt(showing)
    assert settings.unseen == ""
    settings.doubt(hiding)
    assert settings.unseen.startswith("perhaps ")
    assert settings.of("a") == (), "nobody asks for it again"
    settings.doubt(showing)
    assert settings.unseen.startswith("perhaps ")
    settings.accept(showing)
    assert settings.unseen == ""
    settings.accept(hiding)
    settings.doubt(showing)
    assert "perhaps" not in settings.unseen != ""
    settings.doubt(hiding)
    assert settings.of("b") == ()
    assert settings.unseen == ""


# ------------------------------------------------------------------ two sides


async def test_what_two_sides_say_of_themselves_is_in_the_status(tmp_path):
    async with Story(tmp_path).running() as story:
        await story.until("glasses.ready")
        driver = story.manager._driver
        driver._enqueue(BatteryChanged(80, side=Side.RIGHT))
        driver._enqueue(BatteryChanged(40, side=Side.LEFT))
        driver._enqueue(SideChanged(Side.LEFT, up=False, reason="out of range"))
        await until(
            lambda: story.manager.status().sides.get(Side.LEFT, SideStatus()).state == "lost"
        )
        status = story.manager.status()
        assert status.sides == {
            Side.LEFT: SideStatus("lost", 40, "out of range"),
            Side.RIGHT: SideStatus("up", 80),
        }
        assert status.battery == 40
        driver._enqueue(SideChanged(Side.LEFT, up=True))
        await until(lambda: story.manager.status().sides[Side.LEFT].state == "up")
        assert story.manager.status().ready
        await story.finder.walk_away()
        await story.until("glasses.lost")
        assert {how.state for how in story.manager.status().sides.values()} == {"lost"}


async def test_the_charge_of_the_case_is_in_the_status_and_a_spoken_note_in_no_event(tmp_path):
    async with Story(tmp_path).running() as story:
        await story.until("glasses.ready")
        driver = story.manager._driver
        driver._enqueue(CaseChanged(60))
        driver._enqueue(CaseChanged(charging=True))
        driver._enqueue(VoiceNoteFetched(1, b"private"))
        driver._enqueue(BatteryChanged(80))
        await until(lambda: story.manager.status().battery == 80)
        assert story.manager.status().case == 60
        types = []
        async with asyncio.timeout(40):
            async for happening in story.heard:
                types += [as_json(happening).get("said", {}).get("type")]
                if types[-1] == "BatteryChanged":
                    break
        assert [each for each in types if each] == ["CaseChanged", "CaseChanged", "BatteryChanged"]


async def test_while_the_radio_is_lent_the_glasses_are_not_ready(
    tmp_path,
):
    async with Story(tmp_path).running() as story:
        await story.until("glasses.ready")
        story.manager._driver._enqueue(SideChanged(Side.LEFT, up=True))
        await until(lambda: Side.LEFT in story.manager.status().sides)
        async with asyncio.timeout(40), story.manager.paused("pairing"):
            status = story.manager.status()
            assert (status.ready, status.stale, status.sides[Side.LEFT].state) == (
                False,
                True,
                "lost",
            )


async def test_a_resume_from_before_a_pause_does_not_end_it(tmp_path):
    async with Story(tmp_path).running() as story:
        await story.until("glasses.ready")
        story.manager.resume()
        async with asyncio.timeout(40), story.manager.paused("pairing"):
            seeks = story.finder.seeks
            for _ in range(50):
                await asyncio.sleep(0)
                assert (story.finder.seeks, story.manager.status().state) == (seeks, "RESTING")
        await story.until("glasses.ready")


async def until(condition):
    async with asyncio.timeout(40):
        while not condition():
            await asyncio.sleep(0)


async def test_a_doubtful_bond_is_tried_again_from_time_to_time(tmp_path):
    failures = [RadioError(RadioReason.BOND_DOUBT, "br-connection-canceled") for _ in range(5)]
    async with Story(tmp_path, failures).running() as story:
        await story.until("glasses.ready")
        assert story.rests[2:] == [DOUBT_S] * 3


# ------------------------------------------------------------------ what the watchdog is told


class Watched(Story):
    """Its time stands still but for `pass_()`."""

    def __init__(self, folder, failures=()):
        super().__init__(folder, failures)
        self.now = 0.0
        self.vigil = Deadlines(lambda: self.now)
        self.manager._within, self.manager._step_s = self.vigil.within, 120.0

    def late_after(self, seconds):
        self.now += seconds
        return self.vigil.overdue()


async def test_a_link_that_is_up_resting_or_lent_is_never_overdue(tmp_path):
    async with Watched(tmp_path).running() as story:
        await story.until("glasses.ready")
        assert story.late_after(1e6) == []
        async with asyncio.timeout(40), story.manager.paused("pairing"):
            assert story.late_after(1e6) == []
        await story.until("glasses.ready")
        story.finder.failures = [RadioError(RadioReason.NOT_PAIRED, "nobody")]
        await story.finder.walk_away()
        await until(lambda: story.manager.status().step == "ask")
        assert story.late_after(1e6) == []


@pytest.mark.parametrize("step", ["seeking", "connecting", "closing"])
async def test_an_overdue_step_of_the_link_is_named(tmp_path, monkeypatch, step):
    monkeypatch.setattr("firmware_bridge.driver.CLOSE_S", 0.01)
    story, reached, stuck = Watched(tmp_path), asyncio.Event(), asyncio.Event()

    async def hang(*_args):
        reached.set()
        await stuck.wait()
        raise RadioError(RadioReason.OTHER, "over")

    if step == "closing":
        connect = story.finder.connect

        async def connected(sighting):
            found = await connect(sighting)
            close = found.transport.close

            async def slow_close():
                try:
                    await stuck.wait()  # the driver gives it up, and then the link tries once more
                finally:
                    reached.set()
                await close()

            found.transport.close = slow_close
            return found

        story.finder.connect = connected
    else:
        setattr(story.finder, {"seeking": "seek", "connecting": "connect"}[step], hang)
    async with story.running():
        if step == "closing":
            await story.until("glasses.ready")
            await story.finder.walk_away()
        async with asyncio.timeout(40):
            await reached.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        assert story.late_after(119) == []
        assert [late.split(" (")[0] for late in story.late_after(2)] == [f"link: {step}"]
        stuck.set()
