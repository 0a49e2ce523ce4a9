"""Things that come together: two voices, a no and a result, more than the queue holds."""

import asyncio
from typing import Any

import pytest

from edge.core.results import Rendering, TapOffer
from edge.display.drawn_text import CannotDraw, DrawnText
from edge.display.presenter import INBOX
from edge.display.queue import LATER
from edge.display.saved_scene import NOTE
from edge.display.voice.tts import SpokenSentence, TextToSpeech
from edge.display.wording import Wording
from edge.ports import Wait
from edge.runtime.events import DeliveryChanged, GlassesSaid, GlassesUnpaired, OfferTaken
from firmware_bridge.errors import CommandRefused
from firmware_bridge.messages import (
    Answer,
    AudioFormat,
    Command,
    EndAudio,
    Gesture,
    Gestured,
    ShowPage,
    StartAudio,
    UncertainTap,
)
from firmware_bridge.sides import Side
from tests.unit.display.fakes import DISPLAY, FULL, Notebook
from tests.unit.display.test_stage import ASKED, Watched, on, text
from tests.unit.firmware_bridge.virtual import virtual_time
from tools_cache.api.tool import Delivery, DeliveryReport, ToolResponse

pytestmark = pytest.mark.usefixtures("reading_time")


class Voice(TextToSpeech):
    """Says anything in three seconds, without a child process."""

    def missing(self) -> str:
        return ""

    async def say(
        self, sentence: str, form: AudioFormat, language: str = "", *, first: bool = False
    ) -> SpokenSentence:
        return SpokenSentence((b"x",) * 150, 48_000, 1)


def refuse_pages(command: Command) -> None:
    if isinstance(command, ShowPage):
        raise CommandRefused("too_large")


@virtual_time
async def test_words_that_the_lens_refuses_are_spoken_after_the_older_speech_was_stopped() -> None:
    glasses = Watched(FULL)
    glasses.speed = 1.0
    async with on(FULL, glasses=glasses, voice=Voice()) as (stage, _):
        speech = ToolResponse(data="a", render={"audio": {"text": "A long story."}})
        older = asyncio.ensure_future(stage.present("c1", speech, wait=Wait.DELIVERY))
        await glasses.until(lambda: glasses.frames() > 0)
        glasses.refuse = refuse_pages
        report = await stage.present("c2", text("hello"), wait=Wait.DELIVERY)
        order = [type(c) for c in glasses.told if isinstance(c, StartAudio | EndAudio)]
        assert order[:3] == [StartAudio, EndAudio, StartAudio]
        assert (await older).state is Delivery.SUPERSEDED
        assert report.state is Delivery.SPOKEN


async def no(stage: Any, glasses: Watched) -> None:
    """Ask, let a result arrive meanwhile, and say no."""
    asking = asyncio.ensure_future(stage.ask(ASKED))
    await glasses.until(lambda: "Delete photos?" in glasses.shows)
    await asyncio.sleep(1)
    result = asyncio.ensure_future(stage.present("c9", text("dinner at 8", 10)))
    await asyncio.sleep(0.1)
    glasses.answer(Answer.DENY)
    assert await asking is Answer.DENY
    await result


@virtual_time
async def test_a_page_shown_after_a_no_does_not_say_that_something_works() -> None:
    async with on(DISPLAY) as (stage, glasses):
        await no(stage, glasses)
        assert glasses.shows == "dinner at 8"


@virtual_time
async def test_a_short_line_about_no_call_leaves_the_page_that_is_read_without_a_mark() -> None:
    async with on(DISPLAY) as (stage, glasses):
        await stage.present("c9", text("dinner at 8", 10))
        await asyncio.sleep(2)
        await stage.tell("Answered no elsewhere.", brief=True)
        await asyncio.sleep(2)
        assert glasses.shows == "dinner at 8"


# ------------------------------------------------------------------ more than the queue holds


def urgent(number: int) -> ToolResponse:
    return text(f"urgent {number}", 10, priority="urgent")


@virtual_time
async def test_a_full_queue_takes_nothing_less_important_than_what_waits_in_it() -> None:
    async with on(DISPLAY) as (stage, _):
        await stage.present("page", text("page", 10, priority=9))
        waiting = [await stage.present(f"u{n}", urgent(n)) for n in range(LATER)]
        report = await stage.present("low", text("low", 10, priority="low"))
        assert [item.state for item in waiting] == [Delivery.QUEUED] * LATER
        assert report == DeliveryReport(Delivery.DROPPED, "more important results wait")
        kept = [item.call_id for item in stage._queue]
        assert kept == [f"u{n}" for n in range(LATER)]


