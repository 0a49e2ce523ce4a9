"""The simulated microphone: sound goes in as a file or as samples, and comes out of the driver."""

import math
import struct
import wave
from itertools import pairwise
from pathlib import Path

import pytest

from firmware_bridge.catalog import find
from firmware_bridge.messages import AudioFormat
from firmware_bridge.sim.glasses import MockGlasses
from firmware_bridge.sim.microphone import CHUNK_SAMPLES, WAITS_S, SimMicrophone
from firmware_bridge.sim.time import SimTime
from firmware_bridge.sim.wav import RATE, SoundError, read, read_file
from tests.unit.firmware_bridge.sim_helpers import loudness


def tone(seconds: float, hertz: float = 440.0, rate: int = RATE, peak: int = 8000) -> list[int]:
    count = round(seconds * rate)
    return [round(peak * math.sin(2 * math.pi * hertz * at / rate)) for at in range(count)]


def pcm(samples: list[int]) -> bytes:
    return struct.pack(f"<{len(samples)}h", *samples)


def write(path: Path, samples: list[int], *, rate: int = RATE, channels: int = 1, width: int = 2):
    coders = {
        1: lambda n: bytes([(n >> 8) + 128]),
        2: lambda n: struct.pack("<h", n),
        3: lambda n: b"\x55" + struct.pack("<h", n),
        4: lambda n: b"\x55\x55" + struct.pack("<h", n),
    }
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(b"".join(coders[width](n) * channels for n in samples))
    return path


def pitch(sound: bytes) -> float:
    """Return its frequency, from the number of its waves."""
    samples = struct.unpack(f"<{len(sound) // 2}h", sound)
    rises = sum(a < 0 <= b for a, b in pairwise(samples))
    return rises * RATE / len(samples)


# ------------------------------------------------------------------ files


@pytest.mark.requirement("I14-sim-microphone")
@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("rate", [8000, 11025, 16000, 22050, 44100, 48000])
def test_files_of_any_rate_are_read(tmp_path, rate, channels, width):
    file = write(
        tmp_path / "a.wav", tone(0.5, rate=rate), rate=rate, channels=channels, width=width
    )
    sound = read_file(file)
    assert len(sound) / 2 == pytest.approx(0.5 * RATE, abs=2)
    assert pitch(sound) == pytest.approx(440, abs=5)
    assert loudness(sound) == pytest.approx(8000 * 2 / math.pi, rel=0.05)


def test_samples_of_our_form_are_not_changed(tmp_path):
    assert read_file(write(tmp_path / "a.wav", tone(0.1))) == pcm(tone(0.1))


def test_what_16_khz_cannot_carry_is_weakened(tmp_path):
    high = tone(0.2, hertz=15000, rate=48000)
    assert loudness(read_file(write(tmp_path / "a.wav", high, rate=48000))) < 8000 * 0.25


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_file_with_hardly_any_sound_is_read(tmp_path, count):
    assert len(read_file(write(tmp_path / "a.wav", [5] * count, rate=48000))) <= 2


def float_wav() -> bytes:
    body = struct.pack("<4f", 0.1, 0.2, 0.3, 0.4)
    form = b"fmt " + struct.pack("<IHHIIHH", 16, 3, 1, RATE, 4 * RATE, 4, 32)
    chunks = b"WAVE" + form + b"data" + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", len(chunks)) + chunks


DAMAGED = bytes.fromhex(
    "52494646 d4ed0000 57415645 666d7420 10000100 01000200 44ac0000 98090400 06001800 64617461"
    "b0040000"
)
"""A chunk `fmt` that says to be longer than the file."""


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "is no WAV file"),
        (b"ID3\x04 an MP3", "is no WAV file"),
        (b"RIFF", "it ends too early"),
        (b"RIFF\x10\0\0\0WAVEfmt ", "PCM, not float"),
        (DAMAGED, "it ends too early"),
        (float_wav(), "unknown format: 3; a WAV file with whole numbers"),
    ],
)
def test_other_files_are_refused_with_the_reason(tmp_path, data, problem):
    (tmp_path / "a.wav").write_bytes(data)
    with pytest.raises(SoundError, match=problem) as refused:
        read_file(tmp_path / "a.wav")
    assert "a.wav" in str(refused.value)


