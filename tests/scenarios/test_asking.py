"""Story: the daemon asks the wearer, on the lens or in the ear; and the wearer calls off what
takes too long.
"""

import asyncio

import pytest

from edge.display.prompt_layout import to_speech
from edge.display.voice.speech import RATE, sentences
from edge.ports import NobodyToAsk, Question
from firmware_bridge.messages import Answer, AudioFormat, Gesture
from tests.scenarios.world import SOON_S, until, world
from tests.unit.firmware_bridge.sim_helpers import noting

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAY = Question("pay/ask", "Pay 20 euros to Anna?", 60.0, "pay", "no")
ROWS = [PAY.text, "", "", "", "tap: pay · double tap: no"]
TALK = "This is said for quite a while, as it goes on and on, and does not come to an end so soon."


async def alone(place, **more):
    await place.switch_glasses_on(**more)
    await place.start_daemon()
    await place.ready()


def begin(place, question=PAY):
    return asyncio.ensure_future(place.daemon.stage.ask(question))


async def given(asking):
    async with asyncio.timeout(SOON_S):
        return await asking


async def pressed(place, asking, gesture):
    """Press until it counts: a wearer hears when the question has begun, a test does not."""
    async with asyncio.timeout(SOON_S):
        while not asking.done():
            place.mock.glasses.gesture(gesture)
            await asyncio.wait({asking}, timeout=0.5)
    return asking.result()


async def on_lens(place, rows=ROWS):
    await until(lambda: place.lens() == rows, lambda: f"{rows}; the lens shows {place.lens()}")


async def reading(place, text="what was being read"):
    assert (await place.call("glasses:show_text", {"text": text})).meta["delivery"] == "shown"


def asked(place):
    return [event for event in place.shown if event["event"] == "prompt"]


# ------------------------------------------------------------------ on the lens


@pytest.mark.requirement("S2-95")
@pytest.mark.requirement("S3-04")
@pytest.mark.requirement("S3-31")
@pytest.mark.parametrize(("step", "answer"), [("tap", Answer.ALLOW), ("double_tap", Answer.DENY)])
async def test_the_wearer_allows_by_a_tap_and_denies_by_a_double_tap_and_reads_on(
    tmp_path, step, answer
):
    async with world(tmp_path) as place:
        await alone(place)
        await reading(place)
        asking = begin(place)
        await on_lens(place)
        await until(
            lambda: place.daemon.stage.lens()["lines"] == [PAY.text, ROWS[-1]],
            "we know what is asked",
        )
        await place.answer_question(Gesture(step))
        assert await given(asking) is answer
        await on_lens(place, ["what was being read"])
        await until(
            lambda: place.daemon.stage.lens()["lines"] == ["what was being read"], "we know it too"
        )
        assert len({page["scene"] for page in place.drawn()}) == 1, (
            "no new scene: what was there is there again"
        )


@pytest.mark.requirement("S2-95")
async def test_a_scripted_wearer_answers(tmp_path):
    async with world(tmp_path) as place:
        await alone(place)
        asking = begin(place)
        await until(lambda: asked(place), "asked")
        from firmware_bridge.sim.wearer import ScriptedWearer, parse_script

        wearer = ScriptedWearer(place.mock.glasses, inject=noting([]), leave=lambda: None)
        await wearer.act(parse_script("wait 8\ndouble_tap"))  # a second of the daemon's time
        assert await given(asking) is Answer.DENY


@pytest.mark.requirement("S2-95")
@pytest.mark.requirement("I3-ask-too-soon")
async def test_glasses_that_only_show_pages_ask_on_a_page_and_ignore_an_early_tap(tmp_path):
    async with world(tmp_path) as place:
        await alone(place)
        place.mock.glasses.set_capabilities({"prompt": False})
        await reading(place)
        asking = begin(place)
        await on_lens(place)
        place.tap()
        await place.heard("glasses.event")
        assert not asking.done()
        assert place.lens() == ROWS
        while not asking.done():  # a wearer who taps again, not faster than people do
            await asyncio.sleep(0.2)
            await place.answer_question()
        assert await given(asking) is Answer.ALLOW
        await on_lens(place, ["what was being read"])
        assert not asked(place)


