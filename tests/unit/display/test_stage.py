"""The stage in virtual time: who has the lens, for how long, and what is said about it."""

import asyncio
from typing import Any

import pytest

from edge.core.results import Rendering, TapOffer
from edge.display import fallback, lens_plan
from edge.display.current_page import UNDER_S
from edge.display.lens import Sheet, corner
from edge.display.lens_plan import LensPlan
from edge.display.page_life import LEAST_S
from edge.display.presentation import LIFE_S, NEWER
from edge.display.presenter import BRIEF_S
from edge.display.stage import REFUSED_S
from edge.display.voice.tts import SpokenSentence, TextToSpeech
from edge.ports import Question, Wait
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import CallOff, DeliveryChanged, OfferTaken
from firmware_bridge.errors import CommandRefused
from firmware_bridge.messages import (
    Answer,
    AudioFormat,
    ClearPage,
    Command,
    Done,
    EndPrompt,
    Gesture,
    Prompt,
    ShowPage,
    TextLine,
    UpdatePage,
)
from tests.unit.display.conftest import stage_on
from tests.unit.display.fakes import AUDIO, DISPLAY, FULL, FakeGlasses
from tests.unit.firmware_bridge.virtual import virtual_time
from tools_cache.api.tool import Delivery, DeliveryReport, ToolResponse

pytestmark = pytest.mark.usefixtures("reading_time")
SHOWN = DeliveryReport(Delivery.SHOWN)
CALL = "c1"


def now() -> float:
    return asyncio.get_running_loop().time()


class Watched(FakeGlasses):
    """Glasses that write down every change of their framebuffer with its time."""

    def __init__(self, facts: dict[str, Any], *, prompts: bool = True, updates: bool = True):
        super().__init__(Bus(), facts)
        self.prompts = prompts
        self.updated = updates
        self.log: list[tuple[float, str]] = []
        self._page: dict[int, str] = {}

    async def request(self, command: Command, *, timeout_s: float = 5.0) -> Done:
        if isinstance(command, UpdatePage) and not self.updated:
            raise CommandRefused("unsupported", "update")
        done = await super().request(command, timeout_s=timeout_s)
        if isinstance(command, ShowPage):
            self._page = {}
        if isinstance(command, ShowPage | UpdatePage):
            for row in {line.row for line in command.lines}:
                texts = (line.text for line in command.lines if line.row == row)
                self._page[row] = "  ".join(texts)
        elif isinstance(command, ClearPage):
            self._page = {}
        if isinstance(command, Prompt):
            self.log.append((now(), " / ".join(line.text for line in command.lines)))
        elif isinstance(command, ShowPage | UpdatePage | ClearPage | EndPrompt):
            self.draw()
        return done

    def draw(self) -> None:
        rows = [self._page[row] for row in sorted(self._page) if self._page[row]]
        self.log.append((now(), " / ".join(rows)))

    def answer(self, answer: Answer, *, prompt: int | None = None) -> None:
        """As real ones do: their prompt goes, and what was under it is seen again."""
        super().answer(answer, prompt=prompt)
        self.draw()

    @property
    def shows(self) -> str:
        return self.log[-1][1] if self.log else ""

    def history(self) -> list[str]:
        """All that was on the lens, in order, without repetitions."""
        texts = [text for _, text in self.log]
        return [t for t, before in zip(texts, [None, *texts], strict=False) if t != before]

    def seconds(self, words: str) -> float:
        """How long these words were on the lens, in all."""
        ends = [at for at, _ in self.log[1:]] + [now()]
        return sum(
            end - at for (at, text), end in zip(self.log, ends, strict=True) if words in text
        )


class ThreeSeconds(TextToSpeech):
    """A voice without a child, whose time does not run as fast as the test's."""

    async def code(self, pcm: str, form: AudioFormat) -> SpokenSentence:
        return SpokenSentence((b"x",) * 150, 48_000, 1)


_SOUND = "AQAB"


def on(facts: dict[str, Any], *, glasses: Watched | None = None, **more: Any) -> Any:
    clock = Clock(boot=now, wall=now)
    glasses = glasses or Watched(facts)
    more.setdefault("voice", ThreeSeconds())
    return stage_on(facts, glasses=glasses, clock=clock, **more)


def text(words: str, seconds: float | None = None, **display: Any) -> ToolResponse:
    asked = {} if seconds is None else {"durationMs": seconds * 1000}
    return ToolResponse(data=words, render={"display": {"text": words, **asked, **display}})


