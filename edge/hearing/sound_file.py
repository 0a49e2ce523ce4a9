"""Turns sound as it came from glasses into a WAV file: the program of a child process."""

import io
import json
import struct
import sys
import wave
from array import array
from typing import Final

from edge.hearing.child_messages import unpack_sound
from edge.hearing.chunks import RATE, Break, Chunks, Samples
from firmware_bridge.messages import AudioFormat

_SIZE: Final = struct.Struct(">I")


def wav_of(question: bytes) -> bytes:
    """Return the sound of a question of `recorder.Recorder.packed`: mono, 16 bits, the beginning if
    there is more than was wanted. What was lost on the way is concealed, up to half a second at
    once.
    """
    head, _, body = question.partition(b"\n")
    said = json.loads(head)
    chunks = Chunks(AudioFormat(said["format"]), rate=said["rate"])
    heard: list[Samples | Break] = []
    at = 0
    while at < len(body):
        (size,) = _SIZE.unpack_from(body, at)
        at += _SIZE.size + size
        heard += chunks.take(*unpack_sound(body[at - size : at]))
    heard += chunks.rest()
    pcm = b"".join(each.pcm for each in heard if isinstance(each, Samples))
    pcm = pcm[: 2 * round(said["seconds"] * RATE)]
    return _wav(pcm if said["as_rate"] == RATE else _halved(pcm), said["as_rate"])


def _halved(pcm: bytes) -> bytes:
    """Return 16 kHz as 8 kHz: the mean of each two samples."""
    samples = array("h", pcm)
    pairs = zip(samples[::2], samples[1::2], strict=False)
    return array("h", [(one + other) // 2 for one, other in pairs]).tobytes()


def _wav(pcm: bytes, rate: int) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(pcm)
    return out.getvalue()


def main() -> None:
    """Read a question from stdin, write the file to stdout."""
    sys.stdout.buffer.write(wav_of(sys.stdin.buffer.read()))
