"""Sound as it comes off the air: order, doubles, gaps, restarts, formats."""

import math
from array import array

import pytest

from edge.hearing.chunks import Break, Chunks, Samples
from firmware_bridge import lc3
from firmware_bridge.messages import AudioFormat, MicrophoneChunk
from tests.system import needs


def chunk(index: int, stream: int = 1) -> MicrophoneChunk:
    """100 ms of samples that all have the value of the index."""
    return MicrophoneChunk(stream, index, (array("h", [index] * 1600).tobytes(),))


def heard(chunks: Chunks, *indexes: int, stream: int = 1) -> list[object]:
    """What can be heard: the value of each 100 ms, with "break" between what does not continue."""
    return named([part for index in indexes for part in chunks.take(chunk(index, stream), 1.0)])


def named(parts: list[Samples | Break]) -> list[object]:
    found: list[object] = []
    for part in parts:
        if isinstance(part, Break):
            found.append("break")
        else:
            samples = array("h", part.pcm)
            found += [samples[at] for at in range(0, len(samples), 1600)]
    return found


@pytest.fixture
def chunks() -> Chunks:
    return Chunks(AudioFormat.PCM16)


def test_chunks_in_order_pass_at_once(chunks):
    assert heard(chunks, 7, 8, 9) == [7, 8, 9]
    assert chunks.lost == 0


@pytest.mark.requirement("I14-damaged-sound")
def test_doubled_and_late_chunks_are_put_in_order(chunks):
    assert heard(chunks, 1, 3, 2, 2, 3, 5, 5, 6, 4, 7) == [1, 2, 3, 4, 5, 6, 7]
    assert chunks.lost == 0


def test_a_lost_chunk_becomes_silence_of_its_length(chunks):
    assert heard(chunks, 1, 3, 4, 5) == [1, 0, 3, 4, 5]
    assert chunks.lost == 1


def test_what_came_after_the_last_gap_is_heard_at_the_end(chunks):
    assert heard(chunks, 1, 3, 4) == [1]
    assert named(chunks.rest()) == [0, 3, 4]
    assert named(chunks.rest()) == []


def test_half_a_second_is_filled_and_a_longer_gap_ends_the_utterance(chunks):
    assert heard(chunks, 1, 7, 8, 9) == [1, 0, 0, 0, 0, 0, 7, 8, 9]
    assert heard(chunks, 16, 17, 18) == ["break", 16, 17, 18]
    assert chunks.lost == 11


def test_another_stream_is_no_continuation(chunks):
    assert heard(chunks, 1, 2, 4) == [1, 2]
    assert heard(chunks, 0, 1, stream=2) == [0, 4, "break", 0, 1]


def test_glasses_that_count_from_the_beginning_again_are_heard(chunks):
    assert heard(chunks, 50, 51) == [50, 51]
    assert heard(chunks, 0, 1) == ["break", 0, 1]


def test_half_a_sample_at_the_end_is_left_out(chunks):
    (part,) = chunks.take(MicrophoneChunk(1, 0, (b"\1\0\2",)), 1.0)
    assert part == Samples(b"\1\0", 1.0)


def _tone(seconds: float) -> bytes:
    count = int(seconds * 16000)
    tone = (int(8000 * math.sin(2 * math.pi * 440 * n / 16000)) for n in range(count))
    return array("h", tone).tobytes()


def _strength(pcm: bytes) -> float:
    samples = array("h", pcm)
    return math.sqrt(sum(v * v for v in samples) / len(samples))


@needs("liblc3")
@pytest.mark.parametrize("size", [20, 40])
def test_lc3_is_decoded_and_damaged_and_lost_frames_are_concealed(size):
    encoder, pcm = lc3.Encoder(size), _tone(0.5)
    frames = [encoder.encode(pcm[at : at + 320]) for at in range(0, len(pcm), 320)]
    packets = [tuple(frames[at : at + 10]) for at in range(0, 50, 10)]
    chunks = Chunks(AudioFormat.LC3)
    parts = [*chunks.take(MicrophoneChunk(1, 0, packets[0]), 0.1)]
    damaged = (*packets[2][:5], b"short", *packets[2][6:])
    for index, packet in ((2, damaged), (3, packets[3]), (4, packets[4])):
        parts += chunks.take(MicrophoneChunk(1, index, packet), 0.1 * index)
    assert [len(part.pcm) for part in parts] == [3200] * 5
    assert all(_strength(part.pcm) > 2000 for part in parts), "a short gap is no hole in the tone"