def changes(heard: Any, call_id: str) -> list[DeliveryReport]:
    happened = [h for h in heard._queue if isinstance(h, DeliveryChanged)]
    return [h.report for h in happened if h.call_id == call_id]


# ------------------------------------------------------------------ equals wait


@pytest.mark.requirement("I13-equals-wait")
@virtual_time
async def test_five_results_in_a_second_have_the_lens_in_turn_and_their_callers_know() -> None:
    async with on(DISPLAY) as (stage, glasses):
        with glasses.bus.listen() as heard:
            first = []
            for number in range(5):
                first.append(await stage.present(f"c{number}", text(f"result {number}", 3)))
                await asyncio.sleep(0.2)
            assert first == [
                SHOWN,
                *(DeliveryReport(Delivery.QUEUED, f"{n} of {n}") for n in range(1, 5)),
            ]
            await asyncio.sleep(30)
        assert glasses.history() == [*(f"result {number}" for number in range(5)), ""]
        for number in range(4):
            assert glasses.seconds(f"result {number}") == pytest.approx(LEAST_S, abs=0.02)
        assert glasses.seconds("result 4") == pytest.approx(3, abs=0.02)
        assert changes(heard, "c0") == [], "it was shown, and stays so"
        assert [str(r.reason) for r in changes(heard, "c4")] == ["3 of 3", "2 of 2", "1 of 1", ""]
        assert changes(heard, "c4")[-1] == SHOWN


@pytest.mark.requirement("I13-equals-wait")
@virtual_time
async def test_each_hears_its_place_again_when_one_joins_or_leaves() -> None:
    async with on(DISPLAY) as (stage, glasses):
        await stage.present("c0", text("now"))
        with glasses.bus.listen() as heard:
            await stage.present("c1", text("first"))
            await stage.present("c2", text("second"))
            assert [r.reason for r in changes(heard, "c1")] == ["1 of 2"]


@pytest.mark.requirement("I13-equals-wait")
@virtual_time
async def test_the_most_important_of_those_that_wait_is_next() -> None:
    async with on(DISPLAY) as (stage, glasses):
        await stage.present("c0", text("urgent", priority="urgent"))
        for name in ("low", "normal", "high", "normal too"):
            await stage.present(name, text(name, priority=name.split()[0]))
        await asyncio.sleep(60)
        assert glasses.history() == ["urgent", "high", "normal", "normal too", "low", ""]


@pytest.mark.parametrize("tapped", [True, False])
def test_a_result_that_cannot_be_rendered_does_not_darken_the_lens_for_the_next(
    monkeypatch: pytest.MonkeyPatch, tapped: bool
) -> None:
    async def plan(wanted: Rendering, *args: Any) -> LensPlan:
        if wanted.words == "broken":
            raise RuntimeError("broken")
        return await lens_plan.plan(wanted, *args)

    @virtual_time
    async def story() -> None:
        async with on(DISPLAY) as (presenter, glasses):
            await presenter.present("one", text("first"))
            broken = asyncio.create_task(
                presenter.present("two", text("broken"), wait=Wait.DELIVERY)
            )
            third = asyncio.create_task(
                presenter.present("three", text("third"), wait=Wait.DELIVERY)
            )
            await asyncio.sleep(0.1)
            if tapped:
                await glasses.say(Gesture.TAP)
            async with asyncio.timeout(60):
                dropped = await broken
                assert (await third).state is Delivery.SHOWN
            assert dropped == DeliveryReport(Delivery.DROPPED, "it could not be rendered")

    monkeypatch.setattr(fallback, "plan", plan)
    story()


@pytest.mark.requirement("I13-equals-wait")
@virtual_time
async def test_a_tap_lets_the_next_result_in_at_once() -> None:
    async with on(DISPLAY) as (stage, glasses):
        final = asyncio.ensure_future(stage.present("c0", text("one"), wait=Wait.DELIVERY))
        await asyncio.sleep(0.3)
        await stage.present("c1", text("two"))
        await glasses.say(Gesture.TAP)
        await glasses.until(lambda: glasses.shows == "two")
        assert glasses.seconds("one") < 0.5
        assert await final == SHOWN, "the wearer saw it and wanted it gone"


