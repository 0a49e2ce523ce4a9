"""Answers that come too early, and questions of several pages: what is a yes, and what is none."""

import asyncio
from typing import Any

import pytest

from edge.display.voice.tts import TextToSpeech
from edge.ports import NobodyToAsk, Question
from edge.runtime.bus import Bus
from edge.runtime.events import GlassesSaid
from firmware_bridge.errors import CommandTimeout
from firmware_bridge.messages import (
    Answer,
    ClearPage,
    Done,
    EndPrompt,
    Gesture,
    Gestured,
    Hiding,
    HidingChanged,
    Prompt,
    ShowPage,
    WornChanged,
)
from tests.unit.display.fakes import AUDIO, DISPLAY, FULL, FakeGlasses
from tests.unit.display.test_asking import PAY, Boot, begin, pages_only, soon
from tools_cache.api.tool import ToolResponse

LONG = Question(
    "c9/confirm", "\n".join(f"argument{n}: value number {n}" for n in range(10)), 300.0, exact=True
)
PAGES = 3


def last(glasses: FakeGlasses) -> ShowPage:
    return glasses.pages()[-1]


async def on_page(stage: Any, glasses: FakeGlasses, number: int) -> None:
    await glasses.until(
        lambda: (
            bool(glasses.pages())
            and last(glasses).page == number
            and stage.lens()["page"] == number
        )
    )
    await glasses.until(
        lambda: bool(stage._prompter._queue) and stage._prompter._queue[0].way.value == "page"
    )


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


# ------------------------------------------------------------------ native prompts


@pytest.mark.requirement("I11-consent-early")
@pytest.mark.parametrize("answer", [Answer.ALLOW, Answer.DENY])
@pytest.mark.parametrize("after_s", [0.0, 0.02, 0.3, 0.69])
async def test_an_answer_of_the_glasses_that_is_too_early_does_not_count(
    open_stage, answer, after_s
) -> None:
    boot = Boot()
    async with open_stage(DISPLAY, clock=boot.clock()) as (stage, glasses):
        asking = begin(stage)
        await glasses.until(lambda: len(glasses.asked()) == 1)
        boot.now += after_s
        glasses.answer(answer)
        await on_page(stage, glasses, 1)
        assert [line.text for line in last(glasses).lines] == [
            line.text for line in glasses.asked()[0].lines
        ]
        assert [type(c) for c in glasses.told] == [Prompt, EndPrompt, ShowPage], (
            "glasses that hold theirs open show no page"
        )
        boot.now += 0.69
        await glasses.say(Gesture.TAP)
        await settle()
        assert not asking.done()
        boot.now += 0.02
        await glasses.say(Gesture.TAP)
        assert await soon(asking) is Answer.ALLOW


@pytest.mark.requirement("I11-consent-early")
@pytest.mark.parametrize("answer", [Answer.ALLOW, Answer.DENY])
async def test_an_answer_of_the_glasses_after_that_time_counts(open_stage, answer) -> None:
    boot = Boot()
    async with open_stage(DISPLAY, clock=boot.clock()) as (stage, glasses):
        asking = begin(stage)
        await glasses.until(lambda: len(glasses.asked()) == 1)
        boot.now += 0.7
        glasses.answer(answer)
        assert await soon(asking) is answer


@pytest.mark.requirement("I11-consent-early")
async def test_an_answer_before_the_question_is_drawn_does_not_count(
    open_stage,
) -> None:
    boot = Boot()
    async with open_stage(DISPLAY, clock=boot.clock()) as (stage, glasses):
        release = glasses.hold()
        asking = begin(stage)
        await glasses.until(lambda: len(glasses.asked()) == 1)
        glasses.answer(Answer.ALLOW, prompt=glasses.asked()[0].prompt)
        await settle()
        boot.now += 5
        release.set()
        glasses._hold = None
        await on_page(stage, glasses, 1)
        assert not asking.done()


# ------------------------------------------------------------------ pages


@pytest.mark.requirement("I11-consent-pages")
@pytest.mark.parametrize("prompts", [False, True])
async def test_a_tap_says_yes_only_on_the_last_page(open_stage, prompts) -> None:
    boot = Boot()
    glasses = FakeGlasses(Bus(), DISPLAY) if prompts else pages_only(DISPLAY)
    async with open_stage(DISPLAY, glasses=glasses, clock=boot.clock()) as (stage, _):
        asking = begin(stage, LONG)
        for number in range(1, PAGES + 1):
            await on_page(stage, glasses, number)
            assert not asking.done()
            assert last(glasses).pages == PAGES
            hint = last(glasses).lines[-1].text
            assert hint.startswith("tap: yes" if number == PAGES else "tap: next")
            boot.now += 0.7
            await glasses.say(Gesture.TAP)
        assert await soon(asking) is Answer.ALLOW
        assert not glasses.asked(), "a question of several pages is no prompt of the glasses"
        shown = " ".join(glasses.texts())
        assert all(f"argument{n}: value number {n}" in shown for n in range(10))


