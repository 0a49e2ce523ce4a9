"""Child process that turns sentences into coded sound (the only importer of py_nanotts and of Opus
here).

Request on stdin: u32 length, JSON `{text, format, voice, language, volume, server}`. Answer on
stdout: u32 length, then either 0x00, u32 samples and the coded frames (u16 length each), or 0x01
and a complaint in UTF-8. Big endian. It ends when stdin does, and after an idle minute.
"""

import json
import struct
import sys
from typing import Any, Final

from edge.display.voice.engines import NoVoice, Wanted, say
from edge.runtime.stdio import serve_frames

RATE: Final = 16000
FRAME: Final = RATE // 50
"""Samples in 20 ms."""
MAX_REQUEST: Final = 16 * 1024
_BITRATE: Final = 24000
"""Bits a second: wideband speech is transparent there, and a tenth of PCM on the air."""
_PICO_VOLUME: Final = 0.5
"""At its own volume it clips; the loudness is set afterwards."""
_COMPLEXITY: Final = 5
"""Half the encoder's effort: 120 µs a frame instead of 280, measured."""


def speak(text: str, voice: str) -> bytes:
    """16 kHz mono 16-bit PCM; empty for what this voice cannot say."""
    from py_nanotts import NanoTTS  # noqa: PLC0415 - the extra may be missing: then an answer says so

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

    encoder = opuslib_next.Encoder(RATE, 1, opuslib_next.APPLICATION_VOIP)
    encoder.bitrate = _BITRATE
    encoder.complexity = _COMPLEXITY
    return encoder


def answer(request: bytes) -> bytes:
    """Carry out one request; any failure becomes a complaint, so the parent gets an answer."""
    try:
        asked = json.loads(request)
        wanted = Wanted(
            asked["text"], asked["language"], asked["voice"], asked["volume"], asked["server"]
        )
        pcm = say(wanted, speak).tobytes()
        frames = frames_of(pcm, asked["format"])
    except NoVoice as e:
        return b"\x01" + str(e)[:400].encode(errors="replace")
    except Exception as e:  # noqa: BLE001 - a foreign engine; its errors cross the pipe as texts
        return b"\x01" + f"{type(e).__name__}: {e}"[:400].encode(errors="replace")
    coded = b"".join(struct.pack(">H", len(frame)) + frame for frame in frames)
    return b"\x00" + struct.pack(">I", len(pcm) // 2) + coded


def main() -> None:
    serve_frames(answer, idle_s=float(sys.argv[1]), max_request=MAX_REQUEST)


if __name__ == "__main__":
    main()