@pytest.mark.requirement("I13-equals-wait")
@virtual_time
async def test_a_reader_who_turns_the_page_has_seen_what_it_is() -> None:
    async with on(DISPLAY) as (stage, glasses):
        with glasses.bus.listen() as heard:
            await stage.present("c0", ToolResponse(data=" ".join(f"word{n}" for n in range(50))))
            assert glasses.pages()[0].pages == 2
            await glasses.say(Gesture.TAP)
            await glasses.until(lambda: glasses.pages()[-1].page == 2)
            assert await stage.present("c1", text("newer", 60)) == SHOWN, "it need not wait"
            assert not changes(heard, "c0"), "both pages were turned by hand"


@pytest.mark.requirement("I13-equals-wait")
@virtual_time
async def test_those_that_wait_hear_their_place_when_one_gives_up() -> None:
    async with on(DISPLAY) as (stage, glasses):
        await stage.present("c0", text("urgent", 120, priority="urgent"))
        await stage.present("c1", text("first"))
        await asyncio.sleep(LIFE_S - 5)
        with glasses.bus.listen() as heard:
            await stage.present("c2", text("second"))
            await asyncio.sleep(6)
            assert [r.state for r in changes(heard, "c1")] == [Delivery.QUEUED, Delivery.EXPIRED]
            assert [r.reason for r in changes(heard, "c2")] == ["1 of 1"]


@pytest.mark.requirement("I13-equals-wait")
@virtual_time
async def test_darkness_that_was_asked_for_does_not_wait() -> None:
    async with on(DISPLAY) as (stage, glasses):
        await stage.present("c0", text("one"))
        report = await stage.present("c1", text("", layout="clear_view"))
        assert (report.state, glasses.shows) == (Delivery.ACKNOWLEDGED, "")


# ------------------------------------------------------------------ what a cut page counts as


@pytest.mark.requirement("I13-cut-is-superseded")
@pytest.mark.parametrize(("after_s", "state"), [(1.0, "superseded"), (1.6, "shown")])
@virtual_time
async def test_a_page_cut_by_something_urgent_was_shown_only_if_it_was_there_long_enough(
    after_s, state
) -> None:
    async with on(DISPLAY) as (stage, glasses):
        with glasses.bus.listen() as heard:
            final = asyncio.ensure_future(stage.present("c0", text("one", 3), wait=Wait.DELIVERY))
            await asyncio.sleep(after_s)
            assert await stage.present("c1", text("urgent", 5, priority="urgent")) == SHOWN
            assert (await final).state.value == state
            assert [r.state.value for r in changes(heard, "c0")] == (
                ["superseded"] if state == "superseded" else []
            )
        assert glasses.history() == ["one", "urgent"]


@pytest.mark.requirement("I13-cut-is-superseded")
@virtual_time
async def test_a_page_that_was_cleared_at_once_was_not_shown() -> None:
    async with on(DISPLAY) as (stage, _):
        final = asyncio.ensure_future(stage.present("c0", text("one"), wait=Wait.DELIVERY))
        await asyncio.sleep(0.5)
        await stage.present("c1", text("", layout="clear_view"))
        assert await final == DeliveryReport(Delivery.SUPERSEDED, "the lens was cleared")


@pytest.mark.requirement("I13-cut-is-superseded")
@virtual_time
async def test_the_final_delivery_is_known_when_the_page_was_there_long_enough() -> None:
    async with on(DISPLAY) as (stage, _):
        began = now()
        assert await stage.present("c0", text("one"), wait=Wait.DELIVERY) == SHOWN
        assert now() - began == pytest.approx(LEAST_S, abs=0.02)


# ------------------------------------------------------------------ under


@pytest.mark.requirement("I13-under")
@virtual_time
async def test_a_long_page_returns_with_its_remaining_time_after_a_short_one() -> None:
    async with on(DISPLAY) as (stage, glasses):
        with glasses.bus.listen() as heard:
            await stage.present("long", text("long", 20))
            await asyncio.sleep(2)
            assert await stage.present("short", text("short", 3)) == SHOWN
            await asyncio.sleep(60)
            assert not changes(heard, "long"), "its caller hears nothing new"
        assert glasses.history() == ["long", "short", "long", ""]
        assert glasses.seconds("long") == pytest.approx(20, abs=0.02)
        assert glasses.seconds("short") == pytest.approx(3, abs=0.02)


@pytest.mark.requirement("I13-under")
@virtual_time
async def test_a_fresh_page_under_an_urgent_one_is_known_to_be_shown_when_it_returned() -> None:
    async with on(DISPLAY) as (stage, glasses):
        final = asyncio.ensure_future(stage.present("long", text("long", 20), wait=Wait.DELIVERY))
        await asyncio.sleep(0.5)
        await stage.present("urgent", text("urgent", 3, priority="urgent"))
        await asyncio.sleep(3.2)
        assert (glasses.shows, final.done()) == ("long", False)
        assert await final == SHOWN