@pytest.mark.requirement("I11-consent-pages", "I11-consent-early")
async def test_taps_in_a_row_turn_one_page_each_after_its_time(open_stage) -> None:
    boot = Boot()
    async with open_stage(DISPLAY, glasses=pages_only(DISPLAY), clock=boot.clock()) as (
        stage,
        glasses,
    ):
        asking = begin(stage, LONG)
        await on_page(stage, glasses, 1)
        boot.now += 0.7
        for _ in range(20):
            await glasses.say(Gesture.TAP)
        await on_page(stage, glasses, 2)
        boot.now += 0.69
        for _ in range(20):
            await glasses.say(Gesture.TAP)
        await settle()
        assert (last(glasses).page, asking.done()) == (2, False)
        boot.now += 0.02
        await glasses.say(Gesture.TAP)
        await on_page(stage, glasses, 3)
        for _ in range(5):
            await glasses.say(Gesture.TAP)
            boot.now += 0.13
        await settle()
        assert not asking.done()
        boot.now += 0.1
        await glasses.say(Gesture.TAP)
        assert await soon(asking) is Answer.ALLOW


@pytest.mark.requirement("I11-consent-pages")
async def test_a_tap_before_the_page_arrives_turns_nothing_but_a_no_counts(open_stage) -> None:
    boot = Boot()
    async with open_stage(DISPLAY, glasses=pages_only(DISPLAY), clock=boot.clock()) as (
        stage,
        glasses,
    ):
        asking = begin(stage, LONG)
        await on_page(stage, glasses, 1)
        boot.now += 1
        release = glasses.hold()
        await glasses.say(Gesture.TAP)
        await glasses.until(lambda: len(glasses.pages()) == 2)
        boot.now += 5
        await glasses.say(Gesture.TAP)
        await settle()
        assert not asking.done()
        await glasses.say(Gesture.DOUBLE_TAP)
        assert await soon(asking) is Answer.DENY
        release.set()


@pytest.mark.requirement("I11-consent-pages")
@pytest.mark.parametrize("page", [1, 2, 3])
async def test_a_no_counts_on_every_page(open_stage, page) -> None:
    boot = Boot()
    async with open_stage(DISPLAY, glasses=pages_only(DISPLAY), clock=boot.clock()) as (
        stage,
        glasses,
    ):
        asking = begin(stage, LONG)
        for number in range(1, page):
            await on_page(stage, glasses, number)
            boot.now += 1
            await glasses.say(Gesture.TAP)
        await on_page(stage, glasses, page)
        boot.now += 0.7 if page == 1 else 0.0
        await glasses.say(Gesture.DOUBLE_TAP)
        assert await soon(asking) is Answer.DENY


@pytest.mark.requirement("I11-consent-pages")
@pytest.mark.parametrize("unheard", [False, True])
async def test_glasses_that_were_away_begin_at_the_first_page(open_stage, unheard) -> None:
    boot = Boot()
    async with open_stage(DISPLAY, glasses=pages_only(DISPLAY), clock=boot.clock()) as (
        stage,
        glasses,
    ):
        asking = begin(stage, LONG)
        for number in (1, 2):
            await on_page(stage, glasses, number)
            boot.now += 1
            await glasses.say(Gesture.TAP)
        await on_page(stage, glasses, 3)
        boot.now += 1
        glasses.leave()
        if unheard:
            glasses.return_unheard()
            await glasses.say(Gesture.TAP)  # over the new connection, before anybody heard of it
            await settle()
            assert not asking.done(), "nobody knows what is on that lens"
            glasses.tell_return()
        else:
            glasses.come_back()
        await on_page(stage, glasses, 1)
        boot.now += 1
        await glasses.say(Gesture.TAP)
        await on_page(stage, glasses, 2)
        assert not asking.done()