def test_files_that_cannot_be_are_refused(tmp_path):
    with pytest.raises(SoundError, match=r"none\.wav: No such file"):
        read_file(tmp_path / "none.wav")
    slow = write(tmp_path / "slow.wav", [0], rate=100)
    with pytest.raises(SoundError, match="has 100 samples a second; 4000 to 192000"):
        read_file(slow)
    many = write(tmp_path / "many.wav", [0], channels=9)
    with pytest.raises(SoundError, match="has 9 channels"):
        read_file(many)


def test_a_file_that_says_more_than_it_has_is_read_as_far_as_it_goes(tmp_path):
    data = write(tmp_path / "a.wav", tone(0.2)).read_bytes()
    assert read(data[:-1001]) == pcm(tone(0.2))[:-1002]


# ------------------------------------------------------------------ the microphone


class Clock(SimTime):
    def __init__(self, speed: float = 1.0) -> None:
        super().__init__(speed)
        self.at = 100.0

    def now(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def events() -> list[dict]:
    return []


@pytest.fixture
def microphone(clock, events) -> SimMicrophone:
    return SimMicrophone(clock, events.append)


def listen(microphone: SimMicrophone, seconds: float) -> bytes:
    with microphone.recording() as hear:
        return b"".join(hear(160) for _ in range(round(seconds * 100)))


def test_it_hears_sounds_one_after_another_between_silence(microphone, events):
    one, other = pcm(tone(0.105)), pcm(tone(0.1, hertz=880))
    assert microphone.hear(one, "one") == pytest.approx(0.105)
    assert microphone.hear(other, "other") == pytest.approx(0.205)
    heard = listen(microphone, 0.3)
    assert heard == (one + other).ljust(len(heard), b"\0")
    assert [(e["name"], e["seconds"], e["whole"]) for e in events] == [
        ("one", 0.105, True),
        ("other", 0.1, True),
    ]


def test_words_are_tones_with_pauses(microphone):
    microphone.say("milk bread")
    heard = listen(microphone, 0.52)
    parts = [heard[at : at + 2 * CHUNK_SAMPLES] for at in range(0, len(heard), 2 * CHUNK_SAMPLES)]
    assert [any(part) for part in parts] == [True] * 5 + [False] + [True] * 5 + [False] * 2
    assert parts[0] != parts[6]


def test_sound_waits_for_the_microphone_but_not_for_ever(microphone, clock, events):
    microphone.hear(pcm(tone(0.1)))
    clock.at += WAITS_S - 0.1
    assert any(listen(microphone, 0.2))
    microphone.hear(pcm(tone(0.1)), "missed")
    clock.at += WAITS_S + 0.1
    assert not any(listen(microphone, 0.2))
    assert (events[-1]["name"], events[-1]["whole"]) == ("missed", False)


def test_sound_waits_in_real_time_as_links_do(events):
    clock = Clock(speed=50)
    microphone = SimMicrophone(clock, events.append)
    microphone.hear(pcm(tone(0.1)))
    clock.at += 50 * (WAITS_S - 0.1)
    assert any(listen(microphone, 0.2))


def test_what_is_said_while_it_is_closed_is_not_heard(microphone, clock, events):
    sentence = pcm(tone(1.0))
    microphone.hear(sentence)
    assert listen(microphone, 0.3) == sentence[: 2 * 4800]
    clock.at += 0.5
    assert listen(microphone, 0.4) == sentence[2 * 12800 :].ljust(2 * 6400, b"\0")
    assert events[-1]["whole"] is False


def test_a_sentence_that_is_over_meanwhile_is_not_heard(microphone, clock, events):
    microphone.hear(pcm(tone(1.0)), "first")
    microphone.hear(pcm(tone(0.1, hertz=880)), "second")
    listen(microphone, 0.3)
    clock.at += 5
    assert listen(microphone, 0.1) == pcm(tone(0.1, hertz=880)), "this one had not begun"
    assert [e["name"] for e in events] == ["first", "second"]


def test_it_has_a_limit(microphone):
    microphone.hear(bytes(2 * RATE * 300))
    with pytest.raises(SoundError, match="more than 300 s of sound wait"):
        microphone.hear(bytes(2))
    microphone.say("no room")
    assert microphone.hear(b"") == 300


def test_noise_is_as_loud_as_asked_for(microphone):
    microphone.set_noise(-40)
    quiet = listen(microphone, 1.0)
    root = math.sqrt(sum(n * n for n in struct.unpack("<16000h", quiet)) / 16000)
    assert 20 * math.log10(root / 32768) == pytest.approx(-40, abs=0.5)
    microphone.hear(pcm(tone(1.0)))
    loud = listen(microphone, 1.0)
    assert loud != pcm(tone(1.0))
    assert pitch(loud) == pytest.approx(440, abs=10)
    microphone.set_noise(None)
    assert not any(listen(microphone, 0.1))


def test_loud_sound_over_noise_stays_in_range(microphone):
    microphone.set_noise(-10)
    microphone.hear(pcm([32767, -32768] * 8000))
    assert len(listen(microphone, 1.0)) == 2 * RATE


@pytest.fixture
def glasses(clock, tmp_path, events) -> MockGlasses:
    return MockGlasses(find("mock:full"), out_dir=tmp_path, time=clock, tell=events.append)


def listen_along(glasses, clock, seconds: float) -> bytes:
    """Listen while time passes."""
    heard = b""
    with glasses.microphone.recording() as hear:
        for _ in range(round(seconds * 100)):
            clock.at += 0.01
            heard += hear(160)
    return heard


def test_the_echo_of_the_loudspeaker_is_heard_when_it_is_played(glasses, clock):
    glasses.microphone.echo.set(-20)
    glasses.speaker.start(1, AudioFormat.PCM16, RATE)
    glasses.speaker.feed(1, [pcm(tone(0.1)), pcm(tone(0.1))])
    clock.at += 0.05
    heard = listen_along(glasses, clock, 0.3)
    assert loudness(heard[: 2 * 2400]) == pytest.approx(800 * 2 / math.pi, rel=0.05)
    assert pitch(heard[: 2 * 2400]) == pytest.approx(440, abs=20)
    assert not any(heard[2 * 2402 :])
    glasses.hear(pcm(tone(0.1)))
    assert loudness(listen_along(glasses, clock, 0.1)) > 4000


def test_without_an_echo_the_loudspeaker_is_not_heard(glasses, clock):
    glasses.speaker.start(1, AudioFormat.PCM16, RATE)
    glasses.speaker.feed(1, [pcm(tone(0.2))])
    assert not any(listen_along(glasses, clock, 0.3))


def test_an_echo_ends_where_the_loudspeaker_is_stopped(glasses, clock):
    glasses.microphone.echo.set(0)
    glasses.speaker.start(1, AudioFormat.PCM16, RATE)
    glasses.speaker.feed(1, [pcm(tone(1.0)), pcm(tone(1.0))])
    clock.at += 0.1
    glasses.speaker.flush(1)
    assert not any(listen_along(glasses, clock, 1.0))


@pytest.mark.parametrize("level", [-91, 1, float("nan")])
def test_an_impossible_echo_is_refused(microphone, level):
    with pytest.raises(SoundError, match="-90 to 0 are possible"):
        microphone.echo.set(level)


@pytest.mark.parametrize("level", [-91, 0, float("nan")])
def test_impossible_noise_is_refused(microphone, level):
    with pytest.raises(SoundError, match="-90 to -10 are possible"):
        microphone.set_noise(level)
