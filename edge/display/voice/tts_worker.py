"""Child process that makes coded sound of sentences and of samples (the only importer of py_nanotts
and of Opus here).

Request on stdin: u32 length, JSON `{text, language, voice, server}` or `{pcm}` (base64), each with
`{format, volume, silence_ms}`. Answer on stdout: u32 length, then either 0x00, u32 samples, u32
samples until something is heard, the voice (u8 length, UTF-8), and the coded frames (u16 length
each); or 0x01 and a complaint in UTF-8. Big endian. It ends when stdin does, and after an idle
minute.
"""

import base64
import json
import struct
import sys
from collections.abc import Mapping
from typing import Any, Final

from edge.display.voice import sound
from edge.display.voice.engines import NoVoice, Speech, SpeechRequest, say
from edge.runtime.stdio import serve_frames

FRAME: Final = sound.RATE // 50
"""Samples in 20 ms."""
MAX_REQUEST: Final = 6 * 1024 * 1024
"""Bytes: two minutes of samples as base64."""
_BITRATE: Final = 24000
"""Bits a second: wideband speech is transparent there, and a tenth of PCM on the air."""
_PICO_VOLUME: Final = 0.5
"""At its own volume it clips; the loudness is set afterwards."""
_COMPLEXITY: Final = 5
"""Half the encoder's effort: 120 µs a frame instead of 280, measured."""


def speak(text: str, voice: str) -> bytes:
    """16 kHz mono 16-bit PCM; empty for what this voice cannot say. Raises `NoVoice`."""
    try:
        from py_nanotts import NanoTTS  # noqa: PLC0415 - the extra may be missing: another engine may speak
    except ImportError:
        raise NoVoice("not installed: install glassd[voice]") from None

    pcm: bytes = NanoTTS().speak(text, voice=voice, volume=_PICO_VOLUME)
    return pcm


def frames_of(pcm: bytes, form: str) -> list[bytes]:
    """Cut into frames of 20 ms, the last filled up with silence, coded as asked."""
    size = FRAME * 2
    raw = [pcm[at : at + size].ljust(size, b"\0") for at in range(0, len(pcm), size)]
    if form == "pcm16":
        return raw
    encoder = _encoder()
    return [encoder.encode(frame, FRAME) for frame in raw]


def _encoder() -> Any:
    import opuslib_next  # noqa: PLC0415 - as above

    encoder = opuslib_next.Encoder(sound.RATE, 1, opuslib_next.APPLICATION_VOIP)
    encoder.bitrate = _BITRATE
    encoder.complexity = _COMPLEXITY
    return encoder


def answer(request: bytes) -> bytes:
    """Carry out one request; any failure becomes a complaint, so the parent gets an answer."""
    try:
        asked = json.loads(request)
        speech = _sound(asked)
        lead = sound.silence(asked["silence_ms"] / 1000)
        heard_after = len(lead) + sound.heard_after(speech.samples)
        pcm = (lead + speech.samples).tobytes()
        frames = frames_of(pcm, asked["format"])
    except NoVoice as e:
        return b"\x01" + str(e)[:400].encode(errors="replace")
    except Exception as e:  # noqa: BLE001 - a foreign engine; its errors cross the pipe as texts
        return b"\x01" + f"{type(e).__name__}: {e}"[:400].encode(errors="replace")
    voice = speech.voice.encode()[:255]
    head = struct.pack(">BIIB", 0, len(pcm) // 2, heard_after, len(voice)) + voice
    return head + b"".join(struct.pack(">H", len(frame)) + frame for frame in frames)


def _sound(asked: Mapping[str, Any]) -> Speech:
    """Return what is to be played at its volume, with sound in it. Raises `NoVoice`."""
    volume = asked["volume"]
    if "pcm" in asked:
        samples = sound.from_bytes(base64.b64decode(asked["pcm"]))
        if not sound.heard_after(samples):
            raise NoVoice("it is silent")
        speech = Speech(sound.levelled(samples, volume), "")
    else:
        wanted = SpeechRequest(
            asked["text"], asked["language"], asked["voice"], volume, asked["server"]
        )
        speech = say(wanted, speak)
    if not sound.heard_after(speech.samples):
        raise NoVoice("it cannot be heard at this volume")
    return speech


def main() -> None:
    serve_frames(answer, idle_s=float(sys.argv[1]), max_request=MAX_REQUEST)


if __name__ == "__main__":
    main()
