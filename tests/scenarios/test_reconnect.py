"""Story: the glasses come and go; whatever breaks, they are found again and the scene is on the
lens again, once.
"""

import asyncio
import logging

import pytest

from edge.cloud import reporter
from firmware_bridge.sim.faults import parse_fault
from tests.scenarios.network import Cable
from tests.scenarios.world import until, whole_world, world

pytestmark = pytest.mark.asyncio(loop_scope="session")

LONG = " ".join(f"Sentence number {n} says something that is worth reading." for n in range(1, 25))


async def reading_page_two(place):
    """A long text is on the lens and the wearer has turned one page; gives its scene."""
    shown = await place.call("glasses:show_text", {"text": LONG})
    assert shown.meta["delivery"] == "shown"
    scene = shown.meta["callId"]
    place.mark()
    place.tap()
    await place.heard("lens.acknowledged", scene=scene, page=2)
    while (await place.daemon.notes.get("stage.scene"))[
        "page"
    ] != 2:  # on disk, before anything breaks
        await asyncio.sleep(0)
    return scene


def on_lens(place):
    lens = place.mock.glasses.lens
    return lens.scene, lens.page


async def drop(place):
    """The wearer walks out of range for a moment; what is on the lens now is thrown away to see
    it come back.
    """
    await until(
        lambda: place.mock.glasses.connected and place.daemon.status()["link"]["state"] == "READY",
        "both sides are there",
    )
    place.mark()
    place.mock.glasses.lens.clear()
    assert place.mock.mount.drop()
    await place.heard("glasses.lost")
    place.mark()  # a `ready` from before the drop may have been told late
    await place.heard("glasses.ready")


@pytest.mark.requirement("K3-scene")
async def test_after_a_dropped_link_the_page_that_was_read_is_on_the_lens_again_without_a_new_call(
    tmp_path,
):
    async with world(tmp_path, "mock:display") as place:
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()
        scene = await reading_page_two(place)
        words, before = place.lens(), len(place.happened)
        await drop(place)
        await until(lambda: on_lens(place) == (scene, 2), "the same page")
        assert place.lens() == words
        assert not [
            h
            for h in place.happened[before:]
            if h["event"] in ("call.received", "call.answered", "delivery")
        ]
        place.tap()
        await until(lambda: on_lens(place) == (scene, 3), "reading goes on")


@pytest.mark.requirement("K3-scene")
async def test_after_a_dropped_link_what_was_spoken_is_not_spoken_again(tmp_path, cloud):
    async with whole_world(tmp_path, "mock:full", cloud=cloud) as place:
        answer = await place.call("notes:add", {"text": "milk, and bread for the week"})
        assert answer.meta["delivery"] == "spoken"
        heard = len(place.spoken())
        assert heard == 1
        await drop(place)
        said = await place.call("glasses:say", {"text": "and now something else"})
        assert said.meta["delivery"] == "spoken"
        assert len(place.spoken()) == heard + 1


async def test_speech_that_a_dropped_link_cut_off_is_not_begun_again_and_the_truth_is_told(
    tmp_path,
):
    async with world(tmp_path, "mock:audio") as place:
        await place.switch_glasses_on(speed=1.0)
        await place.start_daemon()
        await place.ready()
        place.start_call("glasses:say", {"text": LONG[:600]})
        await until(lambda: place.mock.glasses.speaker.playing, "the speaker plays")
        await drop(place)
        answer = await place.answer()
        assert answer.meta["delivery"] == {"state": "dropped", "reason": "glasses away"}
        again = await place.call("glasses:say", {"text": "Hello again."})
        assert again.meta["delivery"] == "spoken"
        assert [s["flushed"] for s in place.spoken()] == [True, False]


async def test_a_new_daemon_on_the_same_state_puts_the_scene_back_at_its_page(tmp_path):
    async with world(tmp_path, "mock:display") as place:
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()
        scene = await reading_page_two(place)
        words = place.lens()
        await place.stop_daemon()
        await until(lambda: not place.mock.glasses.connected, "the link was closed")
        place.mock.glasses.lens.clear()
        await place.start_daemon()
        await until(lambda: on_lens(place) == (scene, 2), "the same page")
        assert place.lens() == words
        place.tap()
        await until(lambda: on_lens(place) == (scene, 3), "reading goes on")


async def test_glasses_switched_off_and_on_are_found_again_and_show_what_they_showed(tmp_path):
    async with world(tmp_path, "mock:display") as place:
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()
        scene = await reading_page_two(place)
        await place.switch_glasses_off()
        await place.heard("glasses.lost")
        away = await place.call("glasses:clear")
        assert away.error.code == "SESSION_INACTIVE"
        assert away.meta["delivery"] == {"state": "dropped", "reason": "glasses away"}
        await place.switch_glasses_on()
        await place.heard("glasses.ready")
        await until(lambda: on_lens(place) == (scene, 2), "the same page on a lens that was dark")


async def test_a_result_that_comes_while_the_glasses_are_away_is_shown_when_they_are_back(
    tmp_path, cloud
):
    async with whole_world(tmp_path, cloud=cloud) as place, place.onlooker() as cloud_side:
        await place.switch_glasses_off()
        await place.heard("glasses.lost")
        place.start_call("com.example.calc:evaluate", {"expression": "12*12"})
        await cloud_side.hears("the result", lambda s: s.tail == "result" and s.kind == "result")
        await place.switch_glasses_on()
        await place.lens_shows("144")
        answer = await place.answer()
        assert answer.meta["delivery"] == "shown"
        assert [page["scene"] for page in place.drawn()].count(answer.meta["callId"]) == 1


