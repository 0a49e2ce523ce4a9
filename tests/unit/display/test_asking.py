"""Questions to the wearer: where they are asked, what counts as an answer, and what comes back
after them.
"""

import asyncio
from typing import Any

import pytest

from edge.display.voice.tts import TextToSpeech
from edge.ports import NobodyToAsk, Question, Wait
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import DeliveryChanged
from firmware_bridge.errors import CommandRefused, CommandTimeout
from firmware_bridge.messages import Answer, EndPrompt, Gesture, Prompt, ShowPage, StartAudio
from tests.unit.display.fakes import AUDIO, DISPLAY, FULL, FakeGlasses, Notebook
from tools_cache.api.tool import Delivery, DeliveryReport, ToolResponse

PAY = Question("c9/ask", "Pay 20 euros to Anna?", 30.0, "pay", "no")
HINT = "tap: pay · double tap: no"
LONG = " ".join(f"word{n}" for n in range(90))
TALK = "A rather long sentence that goes on and on for quite a while, as it must."


@pytest.fixture(autouse=True)
def answers_count_at_once(monkeypatch) -> None:
    """What is too early to count is `test_early_answers.py`'s."""
    monkeypatch.setattr("edge.display.prompts.TOO_SOON_S", 0.0)


@pytest.fixture
def guarded(monkeypatch) -> None:
    monkeypatch.setattr("edge.display.prompts.TOO_SOON_S", 0.7)


async def said(stage: Any, glasses: FakeGlasses) -> None:
    """Wait until a question was spoken to its end."""
    await glasses.until(lambda: bool(stage._prompter._queue) and stage._prompter._queue[0].heard)