@pytest.mark.requirement("I11-consent-pages")
async def test_after_an_unconfirmed_page_the_question_begins_again(open_stage, monkeypatch) -> None:
    monkeypatch.setattr("edge.display.prompts.RETRY_S", 0.0)
    boot = Boot()
    async with open_stage(DISPLAY, glasses=pages_only(DISPLAY), clock=boot.clock()) as (
        stage,
        glasses,
    ):
        lost = [True]

        def refuse(command: Any) -> None:
            if isinstance(command, ShowPage) and command.page == 2 and lost:
                lost.clear()
                raise CommandTimeout("no word")

        glasses.refuse = refuse
        asking = begin(stage, LONG)
        await on_page(stage, glasses, 1)
        boot.now += 1
        await glasses.say(Gesture.TAP)
        await glasses.until(lambda: len(glasses.pages()) == 2 and last(glasses).page == 1)
        assert not asking.done()


@pytest.mark.requirement("I11-consent-pages")
@pytest.mark.parametrize("prompts", [False, True])
async def test_a_page_that_the_glasses_clipped_is_not_asked_on(
    open_stage, monkeypatch, prompts
) -> None:
    glasses = FakeGlasses(Bus(), DISPLAY)
    glasses.prompts = prompts
    request = glasses.request

    async def clipping(command: Any, *, timeout_s: float = 5.0) -> Done:
        done = await request(command, timeout_s=timeout_s)
        return Done(drawn=5, clipped=1) if isinstance(command, ShowPage | Prompt) else done

    monkeypatch.setattr(glasses, "request", clipping)
    boot = Boot()
    async with open_stage(DISPLAY, glasses=glasses, clock=boot.clock()) as (stage, _):
        asking = begin(stage)
        await glasses.until(lambda: bool(glasses.pages() or glasses.asked()))
        await settle()
        boot.now += 0.8
        await glasses.say(Gesture.TAP)
        await settle()
        assert not asking.done()


@pytest.mark.requirement("I11-consent-unreadable", "I11-consent-pages")
@pytest.mark.parametrize(
    ("question", "why"),
    [
        (Question("s", "word " * 2000, 30.0), "more than 20 pages"),
        (Question("s", "to: 𗀀𗀁", 30.0, exact=True), "cannot draw the characters"),
    ],
)
@pytest.mark.parametrize("facts", [DISPLAY, FULL])
async def test_what_cannot_be_shown_or_said_whole_is_asked_nowhere(
    open_stage, question, why, facts
) -> None:
    async with open_stage(facts) as (stage, glasses):
        with pytest.raises(NobodyToAsk, match=why):
            await soon(begin(stage, question))
        assert not glasses.told


# ------------------------------------------------------------------ the ear


@pytest.mark.requirement("I11-consent-early", "I11-consent-spoken")
async def test_a_press_right_after_the_speech_is_no_yes(open_stage) -> None:
    boot = Boot()
    async with open_stage(AUDIO, clock=boot.clock()) as (stage, glasses):
        asking = begin(stage, PAY)
        await glasses.until(
            lambda: bool(stage._prompter._queue) and stage._prompter._queue[0].heard
        )
        boot.now += 0.69
        await glasses.say(Gesture.BUTTON)
        await settle()
        assert not asking.done()
        boot.now += 0.02
        await glasses.say(Gesture.BUTTON)
        assert await soon(asking) is Answer.ALLOW


@pytest.mark.requirement("I11-consent-worn")
@pytest.mark.parametrize("when", ["while it is spoken", "after it was spoken"])
async def test_a_question_is_spoken_again_to_glasses_that_were_off_meanwhile(
    open_stage, when
) -> None:
    boot = Boot()
    async with open_stage(AUDIO, clock=boot.clock()) as (stage, glasses):
        asking = begin(stage, PAY)
        await glasses.until(
            lambda: (
                bool(glasses.streams)
                and (stage._prompter._queue[0].heard or when.startswith("while"))
            )
        )
        glasses.worn = False
        glasses.bus.publish(GlassesSaid(WornChanged(worn=False)))
        await settle()
        glasses.worn = True
        glasses.bus.publish(GlassesSaid(WornChanged(worn=True)))
        await settle()
        boot.now += 0.8
        await glasses.say(Gesture.BUTTON)
        await settle()
        assert not asking.done(), "it was not heard whole"

        def spoken_again() -> bool:
            boot.now += 0.2 if stage._prompter._queue[0].way.value == "nowhere" else 0.0
            stage._wake.set()
            return len(glasses.streams) >= 2 and stage._prompter._queue[0].heard

        await glasses.until(spoken_again)
        boot.now += 1
        await glasses.say(Gesture.BUTTON)
        assert await soon(asking) is Answer.ALLOW


