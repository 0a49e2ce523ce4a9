"""What the daemon does with recognised words: what is certain runs, what is unsure is asked, what
is nothing does nothing.
"""

import asyncio

import pytest
from msgspec.structs import replace

from edge.calls.dependencies import CallPolicy
from edge.calls.spoken import SORRY
from edge.core.grants import Grant, Granted
from edge.core.hearing.certainty import MUMBLED
from edge.core.tools.snapshot import Entry
from edge.runtime.events import CallAnswered, ConfirmationAsked, GlassesSaid, PrivateWords
from firmware_bridge.messages import Answer, Reading, Transcript
from tests.unit.calls.orchestrator_house import QUICK, FakeAsk, FakeRegistry, house, tool
from tools_cache.api.tool import SideEffects, ToolResponse
from tools_cache.api.wearer import Undo, WearerTexts

TIMER = {
    "type": "object",
    "properties": {"seconds": {"type": "integer"}, "label": {"type": "string"}},
    "required": ["seconds"],
}
NOTE = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NUMBER = {"type": "object", "properties": {"id": {"type": "integer"}}}
PLACE = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
TEN = ("set a timer for ten minutes", -1.7)
SEVEN = ("set a timer for seven minutes", -10.1)


def registry() -> FakeRegistry:
    made = FakeRegistry()
    for definition in (
        tool(
            "timer:start",
            schema=TIMER,
            activation_phrases=("set a timer", "start a timer"),
            wearer=WearerTexts(
                ask="Start a timer?", undo=Undo("timer:cancel", {"id": "{{data.id}}"})
            ),
        ),
        tool("timer:cancel", schema=NUMBER),
        tool(
            "notes:add",
            schema=NOTE,
            activation_phrases=("note that", "take a note"),
            wearer=WearerTexts(undo=Undo("notes:remove", {"id": "{{data.id}}"})),
        ),
        tool("notes:remove", schema=NUMBER, requires_confirmation="always"),
        tool("light:on", schema={"type": "object"}, activation_phrases=("light on",)),
        tool("door:open", activation_phrases=("open the door",), requires_confirmation="always"),
        tool(
            "sky:look",
            schema=PLACE,
            activation_phrases=("weather",),
            side_effects=SideEffects.READ_ONLY,
        ),
    ):
        made.entries[definition.name] = Entry(definition, "")
    return made


def said(*readings: tuple[str, float], **more) -> Transcript:
    more.setdefault("confidence", 0.9)
    return Transcript(readings[0][0], readings=tuple(Reading(*r) for r in readings), **more)


def to_glasses(*readings: tuple[str, float], **more) -> Transcript:
    return said(*readings, addressed=True, **more)


async def numbered(call, _progress) -> ToolResponse:
    return ToolResponse(data={"id": 7, "text": f"did {call.tool}"})


def ran(h) -> list[tuple[str, dict]]:
    return [(call.tool, dict(call.args)) for call in h.tools.runs]


async def hear(h, words: Transcript) -> None:
    await h.orchestrator.spoken.take_safely(words)


async def soon(condition) -> None:
    async with asyncio.timeout(40):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.fixture
async def h(tmp_path):
    async with house(tmp_path, registry=registry()) as opened:
        opened.tools.handler = numbered
        opened.uplink.up = False
        yield opened


# ------------------------------------------------------------------ certain, unsure, nothing


@pytest.mark.requirement("I14-never-wrong")
async def test_certain_words_run_at_once(h):
    await hear(h, said(TEN, SEVEN))
    assert ran(h) == [("timer:start", {"seconds": 600})]
    assert not h.wearer.asked


@pytest.mark.requirement("I14-never-wrong")
async def test_unsure_words_that_change_something_are_asked_in_plain_words(h):
    taking = asyncio.create_task(hear(h, said(("set a timer for seven minutes", -1.7), TEN)))
    question = await h.wearer.question()
    assert question.text.splitlines() == ["Start a timer?", "7 min"]
    assert question.by_voice
    assert question.timeout_s <= QUICK.unsure_s
    assert not h.tools.runs
    h.wearer.say(Answer.ALLOW)
    await taking
    assert ran(h) == [("timer:start", {"seconds": 420})]
    assert len(h.wearer.asked) == 1