@virtual_time
async def test_no_result_takes_the_place_of_an_alarm_that_waits() -> None:
    async with on(DISPLAY) as (stage, glasses):
        asking = asyncio.ensure_future(stage.ask(ASKED))
        await glasses.until(lambda: "Delete photos?" in glasses.shows)
        for number in range(LATER):
            await stage.tell(f"alarm {number}", scene=f"alarm-{number}")
        report = await stage.present("c9", urgent(1))
        assert report.state is Delivery.DROPPED
        assert [item.scene for item in stage._queue] == [f"alarm-{n}" for n in range(LATER)]
        asking.cancel()


# ------------------------------------------------------------------ what became of a question


@virtual_time
async def test_a_yes_from_before_the_glasses_left_is_not_repeated_after_another_question() -> None:
    async with on(DISPLAY) as (stage, glasses):
        asking = asyncio.ensure_future(stage.ask(ASKED))
        await glasses.until(lambda: "Delete photos?" in glasses.shows)
        await asyncio.sleep(1)
        glasses.answer(Answer.ALLOW)
        glasses.leave()
        assert await asking is Answer.ALLOW
        await asyncio.sleep(0.1)
        assert stage._prompter.take_ended() is None


# ------------------------------------------------------------------ when the daemon stops


@virtual_time
async def test_a_page_that_was_being_drawn_when_the_daemon_stopped_is_cleared_by_the_next() -> None:
    notes = Notebook()
    async with on(DISPLAY, notes=notes) as (stage, glasses):
        glasses.hold()
        presenting = asyncio.ensure_future(stage.present("c1", text("dinner at 8", 10)))
        await glasses.until(lambda: glasses.texts() == ["dinner at 8"])
    presenting.cancel()
    async with on(DISPLAY, notes=notes) as (_, glasses):
        await glasses.until(lambda: glasses.clears() == 1)


@virtual_time
async def test_a_daemon_that_stops_with_a_dark_lens_leaves_nothing_to_clear() -> None:
    notes = Notebook()
    async with on(DISPLAY, notes=notes) as (stage, glasses):
        await stage.present("c1", text("dinner at 8", 3))
        await asyncio.sleep(5)
    async with on(DISPLAY, notes=notes) as (_, glasses):
        await asyncio.sleep(5)
        assert not glasses.told


# ------------------------------------------------------------------ other glasses, other wearer


def holds(stage: Any) -> list[str]:
    """The scenes that could still get on a lens."""
    current = stage._current
    items = (current.now, current.under, *stage._queue)
    return [item.scene for item in items if item is not None]


@virtual_time
async def test_nothing_of_the_former_wearer_gets_on_the_next_glasses() -> None:
    notes = Notebook()
    async with on(FULL, notes=notes) as (stage, glasses):
        with glasses.bus.listen() as heard:
            await stage.present("long", text(" ".join(f"word{n}" for n in range(90))))
            await asyncio.sleep(2)
            await stage.present("short", text("short", 3))
            await stage.present("next", text("next", 3))
            await stage.present("low", text("low", 3, priority="low"))
            await stage.tell("Working…", call_id="c5", brief=True, mark=True)
            glasses.leave()
            await asyncio.sleep(0.1)
            await stage.present("parked", text("parked"))
            glasses.bus.publish(GlassesUnpaired("mock", "AA"))
            await asyncio.sleep(0.1)
            assert holds(stage) == []
            last = {h.call_id: h.report for h in heard._queue if isinstance(h, DeliveryChanged)}
        gone = DeliveryReport(Delivery.DROPPED, "the glasses were unpaired")
        assert {last[call_id] for call_id in ("next", "low", "parked")} == {gone}
        assert last["long"].state is Delivery.SUPERSEDED
        glasses.told.clear()
        glasses.come_back()
        await asyncio.sleep(5)
        assert glasses.texts() == []
    async with on(FULL, notes=notes) as (_, glasses):
        await asyncio.sleep(5)
        assert glasses.texts() == []


# ------------------------------------------------------------------ texts that take time to prepare