@pytest.mark.requirement("I13-under")
@virtual_time
async def test_the_page_that_returns_is_the_one_that_was_being_read() -> None:
    words = " ".join(f"word{n}" for n in range(90))
    async with on(DISPLAY) as (stage, glasses):
        await stage.present("long", ToolResponse(data=words))
        await glasses.say(Gesture.TAP)
        await glasses.until(lambda: glasses.pages()[-1].page == 2)
        await asyncio.sleep(2)
        second = glasses.shows
        await stage.present("short", text("short", 3))
        await asyncio.sleep(4)
        assert glasses.shows == second


@pytest.mark.requirement("I13-under")
@virtual_time
async def test_what_lies_under_does_not_return_after_the_lens_was_cleared() -> None:
    async with on(DISPLAY) as (stage, glasses):
        with glasses.bus.listen() as heard:
            await stage.present("long", text("long", 20))
            await asyncio.sleep(0.5)
            await stage.present("urgent", text("urgent", 3, priority="urgent"))
            await stage.present("dark", text("", layout="clear_view", priority="urgent"))
            await asyncio.sleep(30)
            assert [r.state for r in changes(heard, "long")] == [Delivery.SUPERSEDED]
        assert glasses.history() == ["long", "urgent", ""]


@pytest.mark.requirement("I13-under")
@pytest.mark.parametrize(("covered_s", "returns"), [(UNDER_S - 1, True), (UNDER_S + 1, False)])
@virtual_time
async def test_old_news_does_not_return(covered_s, returns) -> None:
    async with on(DISPLAY) as (stage, glasses):
        await stage.present("long", text("long", 300))
        await asyncio.sleep(2)
        await stage.present("short", text("short", covered_s))
        await asyncio.sleep(covered_s + 1)
        assert glasses.shows == ("long" if returns else "")


@pytest.mark.requirement("I13-under")
@virtual_time
async def test_one_page_at_most_lies_under_another() -> None:
    async with on(DISPLAY) as (stage, glasses):
        with glasses.bus.listen() as heard:
            for name, seconds in (("one", 300), ("two", 20), ("three", 3)):
                await stage.present(name, text(name, seconds))
                await asyncio.sleep(2)
            await asyncio.sleep(30)
            assert changes(heard, "one") == [], "it was read"
        assert glasses.history() == ["one", "two", "three", "two", ""]


@pytest.mark.requirement("I13-under")
@virtual_time
async def test_a_page_with_less_time_left_than_the_newer_one_takes_does_not_return() -> None:
    async with on(DISPLAY) as (stage, glasses):
        await stage.present("old", text("old", 4))
        await asyncio.sleep(2)
        await stage.present("new", text("new", 3))
        await asyncio.sleep(10)
        assert glasses.history() == ["old", "new", ""]


# ------------------------------------------------------------------ the working mark


@pytest.mark.requirement("I13-mark")
@pytest.mark.parametrize("updates", [True, False])
@virtual_time
async def test_a_call_that_works_is_marked_in_the_corner_of_the_page_being_read(updates) -> None:
    async with on(DISPLAY, glasses=Watched(DISPLAY, updates=updates)) as (stage, glasses):
        await stage.present("c0", text("being read", 20))
        await asyncio.sleep(2)
        began = asyncio.get_running_loop().time()
        telling = stage.tell("Working…", call_id=CALL, brief=True, mark=True)
        assert (await telling).state is Delivery.QUEUED
        await glasses.until(lambda: glasses.shows == "being read / Working…")
        assert asyncio.get_running_loop().time() - began < 0.3, "it waits for nothing else"
        stage.ended(CALL)
        await glasses.until(lambda: glasses.shows == "being read")
        assert len(glasses.pages()) == (1 if updates else 3)
        assert len(glasses.updates()) == (2 if updates else 0)


@pytest.mark.requirement("I13-mark")
@virtual_time
async def test_the_mark_goes_when_the_result_arrives_even_if_it_must_wait() -> None:
    async with on(DISPLAY) as (stage, glasses):
        await stage.present("c0", text("being read", 20, priority="high"))
        await stage.tell("Working…", call_id=CALL, brief=True, mark=True)
        await glasses.until(lambda: glasses.shows.endswith("Working…"))
        assert (await stage.present(CALL, text("result"))).state is Delivery.QUEUED
        await glasses.until(lambda: glasses.shows == "being read")