@pytest.mark.requirement("I14-never-wrong")
@pytest.mark.parametrize("answer", [Answer.DENY, None])
async def test_an_unsure_call_without_a_yes_never_runs(tmp_path, answer):
    limits = replace(QUICK, unsure_s=0.2)
    async with house(tmp_path, registry=registry(), limits=limits) as h:
        taking = asyncio.create_task(hear(h, said(TEN, ("set a timer for two minutes", -2.0))))
        await h.wearer.question()
        if answer is not None:
            h.wearer.say(answer)
        await taking
        assert not h.tools.runs


async def refuse(h, *answers):
    """Answer one question after the other; return what was asked."""
    for number, answer in enumerate(answers, 1):
        await h.wearer.question(number)
        h.wearer.say(answer)
    return [question.text.splitlines() for question in h.wearer.asked]


SIX = ("set a timer for six minutes", -2.2)


@pytest.mark.requirement("I14-next-reading")
@pytest.mark.parametrize(
    ("answers", "made"),
    [
        ((Answer.DENY, Answer.ALLOW), 360),
        ((Answer.DENY, Answer.DENY, Answer.ALLOW), 120),
        ((Answer.DENY, Answer.DENY, Answer.DENY), None),
    ],
)
async def test_after_a_no_the_next_likeliest_calls_are_asked_about(h, answers, made):
    words = to_glasses(
        TEN, SIX, ("set a timer for two minutes", -2.5), ("set a timer for nine minutes", -2.6)
    )
    taking = asyncio.create_task(hear(h, words))
    asked = await refuse(h, *answers)
    await taking
    assert asked == [["Start a timer?", f"{n} min"] for n in (10, 6, 2)[: len(answers)]]
    assert ran(h) == ([("timer:start", {"seconds": made})] if made else [])
    assert len(h.wearer.asked) == len(answers), "a third no ends it"


@pytest.mark.requirement("I14-next-reading")
@pytest.mark.parametrize(
    "words",
    [
        said(TEN, SIX),
        to_glasses(("tin", -0.2), ("set a timer for ten", -4.0), ("timer for six", -20.0)),
        to_glasses(("open the door", -1.0), ("set a timer", -9.5)),
    ],
    ids=["not said to the glasses", "far from what was heard", "certain, and a no to the consent"],
)
async def test_nothing_is_asked_after_a_no_that_says_enough(h, words):
    taking = asyncio.create_task(hear(h, words))
    await refuse(h, Answer.DENY)
    await taking
    assert (len(h.wearer.asked), h.tools.runs) == (1, [])


@pytest.mark.requirement("I14-never-wrong")
async def test_unsure_words_that_would_clear_the_lens_are_asked(h):
    h.registry.entries["glasses:clear"] = Entry(tool("glasses:clear", schema=NUMBER), "")
    await hear(h, one("weather Oslo"))
    taking = asyncio.create_task(hear(h, to_glasses(("stop", -1.0), ("set a timer", -1.2))))
    await h.wearer.question()
    h.wearer.say(Answer.DENY)
    await taking
    assert [name for name, _ in ran(h)] == ["sky:look"]


@pytest.mark.requirement("I14-never-wrong")
async def test_unsure_words_that_change_nothing_run(h):
    await hear(h, to_glasses(("the weather in Oslo", -2.0), ("the weather in Rome", -2.5)))
    assert ran(h) == [("sky:look", {"place": "in Oslo"})]
    assert not h.wearer.asked