@pytest.fixture
def slow_markdown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Markdown takes a second to read."""
    apply = Wording.apply

    async def slow(self: Wording, rendering: Rendering) -> Rendering:
        if "**" in rendering.text:
            await asyncio.sleep(1)
        return await apply(self, rendering)

    monkeypatch.setattr(Wording, "apply", slow)


@virtual_time
async def test_texts_reach_the_lens_in_the_order_in_which_they_came(slow_markdown) -> None:
    async with on(DISPLAY) as (stage, glasses):
        shown = [text(words, 10, scene="live") for words in ("**old**", "new")]
        await asyncio.gather(*(stage.present(f"c{n}", page) for n, page in enumerate(shown)))
        assert glasses.shows == "new"


@virtual_time
async def test_progress_that_was_slow_to_prepare_does_not_follow_the_result(slow_markdown) -> None:
    async with on(DISPLAY) as (stage, glasses):
        telling = asyncio.ensure_future(stage.tell("**half**", call_id="c1", brief=True))
        await asyncio.sleep(0.5)
        await stage.present("c1", text("done", 5))
        assert (await telling).state is not Delivery.QUEUED
        await asyncio.sleep(3)
        assert glasses.shows == "done"
        await asyncio.sleep(20)
        assert glasses.shows == ""


@virtual_time
async def test_progress_of_a_call_that_is_cancelled_meanwhile_is_not_shown(slow_markdown) -> None:
    async with on(DISPLAY) as (stage, glasses):
        await stage.tell("one", call_id="c1", brief=True)
        telling = asyncio.ensure_future(stage.tell("**half**", call_id="c1", brief=True))
        await asyncio.sleep(0.8)
        await glasses.say(Gesture.DOUBLE_TAP)
        assert (await telling).state is Delivery.DROPPED
        assert glasses.shows == ""


class StuckDrawing(DrawnText):
    """A child that never answers."""

    async def draw(self, *_: Any, **__: Any) -> Any:
        await asyncio.sleep(20)
        raise CannotDraw("it took too long to draw the text")


@virtual_time
async def test_a_text_that_cannot_be_drawn_in_time_holds_up_neither_questions_nor_taps() -> None:
    async with on(DISPLAY, drawn=StuckDrawing()) as (stage, glasses):
        await stage.present("c1", text("first", 60))
        await asyncio.sleep(2)
        drawing = asyncio.ensure_future(stage.present("c2", text("שלום")))
        await asyncio.sleep(1)
        await glasses.say(Gesture.DOUBLE_TAP)
        await asyncio.sleep(0.1)
        assert glasses.shows == ""
        asking = asyncio.ensure_future(stage.ask(ASKED))
        await asyncio.sleep(1)
        assert "Delete photos?" in glasses.shows
        asking.cancel()
        drawing.cancel()


# ------------------------------------------------------------------ a page that is not taken


def refuse_page_two(command: Command) -> None:
    if isinstance(command, ShowPage) and command.page == 2:
        raise CommandRefused("busy")


@virtual_time
async def test_a_later_page_that_the_glasses_refuse_is_named_in_the_delivery() -> None:
    async with on(DISPLAY) as (stage, glasses):
        glasses.refuse = refuse_page_two
        with glasses.bus.listen() as heard:
            long = text(" ".join(f"word{n}" for n in range(130)))
            assert (await stage.present("c1", long)).state is Delivery.SHOWN
            await asyncio.sleep(40)
            assert [page.page for page in glasses.pages()] == [1, 3, 4]
            reports = [h.report for h in heard._queue if isinstance(h, DeliveryChanged)]
        assert reports == [DeliveryReport(Delivery.ACKNOWLEDGED, "page 2 was not taken")]


@virtual_time
async def test_a_page_cut_before_its_last_page_was_taken_was_not_delivered() -> None:
    async with on(DISPLAY) as (stage, glasses):
        glasses.refuse = refuse_page_two
        with glasses.bus.listen() as heard:
            await stage.present("c1", text(" ".join(f"word{n}" for n in range(50))))
            assert glasses.pages()[0].pages == 2
            await asyncio.sleep(2)
            await glasses.say(Gesture.TAP)
            await asyncio.sleep(0.1)
            await stage.present("c2", text("urgent", 60, priority="urgent"))
            reports = [h.report for h in heard._queue if isinstance(h, DeliveryChanged)]
        assert reports[-1].state is Delivery.SUPERSEDED


@virtual_time
async def test_a_page_whose_time_is_over_does_not_turn_to_the_next_one() -> None:
    async with on(DISPLAY) as (stage, glasses):
        await stage.present("c1", text(" ".join(f"word{n}" for n in range(130)), 3))
        await asyncio.sleep(10)
        assert [page.page for page in glasses.pages()] == [1]


@virtual_time
async def test_a_newer_version_leaves_what_lies_under_it() -> None:
    async with on(DISPLAY) as (stage, glasses):
        await stage.present("long", text("the long one", 60))
        await asyncio.sleep(2)
        for version, seconds in (("one", 20), ("two", 3)):
            await stage.present(version, text(version, seconds, scene="live"))
            await asyncio.sleep(2)
        await asyncio.sleep(5)
        assert glasses.history() == ["the long one", "one", "two", "the long one"]


# ------------------------------------------------------------------ under a question


@virtual_time
async def test_a_mark_that_ends_under_a_question_draws_nothing_over_it() -> None:
    async with on(DISPLAY, glasses=Watched(DISPLAY, prompts=False)) as (stage, glasses):
        await stage.present("c0", text("from before", 60))
        await asyncio.sleep(2)
        await stage.tell("Working…", call_id="c5", brief=True, mark=True)
        asking = asyncio.ensure_future(stage.ask(ASKED))
        await glasses.until(lambda: "Delete photos?" in glasses.shows)
        stage.ended("c5")
        await asyncio.sleep(5)
        assert "Delete photos?" in glasses.shows
        asking.cancel()
        await asyncio.sleep(1)
        assert glasses.shows == "from before"


@virtual_time
async def test_a_less_important_result_waits_for_the_page_that_a_question_covered() -> None:
    async with on(DISPLAY) as (stage, glasses):
        await stage.present("c0", text("important", 60, priority="urgent"))
        await stage.present("c1", text("low", 5))
        asking = asyncio.ensure_future(stage.ask(ASKED))
        await glasses.until(lambda: "Delete photos?" in glasses.shows)
        asking.cancel()
        await asyncio.sleep(5)
        assert glasses.shows == "important"


@virtual_time
async def test_after_a_yes_the_next_daemon_finds_no_question() -> None:
    notes = Notebook()
    async with on(DISPLAY, notes=notes) as (stage, glasses):
        asking = asyncio.ensure_future(stage.ask(ASKED))
        await glasses.until(lambda: "Delete photos?" in glasses.shows)
        assert notes.kept[NOTE] == {"question": True}
        await asyncio.sleep(1)
        glasses.answer(Answer.ALLOW)
        assert await asking is Answer.ALLOW
        await asyncio.sleep(1)
        assert glasses.shows == "Yes, …"
        assert notes.kept[NOTE] is None


# ------------------------------------------------------------------ the same call, and many taps


@virtual_time
async def test_a_result_that_is_presented_twice_is_shown_once() -> None:
    async with on(DISPLAY) as (stage, glasses):
        both = (stage.present("c0", text("long", 60)) for _ in range(2))
        assert [report.state for report in await asyncio.gather(*both)] == [Delivery.SHOWN] * 2
        await asyncio.sleep(2)
        await stage.present("c1", text("short", 5))
        assert (await stage.present("c0", text("long", 60))).state is Delivery.SHOWN
        await asyncio.sleep(10)
        assert glasses.history() == ["long", "short", "long"]


@virtual_time
async def test_the_name_of_a_scene_is_as_long_as_glasses_take_it() -> None:
    async with on(DISPLAY) as (stage, glasses):
        await stage.present("c0", text("live", 5, scene="😀" * 64))
        assert len(glasses.pages()[0].scene.encode()) <= 120


@virtual_time
async def test_taps_that_nobody_handles_are_bounded() -> None:
    async with on(DISPLAY) as (stage, glasses):
        await stage.present("c0", text("page", 60))
        glasses.hold()
        held = asyncio.ensure_future(stage.present("c1", text("urgent", 5, priority="urgent")))
        await asyncio.sleep(1)
        for _ in range(INBOX * 2):
            await glasses.say(Gesture.TAP)
        assert len(stage._inbox) == INBOX
        held.cancel()


@virtual_time
async def test_an_uncertain_tap_leaves_progress_on_the_lens() -> None:
    async with on(DISPLAY) as (stage, glasses):
        await stage.tell("half way", call_id="c1", brief=True)
        glasses.bus.publish(GlassesSaid(UncertainTap(Side.RIGHT)))
        await asyncio.sleep(1)
        assert glasses.shows == "half way"


@virtual_time
async def test_a_tap_on_the_left_goes_back_from_the_last_page_and_takes_no_offer() -> None:
    async with on(DISPLAY) as (stage, glasses):
        with glasses.bus.listen() as heard:
            words = text(" ".join(f"word{n}" for n in range(50)))
            await stage.present("c1", words, offer=TapOffer("tap to undo"))
            await asyncio.sleep(2)
            await glasses.say(Gesture.TAP)
            await asyncio.sleep(2)
            assert glasses.shows.endswith("tap to undo")
            glasses.bus.publish(GlassesSaid(Gestured(Gesture.TAP, Side.LEFT)))
            await asyncio.sleep(1)
            assert stage.lens()["page"] == 1
            assert not [h for h in heard._queue if isinstance(h, OfferTaken)]