@pytest.mark.requirement("I13-mark")
@virtual_time
async def test_a_call_that_still_works_when_the_page_is_over_has_the_lens() -> None:
    async with on(DISPLAY) as (stage, glasses):
        await stage.present("c0", text("being read", 3))
        await stage.tell("step 1 of 4", call_id=CALL, brief=True)
        await asyncio.sleep(4)
        assert glasses.history() == ["being read", "being read / Working…", "step 1 of 4"]
        await stage.present(CALL, text("result"))
        assert glasses.shows == "result"


@pytest.mark.requirement("I13-mark")
@virtual_time
async def test_a_mark_never_replaces_what_a_tool_reports_itself() -> None:
    async with on(DISPLAY) as (stage, glasses):
        await stage.tell("step 1 of 4", call_id=CALL, brief=True)
        report = await stage.tell("Working…", call_id=CALL, brief=True, mark=True)
        assert (report.state, glasses.shows) == (Delivery.DROPPED, "step 1 of 4")
        await stage.tell("step 2 of 4", call_id=CALL, brief=True)
        assert glasses.shows == "step 2 of 4"


@pytest.mark.requirement("I13-mark")
@virtual_time
async def test_progress_of_a_call_that_ended_without_a_page_leaves_the_lens() -> None:
    async with on(DISPLAY) as (stage, glasses):
        await stage.tell("Working…", call_id=CALL, brief=True, mark=True)
        stage.ended("another")
        await asyncio.sleep(0.1)
        assert glasses.shows == "Working…"
        stage.ended(CALL)
        await glasses.until(lambda: glasses.shows == "")
        assert glasses.seconds("Working…") < BRIEF_S


@virtual_time
async def test_progress_that_is_just_being_drawn_leaves_the_lens_when_its_call_ends() -> None:
    async with on(DISPLAY) as (stage, glasses):
        drawn = glasses.hold()
        telling = asyncio.ensure_future(stage.tell("Working…", call_id=CALL, brief=True))
        await glasses.until(lambda: glasses.pages() != [])
        stage.ended(CALL)
        drawn.set()
        await telling
        await glasses.until(lambda: glasses.shows == "")
        assert glasses.seconds("Working…") < BRIEF_S


@virtual_time
async def test_a_text_of_a_call_that_ends_before_it_is_taken_leaves_the_lens_too() -> None:
    async with on(DISPLAY) as (stage, glasses):
        telling = asyncio.ensure_future(stage.tell("Saved.", call_id=CALL))
        while not stage._inbox:
            await asyncio.sleep(0)
        stage.ended(CALL)
        await telling
        await asyncio.sleep(0.1)
        assert glasses.history() == ["Saved.", ""]


@virtual_time
async def test_the_end_of_a_call_without_progress_does_not_wake_the_display() -> None:
    async with on(DISPLAY) as (stage, glasses):
        await stage.present("c0", text("being read", 20))
        await asyncio.sleep(2)
        stage.ended(CALL)
        assert not stage._wake.is_set()
        await stage.tell("Working…", call_id=CALL, brief=True, mark=True)
        await glasses.until(lambda: glasses.shows == "being read / Working…")
        await asyncio.sleep(1)
        stage.ended(CALL)
        assert stage._wake.is_set()


def test_the_corner_is_the_free_room_of_the_last_row():
    from edge.core.pages import Canvas, Typeface

    face, canvas = Typeface(lambda t: 10.0 * len(t), lambda _: True), Canvas(400, 3, 390)
    free = Sheet((TextLine(0, "text"),))
    assert corner(free, "…", canvas, face).lines[-1] == TextLine(2, "…", 390)
    footer = Sheet((TextLine(2, "text"), TextLine(2, "1/3", 370)))
    assert corner(footer, "…", canvas, face).lines[-1] == TextLine(2, "…", 348)
    full = Sheet((TextLine(2, "x" * 38),))
    assert corner(full, "…", canvas, face) is None
    assert corner(Sheet((TextLine(0, "x" * 380),)), "…", canvas, face) is None, "too many bytes"
    assert corner(free, "…", canvas, Typeface(face.width, str.isascii)) is None


# ------------------------------------------------------------------ the voice