class Boot:
    """A boot clock a test turns by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def clock(self) -> Clock:
        return Clock(boot=lambda: self.now)


def begin(stage: Any, question: Question = PAY) -> "asyncio.Future[Answer]":
    return asyncio.ensure_future(stage.ask(question))


async def soon(future: "asyncio.Future[Answer]") -> Answer:
    async with asyncio.timeout(40):
        return await future


def pages_only(facts: dict[str, Any]) -> FakeGlasses:
    glasses = FakeGlasses(Bus(), facts)
    glasses.prompts = False
    return glasses


# ------------------------------------------------------------------ glasses that ask by themselves


@pytest.mark.requirement("S2-95")
@pytest.mark.parametrize("answer", [Answer.ALLOW, Answer.DENY])
async def test_a_question_is_asked_on_the_lens_and_the_wearer_answers(
    open_stage, answer: Answer
) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        asking = begin(stage)
        await glasses.until(lambda: bool(glasses.asked()))
        (prompt,) = glasses.asked()
        assert [line.text for line in prompt.lines] == [PAY.text, HINT]
        assert prompt.lines[-1].row == 4, "the last row says what to do"
        assert 29 < prompt.timeout_s <= 30
        glasses.answer(answer)
        assert await soon(asking) is answer
        assert not any(isinstance(c, EndPrompt) for c in glasses.told), (
            "it was answered: nothing is left to end"
        )


async def test_the_lens_report_shows_a_question(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        asking = begin(stage)
        await glasses.until(lambda: stage.lens()["scene"] == PAY.scene)
        assert stage.lens()["lines"] == [PAY.text, HINT]
        glasses.answer(Answer.DENY)
        await soon(asking)


@pytest.mark.requirement("I3-ask-older")
async def test_an_answer_to_an_older_question_is_no_answer(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        first = begin(stage)
        await glasses.until(lambda: len(glasses.asked()) == 1)
        old = glasses.open_prompt
        glasses.answer(Answer.DENY)
        await soon(first)
        second = begin(stage)
        await glasses.until(lambda: len(glasses.asked()) == 2)
        assert glasses.open_prompt != old
        glasses.answer(Answer.ALLOW, prompt=old)
        await asyncio.sleep(0.02)
        assert not second.done()
        glasses.answer(Answer.DENY)
        assert await soon(second) is Answer.DENY


@pytest.mark.requirement("I3-ask-older")
async def test_no_two_daemons_of_a_boot_use_one_number(open_stage) -> None:
    boot, numbers = Boot(), []
    for _ in range(2):
        async with open_stage(DISPLAY, clock=boot.clock()) as (stage, glasses):
            for count in range(1, 4):
                asking = begin(stage)
                await glasses.until(lambda: len(glasses.asked()) == count)  # noqa: B023
                glasses.answer(Answer.ALLOW)
                await soon(asking)
            numbers += [prompt.prompt for prompt in glasses.asked()]
        boot.now += 0.5
    assert len(set(numbers)) == 6


async def test_a_prompt_without_any_pixel_asks_nobody(open_stage) -> None:
    async with open_stage(FULL) as (stage, glasses):
        glasses.drawn = 0
        asking = begin(stage)
        await glasses.until(lambda: bool(glasses.streams))
        assert glasses.open_prompt is None, "a yes to what nobody could see is none"
        await said(stage, glasses)
        await glasses.say(Gesture.BUTTON)
        assert await soon(asking) is Answer.ALLOW


# ------------------------------------------------------------------ pages and gestures


@pytest.mark.requirement("S2-95")
@pytest.mark.parametrize(
    ("gesture", "answer"),
    [
        (Gesture.TAP, Answer.ALLOW),
        (Gesture.DOUBLE_TAP, Answer.DENY),
        (Gesture.BUTTON, Answer.ALLOW),
        (Gesture.BUTTON_LONG, Answer.DENY),
    ],
)
async def test_glasses_that_cannot_ask_show_a_page_and_the_gesture_answers(
    open_stage, gesture, answer
) -> None:
    boot = Boot()
    async with open_stage(DISPLAY, glasses=pages_only(DISPLAY), clock=boot.clock()) as (
        stage,
        glasses,
    ):
        asking = begin(stage)
        await glasses.until(lambda: stage.lens()["scene"] == PAY.scene)
        assert glasses.texts() == [f"{PAY.text} {HINT}"]
        boot.now += 0.7
        await glasses.say(gesture)
        assert await soon(asking) is answer


@pytest.mark.requirement("I3-ask-too-soon")
async def test_a_tap_meant_for_turning_a_page_allows_nothing(open_stage, guarded) -> None:
    boot = Boot()
    async with open_stage(DISPLAY, glasses=pages_only(DISPLAY), clock=boot.clock()) as (
        stage,
        glasses,
    ):
        await stage.present("c1", ToolResponse(data=LONG))
        release = glasses.hold()
        asking = begin(stage)
        await glasses.until(lambda: len(glasses.pages()) == 2)
        await glasses.say(Gesture.TAP)  # the page is on its way
        release.set()
        await glasses.until(lambda: stage.lens()["scene"] == PAY.scene)
        for _ in range(3):
            await glasses.say(Gesture.TAP)
            await glasses.say(Gesture.DOUBLE_TAP)
            boot.now += 0.23
        await asyncio.sleep(0.02)
        assert not asking.done()
        assert [page.scene for page in glasses.pages()] == ["c1", PAY.scene], "nor turns it a page"
        boot.now += 0.02
        await glasses.say(Gesture.TAP)
        assert await soon(asking) is Answer.ALLOW


async def test_a_question_names_a_press_for_glasses_with_a_button(open_stage) -> None:
    facts = {**DISPLAY, "gestures": "button,button_long"}
    async with open_stage(facts) as (stage, glasses):
        asking = begin(stage)
        await glasses.until(lambda: bool(glasses.asked()))
        assert glasses.asked()[0].lines[-1].text == "press: pay · long press: no"
        glasses.answer(Answer.DENY)
        await soon(asking)


# ------------------------------------------------------------------ glasses without a lens


@pytest.mark.requirement("S2-95")
@pytest.mark.requirement("I3-ask-ear", "I11-consent-spoken")
@pytest.mark.parametrize(
    ("gesture", "answer"),
    [
        (Gesture.BUTTON, Answer.ALLOW),
        (Gesture.TAP, Answer.ALLOW),
        (Gesture.BUTTON_LONG, Answer.DENY),
        (Gesture.DOUBLE_TAP, Answer.DENY),
    ],
)
async def test_without_a_lens_a_press_answers_after_the_spoken_question(
    open_stage, gesture, answer
) -> None:
    async with open_stage(AUDIO) as (stage, glasses):
        asking = begin(stage)
        await said(stage, glasses)
        await glasses.say(gesture)
        assert await soon(asking) is answer
        assert (len(glasses.streams), glasses.flushed) == (1, [])


@pytest.mark.requirement("I3-ask-ear")
@pytest.mark.parametrize("gesture", [Gesture.BUTTON_LONG, Gesture.DOUBLE_TAP])
async def test_a_no_counts_while_the_question_is_spoken_and_silences_it(
    open_stage, gesture
) -> None:
    async with open_stage(AUDIO, glasses=FakeGlasses(Bus(), AUDIO, speed=0.2)) as (stage, glasses):
        asking = begin(stage)
        await glasses.until(lambda: glasses.frames() > 0)
        await glasses.say(gesture)
        assert await soon(asking) is Answer.DENY
        await glasses.until(lambda: glasses.flushed == [1])


@pytest.mark.requirement("I11-consent-spoken")
async def test_a_press_before_the_end_of_the_question_is_no_yes(open_stage, monkeypatch) -> None:
    monkeypatch.setattr(TextToSpeech, "why_not", lambda self: "")
    async with open_stage(AUDIO, glasses=FakeGlasses(Bus(), AUDIO, speed=5.0)) as (stage, glasses):
        release = glasses.hold()
        asking = begin(stage)
        await glasses.until(
            lambda: any(isinstance(c, StartAudio) for c in glasses.told), within_s=40
        )
        await glasses.say(Gesture.BUTTON)
        release.set()
        await glasses.until(lambda: glasses.frames() > 0)
        await glasses.say(Gesture.BUTTON)
        await asyncio.sleep(0.02)
        assert not asking.done()
        assert not glasses.flushed, "nor does it silence the question"
        await said(stage, glasses)
        await glasses.say(Gesture.BUTTON)
        assert await soon(asking) is Answer.ALLOW


@pytest.mark.requirement("I11-consent-spoken")
async def test_a_question_that_was_cut_off_is_spoken_again_from_its_beginning(
    open_stage, monkeypatch
) -> None:
    monkeypatch.setattr("edge.display.prompts.RETRY_S", 0.02)
    async with open_stage(AUDIO, glasses=FakeGlasses(Bus(), AUDIO, speed=0.5)) as (stage, glasses):
        asking = begin(stage)
        await glasses.until(lambda: glasses.frames() > 0)
        glasses.leave()
        await glasses.until(lambda: stage._speech.speaking is None)
        glasses.speed = 50.0
        glasses.come_back()
        await glasses.say(Gesture.BUTTON)
        await glasses.until(lambda: sum(isinstance(c, StartAudio) for c in glasses.told) == 2)
        assert not asking.done()
        await said(stage, glasses)
        await glasses.say(Gesture.BUTTON)
        assert await soon(asking) is Answer.ALLOW


@pytest.mark.requirement("I11-consent-spoken")
@pytest.mark.requirement("I3-ask-lost")
async def test_a_question_is_spoken_again_after_the_link_was_lost_meanwhile(
    open_stage, monkeypatch
) -> None:
    monkeypatch.setattr("edge.display.prompts.RETRY_S", 0.02)
    async with open_stage(AUDIO, glasses=FakeGlasses(Bus(), AUDIO, speed=0.5)) as (stage, glasses):
        asking = begin(stage)
        await glasses.until(lambda: glasses.frames() > 0)
        glasses.leave()
        glasses.speed = 50.0
        glasses.come_back()
        await glasses.say(Gesture.BUTTON)
        await glasses.until(lambda: len(glasses.streams) == 2 or asking.done())
        assert not asking.done()
        await said(stage, glasses)
        await glasses.say(Gesture.BUTTON)
        assert await soon(asking) is Answer.ALLOW
        first, second = (len(frames) for _, frames in glasses.streams.values())
        assert first < second


@pytest.mark.requirement("K3-scene")
async def test_a_heard_question_is_not_spoken_again_when_the_glasses_return(
    open_stage,
) -> None:
    async with open_stage(AUDIO) as (stage, glasses):
        asking = begin(stage)
        await said(stage, glasses)
        glasses.leave()
        glasses.come_back()
        await asyncio.sleep(0.1)
        await glasses.say(Gesture.BUTTON)
        assert await soon(asking) is Answer.ALLOW
        assert sum(isinstance(c, StartAudio) for c in glasses.told) == 1


@pytest.mark.requirement("I11-consent-spoken")
async def test_a_question_that_was_heard_with_other_glasses_is_spoken_again(open_stage) -> None:
    async with open_stage(AUDIO) as (stage, glasses):
        asking = begin(stage)
        await said(stage, glasses)
        glasses.leave()
        glasses.address = "BB"
        glasses.return_unheard()
        await glasses.say(Gesture.BUTTON)
        glasses.tell_return()
        await glasses.say(Gesture.BUTTON)
        await glasses.until(lambda: sum(isinstance(c, StartAudio) for c in glasses.told) == 2)
        assert not asking.done()
        await said(stage, glasses)
        await glasses.say(Gesture.BUTTON)
        assert await soon(asking) is Answer.ALLOW


@pytest.mark.requirement("I11-consent-spoken")
@pytest.mark.parametrize(
    "question",
    [
        Question("c9/ask", "Pay. こんにちは. Now.", 30.0),
        Question("c9/ask", "to: Жук", 30.0, exact=True),
        Question("c9/ask", "word " * 400, 30.0),
    ],
)
async def test_a_question_that_cannot_be_spoken_whole_is_not_asked(
    open_stage, without_espeak, question
) -> None:
    async with open_stage(AUDIO) as (stage, _glasses):
        with pytest.raises(NobodyToAsk, match=r"cannot be spoken|too long to be spoken"):
            await soon(begin(stage, question))


async def test_a_question_without_any_sound_says_that_nobody_was_asked(open_stage) -> None:
    async with open_stage(AUDIO, glasses=FakeGlasses(Bus(), AUDIO)) as (stage, glasses):

        def refuse(command: Any) -> None:
            if isinstance(command, StartAudio):
                raise CommandRefused("busy")

        glasses.refuse = refuse
        with pytest.raises(NobodyToAsk, match="did not open the stream"):
            await soon(begin(stage))


# ------------------------------------------------------------------ time


@pytest.mark.requirement("I3-ask-silence")
@pytest.mark.parametrize("prompts", [True, False])
async def test_silence_is_a_timeout_and_takes_the_question_off(open_stage, prompts: bool) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        glasses.prompts = prompts
        await stage.present("c1", ToolResponse(data="what was read"))
        asking = begin(stage, Question("c9/ask", "Sure?", 0.2))
        assert await soon(asking) is Answer.TIMEOUT
        await glasses.until(
            lambda: len(glasses.pages()) > 1 and glasses.texts()[-1] == "what was read"
        )
        assert glasses.open_prompt is None


@pytest.mark.requirement("I3-ask-silence")
async def test_our_clock_and_not_that_of_the_glasses_ends_a_question(open_stage) -> None:
    boot = Boot()
    async with open_stage(DISPLAY, clock=boot.clock()) as (stage, glasses):
        asking = begin(stage)
        await glasses.until(lambda: len(glasses.asked()) == 1)
        boot.now += 10
        glasses.answer(Answer.TIMEOUT)
        await asyncio.sleep(0.02)
        assert not asking.done()
        boot.now += 2
        stage._wake.set()
        await glasses.until(lambda: len(glasses.asked()) == 2)
        assert glasses.asked()[1].timeout_s == 18
        boot.now += 18
        glasses.answer(Answer.ALLOW)
        assert await soon(asking) is Answer.TIMEOUT, "a yes after the time is none"


async def test_a_machine_that_slept_through_the_question_wakes_to_a_timeout(
    open_stage, monkeypatch
) -> None:
    monkeypatch.setattr("edge.display.prompts._SLICE_S", 0.02)
    boot = Boot()
    async with open_stage(DISPLAY, clock=boot.clock()) as (stage, glasses):
        asking = begin(stage)
        await glasses.until(lambda: len(glasses.asked()) == 1)
        boot.now += 3600
        assert await soon(asking) is Answer.TIMEOUT


async def test_a_display_that_does_not_run_cannot_block_the_asker() -> None:
    glasses = FakeGlasses(Bus(), DISPLAY)
    from edge.display.presenter import Presenter

    stage = Presenter(glasses=glasses, bus=glasses.bus, clock=Clock.system(), notes=Notebook())
    assert await soon(begin(stage, Question("c9/ask", "Sure?", 0.1))) is Answer.TIMEOUT


# ------------------------------------------------------------------ away and back, down and up


@pytest.mark.requirement("I3-ask-lost")
@pytest.mark.parametrize("unnoticed", [False, True])
async def test_a_lost_question_is_asked_again_with_the_remaining_time(
    open_stage, unnoticed: bool
) -> None:
    boot = Boot()
    async with open_stage(DISPLAY, clock=boot.clock()) as (stage, glasses):
        asking = begin(stage)
        await glasses.until(lambda: len(glasses.asked()) == 1)
        old = glasses.open_prompt
        glasses.leave(unnoticed=unnoticed)
        boot.now += 12
        glasses.come_back()
        await glasses.until(lambda: len(glasses.asked()) == 2)
        again = glasses.asked()[1]
        assert (again.timeout_s, again.lines) == (18, glasses.asked()[0].lines)
        assert glasses.open_prompt == again.prompt != old
        glasses.answer(Answer.ALLOW, prompt=old)
        await asyncio.sleep(0.02)
        assert not asking.done()
        glasses.answer(Answer.ALLOW)
        assert await soon(asking) is Answer.ALLOW


@pytest.mark.requirement("I3-ask-lost")
async def test_a_page_with_a_question_comes_back_as_the_same_scene(open_stage, guarded) -> None:
    boot = Boot()
    async with open_stage(DISPLAY, glasses=pages_only(DISPLAY), clock=boot.clock()) as (
        stage,
        glasses,
    ):
        asking = begin(stage)
        await glasses.until(lambda: stage.lens()["scene"] == PAY.scene)
        boot.now += 5
        glasses.leave()
        glasses.come_back()
        await glasses.until(lambda: len(glasses.pages()) == 2)
        await asyncio.sleep(0.02)
        await glasses.say(Gesture.TAP)
        await asyncio.sleep(0.02)
        assert not asking.done(), "its page is new on this lens"
        boot.now += 1
        await glasses.say(Gesture.TAP)
        assert await soon(asking) is Answer.ALLOW
        assert glasses.pages()[0] == glasses.pages()[1]


@pytest.mark.requirement("I3-ask-lost")
async def test_the_time_of_a_question_runs_on_while_the_glasses_are_away(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        asking = begin(stage, Question("c9/ask", "Sure?", 0.2))
        await glasses.until(lambda: len(glasses.asked()) == 1)
        glasses.leave(unnoticed=True)
        assert await soon(asking) is Answer.TIMEOUT
        glasses.come_back()
        await glasses.until(lambda: glasses.open_prompt is None)
        await glasses.until(lambda: glasses.clears() == 1)
        assert len(glasses.asked()) == 1


async def test_a_question_for_glasses_that_are_away_is_asked_when_they_come(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        await stage.present("c1", ToolResponse(data="what was read"))
        glasses.leave()
        asking = begin(stage)
        await asyncio.sleep(0.02)
        assert not asking.done()
        glasses.come_back()
        await glasses.until(lambda: len(glasses.asked()) == 1)
        assert len(glasses.pages()) == 1, "the question first"
        glasses.answer(Answer.ALLOW)
        assert await soon(asking) is Answer.ALLOW
        await glasses.until(lambda: glasses.texts() == ["what was read"] * 2)


@pytest.mark.requirement("I3-ask-lost")
@pytest.mark.parametrize("prompts", [True, False])
async def test_a_question_goes_before_a_result_that_comes_with_the_glasses(
    open_stage, prompts: bool
) -> None:
    async with open_stage(DISPLAY, glasses=None if prompts else pages_only(DISPLAY)) as (
        stage,
        glasses,
    ):
        glasses.leave()
        asking = begin(stage)
        await asyncio.sleep(0.02)
        glasses.return_unheard()
        result = asyncio.ensure_future(stage.present("c1", ToolResponse(data="new")))
        await glasses.until(lambda: bool(_drawn(glasses)))
        glasses.tell_return()
        await result
        await asyncio.sleep(0.05)
        assert _drawn(glasses) == [HINT], "the question alone, and once on this link"
        assert glasses.clears() == 0
        assert result.result() == DeliveryReport(Delivery.QUEUED, "1 of 1, a question is open")
        asking.cancel()
        await glasses.until(lambda: _drawn(glasses) == [HINT, "new"])


def _drawn(glasses: FakeGlasses) -> list[str]:
    """The last line of every page and prompt."""
    return [c.lines[-1].text for c in glasses.told if isinstance(c, Prompt | ShowPage)]


@pytest.mark.requirement("I3-ask-lost")
async def test_a_prompt_the_glasses_still_hold_open_is_ended_first(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        glasses.open_prompt = 3
        asking = begin(stage)
        await glasses.until(lambda: glasses.open_prompt not in (None, 3))
        assert [type(c) for c in glasses.told] == [Prompt, EndPrompt, Prompt]
        glasses.answer(Answer.ALLOW)
        assert await soon(asking) is Answer.ALLOW


async def test_busy_glasses_are_asked_until_they_are_free(open_stage, monkeypatch) -> None:
    monkeypatch.setattr("edge.display.prompts.RETRY_S", 0.02)
    async with open_stage(DISPLAY) as (stage, glasses):
        busy = [True]

        def refuse(command: Any) -> None:
            if isinstance(command, EndPrompt):
                raise CommandRefused("unsupported")
            if isinstance(command, Prompt) and busy:
                raise CommandRefused("busy")

        glasses.refuse = refuse
        asking = begin(stage)
        await asyncio.sleep(0.1)
        assert not asking.done()
        busy.clear()
        await glasses.until(lambda: glasses.open_prompt is not None)
        glasses.answer(Answer.ALLOW)
        assert await soon(asking) is Answer.ALLOW


async def test_an_unconfirmed_prompt_is_ended_and_asked_again(open_stage, monkeypatch) -> None:
    monkeypatch.setattr("edge.display.prompts.RETRY_S", 0.02)
    async with open_stage(DISPLAY) as (stage, glasses):
        lost = [True]

        def refuse(command: Any) -> None:
            if isinstance(command, Prompt) and lost:
                lost.clear()
                glasses.open_prompt = command.prompt
                raise CommandTimeout("no word")

        glasses.refuse = refuse
        asking = begin(stage)
        await glasses.until(lambda: len(glasses.asked()) == 1)
        await asyncio.sleep(0.02)
        assert any(isinstance(c, EndPrompt) for c in glasses.told)
        glasses.answer(Answer.ALLOW)
        assert await soon(asking) is Answer.ALLOW


@pytest.mark.requirement("I3-ask-killed")
@pytest.mark.parametrize("prompts", [True, False])
async def test_a_daemon_that_ends_leaves_no_question_on_the_lens(open_stage, prompts: bool) -> None:
    notes, glasses = Notebook(), FakeGlasses(Bus(), DISPLAY)
    glasses.prompts = prompts
    async with open_stage(DISPLAY, notes=notes, glasses=glasses) as (stage, _):
        asking = begin(stage)
        await glasses.until(lambda: stage.lens()["scene"] == PAY.scene)
        held = glasses.open_prompt
        notes.kept = dict(notes.kept)
        dead, notes.put = notes.put, _nothing  # what comes after a kill is not written
        told = len(glasses.told)
    asking.cancel()
    await asyncio.wait({asking})
    del glasses.told[told:]
    glasses.open_prompt, notes.put = held, dead
    async with open_stage(DISPLAY, notes=notes, glasses=glasses) as (stage, _):
        await glasses.until(lambda: glasses.clears() == 1)
        assert glasses.open_prompt is None
        assert notes.kept["stage.scene"] is None or notes.kept["stage.scene"].get("question")


@pytest.mark.requirement("I3-ask-killed")
async def test_a_restarted_daemon_brings_back_what_the_question_covered(open_stage) -> None:
    notes, glasses = Notebook(), FakeGlasses(Bus(), DISPLAY)
    async with open_stage(DISPLAY, notes=notes, glasses=glasses) as (stage, _):
        await stage.present("c1", ToolResponse(data="what was read"))
        asking = begin(stage)
        await glasses.until(lambda: stage.lens()["scene"] == PAY.scene)
        dead, notes.put = notes.put, _nothing
        told = len(glasses.told)
    asking.cancel()
    await asyncio.wait({asking})
    notes.put = dead
    async with open_stage(DISPLAY, notes=notes, glasses=glasses) as (_, _):
        await glasses.until(lambda: len(glasses.told) >= told + 2)
        assert [type(c) for c in glasses.told[told:]] == [EndPrompt, ShowPage]
        assert glasses.texts() == ["what was read"] * 2


async def _nothing(name: str, value: Any) -> None:
    pass


# ------------------------------------------------------------------ what was and what comes


@pytest.mark.requirement("I3-ask-restores")
@pytest.mark.requirement("S3-31")
@pytest.mark.parametrize("prompts", [True, False])
@pytest.mark.parametrize("end", ["answer", "cancel"])
async def test_what_was_read_returns_at_its_page_after_a_question(
    open_stage, prompts: bool, end: str
) -> None:
    boot = Boot()
    async with open_stage(DISPLAY, clock=boot.clock()) as (stage, glasses):
        glasses.prompts = prompts
        await stage.present("c1", ToolResponse(data=LONG))
        await glasses.say(Gesture.TAP)
        await glasses.until(lambda: stage.lens()["page"] == 2)
        with glasses.bus.listen() as heard:
            asking = begin(stage)
            await glasses.until(lambda: stage.lens()["scene"] == PAY.scene)
            boot.now += 25  # longer than a page stays: its time stands still under a question
            await _end(asking, glasses, end)
            await glasses.until(lambda: stage.lens()["scene"] == "c1")
            assert (stage.lens()["page"], glasses.open_prompt) == (2, None)
            await asyncio.sleep(0.02)
            assert not [h for h in heard._queue if isinstance(h, DeliveryChanged)]
            assert glasses.clears() == 0


async def _end(asking: "asyncio.Future[Answer]", glasses: FakeGlasses, end: str) -> None:
    if end == "cancel":
        asking.cancel()
        await asyncio.wait({asking})
    elif glasses.prompts:
        glasses.answer(Answer.ALLOW)
    else:
        await glasses.say(Gesture.TAP)


@pytest.mark.requirement("I3-ask-restores")
@pytest.mark.parametrize("prompts", [True, False])
async def test_a_lens_that_was_dark_is_dark_again(open_stage, prompts: bool) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        glasses.prompts = prompts
        asking = begin(stage)
        await glasses.until(lambda: stage.lens()["scene"] == PAY.scene)
        asking.cancel()
        await glasses.until(lambda: stage.lens()["lines"] == [])
        assert glasses.open_prompt is None


async def test_a_cancelled_question_is_cancelled_for_who_asked(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        asking = begin(stage)
        await glasses.until(lambda: bool(glasses.asked()))
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking


@pytest.mark.requirement("I3-ask-waits")
async def test_results_and_alarms_wait_for_a_question_and_brief_texts_are_dropped(
    open_stage,
) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        await stage.present("c1", ToolResponse(data="what was read"))
        asking = begin(stage)
        await glasses.until(lambda: bool(glasses.asked()))
        assert await stage.tell("half way", brief=True) == DeliveryReport(
            Delivery.DROPPED, "a question is open"
        )
        assert await stage.present("c2", ToolResponse(data="newer")) == DeliveryReport(
            Delivery.QUEUED, "1 of 1, a question is open"
        )
        assert (await stage.tell("Timer over")).state is Delivery.QUEUED
        assert glasses.texts() == ["what was read"]
        glasses.answer(Answer.ALLOW)
        await soon(asking)
        assert (
            await stage.present("c2", ToolResponse(data="newer"), wait=Wait.DELIVERY)
        ).state is Delivery.SHOWN
        assert glasses.texts()[1] == "newer"
        await glasses.say(Gesture.DOUBLE_TAP)
        await glasses.until(lambda: glasses.texts()[-1] == "Timer over")


@pytest.mark.requirement("I3-ask-waits")
async def test_an_alarm_outlives_a_question_and_a_crowd_of_results(open_stage) -> None:
    boot = Boot()
    async with open_stage(DISPLAY, clock=boot.clock()) as (stage, glasses):
        asking = begin(stage, Question("c9/ask", "Sure?", 300.0))
        await glasses.until(lambda: bool(glasses.asked()))
        await stage.tell("Timer over")
        for number in range(6):
            await stage.present(f"c{number}", ToolResponse(data=f"result {number}"))
        boot.now += 290
        glasses.answer(Answer.DENY)
        await soon(asking)
        await glasses.until(lambda: glasses.texts() == ["Timer over"])


@pytest.mark.requirement("I3-ask-waits")
async def test_a_question_silences_speech_so_a_tap_for_silence_is_no_answer(
    open_stage,
) -> None:
    async with open_stage(FULL, glasses=FakeGlasses(Bus(), FULL, speed=0.2)) as (stage, glasses):
        await stage.present("c1", ToolResponse(data=TALK))
        await glasses.until(lambda: glasses.frames() > 0)
        with glasses.bus.listen() as heard:
            asking = begin(stage)
            await glasses.until(lambda: bool(glasses.asked()))
            assert glasses.flushed == [1]
            await asyncio.sleep(0.02)
            (told,) = [h.report for h in heard._queue if isinstance(h, DeliveryChanged)]
            assert told == DeliveryReport(Delivery.SPOKEN, "stopped by a question")
        glasses.answer(Answer.DENY)
        await soon(asking)


@pytest.mark.requirement("I3-ask-waits")
async def test_without_a_lens_results_are_spoken_in_turn_after_the_question(
    open_stage,
) -> None:
    async with open_stage(AUDIO) as (stage, glasses):
        asking = begin(stage)
        await said(stage, glasses)
        telling = [
            asyncio.ensure_future(
                stage.present(f"c{n}", ToolResponse(data=f"Result {n}."), wait=Wait.DELIVERY)
            )
            for n in (1, 2)
        ]
        await asyncio.sleep(0.02)
        assert len(glasses.streams) == 1
        await glasses.say(Gesture.BUTTON)
        assert await soon(asking) is Answer.ALLOW
        assert [(await told).state for told in telling] == [Delivery.SPOKEN] * 2


# ------------------------------------------------------------------ one at a time


@pytest.mark.requirement("I3-ask-one")
async def test_questions_are_asked_one_at_a_time_in_order(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        asking = [begin(stage, Question(f"q{n}", f"Question {n}?", 30.0)) for n in range(3)]
        for number in range(3):
            await glasses.until(lambda: len(glasses.asked()) == number + 1)  # noqa: B023
            assert glasses.asked()[-1].lines[0].text == f"Question {number}?"
            await asyncio.sleep(0.02)
            assert len(glasses.asked()) == number + 1
            glasses.answer(Answer.ALLOW if number % 2 else Answer.DENY)
            assert await soon(asking[number]) is (Answer.ALLOW if number % 2 else Answer.DENY)
        assert not glasses.pages(), "nothing flashes between two questions"


@pytest.mark.requirement("I3-ask-one")
async def test_a_question_called_off_while_it_waits_is_never_asked(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        first, second, third = (
            begin(stage, Question(f"q{n}", f"Question {n}?", 30.0)) for n in range(3)
        )
        await glasses.until(lambda: len(glasses.asked()) == 1)
        second.cancel()
        glasses.answer(Answer.ALLOW)
        await soon(first)
        await glasses.until(lambda: len(glasses.asked()) == 2)
        assert glasses.asked()[-1].lines[0].text == "Question 2?"
        glasses.answer(Answer.ALLOW)
        await soon(third)


@pytest.mark.requirement("I3-ask-one")
async def test_a_ninth_question_that_would_wait_is_refused_at_once(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        asking = [begin(stage, Question(f"q{n}", "Sure?", 30.0)) for n in range(9)]
        await glasses.until(lambda: len(glasses.asked()) == 1)
        with pytest.raises(NobodyToAsk, match="8 questions wait already"):
            await stage.ask(PAY)
        asking[5].cancel()
        await asyncio.sleep(0)
        tenth = begin(stage)
        await asyncio.sleep(0.02)
        assert not tenth.done(), "there is room again"
        for future in (*asking, tenth):
            future.cancel()
        await asyncio.wait({*asking, tenth})


# ------------------------------------------------------------------ nobody to ask


@pytest.mark.requirement("I3-ask-nobody")
@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"microphone": True}, "neither a display nor a speaker and a button"),
        ({**AUDIO, "button": False}, "neither a display nor a speaker and a button"),
        ({"button": True, "gestures": "button"}, "neither a display nor a speaker and a button"),
        ({**AUDIO, "speaker.codecs": "lc3"}, "no sound we can make"),
    ],
)
async def test_glasses_that_could_never_ask_say_so_at_once(open_stage, facts, why: str) -> None:
    async with open_stage(facts) as (stage, glasses):
        with pytest.raises(NobodyToAsk, match=why):
            await stage.ask(PAY)
        glasses.ready = False
        with pytest.raises(NobodyToAsk, match=why):
            await stage.ask(PAY)
        assert not glasses.told


@pytest.mark.requirement("I3-ask-nobody")
async def test_without_known_glasses_there_is_nobody_to_ask(open_stage) -> None:
    glasses = FakeGlasses(Bus(), DISPLAY)
    glasses.ready = glasses.known = False
    async with open_stage(DISPLAY, glasses=glasses) as (stage, _):
        with pytest.raises(NobodyToAsk, match="no glasses are known"):
            await stage.ask(PAY)


async def test_a_question_that_cannot_be_drawn_stops_nothing_else(open_stage) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):

        def refuse(command: Any) -> None:
            if isinstance(command, Prompt):
                raise ValueError("odd")

        glasses.refuse = refuse
        with pytest.raises(NobodyToAsk):
            await soon(begin(stage))
        assert (await stage.present("c1", ToolResponse(data="fine"))).state is Delivery.SHOWN


@pytest.mark.requirement("I3-ask-waits")
async def test_interrupted_speech_is_spoken_once_after_the_question(open_stage) -> None:
    async with open_stage(AUDIO) as (stage, glasses):
        told = asyncio.ensure_future(
            stage.present("c1", ToolResponse(data="The result."), wait=Wait.DELIVERY)
        )
        await asyncio.sleep(0)
        asking = begin(stage)
        await glasses.until(lambda: bool(glasses.streams))
        await asyncio.sleep(0.05)
        assert not told.done()
        await glasses.until(
            lambda: bool(stage._prompter._queue) and stage._prompter._queue[0].heard
        )
        await glasses.say(Gesture.BUTTON)
        assert await soon(asking) is Answer.ALLOW
        assert (await told).state is Delivery.SPOKEN
        assert len(glasses.streams) == 2


async def test_a_result_for_absent_glasses_is_shown_after_their_question(
    open_stage,
) -> None:
    async with open_stage(DISPLAY) as (stage, glasses):
        glasses.leave()
        assert (await stage.present("c1", ToolResponse(data="later"))).state is Delivery.QUEUED
        asking = begin(stage)
        glasses.come_back()
        await glasses.until(lambda: bool(glasses.asked()))
        glasses.answer(Answer.ALLOW)
        await soon(asking)
        await glasses.until(lambda: glasses.texts() == ["later"])