@pytest.mark.requirement("I14-guessed")
@pytest.mark.parametrize("confidence", [0.7, 0.8])
async def test_guessed_words_are_asked_although_they_change_nothing(h, confidence):
    oslo, rome = ("the weather in Oslo", -2.0), ("the weather in Rome", -2.5)
    taking = asyncio.create_task(hear(h, to_glasses(oslo, rome, confidence=confidence)))
    if confidence < MUMBLED:
        asked = await refuse(h, Answer.DENY, Answer.ALLOW)
        assert [lines[-1] for lines in asked] == ["in Oslo", "in Rome"]
    await taking
    assert ran(h) == [("sky:look", {"place": "in Rome" if confidence < MUMBLED else "in Oslo"})]


@pytest.mark.requirement("I14-never-wrong")
async def test_a_tool_that_asks_anyway_asks_once_and_a_spoken_yes_is_not_enough(h):
    taking = asyncio.create_task(hear(h, said(("open the door", -1.0), ("set a timer", -1.2))))
    question = await h.wearer.question()
    assert not question.by_voice
    assert "door:open" in question.text
    h.wearer.say(Answer.ALLOW)
    await taking
    assert [name for name, _ in ran(h)] == ["door:open"]
    assert len(h.wearer.asked) == 1


@pytest.mark.requirement("I14-never-wrong")
async def test_an_always_does_not_cover_words_that_were_not_clear(h):
    from edge.core.confirmation import definition_digest

    door = h.registry.entries["door:open"].definition
    granted = Granted(Grant.ALWAYS, definition_digest(door))
    await h.confirmations.grant("local", "door:open", granted)
    await hear(h, said(("open the door", -1.0)))
    assert [name for name, _ in ran(h)] == ["door:open"]
    assert not h.wearer.asked
    taking = asyncio.create_task(hear(h, said(("open the door", -1.0), ("set a timer", -1.2))))
    assert not (await h.wearer.question()).by_voice
    h.wearer.say(Answer.DENY)
    await taking
    assert len(h.tools.runs) == 1


@pytest.mark.requirement("I14-consent-voice")
async def test_the_owner_may_let_a_spoken_yes_be_enough_for_a_tool(tmp_path):
    policy = CallPolicy(yes_by_voice=("door:open",))
    async with house(tmp_path, registry=registry(), policy_=policy) as h:
        taking = asyncio.create_task(hear(h, said(("open the door", -1.0))))
        assert (await h.wearer.question()).by_voice
        h.wearer.say(Answer.DENY)
        await taking
        asking = asyncio.create_task(h.call("danger:erase"))
        assert not (await h.wearer.question(2)).by_voice
        h.wearer.say(Answer.DENY)
        await asking


@pytest.mark.requirement("I14-never-wrong")
async def test_with_nobody_to_ask_nothing_happens_and_a_line_says_so(tmp_path):
    wearer = FakeAsk()
    wearer.nobody = "these glasses have no button"
    async with house(tmp_path, registry=registry(), wearer=wearer) as h:
        await hear(h, said(TEN, ("set a timer for two minutes", -2.0)))
        assert not h.tools.runs
        assert not h.orchestrator.questions()
        assert "Please say it again." in " ".join(h.glasses.texts())


@pytest.mark.requirement("I14-never-wrong")
@pytest.mark.parametrize(("confidence", "addressed"), [(0.7, True), (0.95, False)])
async def test_a_note_in_words_that_may_be_others_is_shown_first(h, confidence, addressed):
    reading = ("Note that the car is on level three.", -0.3)
    words = said(reading, confidence=confidence, addressed=addressed)
    taking = asyncio.create_task(hear(h, words))
    assert "the car is on level three" in (await h.wearer.question()).text
    h.wearer.say(Answer.DENY)
    await taking
    assert not h.tools.runs


async def test_a_note_said_clearly_is_taken_with_all_its_words(h):
    words = to_glasses(("Note that set a timer is broken.", -0.3), ("note that set a timer", -9.0))
    await hear(h, words)
    assert ran(h) == [("notes:add", {"text": "set a timer is broken"})]