@needs("liblc3")
@pytest.mark.parametrize("length", [19, 21])
def test_an_lc3_frame_of_another_size_is_estimated_as_a_lost_one(length):
    encoder, lost = lc3.Encoder(20), lc3.Decoder(20)
    good = [encoder.encode(_tone(0.01)) for _ in range(5)]
    chunks = Chunks(AudioFormat.LC3)
    [part] = chunks.take(MicrophoneChunk(1, 0, (*good, (good[4] * 2)[:length])), 0.1)
    assert part.pcm == b"".join(lost.decode(frame) for frame in (*good, None))


@needs("liblc3")
def test_lc3_that_begins_with_a_damaged_frame_is_silence_until_a_good_one():
    chunks = Chunks(AudioFormat.LC3)
    assert named(chunks.take(MicrophoneChunk(1, 0, (b"xx",) * 10), 0.1)) == [0]
    assert named(chunks.take(MicrophoneChunk(1, 1, (lc3.Encoder(20).encode(bytes(320)),)), 0.2))


def test_opus_is_decoded():
    opus = pytest.importorskip("opuslib_next")
    encoder, pcm = opus.Encoder(16000, 1, opus.APPLICATION_VOIP), _tone(0.2)
    frames = [encoder.encode(pcm[at : at + 640], 320) for at in range(0, len(pcm), 640)]
    chunks = Chunks(AudioFormat.OPUS)
    frames[5] = b"\xff" * 7
    parts = chunks.take(MicrophoneChunk(1, 0, tuple(frames)), 0.2)
    assert [len(part.pcm) for part in parts] == [6400]
    assert _strength(parts[0].pcm) > 2000


@pytest.mark.parametrize("frame_ms", [10, 20])
def test_lost_opus_is_concealed_in_its_length(frame_ms):
    opus = pytest.importorskip("opuslib_next")
    count = 16 * frame_ms
    encoder, pcm = opus.Encoder(16000, 1, opus.APPLICATION_VOIP), _tone(0.2)
    frames = [encoder.encode(pcm[at : at + 2 * count], count) for at in range(0, 6400, 2 * count)]
    chunks = Chunks(AudioFormat.OPUS)
    parts = chunks.take(MicrophoneChunk(1, 0, (frames[0],)), 0.1)
    parts += chunks.take(MicrophoneChunk(1, 1, (b"\xff" * 7,)), 0.1)
    for index in (3, 4, 5):
        parts += chunks.take(MicrophoneChunk(1, index, (frames[index],)), 0.1)
    assert [len(part.pcm) for part in parts] == [2 * count] * 6


# G.711, table 2a: the first and the last code of the first two and the last segments
MULAW = [
    (0x00, -32124), (0x0F, -16764), (0x10, -15996), (0x6F, -132), (0x7E, -8), (0x7F, 0),
    (0x80, 32124), (0x8F, 16764), (0x90, 15996), (0xEF, 132), (0xFE, 8), (0xFF, 0),
]  # fmt: skip


def test_mulaw_is_expanded_as_g711_says():
    codes = bytes(code for code, _sample in MULAW)
    [part] = Chunks(AudioFormat.MULAW).take(MicrophoneChunk(1, 0, (codes,)), 0.1)
    assert array("h", part.pcm).tolist() == [sample for _code, sample in MULAW]


@pytest.mark.parametrize("form", [AudioFormat.PCM16, AudioFormat.MULAW])
def test_sound_of_8_khz_is_heard_at_16_khz(form):
    chunks = Chunks(form, rate=8000)
    frames = [array("h", [0, 132]).tobytes(), array("h", [32124]).tobytes()]
    if form is AudioFormat.MULAW:
        frames = [b"\xff\xef", b"\x80"]
    parts = chunks.take(MicrophoneChunk(1, 0, (frames[0],)), 0.1)
    parts += chunks.take(MicrophoneChunk(1, 1, (frames[1],)), 0.2)
    assert [array("h", part.pcm).tolist() for part in parts] == [[0, 0, 66, 132], [16128, 32124]]


def test_a_lost_chunk_of_8_khz_is_silence_of_its_time():
    chunks = Chunks(AudioFormat.MULAW, rate=8000)
    parts = []
    for index in (0, 2, 3, 4):
        parts += chunks.take(MicrophoneChunk(1, index, (b"\xff" * 80,)), 0.1)
    assert [len(part.pcm) for part in parts] == [320] * 5
    assert not any(parts[1].pcm)
