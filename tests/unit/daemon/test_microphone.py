"""Which language the wearer speaks, and what follows from a change of the settings."""

import io
import math
import struct
import wave
from itertools import pairwise

import pytest

from edge.config.model import AudioConfig, MicrophoneConfig, Settings
from edge.core.hearing.expected import ExpectedWords
from edge.core.hearing.names import KnownNames, NameList
from edge.core.hearing.purposes import Audience
from edge.core.tools.snapshot import Entry, Snapshot
from edge.daemon import microphone
from edge.daemon.microphone import Recognisers
from edge.daemon.sayable_words import SayableWords
from edge.listening_ports import RecognitionFailed
from edge.runtime.clock import Clock
from firmware_bridge.lc3 import FRAME_BYTES, Encoder
from firmware_bridge.messages import AudioFormat
from tests.system import needs
from tests.unit.hearing.children import loud, program
from tools_cache.api.tool import Source, ToolDefinition

ENGLISH = Settings()


def of(language="", voice="en-GB", **microphone):
    return Settings(
        audio=AudioConfig(voice=voice),
        microphone=MicrophoneConfig(language=language, **microphone),
    )


@pytest.mark.parametrize(
    ("settings", "language"), [(ENGLISH, "en-GB"), (of(voice="de-DE"), "de-DE"), (of("fr"), "fr")]
)
def test_the_wearer_speaks_the_language_of_the_microphone_else_of_the_voice(settings, language):
    assert settings.spoken_language == language


@pytest.mark.parametrize(
    ("wanted", "another"),
    [
        (of("de"), True),
        (of(voice="fr-FR"), True),
        (of("en-GB", voice="fr-FR"), False),
        (of(recogniser="tcp://127.0.0.1:10300"), True),
        (of(push_to_talk="tap"), False),
    ],
)
def test_a_change_makes_another_recogniser_where_it_matters(wanted, another):
    assert Recognisers(ENGLISH, Clock.system()).use(wanted) is another


async def test_a_new_recogniser_ends_the_one_before_it():
    recognisers = Recognisers(ENGLISH, Clock.system(), command=program("hear(); hear()"))
    old = await recognisers.make()
    stream = await old.begin(AudioFormat.PCM16, ExpectedWords())
    new = await recognisers.make()
    with pytest.raises(RecognitionFailed, match="closed"):
        await anext(aiter(stream))
    with pytest.raises(RecognitionFailed, match="closed"):
        await old.begin(AudioFormat.PCM16, ExpectedWords())
    await new.begin(AudioFormat.PCM16, ExpectedWords())
    await recognisers.close()


@pytest.mark.parametrize("seconds", [1, 20])
async def test_a_recording_becomes_words_all_of_it(seconds, monkeypatch):
    """More than waits for a child at once is fed as fast as it was spoken; here 20 times faster."""
    monkeypatch.setattr(microphone, "PACE_S", microphone.PACE_S / 20)
    recognisers = Recognisers(ENGLISH, Clock.system(), command=loud())
    frames = tuple(b"\0\x40" * 160 for _ in range(100 * seconds))
    said = await recognisers.words(AudioFormat.PCM16, frames)
    assert f"{seconds}.0 s of []" in said
    stream = await (await recognisers.make()).begin(AudioFormat.PCM16, ExpectedWords())
    await stream.close()
    await recognisers.close()


@needs("liblc3")
async def test_a_recording_becomes_a_file():
    encoder = Encoder(20)
    tone = [round(12_000 * math.sin(at * math.tau / 40)) for at in range(8000)]  # 400 Hz, 0.5 s
    pcm = struct.pack(f"<{len(tone)}h", *tone)
    starts = range(0, len(pcm), FRAME_BYTES)
    frames = tuple(encoder.encode(pcm[at : at + FRAME_BYTES]) for at in starts)
    file = await Recognisers(ENGLISH, Clock.system()).wave(AudioFormat.LC3, frames)
    with wave.open(io.BytesIO(file)) as heard:
        assert (heard.getframerate(), heard.getnframes()) == (8000, 4000)
        samples = struct.unpack("<4000h", heard.readframes(4000))
    assert sum(a < 0 <= b for a, b in pairwise(samples)) == pytest.approx(200, abs=5)


async def test_a_recording_is_not_recognised_while_something_else_is():
    recognisers = Recognisers(ENGLISH, Clock.system(), command=loud())
    stream = await (await recognisers.make()).begin(AudioFormat.PCM16, ExpectedWords())
    with pytest.raises(RecognitionFailed, match="something else"):
        await recognisers.words(AudioFormat.PCM16, (bytes(320),))
    await stream.close()
    assert await recognisers.words(AudioFormat.PCM16, (bytes(320),)) == "", "nothing was said"
    await recognisers.close()


def test_what_may_be_said_follows_the_tools_the_language_and_the_names():
    clock = ToolDefinition(
        name="clock:now",
        description="",
        input_schema={"properties": {"zone": {"type": "string"}}, "required": ["zone"]},
        source=Source.LOCAL,
        activation_phrases=("what time is it",),
        local_phrases={"de": ("wie spät ist es",)},
    )
    language = "en-GB"
    snapshot = Snapshot.of("1", [Entry(clock, "Clock")])
    names = KnownNames({})
    words = SayableWords(lambda: snapshot, lambda: language, lambda: names)

    def has(phrase):
        sentences = words(Audience.COMMANDS, ()).sentences
        return any(phrase in sentence for sentence in sentences)

    assert (has("what time is it"), has("wie spät ist es")) == (True, False)
    assert words(Audience.COMMANDS, ()) is words(Audience.COMMANDS, ()), (
        "kept until something changes"
    )
    language = "de-DE"
    assert (has("what time is it"), has("wie spät ist es")) == (True, True)
    assert not has("{name0}")
    names = KnownNames({"clock:now": NameList.of(["Oslo"])})
    assert has("{name0}")
