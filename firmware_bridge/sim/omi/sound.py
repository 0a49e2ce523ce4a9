"""How a simulated Omi packs the samples of its microphone (16 kHz, 16 bits)."""

from array import array
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from firmware_bridge.codecs.omi.wire import Dialect
from firmware_bridge.sim.wav import RATE

OPUS_BYTES: Final = 160
"""Most bytes of a frame."""
_BIAS: Final = 0x84
_MOST: Final = 32635
"""Largest sample that mu-law can carry."""
_SHIFT: Final = 2
"""Bits by which OpenGlass makes samples louder: its microphone is quiet, so that nothing is gained
here but the low bits are lost.
"""


class Packing(Struct, frozen=True):
    """One codec: samples of 16 kHz in a frame, and what makes a frame of them."""

    samples: int
    pack: Callable[[bytes], bytes]

    @property
    def seconds(self) -> float:
        return self.samples / RATE


def packing(dialect: Dialect) -> Packing:
    """Return how this firmware packs sound."""
    if dialect.codec == 1 and dialect.narrow:
        return Packing(160, _narrow)
    return _PACKINGS[dialect.codec]()


def compress(sample: int) -> int:
    """Return the mu-law code of a sample (ITU-T G.711)."""
    sign = 0x80 if sample < 0 else 0
    size = min(abs(sample), _MOST) + _BIAS
    exponent = size.bit_length() - 8
    return ~(sign | exponent << 4 | size >> exponent + 3 & 0x0F) & 0xFF


def _every_other(pcm: bytes) -> "array[int]":
    return array("h", pcm)[::2]


def _loud(pcm: bytes) -> bytes:
    return array("h", [v >> _SHIFT << _SHIFT for v in _every_other(pcm)]).tobytes()


def _narrow(pcm: bytes) -> bytes:
    return bytes((v >> 8) + 128 for v in _every_other(pcm))


def _opus(samples: int) -> Packing:
    import opuslib_next  # noqa: PLC0415 - a C library that only sound in Opus needs

    encoder = opuslib_next.Encoder(RATE, 1, opuslib_next.APPLICATION_VOIP)
    encoder.bitrate = 32000
    encoder.complexity = 3
    return Packing(samples, lambda pcm: bytes(encoder.encode(pcm, samples)))


_PACKINGS: Final[Mapping[int, Callable[[], Packing]]] = {
    0: lambda: Packing(160, bytes),
    1: lambda: Packing(160, _loud),
    10: lambda: Packing(200, lambda pcm: bytes(map(compress, array("h", pcm)))),
    11: lambda: Packing(400, lambda pcm: bytes(map(compress, _every_other(pcm)))),
    20: lambda: _opus(160),
    21: lambda: _opus(320),
}
