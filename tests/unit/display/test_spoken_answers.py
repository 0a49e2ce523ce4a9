"""Questions that are answered by voice: which words count, when, and what the lens says of it.

Time is virtual.
"""

import asyncio
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from edge.display.prompts import TOO_SOON_S
from edge.ports import Chosen, Question
from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from firmware_bridge.messages import Answer, EndPrompt, Reading, Transcript
from tests.unit.display.conftest import stage_on
from tests.unit.display.fakes import DISPLAY, FakeGlasses
from tests.unit.display.test_listening import Seen
from tests.unit.firmware_bridge.virtual import virtual_time

BY_VOICE = Question("q", "Send it?", 30.0, by_voice=True)
CONSENT = Question("q", "Delete all?", 30.0)
DRINKS = Question(
    "q",
    "What to drink?\nTea (1 of 3)",
    30.0,
    allow="this",
    deny="next",
    by_voice=True,
    choices=("Tea", "Green tea", "Coffee"),
)


class Ears:
    """`ListeningPort`; `able`: whether an answer by voice can be heard."""

    def __init__(self, able=True):
        self.able = able
        self.log = []

    def unused_gesture(self, gesture, side):
        del gesture, side

    def opened(self, question):
        self.log.append(question.scene)
        return self.able

    def closed(self):
        self.log.append("closed")


class Asked:
    """A question before the wearer, who speaks."""

    def __init__(self, stage, glasses, ears):
        self.stage, self.glasses, self.ears = stage, glasses, ears
        self.task = None

    async def ask(self, question, *, wait_s=1.0):
        self.task = asyncio.ensure_future(self.stage.choose(question))
        await asyncio.sleep(wait_s)

    async def say(self, text, **more):
        took = self.stage.answer_by_words(Transcript(text, **more))
        await asyncio.sleep(0.1)
        return took

    @property
    def answer(self):
        return self.task.result() if self.task.done() else None

    @property
    def hint(self):
        return Seen(self.glasses).rows[4]


@asynccontextmanager
async def wearer(able=True, *, prompts=False, facts=DISPLAY):
    loop = asyncio.get_running_loop()
    clock, glasses, ears = Clock(boot=loop.time), FakeGlasses(Bus(), facts), Ears(able)
    glasses.prompts = prompts
    async with stage_on(facts, clock=clock, glasses=glasses, listens=lambda: ears) as (stage, _):
        await asyncio.sleep(1)
        asked = Asked(stage, glasses, ears)
        yield asked
        if asked.task is not None:
            asked.task.cancel()
            await asyncio.wait({asked.task})


@virtual_time
@pytest.mark.parametrize(
    ("said", "answer"),
    [("yes", Answer.ALLOW), ("Yes, please.", Answer.ALLOW), ("no", Answer.DENY), ("well", None)],
)
async def test_yes_and_no_answer_a_question_by_voice(said, answer):
    async with wearer() as asked:
        await asked.ask(BY_VOICE)
        assert await asked.say(said) is (answer is not None)
        assert asked.answer is answer


@virtual_time
async def test_a_consent_takes_a_spoken_no_and_never_a_spoken_yes():
    async with wearer() as asked:
        await asked.ask(CONSENT)
        for said in ("yes", "yes", "do it", "okay"):
            assert not await asked.say(said)
        assert asked.answer is None
        assert await asked.say("no")
        assert asked.answer is Answer.DENY


@virtual_time
async def test_who_asked_gets_the_words_first_and_may_take_them_as_a_correction():
    offered = []

    def correct(said):
        offered.append(said.text)
        return "ten" in said.text

    async with wearer() as asked:
        await asked.ask(replace(BY_VOICE, correct=correct))
        assert await asked.say("no, ten minutes")
        assert asked.answer is None, "it is withdrawn by who asked"
        assert await asked.say("no")
        assert asked.answer is Answer.DENY
        assert offered == ["no, ten minutes", "no"]


@virtual_time
async def test_an_unsure_yes_is_none_and_an_unsure_no_is_a_no():
    readings = (Reading("yes", -1.0), Reading("no", -1.5))
    async with wearer() as asked:
        await asked.ask(BY_VOICE)
        assert not await asked.say("yes", readings=readings)
        assert await asked.say("no", readings=(Reading("no", -1.0), Reading("know", -1.5)))
        assert asked.answer is Answer.DENY