@pytest.mark.requirement("I11-consent-hidden")
@pytest.mark.parametrize("gesture", [Gesture.TAP, Gesture.DOUBLE_TAP])
async def test_a_gesture_while_the_lens_cannot_be_seen_is_no_answer(open_stage, gesture) -> None:
    boot = Boot()
    async with open_stage(DISPLAY, glasses=pages_only(DISPLAY), clock=boot.clock()) as (
        stage,
        glasses,
    ):
        asking = begin(stage)
        await on_page(stage, glasses, 1)
        boot.now += 1
        glasses.unseen = "silent mode"
        await glasses.say(gesture)
        await settle()
        assert not asking.done()
        asking.cancel()


@pytest.mark.requirement("I11-consent-hidden")
async def test_a_page_that_was_hidden_while_it_was_drawn_is_not_asked_on(open_stage) -> None:
    boot = Boot()
    async with open_stage(DISPLAY, glasses=pages_only(DISPLAY), clock=boot.clock()) as (
        stage,
        glasses,
    ):
        release = glasses.hold()
        asking = begin(stage)
        await glasses.until(lambda: len(glasses.pages()) == 1)
        glasses.bus.publish(GlassesSaid(HidingChanged(Hiding.DASHBOARD, hidden=True)))
        await settle()
        release.set()
        glasses._hold = None
        await glasses.until(lambda: stage.lens()["page"] == 1)
        await settle()
        boot.now += 0.8
        await glasses.say(Gesture.TAP)
        await settle()
        assert not asking.done()
        asking.cancel()


@pytest.mark.requirement("I13-questions-once")
@pytest.mark.parametrize("when", ["while it is drawn", "after it was drawn"])
async def test_glasses_that_say_that_the_lens_can_be_seen_get_no_second_page(
    open_stage, when
) -> None:
    boot = Boot()
    async with open_stage(DISPLAY, glasses=pages_only(DISPLAY), clock=boot.clock()) as (
        stage,
        glasses,
    ):
        release = glasses.hold()
        asking = begin(stage)
        await glasses.until(lambda: len(glasses.pages()) == 1)
        seen = GlassesSaid(HidingChanged(Hiding.SILENT, hidden=False))
        if when.startswith("while"):
            glasses.bus.publish(seen)
            await settle()
        release.set()
        glasses._hold = None
        await on_page(stage, glasses, 1)
        glasses.bus.publish(seen)
        await settle()
        boot.now += 0.8
        await glasses.say(Gesture.TAP)
        assert await soon(asking) is Answer.ALLOW
        assert len(glasses.pages()) == 1


@pytest.mark.requirement("I13-questions-once")
async def test_a_question_that_waited_to_be_seen_is_drawn_when_it_can_be(open_stage) -> None:
    boot = Boot()
    async with open_stage(DISPLAY, glasses=pages_only(DISPLAY), clock=boot.clock()) as (
        stage,
        glasses,
    ):
        glasses.covered = "the dashboard is open"
        asking = begin(stage)
        await glasses.until(lambda: stage._prompter.active)
        await settle()
        assert not glasses.pages()
        glasses.covered = ""
        glasses.bus.publish(GlassesSaid(HidingChanged(Hiding.DASHBOARD, hidden=False)))
        await on_page(stage, glasses, 1)
        asking.cancel()


@pytest.mark.requirement("I11-consent-worn")
@pytest.mark.parametrize("way", ["prompt", "page", "ear"])
async def test_a_yes_of_glasses_that_nobody_wears_does_not_count(open_stage, way) -> None:
    boot = Boot()
    facts = AUDIO if way == "ear" else DISPLAY
    glasses = FakeGlasses(Bus(), facts) if way == "prompt" else pages_only(facts)
    yes = Gesture.BUTTON if way == "ear" else Gesture.TAP

    def put() -> bool:
        (head,) = stage._prompter._queue or [None]
        return head is not None and head.way.value == way and (way != "ear" or head.heard)

    async with open_stage(facts, glasses=glasses, clock=boot.clock()) as (stage, _):
        asking = begin(stage, PAY)
        await glasses.until(put)
        boot.now += 1
        glasses.worn = False
        if way == "prompt":
            glasses.answer(Answer.ALLOW)
            await on_page(stage, glasses, 1)
            boot.now += 1
        await glasses.say(yes)
        await settle()
        assert not asking.done(), "nobody can have read or heard it"
        glasses.worn = True
        await glasses.say(yes)
        assert await soon(asking) is Answer.ALLOW


