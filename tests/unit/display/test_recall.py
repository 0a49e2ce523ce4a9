"""Going back: to the page before, to the last results, and to newer versions of one scene; and how
long a page with a duration stays. Time is virtual.
"""

import asyncio
from contextlib import asynccontextmanager

import pytest

from edge.core.results import TapOffer
from edge.display.prompts import TOO_SOON_S
from edge.display.recent_results import KEPT_S
from edge.display.sign_in import sign_in
from edge.ports import Question, Wait
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import GlassesSaid, GlassesUnpaired
from firmware_bridge.messages import Gesture, Gestured, UncertainTap
from firmware_bridge.sides import Side
from tests.unit.display.conftest import stage_on
from tests.unit.display.fakes import DISPLAY, FULL, FakeGlasses, Notebook
from tests.unit.firmware_bridge.virtual import virtual_time
from tools_cache.api.tool import Delivery, ToolResponse

pytestmark = pytest.mark.usefixtures("reading_time")
LEFT, RIGHT = Side.LEFT, Side.RIGHT
LONG = " ".join(f"word{n}" for n in range(200))


def show(words, **display):
    return ToolResponse(
        data=words, render={"display": {"layout": "text_wall", "text": words, **display}}
    )


@asynccontextmanager
async def lens(facts=DISPLAY, **more):
    """A stage whose clock is the loop's; `tap` waits until its effect is there."""
    loop = asyncio.get_running_loop()
    clock = Clock(boot=loop.time, wall=loop.time)
    glasses = more.pop("glasses", None) or FakeGlasses(Bus(), facts)
    async with stage_on(facts, clock=clock, glasses=glasses, **more) as (stage, _):
        yield stage, glasses


async def said(glasses, event):
    glasses.bus.publish(GlassesSaid(event))
    await asyncio.sleep(0.2)


async def tap(glasses, side=None, gesture=Gesture.TAP):
    await said(glasses, Gestured(gesture, side))


def on_lens(stage):
    return " ".join(stage.lens()["lines"])


async def some_results(stage, *, dark_for_s=1.0, names=("Bob", "Cem", "Dan")):
    """Results, each for two seconds; then the lens is dark."""
    for name in names:
        assert (await stage.present(name, show(name, durationMs=2000))).state is Delivery.SHOWN
        await asyncio.sleep(2.0)
    await asyncio.sleep(dark_for_s)
    assert stage.lens()["page"] == 0


# ------------------------------------------------------------------ the last results


@pytest.mark.requirement("I13-recall")
@virtual_time
async def test_taps_on_the_dark_lens_bring_back_the_last_three_results():
    async with lens() as (stage, glasses):
        await some_results(stage, names=("Ann", "Bob", "Cem", "Dan"))
        for name, where in (("Dan", "1 of 3"), ("Cem", "2 of 3"), ("Bob", "3 of 3")):
            await tap(glasses)
            assert name in on_lens(stage)
            assert where in on_lens(stage)
        await tap(glasses)
        assert stage.lens()["page"] == 0, "there is none before the third"
        await asyncio.sleep(1.0)
        await tap(glasses, LEFT)
        assert "Dan" in on_lens(stage), "either side, and again from the newest"
        await tap(glasses, gesture=Gesture.DOUBLE_TAP)
        assert stage.lens()["page"] == 0


@pytest.mark.requirement("I13-recall")
async def test_what_is_recalled_is_not_spoken_again():
    async with stage_on(FULL) as (stage, glasses):
        spoken = await stage.present("c1", ToolResponse(data="Ann"), wait=Wait.DELIVERY)
        assert spoken.state is Delivery.SPOKEN
        await tap(glasses, gesture=Gesture.DOUBLE_TAP)
        await glasses.until(lambda: stage.lens()["page"] == 0)
        await asyncio.sleep(TOO_SOON_S)
        await tap(glasses)
        await glasses.until(lambda: "Ann" in on_lens(stage))
        await asyncio.sleep(0.5)
        assert len(glasses.streams) == 1


@pytest.mark.requirement("I13-recall")
@virtual_time
async def test_what_was_shown_because_it_could_not_be_spoken_is_recalled_too():
    async with lens() as (stage, glasses):
        response = ToolResponse(data="x", render={"audio": {"text": "Turn left"}})
        assert (await stage.present("c1", response)).downgrade == "speech→display"
        await asyncio.sleep(10)
        assert stage.lens()["page"] == 0
        await tap(glasses)
        assert "Turn left" in on_lens(stage)