@pytest.mark.requirement("I13-silent-text")
@pytest.mark.parametrize("silent", [True, False])
@virtual_time
async def test_text_that_is_not_spoken_does_not_cut_a_story(silent) -> None:
    story = ToolResponse(data="", render={"audio": {"pcm": _SOUND}})
    glasses = Watched(FULL)
    glasses.speed = 1.0
    async with on(FULL, glasses=glasses) as (stage, _):
        telling = asyncio.ensure_future(stage.present("story", story, wait=Wait.DELIVERY))
        await glasses.until(lambda: glasses.frames() > 0)
        page: dict[str, Any] = {"display": {"text": "page"}}
        if not silent:
            page["audio"] = {"pcm": _SOUND}
        await stage.present("page", ToolResponse(data="page", render=page))
        assert glasses.shows == "page"
        assert (await telling).state is (Delivery.SPOKEN if silent else Delivery.SUPERSEDED)
        assert bool(glasses.flushed) is not silent


# ------------------------------------------------------------------ after a question


ASKED = Question(
    f"{CALL}/confirm", "Delete photos?", 60, call_id=CALL, accepted="Yes, …", refused="You said no."
)


async def answered(stage: Any, glasses: Watched, answer: Answer) -> None:
    asking = asyncio.ensure_future(stage.ask(ASKED))
    await glasses.until(lambda: "Delete photos?" in glasses.shows)
    await asyncio.sleep(1)
    if glasses.prompts:
        glasses.answer(answer)
    else:
        await glasses.say(Gesture.TAP if answer is Answer.ALLOW else Gesture.DOUBLE_TAP)
    assert await asking is answer


@pytest.mark.requirement("I13-after-the-tap")
@pytest.mark.parametrize("prompts", [True, False])
@virtual_time
async def test_after_a_yes_the_lens_says_so_until_the_result_and_then_the_page_returns(
    prompts,
) -> None:
    async with on(DISPLAY, glasses=Watched(DISPLAY, prompts=prompts)) as (stage, glasses):
        await stage.present("c0", text("from before", 20))
        await asyncio.sleep(2)
        await answered(stage, glasses, Answer.ALLOW)
        await asyncio.sleep(20)
        assert glasses.shows == "Yes, …"
        assert await stage.present(CALL, text("done", 3)) == SHOWN
        stage.ended(CALL)
        await asyncio.sleep(4)
        seen = [words for words in glasses.history() if words]
        assert seen[2:] == ["Yes, …", "done", "from before"], "it comes back after the result"
        await asyncio.sleep(60)
        assert glasses.seconds("from before") == pytest.approx(20, abs=0.05)


@pytest.mark.requirement("I13-after-the-tap")
@pytest.mark.parametrize("prompts", [True, False])
@virtual_time
async def test_after_a_no_one_short_line_is_shown(prompts) -> None:
    async with on(DISPLAY, glasses=Watched(DISPLAY, prompts=prompts)) as (stage, glasses):
        await stage.present("c0", text("from before", 20))
        await asyncio.sleep(2)
        await answered(stage, glasses, Answer.DENY)
        await glasses.until(lambda: glasses.shows == "You said no.")
        await asyncio.sleep(30)
        assert glasses.history()[-3:] == ["You said no.", "from before", ""]
        assert glasses.seconds("You said no.") == pytest.approx(REFUSED_S, abs=0.02)


@pytest.mark.requirement("I13-after-the-tap", "I13-under")
@virtual_time
async def test_a_page_with_no_time_left_to_be_seen_does_not_flash() -> None:
    async with on(DISPLAY) as (stage, glasses):
        await stage.present("c0", text("from before", 4))
        await asyncio.sleep(3.2)
        await answered(stage, glasses, Answer.DENY)
        await asyncio.sleep(10)
        assert glasses.history()[-2:] == ["You said no.", ""]


@pytest.mark.requirement("I13-after-the-tap")
@virtual_time
async def test_the_page_from_before_returns_when_the_call_ends_without_a_page() -> None:
    async with on(DISPLAY) as (stage, glasses):
        await stage.present("c0", text("from before", 20))
        await asyncio.sleep(2)
        await answered(stage, glasses, Answer.ALLOW)
        await glasses.until(lambda: glasses.shows == "Yes, …")
        stage.ended(CALL)
        await glasses.until(lambda: glasses.shows == "from before")


@pytest.mark.requirement("I13-after-the-tap")
@virtual_time
async def test_a_call_that_is_over_already_is_not_said_to_work() -> None:
    async with on(DISPLAY) as (stage, glasses):
        stage.ended(CALL)
        await answered(stage, glasses, Answer.ALLOW)
        await asyncio.sleep(1)
        assert "Yes, …" not in glasses.history()


