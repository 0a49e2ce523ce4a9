"""Client of a Wyoming text-to-speech server, as Home Assistant's voices are (piper and others).

Used by the child process of the voice only, so it may wait.
"""

from collections.abc import Mapping
from typing import Any, Final

from edge.display.voice import sound
from edge.runtime.wyoming import MAX_EVENTS, Address, Conversation, WyomingFault, objects

PORT: Final = 10200
MAX_SOUND: Final = 16 * 1024 * 1024
"""Bytes of one sentence: almost three minutes at 48 kHz."""
_RATES: Final = range(8000, 48001)


def voices(address: Address, limit_s: float) -> Mapping[str, str]:
    """Return the languages the server speaks (`de`, `zh`), each with its first voice's name."""
    with Conversation(address, limit_s) as server:
        server.send("describe")
        found: dict[str, str] = {}
        for program in objects(server.receive("info"), "tts"):
            for voice in objects(program, "voices"):
                installed, name = voice.get("installed", True), voice.get("name")
                if not installed or not isinstance(name, str):
                    continue
                for language in voice.get("languages") or ():
                    found.setdefault(str(language).replace("_", "-").partition("-")[0], name)
        return found


def speak(text: str, voice: str, address: Address, limit_s: float) -> bytes:
    """Return speech as mono PCM of 16 bits at `sound.RATE`. Raises `WyomingFault`."""
    with Conversation(address, limit_s) as server:
        server.send("synthesize", {"text": text, "voice": {"name": voice}})
        form = server.receive("audio-start")
        rate: Any = form.get("rate")
        width, channels = form.get("width"), form.get("channels")
        if rate not in _RATES or width != 2 or channels not in (1, 2):
            raise WyomingFault(f"it sends {rate} Hz, {width} bytes, {channels} channels")
        pcm = bytearray()
        for _ in range(MAX_EVENTS):
            kind, _data, payload = server.next()
            if kind == "audio-stop":
                samples = sound.mixed(sound.from_bytes(bytes(pcm)), channels)
                return sound.resampled(samples, rate).tobytes()
            pcm += payload if kind == "audio-chunk" else b""
            if len(pcm) > MAX_SOUND:
                break
        raise WyomingFault("it does not stop")