@pytest.mark.requirement("I3-ask-silence")
async def test_silence_is_a_timeout_and_the_question_goes(tmp_path):
    async with world(tmp_path) as place:
        await alone(place, speed=1.0)
        asking = begin(place, Question("pay/ask", "Sure?", 0.5))
        await place.lens_shows("Sure?")
        assert await given(asking) is Answer.TIMEOUT
        await until(lambda: not place.mock.glasses.lens.asking and not place.lens(), "a dark lens")


@pytest.mark.requirement("I3-ask-silence")
async def test_glasses_whose_clock_runs_fast_give_up_no_question(tmp_path):
    async with world(tmp_path) as place:
        await alone(place, speed=100.0)
        asking = begin(place)
        await until(lambda: len(asked(place)) == 2, "asked again")
        assert not asking.done()
        asking.cancel()
        await until(lambda: not place.mock.glasses.lens.asking, "taken back")


async def test_a_question_that_is_called_off_leaves_the_lens(tmp_path):
    async with world(tmp_path) as place:
        await alone(place, speed=1.0)
        await reading(place)
        asking = begin(place)
        await on_lens(place)
        asking.cancel()
        await on_lens(place, ["what was being read"])
        assert [e["prompt"] for e in place.shown if e["event"] == "prompt.ended"] == [
            asked(place)[0]["prompt"]
        ]


# ------------------------------------------------------------------ away and back, down and up


@pytest.mark.requirement("I3-ask-lost")
async def test_glasses_lost_while_they_ask_ask_again_and_are_answered_once(tmp_path):
    async with world(tmp_path) as place:
        await alone(place, speed=1.0)
        await reading(place)
        asking = begin(place)
        await on_lens(place)
        for count in (2, 3):
            place.mark()
            assert place.mock.mount.drop()
            await place.heard("glasses.lost")
            await place.heard("glasses.ready")
            await until(lambda: len(asked(place)) == count, "asked again")  # noqa: B023
            await on_lens(place)
        numbers = [event["prompt"] for event in asked(place)]
        assert numbers == sorted(set(numbers)), "an old answer can never be taken for a new one"
        await place.answer_question()
        assert await given(asking) is Answer.ALLOW
        await on_lens(place, ["what was being read"])
        assert [e["answer"] for e in place.shown if e["event"] == "prompt.answered"] == ["allow"]


@pytest.mark.requirement("I3-ask-lost")
async def test_glasses_that_are_switched_off_while_they_ask_are_asked_when_they_are_on_again(
    tmp_path,
):
    async with world(tmp_path) as place:
        await alone(place)
        asking = begin(place)
        await on_lens(place)
        await place.switch_glasses_off()
        await place.heard("glasses.lost")
        assert not asking.done()
        await place.switch_glasses_on()
        await on_lens(place)
        await place.answer_question()
        assert await given(asking) is Answer.ALLOW


@pytest.mark.requirement("I3-ask-killed")
async def test_a_daemon_that_dies_while_it_asks_leaves_no_question_behind(tmp_path):
    async with world(tmp_path) as place:
        await alone(place, speed=1.0)
        await reading(place)
        asking = begin(place)
        await on_lens(place)
        await noted(place)
        await place.stop_daemon()  # the stage ends in the middle of it: nothing is tidied up
        asking.cancel()
        await until(lambda: not place.mock.glasses.connected, "the link was closed")
        place.mock.glasses.lens.clear()
        await place.start_daemon()
        await on_lens(place, ["what was being read"])
        again = begin(place)
        await on_lens(place)
        first, second = (event["prompt"] for event in asked(place))
        assert first != second
        await place.answer_question(Gesture.DOUBLE_TAP)
        assert await given(again) is Answer.DENY


async def noted(place):
    """On disk is that a question is open, before anything breaks."""
    async with asyncio.timeout(SOON_S):
        while not (await place.daemon.notes.get("stage.scene")).get("question"):
            await asyncio.sleep(0)


# ------------------------------------------------------------------ in the ear


@pytest.mark.requirement("S2-95")
@pytest.mark.requirement("I3-ask-ear", "I11-consent-spoken")
async def test_without_a_lens_the_question_is_heard_to_its_end_and_the_button_answers(tmp_path):
    async with world(tmp_path, "mock:audio") as place:
        await alone(place)
        asking = begin(place, Question("pay/ask", TALK, 60.0))
        await until(lambda: place.mock.glasses.speaker.playing, "the speaker plays")
        assert await pressed(place, asking, Gesture.BUTTON) is Answer.ALLOW
        await until(place.spoken, "the voice ends")
        assert place.spoken()[0]["flushed"] is False, "no press cut it short"