@pytest.mark.requirement("I13-after-the-tap")
@virtual_time
async def test_a_double_tap_after_the_yes_cancels_the_call() -> None:
    async with on(DISPLAY) as (stage, glasses):
        await answered(stage, glasses, Answer.ALLOW)
        await glasses.until(lambda: glasses.shows == "Yes, …")
        with glasses.bus.listen() as heard:
            await glasses.say(Gesture.DOUBLE_TAP)
            await glasses.until(lambda: glasses.shows == "")
            assert CallOff(CALL, "the wearer") in heard._queue


@pytest.mark.requirement("I13-after-the-tap")
@virtual_time
async def test_an_alarm_that_waited_for_the_answer_comes_first() -> None:
    async with on(DISPLAY) as (stage, glasses):
        asking = asyncio.ensure_future(stage.ask(ASKED))
        await glasses.until(lambda: "Delete photos?" in glasses.shows)
        await stage.tell("Time's up")
        await asyncio.sleep(1)
        glasses.answer(Answer.ALLOW)
        await asking
        await asyncio.sleep(5)
        assert [t for t in glasses.history() if t][1:] == ["Time's up / Working…", "Yes, …"]


# ------------------------------------------------------------------ more on tap, and offers


def planned(monkeypatch: pytest.MonkeyPatch, on_tap: tuple[Sheet, ...]) -> None:
    plan = lens_plan.plan

    async def with_more(*args: Any) -> LensPlan:
        made = await plan(*args)
        return LensPlan(made.sheets, made.downgrade, made.remark, made.lost, on_tap)

    monkeypatch.setattr("edge.display.fallback.plan", with_more)


@pytest.mark.requirement("I13-on-tap")
@pytest.mark.parametrize("tapped", [True, False])
def test_more_is_reached_by_a_tap_and_never_by_time(monkeypatch, tapped) -> None:
    planned(monkeypatch, (Sheet((TextLine(0, "more"),)), Sheet((TextLine(0, "still more"),))))

    @virtual_time
    async def story() -> None:
        async with on(DISPLAY) as (stage, glasses):
            final = asyncio.ensure_future(stage.present("c0", text("all"), wait=Wait.DELIVERY))
            await asyncio.sleep(1)
            assert (glasses.pages()[0].page, glasses.pages()[0].pages) == (1, 1)
            if tapped:
                await glasses.say(Gesture.TAP)
                await glasses.until(lambda: glasses.shows == "more")
                assert (glasses.pages()[-1].page, glasses.pages()[-1].pages) == (2, 3)
            await asyncio.sleep(60)
            more = ["more", "still more"] if tapped else []
            assert glasses.history() == ["all", *more, ""]
            assert await final == SHOWN

    story()


@pytest.mark.requirement("I13-offer")
@pytest.mark.parametrize(
    ("after_s", "taken", "ends"), [(0.5, False, False), (5, True, True), (10.5, False, True)]
)
@virtual_time
async def test_what_a_result_offers_is_taken_by_a_tap_in_time(after_s, taken, ends) -> None:
    async with on(DISPLAY) as (stage, glasses):
        with glasses.bus.listen() as heard:
            offer = TapOffer("tap to undo", 10.0)
            await stage.present("c0", ToolResponse(data="Noted: milk"), offer=offer)
            assert glasses.shows == "Noted: milk / tap to undo"
            await asyncio.sleep(after_s)
            await glasses.say(Gesture.TAP)
            await asyncio.sleep(0.1)
            assert (OfferTaken("c0") in heard._queue) is taken
            assert (glasses.shows == "") is ends
            await glasses.say(Gesture.TAP)
            await asyncio.sleep(0.1)
            assert heard._queue.count(OfferTaken("c0")) == taken, "once"


@pytest.mark.requirement("I13-offer", "I13-undo")
@pytest.mark.parametrize(("after_s", "taken"), [(0.3, False), (1.5, True)])
@virtual_time
async def test_a_tap_counts_for_an_offer_that_came_back_only_once_it_can_be_read(after_s, taken):
    """The tap that ended the page over it is no yes to it."""
    async with on(DISPLAY) as (stage, glasses):
        with glasses.bus.listen() as heard:
            offer = TapOffer("tap to undo", 10.0)
            await stage.present("c0", ToolResponse(data="Noted: milk"), offer=offer)
            await asyncio.sleep(2)
            await stage.present("c1", ToolResponse(data="Rain"))
            assert glasses.shows == "Rain"
            await asyncio.sleep(2)
            await glasses.say(Gesture.TAP)
            await asyncio.sleep(after_s)
            assert glasses.shows == "Noted: milk / tap to undo"
            await glasses.say(Gesture.TAP)
            await asyncio.sleep(0.1)
            assert (OfferTaken("c0") in heard._queue) is taken


