"""The voice: a real child process, its failures included."""

import asyncio
import base64
import sys
from array import array

import opuslib_next
import pytest
from hypothesis import given, settings, strategies as st

from edge.display.voice.speech import SpeechPlayer, sentences
from edge.display.voice.tts import (
    MAX_PCM,
    MAX_SENTENCE,
    TextToSpeech,
    Unspeakable,
    VoiceUnavailable,
)
from edge.runtime.bus import Bus
from firmware_bridge.capabilities import Capabilities, Origin
from firmware_bridge.messages import AudioFormat
from tests.unit.display.fakes import AUDIO, FakeGlasses


@pytest.fixture
async def voice():
    made = TextToSpeech()
    yield made
    await made.close()


async def test_a_sentence_becomes_opus_frames_that_decode_to_sound(voice: TextToSpeech) -> None:
    said = await voice.say("Hello world.", AudioFormat.OPUS)
    assert said.samples > 8000
    assert len(said.frames) == -(-said.samples // 320)
    decoder = opuslib_next.Decoder(16000, 1)
    pcm = b"".join(decoder.decode(frame, 320) for frame in said.frames)
    loud = max(
        abs(int.from_bytes(pcm[i : i + 2], "little", signed=True)) for i in range(0, len(pcm), 2)
    )
    assert 1000 < loud <= 32768 * 10 ** (-1 / 20), "heard_after, and below -1 dBFS"
    assert sum(map(len, said.frames)) < said.samples * 2 / 5, "coded, not copied"


async def test_pcm_frames_are_640_bytes(voice: TextToSpeech) -> None:
    said = await voice.say("Hello.", AudioFormat.PCM16)
    assert {len(frame) for frame in said.frames} == {640}


async def test_the_silence_before_a_stream_is_no_speech(voice: TextToSpeech) -> None:
    voice.preroll_ms = 300
    first = await voice.say("Hello.", AudioFormat.PCM16, first=True)
    next_one = await voice.say("Hello.", AudioFormat.PCM16)
    assert first.samples - next_one.samples == 4800
    assert not any(b"".join(first.frames[:15])), "0.3 s of zeros"
    assert 4800 + 960 <= first.heard_after < 4800 + 8000
    assert 960 <= next_one.heard_after < 8000


async def test_samples_are_as_loud_as_speech_and_silent_ones_are_refused(
    voice: TextToSpeech,
) -> None:
    voice.preroll_ms = 100
    quiet = array("h", [400 if n % 80 < 40 else -400 for n in range(8000)])
    for form in AudioFormat.OPUS, AudioFormat.PCM16:
        made = await voice.code(base64.b64encode(quiet).decode(), form)
        assert made.samples == 1600 + 8000
        assert made.heard_after >= 1600 + 960
    loud = array("h", b"".join(made.frames))
    assert 2000 < max(loud) <= 32768 * 10 ** (-3 / 20)
    assert (await voice.code(base64.b64encode(quiet * 110).decode(), AudioFormat.OPUS)).samples
    with pytest.raises(Unspeakable, match="it is silent"):
        await voice.code(base64.b64encode(bytes(16000)).decode(), AudioFormat.OPUS)
    with pytest.raises(Unspeakable, match="longer than two minutes"):
        await voice.code("A" * (MAX_PCM + 4), AudioFormat.OPUS)


async def test_the_sharpest_sound_is_below_the_ceiling_as_the_glasses_decode_it(
    voice: TextToSpeech,
) -> None:
    """Loud clicks in quiet noise: Opus rounds them off and swings over."""
    sharp = array("h", [(n * 7919 % 1200) - 600 for n in range(16000)])
    for at in range(0, len(sharp), 800):
        sharp[at : at + 8] = array("h", [32767, -32768] * 4)
    voice.volume = 100
    made = await voice.code(base64.b64encode(sharp).decode(), AudioFormat.OPUS)
    decoder = opuslib_next.Decoder(16000, 1)
    played = array("h", b"".join(decoder.decode(frame, 320) for frame in made.frames))
    assert 3000 < max(map(abs, played)) <= 32768 * 10 ** (-1 / 20)


async def test_without_opus_glasses_that_take_pcm_get_pcm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edge.display.voice.tts.find_spec", lambda name: None)
    player = SpeechPlayer(FakeGlasses(Bus(), AUDIO), TextToSpeech())
    for codecs, form in (("opus,pcm16", AudioFormat.PCM16), ("pcm16", AudioFormat.PCM16)):
        record = Capabilities.of(
            "mock", {"speaker.codecs": codecs}, origin=Origin.FIRMWARE, now=0.0
        )
        assert player._form(record) is form
    record = Capabilities.of("mock", {"speaker.codecs": "opus"}, origin=Origin.FIRMWARE, now=0.0)
    assert player.why_not(record) == "these glasses take only Opus: install glassd[voice]"


async def test_with_volume_0_nothing_is_spoken_and_the_reason_says_so(voice: TextToSpeech) -> None:
    voice.volume = 0
    assert voice.why_not() == "the volume is 0"
    assert not voice.missing(), "this machine has a voice all the same"
    with pytest.raises(VoiceUnavailable, match="the volume is 0"):
        await voice.say("Hello.", AudioFormat.OPUS)
    with pytest.raises(VoiceUnavailable, match="the volume is 0"):
        await voice.code("AAAA", AudioFormat.OPUS)
    voice.volume = 1
    assert (await voice.say("Hello.", AudioFormat.OPUS)).heard_after


@pytest.mark.parametrize("text", ["こんにちは", "👍", "Привет, мир! Как дела?"])
async def test_unspeakable_text_is_reported_and_the_child_survives(
    voice: TextToSpeech, text: str
) -> None:
    with pytest.raises(Unspeakable):
        await voice.say(text, AudioFormat.OPUS)
    first = voice._worker._child
    assert (await voice.say("Still here.", AudioFormat.OPUS)).samples > 0
    assert voice._worker._child is first


async def test_the_volume_is_heard(voice: TextToSpeech) -> None:
    peaks = []
    for volume in (100, 50):
        voice.volume = volume
        said = await voice.say("Hello world.", AudioFormat.PCM16)
        samples = array("h", b"".join(said.frames))
        peaks.append(max(samples))
    assert peaks[0] / peaks[1] == pytest.approx(10**0.5, rel=0.05)
    assert peaks[0] < 32768 * 0.9


async def test_a_stuck_child_is_killed_and_the_next_sentence_gets_another() -> None:
    voice = TextToSpeech(start_s=0.3, command=[sys.executable, "-c", "import time; time.sleep(60)"])
    with pytest.raises(Unspeakable, match="too long"):
        await voice.say("x", AudioFormat.OPUS)
    assert voice._worker._child is None
    voice._worker._command = TextToSpeech()._worker._command
    voice._worker._start_s = 40.0
    assert (await voice.say("Back again.", AudioFormat.OPUS)).samples > 0
    await voice.close()
    assert not voice._worker._dying


async def test_a_child_that_has_yet_to_start_has_more_time_than_one_that_has_spoken() -> None:
    voice = TextToSpeech(deadline_s=0.0, start_s=40.0)
    assert (await voice.say("A slow start.", AudioFormat.OPUS)).samples > 0
    with pytest.raises(Unspeakable, match="too long"):
        await voice.say("Stuck.", AudioFormat.OPUS)
    assert (await voice.say("Another slow start.", AudioFormat.OPUS)).samples > 0
    await voice.close()


async def test_a_child_that_went_idle_is_replaced_without_anybody_noticing() -> None:
    voice = TextToSpeech(idle_s=0.05)
    await voice.say("One.", AudioFormat.OPUS)
    child = voice._worker._child
    assert child is not None
    await asyncio.wait_for(child.wait(), 40)
    voice._worker._deadline_s = 0.0  # the next child has to start, too
    assert (await voice.say("Two.", AudioFormat.OPUS)).samples > 0
    await voice.close()


async def test_a_child_that_answers_nonsense_is_an_unspeakable_sentence() -> None:
    noise = (
        "import sys; sys.stdin.buffer.read(4); "
        "sys.stdout.buffer.write(b'\\0\\0\\0\\2\\1x'); sys.stdout.flush()"
    )
    voice = TextToSpeech(command=[sys.executable, "-c", noise])
    with pytest.raises(Unspeakable, match="x"):
        await voice.say("x", AudioFormat.OPUS)
    voice._worker._command = (sys.executable, "-c", "pass")
    await voice.close()
    with pytest.raises(Unspeakable, match="without an answer"):
        await voice.say("x", AudioFormat.OPUS)
    await voice.close()


async def test_a_cancelled_sentence_leaves_no_half_answer_behind() -> None:
    voice = TextToSpeech()
    await voice.say("Warm up.", AudioFormat.OPUS)
    asking = asyncio.ensure_future(
        voice.say("A sentence that is not waited for.", AudioFormat.PCM16)
    )
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait({asking})
    assert {len(f) for f in (await voice.say("Clean.", AudioFormat.PCM16)).frames} == {640}
    await voice.close()


async def test_without_any_voice_the_reason_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("edge.display.voice.tts.find_spec", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert TextToSpeech().why_not().endswith("install glassd[voice] or espeak-ng")
    with pytest.raises(VoiceUnavailable):
        await TextToSpeech().say("x", AudioFormat.OPUS)
    assert not TextToSpeech().can_code(AudioFormat.OPUS)
    assert TextToSpeech().can_code(AudioFormat.PCM16)
    assert not TextToSpeech(server="tcp://127.0.0.1:1").why_not(), "a server may have voices"
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert not TextToSpeech().why_not()


def test_sentences_are_cut_and_cleaned_for_the_speech_engine() -> None:
    assert list(sentences("One. Two!\nThree ‹not lost› four\x00five <b>")) == [
        "One.",
        "Two!",
        "Three not lost four five b",
    ]
    assert list(sentences("... !!! —")) == []
    assert list(sentences("本当。はい。")) == ["本当。", "はい。"]


@given(st.text(alphabet="ab ,.\n", max_size=3000))
@settings(max_examples=60, deadline=None)
def test_no_sentence_is_over_the_bound_and_no_letter_is_lost(text: str) -> None:
    spoken = list(sentences(text))
    assert all(0 < len(s) <= MAX_SENTENCE for s in spoken)
    letters = lambda s: [c for c in s if c.isalpha()]  # noqa: E731
    assert letters("".join(spoken)) == letters(text)
