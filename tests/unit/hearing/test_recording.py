"""Recordings: sound for a caller, whole or not at all."""

import asyncio
import io
import math
import wave
from array import array

import pytest

from edge.hearing import recorder, sound_file
from edge.hearing.recorder import Recorder, to_wav
from edge.listening_ports import CannotListen
from edge.runtime.clock import Clock
from firmware_bridge.messages import AudioFormat, MicrophoneChunk
from tests.unit.hearing.listening_place import Place

PCM = {
    "display": True,
    "microphone": True,
    "microphone.codecs": "pcm16",
    "gestures": "tap,double_tap,button_long",
}
TONE = array("h", [round(8000 * math.sin(n / 8)) for n in range(1600)]).tobytes()
"""A tenth of a second."""


def samples(wav):
    with wave.open(io.BytesIO(wav)) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        return file.getframerate(), file.readframes(file.getnframes())


def send(place, index, pcm=TONE):
    place.glasses.take(MicrophoneChunk(place.glasses.open, index, (pcm,)))


async def started(place, seconds=60.0):
    """Begin a recording, and wait until the microphone is on."""
    recording = asyncio.ensure_future(place.listening.record(seconds, rate=16000))
    await place.settle()
    assert place.on
    return recording


async def refused(recording):
    with pytest.raises(CannotListen) as failed:
        async with asyncio.timeout(20):
            await recording
    return str(failed.value)


async def test_a_recording_is_the_sound_of_its_time_and_needs_no_recogniser():
    place = Place(PCM)
    place.recognition.missing = "none is installed"
    async with place.running():
        recording = await started(place, 0.4)
        for index in range(3):
            send(place, index)
        rate, pcm = samples(await recording)
        await place.settle()
        assert (rate, pcm) == (16000, 3 * TONE)
        assert not place.on
        assert place.mark.seen == ["", None], "the lens said that the microphone was on"
        assert place.recognition.streams == []
        assert [line["outcome"] for line in place.audit] == ["microphone_on", "microphone_off"]
        assert place.audit[0]["reason"] == "recording"


async def test_the_gesture_of_push_to_talk_ends_it_and_gives_nothing():
    async with Place(PCM).running() as place:
        recording = await started(place)
        send(place, 0)
        await place.press()
        assert await refused(recording) == "The wearer ended the recording."
        await place.settle()
        assert not place.on
        await place.press()
        assert place.on, "the next one is push to talk"


async def test_glasses_that_go_away_end_it_and_give_nothing():
    async with Place(PCM).running() as place:
        recording = await started(place)
        send(place, 0)
        await place.lose()
        await place.pass_time(0)
        assert await refused(recording) == "The glasses are not connected."


async def test_a_microphone_that_is_forbidden_ends_it():
    async with Place(PCM).running() as place:
        recording = await started(place)
        await place.configure(allow=False)
        assert await refused(recording) == "The microphone is switched off in the settings."


async def test_a_microphone_that_sends_nothing_ends_it():
    async with Place(PCM).running() as place:
        recording = await started(place)
        await place.pass_time(11)
        assert await refused(recording) == "The microphone of the glasses sends no sound."


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"ready": False}, "The glasses are not connected."),
        ({"facts": {"display": True}}, "These glasses have no microphone."),
        ({"refuse": ["no", "no"]}, "The microphone of the glasses does not go on."),
    ],
)
async def test_what_cannot_be_recorded_says_why(change, why):
    async with Place(PCM).running() as place:
        for name, value in change.items():
            setattr(place.glasses, name, value)
        assert await refused(place.listening.record(1.0, rate=16000)) == why


async def test_there_is_one_recording_at_a_time():
    async with Place(PCM).running() as place:
        first = await started(place)
        second = place.listening.record(1.0, rate=16000)
        assert await refused(second) == "Sound is being recorded already."
        first.cancel()
        await asyncio.wait([first])
        await place.settle()
        assert not place.on, "one that is called off leaves nothing on"


async def test_captions_and_a_recording_share_the_microphone():
    async with Place(PCM).running() as place:
        await place.listening.switch(on=True)
        recording = await started(place, 0.2)
        place.speech.speaking = True
        send(place, 0)
        place.speech.speaking = False
        send(place, 1)
        assert samples(await recording)[1] == 2 * TONE, "our own speech is part of it"
        assert len(place.stream.chunks) == 1
        await place.settle()
        assert place.on, "captions go on"


async def test_a_recording_is_bounded(monkeypatch):
    monkeypatch.setattr(recorder, "MOST_BYTES", 2 * len(TONE))
    async with Place(PCM).running() as place:
        recording = await started(place)
        for index in range(3):
            send(place, index)
        assert await refused(recording) == "The recording became too long."


# ------------------------------------------------------------------ the file


def recorded(form, rate, *frames):
    made = Recorder(form, rate, Clock(boot=lambda: 1.0))
    for index, frame in enumerate(frames):
        made.take(MicrophoneChunk(1, index, (frame,)))
    return made


@pytest.mark.parametrize(
    ("form", "rate", "as_rate", "frames", "seconds"),
    [
        (AudioFormat.PCM16, 16000, 16000, TONE, 0.1),
        (AudioFormat.PCM16, 16000, 8000, TONE, 0.1),
        (AudioFormat.PCM16, 8000, 16000, TONE, 0.2),
        (AudioFormat.MULAW, 8000, 8000, bytes(800), 0.1),
        (AudioFormat.MULAW, 16000, 16000, bytes(800), 0.05),
    ],
)
def test_each_format_becomes_a_file_of_its_length(form, rate, as_rate, frames, seconds):
    made = recorded(form, rate, frames, frames)
    file_rate, pcm = samples(sound_file.wav_of(made.packed(60, rate=as_rate)))
    assert file_rate == as_rate
    assert len(pcm) / 2 / file_rate == pytest.approx(2 * seconds)


def test_half_the_rate_is_the_mean_of_two_samples():
    made = recorded(AudioFormat.PCM16, 16000, array("h", [10, 20, -7, -8, 5]).tobytes())
    assert array("h", samples(sound_file.wav_of(made.packed(60, rate=8000)))[1]).tolist() == [
        15,
        -8,
    ]


def test_sound_that_was_lost_is_concealed_and_late_sound_is_in_its_place():
    made = Recorder(AudioFormat.PCM16, 16000, Clock(boot=lambda: 1.0))
    for index in (0, 2, 1, 4, 5, 6, 8):
        made.take(MicrophoneChunk(1, index, (bytes([index, 0]) * 160,)))
    pcm = array("h", samples(sound_file.wav_of(made.packed(60, rate=16000)))[1])
    assert pcm[::160].tolist() == [0, 1, 2, 0, 4, 5, 6, 0, 8]


def test_more_sound_than_was_wanted_is_cut():
    made = recorded(AudioFormat.PCM16, 16000, TONE, TONE)
    for rate in (16000, 8000):
        _, pcm = samples(sound_file.wav_of(made.packed(0.15, rate=rate)))
        assert len(pcm) / 2 / rate == pytest.approx(0.15)


async def test_what_cannot_be_decoded_says_so(monkeypatch):
    monkeypatch.setattr(recorder, "_CODE", "raise SystemExit(1)")
    with pytest.raises(CannotListen, match="cannot be decoded"):
        await to_wav(recorded(AudioFormat.PCM16, 16000, TONE).packed(60, rate=16000))
