"""Recognised words in a whole daemon: the question on the lens, its answer by voice, corrections,
and what is written down of it.
"""

import json
from contextlib import asynccontextmanager

import pytest

from edge.runtime.events import GlassesSaid, PrivateWords
from firmware_bridge.messages import Reading, Transcript
from tests.scenarios.world import until, world

UNSURE = (("set a timer for fifty minutes", -1.7), ("set a timer for fifteen minutes", -2.0))
NOTE = (("Note that the door code is 4711.", -0.4),)


@asynccontextmanager
async def alone(tmp_path):
    async with world(tmp_path) as place:
        await place.switch_glasses_on()
        await place.start_daemon()
        await place.ready()
        yield place


def recognise(place, *readings, addressed=True, confidence=0.9, kind=GlassesSaid):
    words = tuple(Reading(text, likely) for text, likely in readings)
    said = Transcript(words[0].text, confidence=confidence, readings=words, addressed=addressed)
    place.mark()
    place.daemon.bus.publish(kind(said))


def answer(place, text):
    """What the microphone hears while a question is before the wearer."""
    return place.daemon.stage.answer_by_words(Transcript(text, readings=(Reading(text, -0.4),)))


def on_lens(place):
    return " / ".join(place.daemon.stage.lens()["lines"])


async def timers(place):
    return [
        t["remaining_s"] for t in (await place.call("timer:list", present=False)).data["timers"]
    ]


@pytest.mark.requirement("I14-never-wrong")
async def test_unsure_words_are_on_the_lens_and_run_after_a_spoken_yes(tmp_path):
    async with alone(tmp_path) as place:
        recognise(place, *UNSURE)
        await place.lens_shows("Start a timer?", "50 min")
        assert await timers(place) == []
        await until(lambda: answer(place, "yes"), "the yes counts")
        await place.heard("call.answered", tool="timer:start", ok=True)
        await place.lens_shows("Timer 1, 50 min")


@pytest.mark.requirement("I14-next-reading")
async def test_a_no_brings_the_question_about_the_next_likeliest_words(tmp_path):
    async with alone(tmp_path) as place:
        recognise(place, *UNSURE)
        await place.lens_shows("Start a timer?", "50 min")
        await until(lambda: answer(place, "no"), "the no counts")
        await place.lens_shows("Start a timer?", "15 min")
        await until(lambda: answer(place, "yes"), "the yes counts")
        await place.lens_shows("Timer 1, 15 min")
        (left,) = await timers(place)
        assert 800 < left <= 900


@pytest.mark.requirement("I14-corrections")
async def test_a_correction_replaces_the_question_and_then_the_timer(tmp_path):
    async with alone(tmp_path) as place:
        recognise(place, *UNSURE)
        await place.lens_shows("Start a timer?")
        await until(lambda: answer(place, "no, fifteen minutes"), "the correction counts")
        await place.lens_shows("Timer 1, 15 min")
        recognise(place, ("make it twenty", -0.4))
        await place.lens_shows("Timer 2, 20 min")
        await until(lambda: "tap to undo" in on_lens(place), "it can be taken back too")
        await place.heard("call.answered", tool="timer:cancel", ok=True)
        (left,) = await timers(place)
        assert 1100 < left <= 1200
        recognise(place, ("cancel that", -0.4))
        await place.lens_shows("Timer 2 cancelled")
        assert await timers(place) == []


@pytest.mark.requirement("I14-consent-voice")
async def test_taking_a_note_back_by_voice_needs_a_tap(tmp_path):
    async with alone(tmp_path) as place:
        recognise(place, *NOTE)
        await place.heard("call.answered", tool="notes:add", ok=True)
        recognise(place, ("cancel that", -0.4))
        await place.lens_shows("Remove this note?")
        for _ in range(3):
            assert not answer(place, "yes")
        assert (await place.call("notes:list", present=False)).data["notes"]
        await place.answer_question()
        await place.heard("call.answered", tool="notes:remove", ok=True)
        assert (await place.call("notes:list", present=False)).data["notes"] == []


@pytest.mark.requirement("I14-sorry-once")
async def test_words_that_mean_nothing_are_answered_once(tmp_path):
    async with alone(tmp_path) as place:
        recognise(place, ("fly me to the moon", -0.4), addressed=False)
        recognise(place, ("fly me to the moon", -0.4))
        await place.lens_shows("Sorry, I don't know that one.")
        refused = [h for h in place.happened if h["event"] == "call.answered"]
        assert len(refused) == 1, "what was not said to the glasses is no call"


@pytest.mark.requirement("I12-transcripts-suppressed")
async def test_private_words_that_are_asked_about_are_in_no_event_but_the_lens(tmp_path):
    async with alone(tmp_path) as place:
        session = place.daemon.calls.session
        session.apply({"type": "SUPPRESS_TRANSCRIPT", "value": True}, tool="x:y")
        recognise(place, *NOTE, confidence=0.3, kind=PrivateWords)
        await place.lens_shows("Take this note?", "4711")
        await until(lambda: answer(place, "no"), "the no counts")
        await place.heard("call.answered", tool="notes:add", ok=False)
        events = [entry.text for entry in place.daemon.control._feeds[True]._ring]
        await place.stop_daemon()
    assert not [text for text in events if "4711" in text and "lens.acknowledged" not in text]


async def test_the_audit_log_says_how_sure_the_words_were_and_not_which(tmp_path):
    async with alone(tmp_path) as place:
        recognise(place, *NOTE)
        await place.heard("call.answered", tool="notes:add", ok=True)
        log = place.folder / "state" / "audit" / "calls.jsonl"
        await until(lambda: "notes:add" in log.read_text(), "the line of the call")
        lines = [json.loads(line) for line in log.read_text().splitlines() if "notes" in line]
        (line,) = [line for line in lines if line["callId"] is not None]
        assert (line["origin"], line["confidence"]) == ("voice", 0.9)
        assert "4711" not in str(line)