@pytest.mark.requirement("I13-recall")
@virtual_time
async def test_a_recalled_result_says_how_old_it_is_and_leaves_after_its_reading_time():
    async with lens() as (stage, glasses):
        await stage.present("c1", show("Ann", durationMs=3_000_000))
        await tap(glasses, gesture=Gesture.DOUBLE_TAP)
        await asyncio.sleep(300)
        await tap(glasses)
        assert "1 of 1 · 5 min ago" in on_lens(stage)
        await asyncio.sleep(4)
        assert stage.lens()["page"] == 0


@pytest.mark.requirement("I13-recall")
@virtual_time
async def test_taps_turn_the_pages_of_a_recalled_result_before_they_recall_the_one_before():
    async with lens() as (stage, glasses):
        await some_results(stage, names=("Ann",))
        await stage.present("long", show(LONG, durationMs=2000))
        await asyncio.sleep(4)
        seen = []
        for side in (RIGHT, RIGHT, LEFT, *[RIGHT] * 6):
            await tap(glasses, side)
            seen.append(stage.lens()["page"])
        assert seen == [1, 2, 1, 2, 3, 4, 5, 6, 7]
        await tap(glasses)
        assert "Ann" in on_lens(stage)


@pytest.mark.requirement("I13-recall")
@virtual_time
async def test_a_recalled_result_offers_nothing_any_more():
    async with lens() as (stage, glasses):
        await stage.present("c1", show("Noted: milk"), offer=TapOffer("tap to undo"))
        assert "tap to undo" in on_lens(stage)
        await asyncio.sleep(30)
        with glasses.bus.listen() as heard:
            await tap(glasses)
            assert "Noted: milk" in on_lens(stage)
            assert "undo" not in on_lens(stage)
            await asyncio.sleep(1)
            await tap(glasses)
            assert not [each for each in heard._queue if type(each).__name__ == "OfferTaken"]


@pytest.mark.requirement("I13-recall")
@virtual_time
async def test_old_results_are_not_recalled():
    async with lens() as (stage, glasses):
        await stage.present("c1", show("Ann", durationMs=1000))
        await asyncio.sleep(KEPT_S - 10)
        await stage.present("c2", show("Bob", durationMs=1000))
        await asyncio.sleep(20)
        await tap(glasses)
        assert "Bob" in on_lens(stage)
        assert "1 of 1" in on_lens(stage)
        await tap(glasses)
        await asyncio.sleep(KEPT_S)
        await tap(glasses)
        assert stage.lens()["page"] == 0


@pytest.mark.requirement("I13-recall")
@virtual_time
async def test_a_tap_meant_for_the_page_that_just_left_recalls_nothing():
    async with lens() as (stage, glasses):
        await some_results(stage, dark_for_s=0.3)
        await tap(glasses)
        assert stage.lens()["page"] == 0
        await asyncio.sleep(0.7)
        await tap(glasses)
        assert "Dan" in on_lens(stage)


@pytest.mark.requirement("I13-recall")
@virtual_time
async def test_only_results_of_calls_are_recalled():
    async with lens() as (stage, glasses):
        await stage.tell("Time's up: tea")
        await asyncio.sleep(20)
        await stage.tell("step 1", call_id="c0", brief=True)
        await asyncio.sleep(20)

        async def no_picture(_url):
            return ""

        code = await sign_in("Files", "https://x", typed="glassd servers", draw=no_picture)
        await stage.present("", code)
        await tap(glasses, gesture=Gesture.DOUBLE_TAP)
        await stage.present("c1", show("secret", durationMs=1000, recall=False))
        await asyncio.sleep(5)
        asked = asyncio.ensure_future(stage.ask(Question("q", "Pay?", timeout_s=5)))
        await asyncio.sleep(10)
        await asked
        await tap(glasses)
        assert stage.lens()["page"] == 0


@pytest.mark.requirement("I13-recall")
@virtual_time
async def test_a_new_result_takes_the_place_of_a_recalled_one_at_once():
    async with lens() as (stage, glasses):
        await some_results(stage)
        await tap(glasses)
        report = await stage.present("c9", show("Eve", priority="low", durationMs=1000))
        assert (report.state, on_lens(stage)) == (Delivery.SHOWN, "Eve")
        await asyncio.sleep(2)
        assert stage.lens()["page"] == 0, "the recalled one does not come back by itself"


@pytest.mark.requirement("I13-recall")
@virtual_time
async def test_nothing_is_recalled_after_a_restart():
    notes = Notebook()
    async with lens(notes=notes) as (stage, glasses):
        await some_results(stage)
        await tap(glasses)
        assert "Dan" in on_lens(stage)
    async with lens(notes=notes) as (stage, glasses):
        await asyncio.sleep(1)
        assert stage.lens()["page"] == 0
        await tap(glasses)
        assert stage.lens()["page"] == 0


