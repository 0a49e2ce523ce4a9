"""LC3 sound through the system's real library."""

import ctypes
import math
import struct

import pytest

from firmware_bridge.lc3 import FRAME_BYTES, Decoder, Encoder, Lc3Missing, why_not
from tests.system import needs

FRAMES = 50
DELAY_SAMPLES = 40
"""What liblc3 says of its own delay at 16 kHz: 2.5 ms."""


def tone(hertz: float, frames: int = FRAMES) -> list[bytes]:
    samples = [
        round(8000 * math.sin(2 * math.pi * hertz * at / 16000)) for at in range(160 * frames)
    ]
    pcm = struct.pack(f"={len(samples)}h", *samples)
    return [pcm[at : at + FRAME_BYTES] for at in range(0, len(pcm), FRAME_BYTES)]


def likeness(sent: list[bytes], heard: list[bytes]) -> float:
    """Return the correlation of both sounds, from -1 to 1, after the codec's delay."""
    one, two = (struct.unpack(f"={160 * len(each)}h", b"".join(each)) for each in (sent, heard))
    pairs = list(zip(one[320:-DELAY_SAMPLES], two[320 + DELAY_SAMPLES :], strict=True))
    power = math.sqrt(sum(a * a for a, _ in pairs) * sum(b * b for _, b in pairs))
    return sum(a * b for a, b in pairs) / power


@needs("liblc3")
@pytest.mark.requirement("I14-lc3")
@pytest.mark.parametrize("size", [20, 40, 400])
def test_sound_survives_the_codec(size):
    encoder, decoder = Encoder(size), Decoder(size)
    coded = [encoder.encode(frame) for frame in tone(440)]
    assert {len(frame) for frame in coded} == {size}
    heard = [decoder.decode(frame) for frame in coded]
    assert {len(frame) for frame in heard} == {FRAME_BYTES}
    assert likeness(tone(440), heard) > 0.98
    assert decoder.concealed == 0


@needs("liblc3")
def test_a_lost_frame_is_concealed():
    encoder, decoder = Encoder(40), Decoder(40)
    coded = [encoder.encode(frame) for frame in tone(440)]
    heard = [decoder.decode(None if at == 30 else frame) for at, frame in enumerate(coded)]
    assert decoder.concealed == 1
    assert len(heard[30]) == FRAME_BYTES
    assert any(heard[30]), "the tone goes on"
    assert likeness(tone(440)[40:], heard[40:]) > 0.98, "and is itself again after it"


@needs("liblc3")
def test_a_damaged_frame_is_concealed():
    decoder = Decoder(20)
    assert len(decoder.decode(b"\xff" * 20)) == FRAME_BYTES
    assert decoder.concealed == 1


@needs("liblc3")
@pytest.mark.parametrize("size", [-1, 0, 19, 401, 1 << 40])
def test_frame_sizes_that_lc3_has_not_are_refused(size):
    for make in (Decoder, Encoder):
        with pytest.raises(ValueError, match="20 to 400 are possible"):
            make(size)


@needs("liblc3")
def test_frames_of_another_size_are_refused():
    with pytest.raises(ValueError, match="an LC3 frame of 19 bytes; 20 are expected"):
        Decoder(20).decode(bytes(19))
    for size in (0, FRAME_BYTES - 1, FRAME_BYTES + 2):
        with pytest.raises(ValueError, match=f"{size} bytes of samples; 320 make one frame"):
            Encoder(20).encode(bytes(size))


@needs("liblc3")
def test_with_the_library_nothing_is_missing():
    assert why_not() == ""


@pytest.mark.requirement("I14-lc3")
def test_without_the_library_the_package_is_named(monkeypatch):
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert why_not() == (
        "the sound codec LC3 is not installed: "
        "apt-get install liblc3-0 (Debian 12) or liblc3-1 (Debian 13)"
    )
    with pytest.raises(Lc3Missing, match="liblc3-0"):
        Decoder(20)
    with pytest.raises(Lc3Missing, match="liblc3-1"):
        Encoder(20)
