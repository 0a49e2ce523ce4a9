"""A synthetic voice speaks into the microphone of simulated glasses: real sound over real Bluetooth
stacks into a real recogniser, and the tool's answer stands on the lens.
"""

import asyncio
import random
import struct
from contextlib import asynccontextmanager

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
WITH_LC3 = [
    pytest.param("mock:full"),
    pytest.param("even_g1", marks=needs("liblc3")),
]
SENTENCES = (
    ("Set a timer for five minutes.", "Timer 1, 5 min"),
    ("Remember that the car is on level three.", "car is on level"),
)


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


@pytest.mark.requirement("I14-end-to-end")
@pytest.mark.parametrize("model", WITH_LC3)
async def test_spoken_sentences_become_answers_on_the_lens(tmp_path, model):
    async with wearing(tmp_path, model) as place:
        for sentence, answer in SENTENCES:
            await press(place)
            await say(place, sentence)
            await place.lens_shows(*answer.split())
            await microphone(place, open=False)


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
