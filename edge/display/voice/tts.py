"""Sentences → coded sound, by a child process started at first need and replaced when stuck.

A child, because a speech engine holds the GIL.
"""

import json
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from edge.runtime.resident_worker import START_S, ResidentWorker
from firmware_bridge.messages import AudioFormat

MAX_SENTENCE: Final = 500
"""Characters of one request: 0.25 s of the engine's time, measured."""
MAX_REPLY: Final = 4 * 1024 * 1024
"""Bytes of one answer: two minutes of PCM."""
IDLE_S: Final = 60.0


class VoiceUnavailable(Exception):
    """This machine has no voice; the text says why and what would help."""


class Unspeakable(Exception):
    """The voice has no sound for this text (a script it does not know), or failed on it."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """One sentence as sound: frames of 20 ms, and the samples of speech in them without padding."""

    frames: tuple[bytes, ...]
    samples: int


class TextToSpeech:
    """One child at most, one sentence at a time. `say` may be called again after any failure."""

    def __init__(
        self,
        *,
        language: str = "en-US",
        volume: int = 100,
        server: str = "",
        deadline_s: float = 5.0,
        start_s: float = START_S,
        idle_s: float = IDLE_S,
        command: Sequence[str] | None = None,
        off: str = "",
    ) -> None:
        self._off = off
        self.voice = language
        """The configured voice; its language is the one of texts that do not tell theirs."""
        self.volume = volume
        self._server = server
        self._custom = command is not None
        # -I: neither the environment nor the working directory can put another module in the
        # engine's place
        own = (sys.executable, "-I", "-m", "edge.display.voice.tts_worker", str(idle_s))
        self._worker = ResidentWorker(
            "voice",
            command or own,
            deadline_s=deadline_s,
            start_s=start_s,
            max_answer=MAX_REPLY,
        )

    def why_not(self) -> str:
        """Empty when there is a voice, else why there is none (`off` is the owner's own reason)."""
        if self._off:
            return self._off
        if self._custom:
            return ""
        absent = ", ".join(n for n in ("py_nanotts", "opuslib_next") if find_spec(n) is None)
        text = f"no voice on this machine ({absent} missing: install glassd[voice])"
        return text if absent else ""

    async def say(self, sentence: str, form: AudioFormat, language: str = "") -> Utterance:
        """Speak at most `MAX_SENTENCE` characters, in the configured language unless given another.

        Raises `VoiceUnavailable`, `Unspeakable`.
        """
        if why := self.why_not():
            raise VoiceUnavailable(why)
        asked = {
            "text": sentence[:MAX_SENTENCE],
            "format": form.value,
            "voice": self.voice,
            "language": language or self.voice.partition("-")[0],
            "volume": self.volume,
            "server": self._server,
        }
        try:
            return _utterance(await self._worker.ask(json.dumps(asked).encode()))
        except TimeoutError:
            raise Unspeakable("the voice took too long") from None
        except EOFError as e:
            raise Unspeakable("the voice ended without an answer") from e
        except OSError as e:
            raise VoiceUnavailable(f"the voice cannot be started: {e}") from e

    async def close(self) -> None:
        """End the child; fine when there is none."""
        await self._worker.close()


def _utterance(reply: bytes) -> Utterance:
    if reply[:1] != b"\x00" or len(reply) < 5:
        raise Unspeakable(reply[1:].decode(errors="replace") or "the voice said nothing")
    (samples,) = struct.unpack_from(">I", reply, 1)
    frames: list[bytes] = []
    at = 5
    while at + 2 <= len(reply):
        (size,) = struct.unpack_from(">H", reply, at)
        frames.append(reply[at + 2 : at + 2 + size])
        at += 2 + size
    if not samples or not frames:
        raise Unspeakable("the voice has no sound for this text")
    return Utterance(tuple(frames), samples)