@virtual_time
@pytest.mark.parametrize("prompts", [False, True])
async def test_what_was_said_before_the_question_could_be_read_is_no_answer(prompts):
    async with wearer(prompts=prompts) as asked:
        there = asyncio.get_running_loop().time()
        await asked.ask(BY_VOICE, wait_s=3.0)
        for said in ("yes", "no"):
            for began_s, ended_s in ((-0.5, 1.0), (0.1, TOO_SOON_S / 2)):
                times = {"began_at": there + began_s, "ended_at": there + ended_s}
                assert not await asked.say(said, **times)
        assert asked.answer is None
        assert await asked.say("yes", began_at=there + 0.3, ended_at=there + 0.1 + TOO_SOON_S)
        assert asked.answer is Answer.ALLOW


@virtual_time
async def test_partial_words_answer_nothing():
    async with wearer() as asked:
        await asked.ask(BY_VOICE)
        assert not await asked.say("no", final=False)
        assert asked.answer is None


@virtual_time
async def test_words_with_no_question_answer_nothing():
    async with wearer() as asked:
        assert not await asked.say("yes")


@virtual_time
@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("coffee", Chosen(3)),
        ("green tea please", Chosen(2)),
        ("the second one", Chosen(2)),
        ("this", Answer.ALLOW),
        ("next", Answer.DENY),
        ("none of these", Answer.DENY),
    ],
)
async def test_choices_are_named_or_numbered(said, answer):
    async with wearer() as asked:
        await asked.ask(DRINKS)
        assert not await asked.say("yes"), "it names none of them"
        assert await asked.say(said)
        assert asked.answer == answer


@virtual_time
async def test_the_words_beside_the_gestures_may_be_said_and_their_numbers_may_not():
    async with wearer() as asked:
        question = Question("q", "Which day?", 30.0, allow="Monday", deny="Friday", by_voice=True)
        await asked.ask(question)
        assert not await asked.say("one")
        assert await asked.say("Monday.")
        assert asked.answer is Answer.ALLOW


@virtual_time
async def test_the_lens_says_what_may_be_said_only_where_it_is_heard():
    for able, question, hint in (
        (True, BY_VOICE, "tap or say: yes · double tap or say: no"),
        (True, CONSENT, "tap: yes · double tap or say: no"),
        (False, BY_VOICE, "tap: yes · double tap: no"),
    ):
        async with wearer(able) as asked:
            await asked.ask(question)
            assert asked.hint == hint


@virtual_time
async def test_listening_hears_when_a_question_opens_and_when_it_ends():
    async with wearer() as asked:
        await asked.ask(BY_VOICE)
        assert asked.ears.log == ["q"]
        await asked.say("yes")
        assert asked.ears.log == ["q", "closed"]
        await asked.ask(replace(BY_VOICE, scene="second"))
        asked.task.cancel()
        await asyncio.sleep(0.1)
        assert asked.ears.log == ["q", "closed", "second", "closed"]


@virtual_time
async def test_a_question_that_the_glasses_ask_themselves_is_ended_by_a_word():
    async with wearer(prompts=True) as asked:
        await asked.ask(BY_VOICE)
        assert len(asked.glasses.asked()) == 1
        assert await asked.say("no")
        assert asked.answer is Answer.DENY
        assert any(isinstance(command, EndPrompt) for command in asked.glasses.told)


@virtual_time
async def test_a_yes_to_a_page_that_is_not_the_last_leads_to_the_next():
    text = "\n".join(f"line {n}" for n in range(6))
    async with wearer() as asked:
        await asked.ask(replace(BY_VOICE, text=text))
        assert asked.hint.startswith("tap: next")
        await asked.say("yes")
        await asyncio.sleep(1)
        assert asked.answer is None
        assert asked.hint.startswith("tap or say: yes")
        await asked.say("yes")
        assert asked.answer is Answer.ALLOW


@virtual_time
async def test_glasses_that_nobody_wears_take_no_spoken_yes():
    async with wearer() as asked:
        await asked.ask(BY_VOICE)
        asked.glasses.worn = False
        assert not await asked.say("yes")
        assert await asked.say("no")