@pytest.mark.requirement("M-never-gives-up")
async def test_ten_drops_in_a_row_end_ready_and_working(tmp_path):
    async with world(tmp_path, "mock:display") as place:
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()
        for _ in range(10):
            await drop(place)
        assert place.daemon.status()["link"]["state"] == "READY"
        assert (await place.call("glasses:show_text", {"text": "still standing"})).meta[
            "delivery"
        ] == "shown"
        assert place.daemon.status()["services"] == [
            {**service, "state": "running", "error": ""}
            for service in place.daemon.status()["services"]
        ]


async def test_a_cut_hci_stream_is_a_lost_link_like_any_other(tmp_path):
    async with world(tmp_path, "mock:display") as place:
        mock = await place.switch_glasses_on(radio="tcp:127.0.0.1:0")
        cable = Cable(int(mock.mount.radio.rpartition(":")[2]))
        await cable.plug_in()
        try:
            await place.start_daemon(glasses={"radio": f"tcp:127.0.0.1:{cable.port}"})
            await place.ready()
            scene = await reading_page_two(place)
            for _ in range(2):
                await until(lambda: mock.glasses.connected, "the mock noticed its central")
                mock.glasses.lens.clear()
                place.mark()
                await cable.cut()
                await place.heard("glasses.lost")
                await place.heard("glasses.ready")
                await until(lambda: on_lens(place) == (scene, 2), "the same page")
            await cable.pull_out()
            await place.heard("glasses.lost")
            place.mark()
            await cable.plug_in()
            await place.heard("glasses.ready")
        finally:
            await place.stop_daemon()
            await cable.pull_out()


# ------------------------------------------------------------------ without a flash


@pytest.mark.requirement("I4-link-restored")
async def test_after_a_short_drop_the_page_is_drawn_once_and_never_dark_between(tmp_path):
    async with world(tmp_path, "mock:display") as place:
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()
        scene = await reading_page_two(place)
        for _ in range(3):
            await until(lambda: place.mock.glasses.connected, "the mock noticed its central")
            seen = len(place.shown)
            place.mark()
            assert place.mock.mount.drop()
            await place.heard("glasses.ready")
            await place.heard("lens.acknowledged", scene=scene, page=2)
            pages = [(s["scene"], s["page"]) for s in place.shown[seen:] if s["event"] == "lens"]
            assert pages == [(scene, 2)]


@pytest.mark.requirement("I4-link-restored")
async def test_a_dark_lens_stays_dark_over_a_drop(tmp_path):
    async with world(tmp_path, "mock:display") as place:
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()
        seen = len(place.shown)
        await drop(place)
        await until(lambda: place.daemon.link.status().ready, "ready")
        assert (await place.call("glasses:show_text", {"text": "first"})).meta[
            "delivery"
        ] == "shown"
        assert [s["scene"] != "" for s in place.shown[seen:] if s["event"] == "lens"][-1:] == [True]
        assert sum(1 for s in place.shown[seen:] if s["event"] == "lens" and s["scene"]) == 1


@pytest.mark.requirement("I4-link-quiet")
async def test_a_short_drop_costs_one_warning_and_nobody_is_told_that_the_glasses_are_away(
    tmp_path, cloud, caplog, monkeypatch
):
    assert reporter.QUIET_S == 5.0
    monkeypatch.setattr(
        reporter, "QUIET_S", 60.0
    )  # so that on a busy machine, too, the drop is a short one
    async with whole_world(tmp_path, cloud=cloud) as place, place.onlooker() as cloud_side:
        await cloud_side.hears_on("presence", state="online", glasses="connected")
        heard, drawn = len(cloud_side.heard), len(place.drawn())
        with caplog.at_level(logging.WARNING):
            caplog.clear()
            await drop(place)
            await cloud_side.hears_on("capabilities", since=heard, connected=True)
        told = [s.body["glasses"] for s in cloud_side.heard[heard:] if s.tail == "presence"]
        assert set(told) <= {"connected"}
        assert len(place.drawn()) == drawn, "no word of ours on the lens"
        assert [r.name for r in caplog.records if r.levelno >= logging.WARNING] == [
            "edge.link.manager"
        ]


async def test_glasses_that_say_nothing_any_more_are_noticed_by_their_missing_heartbeats(tmp_path):
    async with world(tmp_path, "mock:display") as place:
        await place.switch_glasses_on()
        await place.start_daemon()
        place.daemon.link._heartbeat_s = 1.0
        await place.ready()
        place.daemon.link._heartbeat_s = (
            60.0  # of the next connection: a busy machine's glasses are silent for seconds too
        )
        assert await place.mock.injector.inject(parse_fault("lose-acks:1"))
        lost = await place.heard("glasses.lost")
        assert lost["reason"].startswith("silent")
        assert await place.mock.injector.inject(parse_fault("lose-acks:0"))
        await place.heard("glasses.ready")
        assert (await place.call("glasses:show_text", {"text": "back"})).meta["delivery"] == "shown"