@pytest.mark.requirement("I13-recall")
@virtual_time
async def test_nothing_is_recalled_after_the_glasses_were_unpaired():
    async with lens() as (stage, glasses):
        await some_results(stage)
        glasses.bus.publish(GlassesUnpaired("mock", "AA"))
        await asyncio.sleep(0.1)
        await tap(glasses)
        assert stage.lens()["page"] == 0


@pytest.mark.requirement("I13-recall")
@virtual_time
async def test_nothing_is_recalled_on_a_lens_that_cannot_be_seen():
    async with lens() as (stage, glasses):
        await some_results(stage)
        glasses.unseen = "the glasses show their own dashboard"
        await tap(glasses)
        assert stage.lens()["page"] == 0


# ------------------------------------------------------------------ the page before


@pytest.mark.requirement("I13-page-back")
@virtual_time
async def test_a_tap_on_the_left_goes_a_page_back_on_the_right_a_page_on():
    async with lens() as (stage, glasses):
        await stage.present("c1", show(LONG))
        pages = []
        for side in (LEFT, RIGHT, RIGHT, LEFT, None, LEFT, LEFT, LEFT):
            await tap(glasses, side)
            pages.append(stage.lens()["page"])
        assert pages == [1, 2, 3, 2, 3, 2, 1, 1]


@pytest.mark.requirement("I13-page-back")
@virtual_time
async def test_a_page_that_was_turned_back_has_its_reading_time_again():
    async with lens() as (stage, glasses):
        await stage.present("c1", show(LONG))
        await tap(glasses, RIGHT)
        left_s = stage._current.now.until - asyncio.get_running_loop().time()
        await asyncio.sleep(left_s - 0.5)
        await tap(glasses, LEFT)
        await asyncio.sleep(2.0)
        assert stage.lens()["page"] == 1


@pytest.mark.requirement("I13-page-back")
@virtual_time
async def test_an_uncertain_tap_turns_pages_and_does_nothing_else():
    async with lens() as (stage, glasses):
        await said(glasses, UncertainTap(LEFT))
        await stage.present("c1", show(LONG))
        await said(glasses, UncertainTap(RIGHT))
        assert stage.lens()["page"] == 2
        await said(glasses, UncertainTap(LEFT))
        assert stage.lens()["page"] == 1
        await tap(glasses, gesture=Gesture.DOUBLE_TAP)
        await asyncio.sleep(2)
        await said(glasses, UncertainTap(RIGHT))
        assert stage.lens()["page"] == 0, "no result is recalled by it"

        asked = asyncio.ensure_future(stage.ask(Question("q", "Pay?", timeout_s=60)))
        await asyncio.sleep(5)
        await said(glasses, UncertainTap(RIGHT))
        assert not asked.done(), "it answers nothing"
        asked.cancel()


@pytest.mark.requirement("I13-page-back")
@virtual_time
async def test_an_offer_is_taken_by_a_tap_on_either_side_but_not_by_an_uncertain_one():
    for event, taken in (
        (Gestured(Gesture.TAP, LEFT), True),
        (Gestured(Gesture.TAP, RIGHT), True),
        (UncertainTap(LEFT), False),
        (UncertainTap(RIGHT), False),
    ):
        async with lens() as (stage, glasses):
            with glasses.bus.listen() as heard:
                await stage.present("c1", show("Noted: milk"), offer=TapOffer("tap to undo"))
                await asyncio.sleep(2)
                await said(glasses, event)
                kinds = [type(each).__name__ for each in heard._queue]
            assert ("OfferTaken" in kinds) is taken, event


# ------------------------------------------------------------------ one scene


@pytest.mark.requirement("I13-scene")
@virtual_time
async def test_a_newer_version_changes_only_the_rows_that_differ_and_does_not_wait():
    async with lens() as (stage, glasses):
        first = asyncio.ensure_future(
            stage.present("c1", show("Oslo\n3 min", scene="bus"), wait=Wait.DELIVERY)
        )
        await asyncio.sleep(0.5)
        report = await stage.present("c2", show("Oslo\n2 min", scene="bus"))
        assert report.state is Delivery.SHOWN
        assert stage.lens()["lines"] == ["Oslo", "2 min"]
        (update,) = glasses.updates()
        assert [line.text for line in update.lines] == ["2 min"]
        assert len(glasses.pages()) == 1
        assert (await first).state is Delivery.SUPERSEDED, "it was there for half a second"
        await asyncio.sleep(2)
        await stage.present("c3", show("Oslo\n1 min", scene="bus"))
        assert stage.lens()["lines"] == ["Oslo", "1 min"]