@pytest.mark.requirement("I13-offer")
@virtual_time
async def test_a_page_that_stays_longer_than_its_offer_loses_the_offer_alone() -> None:
    async with on(DISPLAY) as (stage, glasses):
        await stage.present("c0", text("Noted", 20), offer=TapOffer("tap to undo", 10.0))
        await asyncio.sleep(11)
        assert glasses.history() == ["Noted / tap to undo", "Noted"]
        with glasses.bus.listen() as heard:
            await glasses.say(Gesture.TAP)
            await glasses.until(lambda: glasses.shows == "")
            assert not [h for h in heard._queue if isinstance(h, OfferTaken)]


@pytest.mark.requirement("I13-offer")
@virtual_time
async def test_an_offer_without_room_beside_the_text_has_a_page_of_its_own() -> None:
    words = "\n".join(f"{n} " + "word " * 12 for n in range(5))
    async with on(DISPLAY) as (stage, glasses):
        await stage.present("c0", ToolResponse(data=words), offer=TapOffer("tap to undo", 10.0))
        assert "undo" not in glasses.shows
        for _ in range(glasses.pages()[0].pages - 1):
            await glasses.say(Gesture.TAP)
            await asyncio.sleep(1)
        assert glasses.shows.endswith("tap to undo")


@pytest.mark.requirement("I13-under")
@virtual_time
async def test_a_page_whose_speech_was_cut_still_returns() -> None:
    glasses = Watched(FULL)
    glasses.speed = 1.0
    async with on(FULL, glasses=glasses) as (stage, _):
        loud = {"audio": {"pcm": _SOUND}}
        words = " ".join(f"word{n}" for n in range(90))
        long = ToolResponse(data="", render={"display": {"text": words}, **loud})
        with glasses.bus.listen() as heard:
            await stage.present("long", long)
            await asyncio.sleep(2)
            await stage.present(
                "new", ToolResponse(data="", render={**text("new", 3).render, **loud})
            )
            await asyncio.sleep(4)
            assert glasses.shows.startswith("word0")
            assert not changes(heard, "long"), "its pages can still be read"


@pytest.mark.requirement("I13-cut-is-superseded")
@virtual_time
async def test_a_page_that_was_cut_while_it_was_spoken_is_spoken_to_its_end() -> None:
    glasses = Watched(FULL)
    glasses.speed = 1.0
    async with on(FULL, glasses=glasses) as (stage, _):
        loud = {**text("old", 3).render, "audio": {"pcm": _SOUND}}
        final = asyncio.ensure_future(
            stage.present("old", ToolResponse(data="", render=loud), wait=Wait.DELIVERY)
        )
        await glasses.until(lambda: glasses.frames() > 0)
        await stage.present("new", text("new", 5, priority="urgent"))
        assert glasses.shows == "new"
        assert await final == DeliveryReport(Delivery.SPOKEN)


@virtual_time
async def test_on_glasses_without_a_lens_a_newer_speech_cuts_the_older_and_says_so() -> None:
    glasses = Watched(AUDIO)
    glasses.speed = 1.0
    async with on(AUDIO, glasses=glasses) as (stage, _):
        story = ToolResponse(data="", render={"audio": {"pcm": _SOUND}})
        first = asyncio.ensure_future(stage.present("c0", story, wait=Wait.DELIVERY))
        await glasses.until(lambda: glasses.frames() > 0)
        await stage.present("c1", story)
        assert await first == DeliveryReport(Delivery.SUPERSEDED, NEWER)


# ------------------------------------------------------------------ announcements


@virtual_time
async def test_who_waits_until_a_text_is_shown_does_not_hear_that_it_is_queued() -> None:
    async with on(DISPLAY) as (stage, glasses):
        assert await stage.present("c1", text("result", 3)) == SHOWN
        queued = await stage.tell("Timer over", scene="alarm-1")
        assert queued.state is Delivery.QUEUED
        report = await stage.tell("From Anna: hello", scene="alarm-2", until_shown=True)
        assert report == SHOWN
        assert "From Anna: hello" in glasses.shows
        glasses.leave()
        left = now()
        away = await stage.tell("From Anna: again", scene="alarm-3", until_shown=True)
        assert now() - left < 10, "no minute: nothing but the page of before was waited for"
        assert away == DeliveryReport(Delivery.QUEUED, "glasses away")