@pytest.mark.requirement("I14-never-wrong")
@pytest.mark.parametrize(
    "words",
    [
        said(("he said set a timer for ten minutes", -0.5)),
        said(("you should turn the light on when it is dark", -0.5)),
        said(("I took a note that nobody read", -0.5)),
        said(("I remember that we had a house", -0.5)),
        said(("The line needs a corner of our line", -7.6), ("light on", -15.0)),
    ],
)
async def test_what_others_say_near_the_glasses_starts_nothing(h, words):
    await hear(h, words)
    await hear(h, replace(words, final=True))
    assert not h.tools.runs
    assert not h.wearer.asked
    assert not h.glasses.texts()
    assert not h.audit


@pytest.mark.requirement("I14-never-wrong")
async def test_a_phrase_among_other_words_said_to_the_glasses_is_asked(h):
    words = to_glasses(("you should turn the light on when it is dark", -0.5))
    taking = asyncio.create_task(hear(h, words))
    await h.wearer.question()
    h.wearer.say(Answer.DENY)
    await taking
    assert not h.tools.runs


async def test_partial_words_start_nothing(h):
    h.bus.publish(GlassesSaid(replace(said(TEN, SEVEN), final=False)))
    h.bus.publish(GlassesSaid(said(TEN, SEVEN)))
    await h.happened(CallAnswered)
    assert len(h.tools.runs) == 1


async def test_the_same_sound_recognised_twice_is_one_call(h):
    first = said(TEN, SEVEN, began_at=10.0, ended_at=12.0)
    await hear(h, first)
    await hear(h, replace(first, text="Set a timer for ten minutes.", began_at=10.4))
    assert len(h.tools.runs) == 1
    await hear(h, said(TEN, SEVEN, began_at=12.5, ended_at=14.0))
    assert len(h.tools.runs) == 2


@pytest.mark.requirement("I14-never-wrong")
async def test_words_of_a_recogniser_without_readings_start_nothing_by_the_way(h):
    def words(text, **more):
        return Transcript(text, began_at=1.0, ended_at=2.0, **more)

    await hear(h, words("you should turn the light on when it is dark"))
    assert not h.tools.runs
    taking = asyncio.create_task(hear(h, words("you should turn the light on", addressed=True)))
    await h.wearer.question()
    h.wearer.say(Answer.DENY)
    await taking
    await hear(h, Transcript("Turn the light on, please.", began_at=3.0, ended_at=4.0))
    assert [name for name, _ in ran(h)] == ["light:on"]


async def test_words_without_readings_are_taken_as_they_are(h):
    await hear(h, Transcript("you should turn the light on when it is dark"))
    assert [name for name, _ in ran(h)] == ["light:on"]


# ------------------------------------------------------------------ nothing


@pytest.mark.requirement("I14-sorry-once")
async def test_the_lens_is_sorry_once_in_a_row(h):
    nonsense = to_glasses(("sing me a song", -1.0))
    await hear(h, nonsense)
    await soon(lambda: SORRY in h.glasses.texts())
    await hear(h, nonsense)
    await hear(h, said(TEN, SEVEN))
    assert h.glasses.texts().count(SORRY) == 1
    await hear(h, nonsense)
    await soon(lambda: h.glasses.texts().count(SORRY) == 2)


@pytest.mark.requirement("I14-sorry-once")
async def test_words_the_cloud_gets_are_not_called_unknown(h):
    h.uplink.up = True
    await hear(h, to_glasses(("sing me a song", -1.0)))
    assert not h.glasses.texts()


@pytest.mark.requirement("I14-sorry-once")
async def test_private_words_which_the_cloud_does_not_get_are_called_unknown(h):
    h.uplink.up = True
    h.orchestrator.session.restore({"suppress_transcript": True})
    await hear(h, to_glasses(("sing me a song", -1.0)))
    await soon(lambda: SORRY in h.glasses.texts())


@pytest.mark.requirement("I14-sorry-once")
async def test_words_that_were_not_said_to_the_glasses_get_no_answer(h):
    await hear(h, said(("sing me a song", -1.0)))
    assert not h.glasses.texts()
    assert not h.audit


