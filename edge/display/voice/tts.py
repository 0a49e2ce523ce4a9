"""Sentences and samples → coded sound, by a child process started at first need and replaced when
stuck.

A child, because a speech engine holds the GIL.
"""

import json
import struct
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final

from msgspec import Struct

from edge.runtime.resident_worker import START_S, ResidentWorker
from firmware_bridge.messages import AudioFormat

MAX_SENTENCE: Final = 500
"""Characters of one request: 0.25 s of the engine's time, measured."""
MAX_REPLY: Final = 4 * 1024 * 1024
"""Bytes of one answer: two minutes of PCM."""
MAX_PCM: Final = 2 * 60 * 16000 * 2 * 4 // 3
"""Characters of samples as base64: two minutes."""
IDLE_S: Final = 60.0
_BUILT_IN: Final = "py_nanotts"
_HEAD: Final = struct.Struct(">BIIB")
"""An answer before the voice and the frames."""
_OPUS: Final = "opuslib_next"


class VoiceUnavailable(Exception):
    """This machine has no voice; the text says why and what would help."""


class Unspeakable(Exception):
    """The voice has no sound for this text (a script it does not know), or failed on it."""


class SpokenSentence(Struct, frozen=True):
    """One sentence as sound: frames of 20 ms, the samples in them without padding, how many of
    these must be played until something is heard, and the engine and voice that spoke.
    """

    frames: tuple[bytes, ...]
    samples: int
    heard_after: int = 0
    voice: str = ""


class TextToSpeech:
    """One child at most, one sentence at a time. `say` may be called again after any failure."""

    def __init__(
        self,
        *,
        language: str = "en-US",
        volume: int = 100,
        server: str = "",
        preroll_ms: int = 0,
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
        """In percent; 0 is silent."""
        self.server = server
        """The address of a Wyoming server, or ""."""
        self.preroll_ms = preroll_ms
        """Silence before the first sound of a stream."""
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

    def missing(self) -> str:
        """Empty when there is a voice, else why there is none (`off` is the owner's own reason)."""
        if self._off:
            return self._off
        there = self._custom or self.server or find_spec(_BUILT_IN) or _has_espeak()
        return "" if there else "no voice on this machine: install glassd[voice] or espeak-ng"

    def why_silent(self) -> str:
        """Why not even sounds can be heard; "" when they can."""
        return "" if self.volume else "the volume is 0"

    def why_not(self) -> str:
        """Empty when a text can be spoken, else why not."""
        return self.missing() or self.why_silent()

    def can_code(self, form: AudioFormat) -> bool:
        """Return whether sound can be coded so."""
        return form is AudioFormat.PCM16 or self._custom or find_spec(_OPUS) is not None

    async def say(
        self, sentence: str, form: AudioFormat, language: str = "", *, first: bool = False
    ) -> SpokenSentence:
        """Speak at most `MAX_SENTENCE` characters, in the configured language unless given another.
        `first`: of a stream, so there is silence before it.

        Raises `VoiceUnavailable`, `Unspeakable`.
        """
        if why := self.why_not():
            raise VoiceUnavailable(why)
        what = {
            "text": sentence[:MAX_SENTENCE],
            "voice": self.voice,
            "language": language or self.voice.partition("-")[0],
            "server": self.server,
        }
        return await self._make(what, form, first=first)

    async def code(self, pcm: str, form: AudioFormat) -> SpokenSentence:
        """Code samples (base64; 16 kHz, mono, 16 bits), as loud as speech, with silence before.

        Raises `VoiceUnavailable`, `Unspeakable`.
        """
        if why := self.why_silent():
            raise VoiceUnavailable(why)
        if len(pcm) > MAX_PCM:
            raise Unspeakable("it is longer than two minutes")
        return await self._make({"pcm": pcm}, form, first=True)

    async def _make(
        self, what: Mapping[str, Any], form: AudioFormat, *, first: bool
    ) -> SpokenSentence:
        more = {"format": form.value, "volume": self.volume}
        silence = {"silence_ms": self.preroll_ms if first else 0}
        request = json.dumps({**what, **more, **silence}).encode()
        try:
            return _utterance(await self._worker.ask(request))
        except TimeoutError:
            raise Unspeakable("the voice took too long") from None
        except EOFError as e:
            raise Unspeakable("the voice ended without an answer") from e
        except OSError as e:
            raise VoiceUnavailable(f"the voice cannot be started: {e}") from e

    async def close(self) -> None:
        """End the child; fine when there is none."""
        await self._worker.close()


def _has_espeak() -> bool:
    from shutil import which  # noqa: PLC0415 - only where the other voices are missing

    return which("espeak-ng") is not None


def _utterance(reply: bytes) -> SpokenSentence:
    if reply[:1] != b"\x00" or len(reply) < _HEAD.size:
        raise Unspeakable(reply[1:].decode(errors="replace") or "the voice said nothing")
    _ok, samples, heard_after, name = _HEAD.unpack_from(reply)
    at = _HEAD.size + name
    voice = reply[_HEAD.size : at].decode(errors="replace")
    frames: list[bytes] = []
    while at + 2 <= len(reply):
        (size,) = struct.unpack_from(">H", reply, at)
        frames.append(reply[at + 2 : at + 2 + size])
        at += 2 + size
    if not samples or not frames:
        raise Unspeakable("the voice has no sound for this text")
    return SpokenSentence(tuple(frames), samples, heard_after, voice)
