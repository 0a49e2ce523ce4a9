"""What the wearer sees and hears of listening: a real recogniser's child and a whole daemon, on a
mock lens and on the simulated G1.
"""

import json
import logging
from contextlib import asynccontextmanager

import pytest

from edge.ports import Wait
from firmware_bridge.messages import Gesture
from tests.scenarios.voice.test_microphone import microphone
from tests.scenarios.world import until, world
from tests.system import needs
from tests.unit.hearing.children import loud
from tools_cache.api.tool import Delivery

pytest.importorskip("numpy", reason="pip install 'glassd[ears]'")

BOTH = pytest.mark.parametrize(
    "model", ["mock:display", pytest.param("sim:even_g1", marks=needs("liblc3"))]
)
SECRET = "xylophone quarantine"
TALK = (
    "self.n = getattr(self, 'n', 0) + final; "
    f"return Decoded(f'{SECRET} {{self.n}}' + ('' if final else ' so far'), 0.9, ())"
)
"""Each sentence has its number; partial words end with "so far"."""


def says(text):
    return f"return Decoded({text!r}, 0.9, (Reading({text!r}, -0.5), Reading('so', -9.0)))"


@asynccontextmanager
async def listening(tmp_path, model="mock:display", *, decode=TALK, speed=8.0):
    async with world(tmp_path, model, glasses={"model": model.removeprefix("sim:")}) as place:
        await place.switch_glasses_on(speed=speed)
        await place.start_daemon()
        place.daemon.recognisers.command = loud(decode=decode)
        await place.ready()
        yield place


def speak(place, words=8):
    place.mock.glasses.microphone.say(" ".join(["word"] * words))


def speak_on(place):
    """Let the wearer not come to the end of the sentence."""
    if place.mock.glasses.microphone.hear(b"") < 0.5:
        speak(place, 4)
    return True


def seen(place):
    return " ".join(place.lens())


@BOTH
@pytest.mark.requirement("I14-captions", "I14-captions-private")
async def test_captions_are_on_the_lens_and_nowhere_else(tmp_path, model, caplog):
    for ours in ("edge", "firmware_bridge", "tools_cache", "glassd"):
        caplog.set_level(logging.DEBUG, ours)
    async with listening(tmp_path, model) as place:
        answer = await place.call("glasses:captions", {"on": True}, wait=Wait.ANSWER)
        assert answer.data == {"on": True, "text": "Captions are on"}
        await place.lens_shows("Captions are on")
        await microphone(place, open=True)
        speak(place)
        await place.lens_shows(f"{SECRET} 1")
        speak(place)
        await place.lens_shows(f"{SECRET} 1", f"{SECRET} 2")
        assert place.daemon.stage.lens(exact=True)["lines"] == ["(captions)"]
        assert SECRET not in json.dumps(place.daemon.stage.lens(exact=True))

        await place.call("glasses:show_text", {"text": "Bob is here", "duration_s": 1})
        await place.lens_shows(f"{SECRET} 2")
        place.wearer_does(Gesture.DOUBLE_TAP)
        await place.lens_shows("Captions are off.")
        await microphone(place, open=False)
        assert SECRET not in json.dumps(place.happened, default=str)
        assert SECRET not in caplog.text
        assert SECRET not in seen(place)
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert b"xylophone" not in file.read_bytes(), file


@pytest.mark.requirement("I14-captions")
async def test_captions_are_turned_off_by_the_tool_and_say_why_they_are_not_on(tmp_path):
    async with listening(tmp_path) as place:
        assert (await place.call("glasses:captions", {"on": True}, wait=Wait.ANSWER)).ok
        await microphone(place, open=True)
        off = await place.call("glasses:captions", {"on": False})
        assert off.data["text"] == "Captions are off"
        await microphone(place, open=False)
        await until(lambda: place.lens() == [], "a dark lens")
        wanted = place._settings({"microphone": {"allow": False}})
        place.daemon.reload.applier.prepared(wanted)()
        refused = await place.call("glasses:captions", {"on": True})
        assert refused.error.message == "The microphone is switched off in the settings."
        await place.lens_shows("The microphone is switched off in the settings.")


