"""A synthetic voice speaks into the microphone of simulated glasses: real sound over real Bluetooth
stacks into a real recogniser, and the tool's answer stands on the lens.
"""

import asyncio
import random
import struct
from contextlib import asynccontextmanager, suppress

import pytest

from edge.demo.speech import synthesise
from firmware_bridge.messages import Gesture
from firmware_bridge.sim.wav import RATE, mix
from tests.scenarios.world import until, world
from tests.system import needs

pytest.importorskip("moonshine_voice", reason="pip install 'glassd[ears]'")
pytest.importorskip("onnxruntime", reason="pip install 'glassd[ears]'")
pytest.importorskip("py_nanotts", reason="pip install 'glassd[voice]'")

HOLD = Gesture.BUTTON_LONG
"""Push to talk of these glasses; nothing on the lens uses it."""
SENTENCES = (
    (
        "Remind me in two hours to water the garden.",
        "timer:start",
        "Timer 1: water the garden, 2 h",
    ),
    ("No, twenty minutes.", "timer:start", "Timer 2: water the garden, 20 min"),
    ("Cancel timer two.", "timer:cancel", "Timer 2 cancelled"),
    ("Remember that the car is on level three.", "notes:add", "Noted: the car is on"),
)
"""A reminder with its time, a correction, a number, a note that is dictated."""


@asynccontextmanager
async def wearing(tmp_path, model="mock:full", **microphone):
    """A daemon without a cloud, and these glasses. Sound takes as long as it takes."""
    async with world(tmp_path, model) as place:
        await place.switch_glasses_on(speed=1.0)
        await place.start_daemon(microphone=microphone, audio={"speech": "off"})
        await place.ready()
        yield place


async def press(place):
    """Push to talk."""
    place.wearer_does(HOLD)
    await microphone(place, open=True)


async def microphone(place, *, open):
    def states():
        return [shown["open"] for shown in place.shown if shown["event"] == "microphone"]

    await until(lambda: states()[-1:] == [open], f"the microphone {'on' if open else 'off'}")


async def say(place, text):
    place.mock.glasses.hear(await asyncio.to_thread(lambda: asyncio.run(synthesise(text))), text)


def noise(seconds, level=1000):
    source = random.Random(1)
    count = int(seconds * RATE)
    return struct.pack(f"<{count}h", *(round(source.gauss(0, level)) for _ in range(count)))


def heard(place):
    """Sentences that the daemon understood, from its events."""
    said = [happened["said"] for happened in place.happened if "said" in happened]
    return [each["text"] for each in said if each["type"] == "Transcript" and each["final"]]


async def command(place, sentence, tool, answer):
    """Say a sentence after the gesture; a tap says yes to the question whether it was that."""
    await press(place)
    place.mark()
    await say(place, sentence)

    def so_far():
        return [h for h in place.happened[place.marked :] if h.get("tool")]

    await until(so_far, lambda: f"a call of {sentence!r}; heard: {heard(place)}")
    assert so_far()[0]["tool"] == tool, heard(place)
    if so_far()[0]["event"] == "call.received":
        await until(lambda: so_far()[1:], "what comes of the call")
    if so_far()[-1]["event"] == "confirmation.asked":
        await until(place._may_answer, "a question that takes an answer")
        place.tap()
    await place.heard("call.answered", tool=tool, ok=True)
    await place.lens_shows(answer)


@pytest.mark.requirement("I14-end-to-end")
@needs("liblc3")
async def test_a_sentence_in_the_sound_of_an_even_g1_becomes_an_answer(tmp_path):
    """The way of the sound to the recogniser is its own; what follows is that of all glasses."""
    async with wearing(tmp_path, "even_g1") as place:
        await command(place, *SENTENCES[0])
        await microphone(place, open=False)


@pytest.mark.requirement("I14-end-to-end")
async def test_spoken_sentences_become_answers_on_the_lens(tmp_path):
    async with wearing(tmp_path) as place:
        for sentence, tool, answer in SENTENCES:
            await command(place, sentence, tool, answer)
            await microphone(place, open=False)
            if sentence.startswith("No"):
                await place.heard("call.answered", tool="timer:cancel", ok=True)

        place.start_call("glasses:ask", {"question": "Leave now?", "wait_s": 60})
        await until(place._may_answer, "the question")
        await microphone(place, open=True)
        for _ in range(3):  # what was not clear is said again
            await say(place, "Yes, that's right.")
            with suppress(AssertionError):
                await until(place._asked.done, "an answer", 7.0)
                break
        assert (await place.answer()).data == {"answer": "yes"}
        await microphone(place, open=False)

        await command(place, "Turn on captions.", "glasses:captions", "Captions are on")
        await say(place, "The train leaves at nine.")
        await place.lens_shows("The train")


@pytest.mark.requirement("I14-nothing-asked")
async def test_nothing_is_heard_while_nobody_asked_glassd_to_listen(tmp_path):
    async with wearing(tmp_path) as place:
        await say(place, SENTENCES[0][0])
        await asyncio.sleep(1.0)  # nothing is expected to happen that could be waited for
        assert not [shown for shown in place.shown if shown["event"] == "microphone"]
        assert place.daemon.status()["microphone"]["state"] == "off"
        assert heard(place) == []


@pytest.mark.requirement("I14-nothing-asked")
@pytest.mark.usefixtures("short_silence")
async def test_noise_after_the_gesture_calls_nothing_and_is_over_by_itself(tmp_path):
    async with wearing(tmp_path) as place:
        await press(place)
        place.mock.glasses.hear(noise(4.0))
        await microphone(place, open=False)
        assert heard(place) == []
        assert not [h for h in place.happened if h["event"].startswith("call.")]


@pytest.mark.requirement("I14-nothing-asked")
@pytest.mark.usefixtures("short_silence")
async def test_two_people_who_speak_at_once_call_nothing(tmp_path):
    async with wearing(tmp_path) as place:
        await press(place)
        both = [
            await asyncio.to_thread(lambda text=text: asyncio.run(synthesise(text)))
            for text in ("Start a timer for five minutes.", "My brother went home on Sunday.")
        ]
        longest = max(map(len, both))
        place.mock.glasses.hear(mix(*(pcm.ljust(longest, b"\0") for pcm in both)), "both")
        await microphone(place, open=False)
        assert not [h for h in place.happened if h["event"] == "call.answered" and h["tool"]]


@pytest.mark.requirement("I14-one-plain-line")
async def test_glasses_without_a_microphone_say_so_and_offer_no_captions(tmp_path):
    async with wearing(tmp_path) as place:
        place.mock.glasses.set_capabilities({"microphone": False})
        await until(lambda: hidden(place, "glasses:captions"), "captions are not offered")
        started = await place.call("voice:start")
        assert started.data["listening"] == "These glasses have no microphone."
        place.wearer_does(HOLD)
        assert (await place.call("clock:now")).ok
        assert not [shown for shown in place.shown if shown["event"] == "microphone"]


def hidden(place, name):
    return place.daemon.registry.snapshot().find(name).hidden