@pytest.mark.requirement("I3-ask-ear")
async def test_a_long_press_denies_while_the_question_is_spoken(tmp_path):
    async with world(tmp_path, "mock:audio") as place:
        await alone(place, speed=1.0)
        asking = begin(place, Question("pay/ask", TALK, 60.0))
        await until(lambda: place.mock.glasses.speaker.playing, "the speaker plays")
        assert await pressed(place, asking, Gesture.BUTTON_LONG) is Answer.DENY
        await until(place.spoken, "the voice stops")
        assert place.spoken()[0]["flushed"] is True
        await place.call("glasses:say", {"text": "And on it goes."})
        assert [s["flushed"] for s in place.spoken()] == [True, False]


@pytest.mark.requirement("I3-ask-ear", "I11-consent-spoken")
@pytest.mark.parametrize(
    "frames_in_a_piece",
    [
        pytest.param(5, id="as shipped"),
        pytest.param(60, id="the link is back before the next piece is due"),
    ],
)
async def test_a_question_cut_off_by_a_lost_link_is_said_again_from_its_beginning(
    tmp_path, monkeypatch, frames_in_a_piece
):
    monkeypatch.setattr("edge.display.voice.speech.CHUNK_FRAMES", frames_in_a_piece)
    question = Question("pay/ask", TALK, 60.0)
    async with world(tmp_path, "mock:audio") as place:
        await alone(place, speed=3.0)
        whole = await samples_of(place, question)
        asking = begin(place, question)
        await until(lambda: arrived(place) > 4 * RATE, "four seconds of sound, three of them heard")
        assert place.mock.mount.drop()
        await place.heard("glasses.lost")
        await place.heard("glasses.ready")
        assert await pressed(place, asking, Gesture.BUTTON) is Answer.ALLOW
        first, *_, last = (stream["samples"] for stream in place.spoken())
        assert last > whole - first / 2, f"{first} of {whole} samples were heard, then {last}"


async def samples_of(place, question):
    """How long it is to say all of a question: about, because the voice varies a little."""
    words, say = (
        to_speech(question, place.daemon.link.status().capabilities),
        place.daemon.voice.say,
    )
    return sum([(await say(part, AudioFormat.OPUS)).samples for part in sentences(words)])


def arrived(place):
    """Samples of the open stream that the glasses have received."""
    stream = place.mock.glasses.speaker._stream
    return len(stream.samples) // 2 if stream is not None else 0


@pytest.mark.requirement("I3-ask-nobody")
async def test_before_any_glasses_were_known_there_is_nobody_to_ask(tmp_path):
    async with world(tmp_path) as place:
        await place.start_daemon()
        with pytest.raises(NobodyToAsk, match="no glasses are known"):
            await given(begin(place))


# ------------------------------------------------------------------ progress


@pytest.mark.requirement("I3-call-off")
async def test_a_double_tap_on_a_working_mark_calls_the_call_off(tmp_path):
    async with world(tmp_path) as place:
        await alone(place)
        await place.daemon.stage.tell("Working…", call_id="c1", brief=True)
        await place.lens_shows("Working…")
        place.mark()
        place.wearer_does(Gesture.DOUBLE_TAP)
        assert await place.heard("call.off") == {
            "event": "call.off",
            "call_id": "c1",
            "reason": "the wearer",
        }
        await until(lambda: not place.lens(), "the mark goes")


@pytest.mark.requirement("I3-progress-rate")
@pytest.mark.requirement("S3-38")
async def test_a_flood_of_progress_reaches_the_lens_at_its_own_rate_and_ends_with_its_last_word(
    tmp_path,
):
    async with world(tmp_path) as place:
        await alone(place)
        loop = asyncio.get_running_loop()
        began = loop.time()
        telling = []
        for number in range(1000):
            telling.append(
                asyncio.ensure_future(
                    place.daemon.stage.tell(f"step {number} of 1000", call_id="c1", brief=True)
                )
            )
            await asyncio.sleep(0.001)
        await asyncio.gather(*telling)
        await place.lens_shows("step 999 of 1000")
        steps = [int(page["lines"][0].split()[1]) for page in place.drawn()]
        assert len(steps) <= (loop.time() - began) / 0.1 + 1
        assert steps == sorted(steps)
        assert (await place.call("glasses:show_text", {"text": "the result"})).meta[
            "delivery"
        ] == "shown"