@BOTH
@pytest.mark.requirement("I14-listening-mark")
async def test_the_words_so_far_are_seen_and_leave_with_the_microphone(tmp_path, model):
    # in true time: a busy machine comes to the words so far only while no sound waits
    async with listening(tmp_path, model, decode=says("fly me to the moon"), speed=1.0) as place:
        if model == "sim:even_g1":
            assert place.mock.glasses.hold(60.0)  # letting go would end the sentence
        else:
            place.wearer_does(Gesture.DOUBLE_TAP)
        await place.lens_shows("Listening")
        await microphone(place, open=True)
        await until(lambda: speak_on(place) and "fly me to the moon" in seen(place), "the words")
        assert "Listening" in seen(place)
        await microphone(place, open=False)
        await place.lens_shows("Sorry")
        await until(lambda: "Listening" not in seen(place), "a lens without the mark")


@pytest.mark.requirement("I14-captions", "I14-listening-mark")
@pytest.mark.parametrize(
    ("model", "shown"),
    [
        ("mock:display", "captions"),
        ("mock:display", "listening"),
        ("mock:display", "corner"),
        pytest.param("sim:even_g1", "captions", marks=needs("liblc3")),
    ],
)
async def test_a_daemon_that_is_stopped_leaves_nothing_that_says_it_listens(tmp_path, model, shown):
    async with listening(tmp_path, model) as place:
        if shown == "captions":
            await place.call("glasses:captions", {"on": True})
        else:
            await place.call("voice:start", present=False)
        await microphone(place, open=True)
        speak(place)
        await place.lens_shows(SECRET if shown == "captions" else "Listening")
        if shown == "corner":
            await place.call("glasses:show_text", {"text": "Bob is here", "duration_s": 600})
            await place.lens_shows("Bob is here", "Listening")
        await place.stop_daemon()
        await microphone(place, open=False)
        left = " ".join(place.lens())
        assert left == ("Bob is here" if shown == "corner" else "")
        await place.start_daemon()
        await place.ready()
        await until(lambda: place.lens() == ["Bob is here"] * (shown == "corner"), "as before")


@BOTH
@pytest.mark.requirement("I14-answers-by-voice")
async def test_a_spoken_yes_answers_a_question_that_says_so(tmp_path, model):
    # in true time: a word begins as long before its end as it takes to say
    async with listening(tmp_path, model, decode=says("yes"), speed=1.0) as place:
        place.start_call("glasses:ask", {"question": "Leave now?", "wait_s": 60})
        await place.lens_shows("Leave now?", "tap or say: yes", "double tap or say: no")
        await microphone(place, open=True)
        await until(place._may_answer, "a question that takes an answer")
        speak(place, 3)
        assert (await place.answer()).data == {"answer": "yes"}
        await microphone(place, open=False)


@pytest.mark.requirement("I14-answers-by-voice")
async def test_a_choice_is_named(tmp_path):
    async with listening(tmp_path, decode=says("the coffee please")) as place:
        asked = {"question": "What to drink?", "choices": ["Tea", "Milk", "Coffee"], "wait_s": 60}
        place.start_call("glasses:ask", asked)
        await microphone(place, open=True)
        await until(place._may_answer, "a question that takes an answer")
        speak(place)
        assert (await place.answer()).data == {"answer": "Coffee", "number": 3}


@pytest.mark.requirement("I14-own-voice")
async def test_speech_that_the_wearer_interrupts_is_reported_so(tmp_path):
    async with listening(tmp_path, "mock:full", decode=says("what time is it")) as place:
        place.start_call("glasses:say", {"text": "One. Two. Three. Four. Five. " * 20})
        own = place.daemon.stage._speech
        await until(
            lambda: own.speaking is not None and own.speaking.report.state is Delivery.SENT,
            "our voice",
        )
        place.wearer_does(Gesture.BUTTON_LONG)
        delivery = (await place.answer()).meta["delivery"]
        assert delivery["reason"] == "stopped by the wearer"
        assert delivery["state"] in ("spoken", "dropped"), "as much as was heard"
        await microphone(place, open=True)
