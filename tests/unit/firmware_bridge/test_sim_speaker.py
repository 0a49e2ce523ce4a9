"""The mock's speaker: what is played is what was decoded, counted in samples, in its own time."""

import array
import math
import wave
from pathlib import Path

import opuslib_next
import pytest

from firmware_bridge.catalog import find
from firmware_bridge.messages import AudioFormat
from firmware_bridge.sim import sound as module
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.sound import SimSpeaker, SpeakerError
from firmware_bridge.sim.time import SimTime


class HandTime:
    """Time that moves when somebody rests, or by hand."""

    def __init__(self) -> None:
        self.at = 100.0
        self.rested: list[float] = []
        self.while_resting = lambda: None

    def now(self) -> float:
        return self.at

    async def rest(self, seconds: float) -> None:
        self.rested.append(seconds)
        self.while_resting()
        self.at += seconds


@pytest.fixture
def time() -> HandTime:
    return HandTime()


@pytest.fixture
def speaker(tmp_path: Path, time: HandTime) -> SimSpeaker:
    return SimSpeaker(tmp_path, time)


def tone(samples: int, hertz: float = 440.0) -> bytes:
    return array.array(
        "h", (round(9000 * math.sin(2 * math.pi * hertz * i / 16000)) for i in range(samples))
    ).tobytes()


def read(path: Path) -> bytes:
    with wave.open(str(path), "rb") as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 16000)
        return file.readframes(file.getnframes())


async def test_pcm_is_played_sample_by_sample_in_real_time(
    speaker: SimSpeaker, time: HandTime
) -> None:
    sound = tone(3200)
    speaker.start(1, AudioFormat.PCM16, 16000)
    speaker.feed(1, [sound[:2000], sound[2000:]])
    heard = await speaker.drain(1)
    assert (heard.samples, heard.seconds, heard.flushed) == (3200, 0.2, False)
    assert read(heard.wav) == sound
    assert sum(time.rested) == pytest.approx(0.2)
    assert speaker.last is heard


async def test_opus_is_decoded_to_16_khz(speaker: SimSpeaker) -> None:
    encoder = opuslib_next.Encoder(16000, 1, opuslib_next.APPLICATION_VOIP)
    sound = tone(320 * 10)
    speaker.start(7, AudioFormat.OPUS, 16000)
    for i in range(10):
        speaker.feed(7, [encoder.encode(sound[i * 640 : (i + 1) * 640], 320)])
    heard = await speaker.drain(7)
    assert heard.samples == 3200
    loud = array.array("h", read(heard.wav))
    assert max(map(abs, loud)) > 4000


async def test_a_pause_in_the_stream_is_a_pause_in_the_sound(
    speaker: SimSpeaker, time: HandTime
) -> None:
    speaker.start(1, AudioFormat.PCM16, 16000)
    speaker.feed(1, [tone(1600)])
    time.at += 5.0
    speaker.feed(1, [tone(1600)])
    await speaker.drain(1)
    assert time.rested == [pytest.approx(0.1)]


async def test_flush_counts_only_what_was_played(speaker: SimSpeaker, time: HandTime) -> None:
    speaker.start(1, AudioFormat.PCM16, 16000)
    speaker.feed(1, [tone(2000)] * 8)
    time.at += 0.25
    heard = speaker.flush(1)
    assert (heard.samples, heard.flushed) == (4000, True)
    assert len(read(heard.wav)) == 8000
    with pytest.raises(SpeakerError, match="not open"):
        speaker.flush(1)


async def test_a_flush_while_draining_interrupts_the_end(
    speaker: SimSpeaker, time: HandTime
) -> None:
    speaker.start(1, AudioFormat.PCM16, 16000)
    speaker.feed(1, [tone(2000)] * 8)
    time.while_resting = lambda: speaker.flush(1)
    with pytest.raises(SpeakerError) as error:
        await speaker.drain(1)
    assert error.value.code == "interrupted"
    assert speaker.last is not None
    assert speaker.last.samples == 0


async def test_one_stream_at_a_time(speaker: SimSpeaker) -> None:
    speaker.start(1, AudioFormat.PCM16, 16000)
    with pytest.raises(SpeakerError) as error:
        speaker.start(2, AudioFormat.OPUS, 16000)
    assert error.value.code == "busy"


@pytest.mark.parametrize(
    ("format", "rate"),
    [(AudioFormat.LC3, 16000), (AudioFormat.MULAW, 16000), (AudioFormat.PCM16, 44100)],
)
def test_what_it_cannot_play_it_refuses(
    speaker: SimSpeaker, format: AudioFormat, rate: int
) -> None:
    with pytest.raises(SpeakerError) as error:
        speaker.start(1, format, rate)
    assert error.value.code == "unsupported"
    assert not speaker.playing


async def test_chunks_of_another_stream_are_dropped(speaker: SimSpeaker) -> None:
    speaker.start(1, AudioFormat.PCM16, 16000)
    speaker.feed(2, [tone(100)])
    assert (await speaker.drain(1)).samples == 0
    speaker.feed(1, [tone(100)])
    assert not speaker.playing


async def test_nonsense_frames_are_counted_and_play_nothing(speaker: SimSpeaker) -> None:
    speaker.start(1, AudioFormat.OPUS, 16000)
    speaker.feed(1, [b"\xff\xff\xff\xff\xff", b""])
    heard = await speaker.drain(1)
    assert heard.bad_frames == 2
    assert heard.samples == 0


async def test_an_odd_byte_of_pcm_is_left_out(speaker: SimSpeaker) -> None:
    speaker.start(1, AudioFormat.PCM16, 16000)
    speaker.feed(1, [b"\x01\x02\x03"])
    heard = await speaker.drain(1)
    assert (heard.samples, heard.bad_frames) == (1, 1)


async def test_an_endless_stream_is_cut_and_its_end_says_so(
    speaker: SimSpeaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_STREAM_S", 0.5)
    speaker.start(1, AudioFormat.PCM16, 16000)
    for _ in range(20):
        speaker.feed(1, [tone(2000)])
    with pytest.raises(SpeakerError) as error:
        await speaker.drain(1)
    assert error.value.code == "too_big"
    assert speaker.last is not None
    assert speaker.last.samples == 8000


async def test_old_recordings_make_room(
    speaker: SimSpeaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEPT_FILES", 3)
    for number in range(5):
        speaker.start(number, AudioFormat.PCM16, 16000)
        await speaker.drain(number)
    assert sorted(p.name for p in tmp_path.glob("*.wav")) == [
        f"speaker-000{n}.wav" for n in (3, 4, 5)
    ]


def test_losing_the_central_stops_the_sound(speaker: SimSpeaker, time: HandTime) -> None:
    assert speaker.interrupt() is None
    speaker.start(1, AudioFormat.PCM16, 16000)
    speaker.feed(1, [tone(1600)])
    time.at += 0.05
    heard = speaker.interrupt()
    assert heard is not None
    assert heard.samples == 800


@pytest.mark.parametrize(
    ("model", "speed", "said"),
    [("mock:audio", 8.0, 8.0), ("mock:audio", 1.0, None), ("mock:display", 8.0, None)],
)
def test_glasses_that_play_faster_than_in_real_time_say_so(
    tmp_path: Path, model: str, speed: float, said: float | None
) -> None:
    glasses = MockGlasses(find(model), out_dir=tmp_path, time=SimTime(speed), tell=lambda _: None)
    assert glasses.info().capabilities.get("speaker.speed") == said