# ------------------------------------------------------------------ the record


async def test_the_audit_log_has_the_confidence_and_not_the_words(h):
    await hear(h, said(("set a timer for ten minutes", -1.7), SEVEN, confidence=0.876))
    (record,) = h.audit
    assert (record["origin"], record["confidence"]) == ("voice", 0.88)
    assert "set a timer" not in str(record)
    await h.orchestrator.heard("set a timer for ten minutes")
    assert h.audit[-1]["confidence"] is None


@pytest.mark.requirement("I12-transcripts-suppressed")
async def test_the_question_about_private_words_is_in_no_event(h):
    h.orchestrator.session.restore({"suppress_transcript": True})
    words = said(("note that the code is 1234", -0.3), confidence=0.2)
    h.bus.publish(PrivateWords(words))
    asked = await h.happened(ConfirmationAsked)
    assert asked.particulars == ()
    assert "1234" in (await h.wearer.question()).text
    h.wearer.say(Answer.DENY)


# ------------------------------------------------------------------ corrections


def one(text: str, **more) -> Transcript:
    return said((text, -0.3), **more)


@pytest.mark.requirement("I14-corrections")
async def test_a_correction_makes_the_call_again_and_takes_the_first_back(h):
    await hear(h, one("set a timer for fifteen minutes called tea", addressed=True))
    await hear(h, one("No, ten minutes.", addressed=True))
    assert ran(h) == [
        ("timer:start", {"seconds": 900, "label": "tea"}),
        ("timer:start", {"seconds": 600, "label": "tea"}),
        ("timer:cancel", {"id": 7}),
    ]
    assert not h.wearer.asked
    assert h.tools.runs[-1].present is False


@pytest.mark.requirement("I14-corrections")
async def test_a_typed_correction_counts_too(h):
    await h.orchestrator.heard("weather in Oslo")
    answer = await h.orchestrator.heard("not Oslo, Bergen")
    assert answer.ok
    assert ran(h)[-1] == ("sky:look", {"place": "in Bergen"})


@pytest.mark.requirement("I14-corrections")
async def test_taking_back_what_needs_a_yes_is_asked(h):
    await hear(h, one("note that the car is on level three", addressed=True))
    taking = asyncio.create_task(hear(h, one("no, level five", addressed=True)))
    question = await h.wearer.question()
    assert "notes:remove" in question.text
    assert not question.by_voice
    h.wearer.say(Answer.DENY)
    await taking
    assert ran(h) == [
        ("notes:add", {"text": "the car is on level three"}),
        ("notes:add", {"text": "the car is on level five"}),
    ]
    await soon(lambda: "The first one stays as it is." in h.glasses.texts())


@pytest.mark.requirement("I14-corrections")
async def test_what_cannot_be_taken_back_is_said_and_asked(h):
    h.registry.entries["bell:ring"] = Entry(
        tool("bell:ring", schema=NUMBER, activation_phrases=("ring the bell",)), ""
    )
    await hear(h, one("ring the bell 3"))
    taking = asyncio.create_task(hear(h, one("no, 4")))
    question = await h.wearer.question()
    assert question.text.splitlines()[0] == "The first one stays as it is."
    h.wearer.say(Answer.DENY)
    await taking
    assert ran(h) == [("bell:ring", {"id": 3})]


@pytest.mark.requirement("I14-corrections")
async def test_a_call_that_changed_nothing_is_corrected_without_a_question(h):
    await hear(h, one("weather in Oslo", confidence=0.95))
    await hear(h, one("no, set a timer for ten minutes", confidence=0.95))
    assert not h.wearer.asked
    assert [tool for tool, _args in ran(h)] == ["sky:look", "timer:start"]