@pytest.mark.requirement("I13-scene")
@virtual_time
async def test_in_the_queue_a_newer_version_takes_the_place_of_the_older_one():
    async with lens() as (stage, _):
        await stage.present("c0", show("first"))
        older = await stage.present("c1", show("3 min", scene="bus"))
        other = await stage.present("c2", show("other"))
        assert [(r.state, r.reason) for r in (older, other)] == [
            (Delivery.QUEUED, "1 of 1"),
            (Delivery.QUEUED, "2 of 2"),
        ]
        newer = await stage.present("c3", show("2 min", scene="bus"))
        assert (newer.state, newer.reason) == (Delivery.QUEUED, "1 of 2")
        seen = [on_lens(stage)]
        for _ in range(60):
            await asyncio.sleep(0.1)
            if on_lens(stage) != seen[-1]:
                seen.append(on_lens(stage))
        assert seen[:3] == ["first", "2 min", "other"]
        assert "3 min" not in seen


@pytest.mark.requirement("I13-scene")
@virtual_time
async def test_an_older_version_does_not_come_back_from_under_another_page():
    async with lens() as (stage, _):
        await stage.present("c1", show("3 min", scene="bus", durationMs=60_000))
        await asyncio.sleep(2)
        await stage.present("c2", show("other", durationMs=3_000))
        await asyncio.sleep(2)
        await stage.present("c3", show("2 min", scene="bus", durationMs=2_000))
        seen = []
        for _ in range(100):
            await asyncio.sleep(0.1)
            seen.append(on_lens(stage))
        assert "2 min" in seen
        assert "3 min" not in seen


@pytest.mark.requirement("I13-scene")
@virtual_time
async def test_of_many_versions_at_once_the_newest_is_drawn():
    async with lens() as (stage, glasses):
        await stage.present("c0", show("0 min", scene="bus"))
        hold = glasses.hold()
        reports = [
            asyncio.ensure_future(stage.present(f"c{n}", show(f"{n} min", scene="bus")))
            for n in range(1, 20)
        ]
        await asyncio.sleep(0.1)
        hold.set()
        done = [await report for report in reports]
        assert stage.lens()["lines"] == ["19 min"]
        assert done[-1].state is Delivery.SHOWN
        assert len(glasses.updates()) <= 3
        assert {report.state for report in done[1:-1]} == {Delivery.SUPERSEDED}


@pytest.mark.requirement("I13-recall")
@virtual_time
async def test_of_one_scene_only_the_newest_version_is_recalled():
    async with lens() as (stage, glasses):
        await stage.present("c1", show("other", durationMs=2000))
        await asyncio.sleep(2)
        for n in (3, 2, 1):
            await stage.present(f"n{n}", show(f"{n} min", scene="bus", durationMs=1000))
            await asyncio.sleep(1)
        await asyncio.sleep(2)
        await tap(glasses)
        assert "1 min" in on_lens(stage)
        await tap(glasses)
        assert "other" in on_lens(stage)


# ------------------------------------------------------------------ a duration


@pytest.mark.requirement("I13-duration")
@virtual_time
async def test_a_page_with_a_duration_is_on_the_lens_for_exactly_that_time():
    async with lens() as (stage, _):
        for seconds in (0.5, 2.0, 30.0):
            await stage.present(f"c{seconds}", show("x", durationMs=seconds * 1000))
            await asyncio.sleep(seconds - 0.05)
            assert on_lens(stage) == "x", seconds
            await asyncio.sleep(0.15)
            assert stage.lens()["page"] == 0, seconds


@pytest.mark.requirement("I13-duration")
@pytest.mark.parametrize("words", ["word0", LONG], ids=["one page", "pages"])
@pytest.mark.parametrize("by", ["a question", "a more important page"])
def test_the_time_under_something_else_does_not_count(by, words):
    @virtual_time
    async def story():
        async with lens() as (stage, glasses):
            await stage.present("c1", show(words, durationMs=20_000))
            await asyncio.sleep(5)
            if by == "a question":
                asked = asyncio.ensure_future(stage.ask(Question("q", "Pay?", timeout_s=60)))
                await asyncio.sleep(7)
                await tap(glasses)
                await asked
            else:
                await stage.present("c2", show("now", durationMs=7_000, priority="urgent"))
                assert on_lens(stage) == "now"
                await asyncio.sleep(7)
            seen_s = 0.0
            for _ in range(400):
                await asyncio.sleep(0.1)
                seen_s += 0.1 * ("word" in on_lens(stage))
            assert seen_s == pytest.approx(15.0, abs=0.6)

    story()
