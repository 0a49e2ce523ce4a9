"""The microphone of simulated glasses, a real recogniser's child, a whole daemon: from a gesture to
the answer on the lens, and what others see of it.
"""

import json
from contextlib import asynccontextmanager

import pytest

from firmware_bridge.messages import Gesture
from tests.scenarios.world import until, world
from tests.unit.hearing.children import loud
from tools_cache.api.tool import Mode

pytest.importorskip("numpy", reason="pip install 'glassd[ears]'")

SAID = (
    "return Decoded("
    "'set a timer for 5 minutes', 0.9, (Reading('set a timer for 5 minutes', -1.0),))"
)


@asynccontextmanager
async def listening(tmp_path, model="mock:display", *, decode=SAID, speed=8.0, **microphone):
    async with world(tmp_path, model) as place:
        await place.switch_glasses_on(speed=speed)
        await place.start_daemon(microphone=microphone)
        place.daemon.recognisers.command = loud(decode=decode)
        await place.ready()
        yield place


def on_lens(place):
    return " / ".join(place.daemon.stage.lens()["lines"])


async def microphone(place, *, open):
    await until(
        lambda: [s["open"] for s in place.shown if s["event"] == "microphone"][-1:] == [open],
        f"the microphone {'on' if open else 'off'}",
    )


def audited(place):
    lines = (place.folder / "state" / "audit" / "calls.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, lines) if "microphone" in str(line["outcome"])]


@pytest.mark.requirement("I14-push-to-talk")
async def test_a_gesture_and_a_sentence_become_an_answer_on_the_lens(tmp_path):
    async with listening(tmp_path) as place:
        place.wearer_does(Gesture.DOUBLE_TAP)
        await microphone(place, open=True)
        await until(lambda: on_lens(place) == "Listening…", "the mark")
        place.mock.glasses.microphone.say("one two three four five six")
        await microphone(place, open=False)
        await until(lambda: "Timer 1, 5 min" in on_lens(place), "the answer")
        said = [h["said"] for h in place.happened if h["event"] == "glasses.event"]
        words = [s for s in said if s["type"] == "Transcript" and s["final"]]
        assert [s["text"] for s in words] == ["set a timer for 5 minutes"]
        assert not [s for s in said if s["type"] == "MicrophoneChunk"]
        state = place.daemon.status()["microphone"]
        assert (state["state"], state["last"]["for"]) == ("off", "push_to_talk")
        await until(lambda: len(audited(place)) == 2, "both lines of the audit log")
        assert "timer" not in json.dumps(audited(place))


@pytest.mark.requirement("I14-session")
async def test_voice_start_listens_and_voice_end_stops(tmp_path):
    async with listening(tmp_path) as place:
        started = await place.call("voice:start")
        assert started.data["listening"] == "on"
        await microphone(place, open=True)
        assert place.daemon.status()["microphone"]["for"] == "session"
        assert (await place.call("voice:end", mode=Mode.VOICE)).ok
        await microphone(place, open=False)


@pytest.mark.requirement("I14-own-voice")
async def test_our_own_voice_is_not_taken_for_the_wearers(tmp_path):
    async with listening(tmp_path, "mock:full", speed=1.0) as place:
        glasses = place.mock.glasses
        glasses.microphone.echo.set(0)
        await place.call("voice:start", present=False)
        await microphone(place, open=True)
        text = "One two three."
        assert (await place.call("glasses:say", {"text": text})).ok
        spoken_at = place.daemon.clock.boot()
        assert glasses.speaker.last.seconds > 1
        assert not glasses.speaker.last.flushed, "it does not stop itself"
        glasses.hear(glasses.speaker.last.wav.read_bytes()[44:])

        def words():
            said = [h["said"] for h in place.happened if h["event"] == "glasses.event"]
            return [s for s in said if s["type"] == "Transcript" and s["final"]]

        await until(words, "the wearer is heard after it")
        assert words()[0]["began_at"] >= spoken_at - 0.5, "not what was heard before"


@pytest.mark.requirement("I14-one-plain-line")
async def test_voice_start_says_why_nothing_can_be_heard(tmp_path):
    async with listening(tmp_path, allow=False) as place:
        started = await place.call("voice:start")
        assert started.ok
        assert started.data["listening"] == "The microphone is switched off in the settings."
        assert place.daemon.status()["microphone"]["state"] == "forbidden"


@pytest.mark.requirement("I14-one-plain-line")
async def test_a_recogniser_killed_in_mid_sentence_is_one_line_on_the_lens(tmp_path):
    async with listening(
        tmp_path, "mock:full", decode="import os; os.kill(os.getpid(), 9)"
    ) as place:
        place.wearer_does(Gesture.BUTTON_LONG)
        await microphone(place, open=True)
        place.mock.glasses.microphone.say(" ".join(["long"] * 40))
        await microphone(place, open=False)
        await until(lambda: "Speech recognition has stopped" in on_lens(place), "the line")


@pytest.mark.requirement("I14-one-plain-line")
async def test_the_first_gesture_already_says_why_nothing_can_be_heard(tmp_path):
    async with listening(tmp_path, "mock:full", allow=False) as place:
        assert place.daemon.listening._listening is None, "nothing was needed until now"
        assert place.daemon.status()["microphone"]["state"] == "forbidden"
        assert place.daemon.listening._listening is None
        place.wearer_does(Gesture.BUTTON_LONG)
        await until(lambda: "switched off in the settings" in on_lens(place), "the line")


@pytest.mark.requirement("I14-microphone-forbidden")
async def test_a_reload_that_forbids_the_microphone_turns_it_off(tmp_path):
    async with listening(tmp_path) as place:
        await place.call("voice:start")
        await microphone(place, open=True)
        wanted = place._settings({"microphone": {"allow": False}})
        place.daemon.reload.applier.prepared(wanted)()
        await microphone(place, open=False)
