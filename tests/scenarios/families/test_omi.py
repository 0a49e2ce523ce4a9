"""Story: what Omi, OMI Glass and OpenGlass have of their own: a sentence in their sound becomes a
call, and a photo of which something was lost is none.
"""

import asyncio
from contextlib import asynccontextmanager
from io import BytesIO

import pytest
from PIL import Image

from edge.demo.speech import synthesise
from edge.hearing import recogniser
from firmware_bridge.catalog import find
from firmware_bridge.messages import Gesture, PhotoFailed, PhotoTaken, TakePhoto
from tests.scenarios.world import until, world
from tests.unit.hearing.children import AS_FAST_AS_OTHERS
from tools_cache.api.tool import CallOrigin, Mode

PHOTO = "glasses:take_photo"
SENTENCE = "Remember that the car is on level three."


@asynccontextmanager
async def wearing(folder, key, speed=1.0):
    """A daemon without a cloud, and these glasses, ready."""
    async with world(folder, f"sim:{key}", glasses={"model": key}) as place:
        await place.switch_glasses_on(speed=speed)
        await place.start_daemon(audio={"speech": "off"})
        await place.ready()
        yield place


def sentences(place):
    said = [happened["said"] for happened in place.happened if "said" in happened]
    return [each["text"] for each in said if each["type"] == "Transcript" and each["final"]]


async def speak(place, text):
    place.mock.glasses.hear(await asyncio.to_thread(lambda: asyncio.run(synthesise(text))), text)


def microphone(place):
    """Whether it is on, as the glasses see it."""
    return [shown["open"] for shown in place.shown if shown["event"] == "microphone"][-1:] == [True]


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("key", ["omi", "openglass"])
async def test_a_spoken_sentence_becomes_a_call(tmp_path, key, monkeypatch):
    """An Omi after a double tap, in Opus; OpenGlass, which has no button, in a voice session."""
    pytest.importorskip("moonshine_voice", reason="pip install 'glassd[ears]'")
    pytest.importorskip("py_nanotts", reason="pip install 'glassd[voice]'")
    monkeypatch.setattr(recogniser, "_WORKER", AS_FAST_AS_OTHERS)
    async with wearing(tmp_path, key) as place:
        assert not microphone(place)
        if key == "omi":
            place.wearer_does(Gesture.DOUBLE_TAP)
        else:
            await place.call("voice:start", present=False)
        await until(lambda: microphone(place), "the microphone on")
        place.mark()
        await speak(place, SENTENCE)
        await until(lambda: sentences(place), "the sentence")
        assert "the car is on level" in sentences(place)[0]
        await place.heard("call.answered", tool="notes:add")
        if key == "openglass":
            assert (await place.call("voice:end", mode=Mode.VOICE)).ok
        await until(lambda: not microphone(place), "the microphone off")


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("key", ["omi_glass", "openglass"])
async def test_a_photo_is_taken_and_a_damaged_one_is_none(tmp_path, key):
    async with wearing(tmp_path, key, speed=8.0) as place:
        photos = []
        place.daemon.link.receive_photos(photos.append)

        def answers():
            return [found for found in photos if found.photo]

        await place.daemon.link.request(TakePhoto(1), timeout_s=10.0)
        await until(answers, "the photo")
        [taken] = answers()
        assert isinstance(taken, PhotoTaken)
        known = find(key).capabilities
        assert Image.open(BytesIO(taken.jpeg)).size == (
            known["camera.width"],
            known["camera.height"],
        )
        place.mock.glasses.faults[None].lose_every = 7
        await place.daemon.link.request(TakePhoto(2), timeout_s=10.0)
        await until(lambda: answers()[1:], "the failure")
        assert isinstance(answers()[1], PhotoFailed)


@pytest.mark.asyncio(loop_scope="session")
async def test_an_agents_photo_is_confirmed_in_a_terminal(tmp_path):
    """These glasses can ask nothing."""
    async with wearing(tmp_path, "omi_glass", speed=8.0) as place:
        response = await place.call(PHOTO, origin=CallOrigin.MCP)
        assert "neither a display nor a speaker" in response.error.message
        token = response.error.confirmation_request["token"]
        done = await place.daemon.calls.confirm(token, allow=True)
        assert done.ok, done.error
        assert done.data["turned"] == 180


@pytest.mark.asyncio(loop_scope="session")
async def test_an_omi_vibrates_and_its_motion_is_read_where_it_is_built_in(tmp_path):
    async with wearing(tmp_path, "omi") as place:
        assert (await place.call("glasses:vibrate", {"length": "short"})).ok
        felt = [shown["length"] for shown in place.shown if shown["event"] == "vibrated"]
        assert felt == ["short"]
        refused = await place.call("glasses:motion")
        assert refused.error.code == "HARDWARE_MISSING"