@pytest.mark.requirement("I14-corrections")
async def test_a_correction_replaces_an_open_question(h):
    first = asyncio.create_task(hear(h, said(TEN, ("set a timer for two minutes", -2.0))))
    await h.wearer.question()
    await hear(h, one("no, five minutes"))
    await first
    assert h.wearer.withdrawn == 1
    assert ran(h) == [("timer:start", {"seconds": 300})]


@pytest.mark.requirement("I14-corrections")
async def test_words_said_to_the_question_correct_it_or_answer_it(h):
    first = asyncio.create_task(hear(h, said(TEN, ("set a timer for two minutes", -2.0))))
    correct = (await h.wearer.question()).correct
    for answer in ("yes", "no", "no, ten minutes", "set a timer for one hour", "stop"):
        assert not correct(one(answer)), answer
    assert correct(one("no, five minutes"))
    await first
    await soon(lambda: h.tools.runs)
    assert ran(h) == [("timer:start", {"seconds": 300})]


@pytest.mark.requirement("I14-corrections")
async def test_an_unsure_correction_is_asked_before_anything_changes(h):
    await hear(h, one("set a timer for fifteen minutes"))
    words = said(("no ten minutes", -0.5), ("no five minutes", -1.0))
    taking = asyncio.create_task(hear(h, words))
    assert "10 min" in (await h.wearer.question()).text
    h.wearer.say(Answer.DENY)
    await taking
    assert ran(h) == [("timer:start", {"seconds": 900})]


@pytest.mark.requirement("I14-corrections")
@pytest.mark.parametrize("words", ["no I don't think so", "no, it is over there", "sorry, Anna"])
async def test_talk_after_a_call_is_no_correction(h, words):
    await hear(h, one("set a timer for fifteen minutes"))
    await hear(h, one("weather in Oslo"))
    await hear(h, one("no that was a very long day"))
    assert len(h.tools.runs) == 2
    await hear(h, one("set a timer for fifteen minutes"))
    await hear(h, one(words))
    assert len(h.tools.runs) == 3
    assert not h.wearer.asked


@pytest.mark.requirement("I14-corrections")
async def test_a_number_that_was_missing_may_be_said_by_itself(h):
    await hear(h, one("set a timer"))
    await hear(h, one("Ten minutes, please."))
    assert ran(h) == [("timer:start", {"seconds": 600})]
    await hear(h, one("five minutes"))
    assert len(h.tools.runs) == 1


@pytest.mark.requirement("I14-corrections")
async def test_after_ten_seconds_nothing_is_corrected(h):
    await hear(h, one("set a timer for fifteen minutes"))
    later = h.orchestrator._ports.clock.boot() + 10.5
    await hear(h, one("no, ten minutes", began_at=later, ended_at=later + 1))
    assert len(h.tools.runs) == 1


@pytest.mark.requirement("I14-corrections")
async def test_a_call_that_runs_is_stopped_by_a_word(h):
    running = asyncio.Event()

    async def forever(call, _progress):
        running.set()
        await asyncio.Event().wait()

    h.tools.handler = forever
    first = asyncio.create_task(hear(h, one("set a timer for fifteen minutes")))
    await running.wait()
    await hear(h, one("Stop!"))
    await first
    assert h.audit[-1]["errorCode"] == "CANCELLED"


@pytest.mark.requirement("I14-corrections")
async def test_cancel_that_takes_the_last_call_back(h):
    await hear(h, one("set a timer for fifteen minutes"))
    await hear(h, one("cancel that"))
    assert ran(h)[-1] == ("timer:cancel", {"id": 7})
    await hear(h, one("cancel that"))
    assert len(h.tools.runs) == 2


async def test_stop_clears_what_is_shown_and_no_does_not(h):
    h.registry.entries["glasses:clear"] = Entry(tool("glasses:clear", schema=NUMBER), "")
    await hear(h, one("weather Oslo"))
    assert h.stage.lens()["lines"]
    await hear(h, one("No."))
    assert len(h.tools.runs) == 1
    await hear(h, one("Stop."))
    assert ran(h)[-1][0] == "glasses:clear"