@pytest.mark.requirement("I11-consent-worn")
@pytest.mark.parametrize("worn", [False, True])
async def test_a_tap_right_after_the_glasses_were_put_on_or_off_is_none(open_stage, worn) -> None:
    boot = Boot()
    async with open_stage(DISPLAY, glasses=pages_only(DISPLAY), clock=boot.clock()) as (
        stage,
        glasses,
    ):
        asking = begin(stage)
        await on_page(stage, glasses, 1)
        boot.now += 5
        glasses.bus.publish(GlassesSaid(WornChanged(worn=worn)))
        await settle()
        boot.now += 0.69
        await glasses.say(Gesture.TAP)
        await settle()
        assert not asking.done()
        boot.now += 0.02
        await glasses.say(Gesture.TAP)
        assert await soon(asking) is Answer.ALLOW


@pytest.mark.requirement("I11-consent-pages")
async def test_a_question_that_is_laid_out_otherwise_begins_at_its_first_page(open_stage) -> None:
    boot = Boot()
    async with open_stage(DISPLAY, glasses=pages_only(DISPLAY), clock=boot.clock()) as (
        stage,
        glasses,
    ):
        asking = begin(stage, LONG)
        await on_page(stage, glasses, 1)
        boot.now += 1
        glasses.facts = {**DISPLAY, "display.lines": 4}
        await glasses.say(Gesture.TAP)
        await glasses.until(lambda: len(glasses.pages()) == 2)
        assert (last(glasses).page, last(glasses).pages) == (1, PAGES + 1)
        assert not asking.done()


@pytest.mark.requirement("I11-consent-worn")
@pytest.mark.parametrize("prompts", [False, True])
async def test_a_no_of_glasses_that_nobody_wears_counts(open_stage, prompts) -> None:
    boot = Boot()
    glasses = FakeGlasses(Bus(), DISPLAY) if prompts else pages_only(DISPLAY)
    async with open_stage(DISPLAY, glasses=glasses, clock=boot.clock()) as (stage, _):
        asking = begin(stage)
        way = "prompt" if prompts else "page"
        await glasses.until(
            lambda: bool(stage._prompter._queue) and stage._prompter._queue[0].way.value == way
        )
        boot.now += 1
        glasses.worn = False
        if prompts:
            glasses.answer(Answer.DENY)
        else:
            await glasses.say(Gesture.DOUBLE_TAP)
        assert await soon(asking) is Answer.DENY


# ------------------------------------------------------------------ gestures that were meant for
# what was there before


READ = ToolResponse(
    data={},
    render={"display": {"layout": "text_wall", "text": " ".join(f"word{n}" for n in range(90))}},
)


@pytest.mark.requirement("I11-consent-alone")
@pytest.mark.parametrize("gesture", [Gesture.TAP, Gesture.DOUBLE_TAP])
async def test_a_gesture_just_before_a_question_moves_nothing_over_it(open_stage, gesture) -> None:
    boot = Boot()
    glasses = pages_only(FULL)
    async with open_stage(
        FULL, glasses=glasses, clock=boot.clock(), voice=TextToSpeech(off="no voice")
    ) as (stage, _):
        await stage.present("c1", READ)
        tidied = stage._prompter.tidy

        async def touched() -> None:
            await tidied()
            if (
                stage._prompter._queue and not stage._prompter._queue[0].begun
            ):  # the question is the next to be put
                glasses.bus.publish(GlassesSaid(Gestured(gesture)))
                await settle()

        stage._prompter.tidy = touched
        asking = begin(stage, LONG)
        await on_page(stage, glasses, 1)
        await settle()
        assert last(glasses).scene == LONG.scene, "something else lies over the question"
        assert not asking.done()
        asking.cancel()


@pytest.mark.requirement("I11-consent-alone")
async def test_a_call_off_just_before_a_question_does_not_darken_it(open_stage) -> None:
    boot = Boot()
    glasses = pages_only(FULL)
    async with open_stage(
        FULL, glasses=glasses, clock=boot.clock(), voice=TextToSpeech(off="no voice")
    ) as (stage, _):
        await stage.tell("working", call_id="c1", brief=True)
        cover = stage._current.cover

        async def called_off_while_covering() -> None:
            await glasses.say(Gesture.DOUBLE_TAP)
            await settle()
            await cover()

        stage._current.cover = called_off_while_covering
        asking = begin(stage, LONG)
        await on_page(stage, glasses, 1)
        await glasses.until(lambda: stage._current.now is None)
        await settle()
        assert not isinstance(glasses.told[-1], ClearPage), "the question was taken off the lens"
        assert stage.lens()["scene"] == LONG.scene
        asking.cancel()
