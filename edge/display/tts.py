"""Sentences → coded sound, by a child process started at first need and replaced when stuck.

A child, because a speech engine holds the GIL.
"""

import asyncio
import contextlib
import json
import logging
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from firmware_bridge.deadlines import timeout
from firmware_bridge.messages import AudioFormat

_log: Final = logging.getLogger(__name__)
MAX_SENTENCE: Final = 500
"""Characters of one request: 0.25 s of the engine's time, measured."""
MAX_REPLY: Final = 4 * 1024 * 1024
"""Bytes of one answer: two minutes of PCM."""
IDLE_S: Final = 60.0
START_S: Final = 20.0
"""For the first sentence of a child: it loads its libraries first, on a busy machine slowly."""


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
        self._deadline_s = deadline_s
        self._start_s = start_s
        self._custom = command is not None
        # -I: neither the environment nor the working directory can put another module in the
        # engine's place
        self._command = tuple(
            command or (sys.executable, "-I", "-m", "edge.display.tts_worker", str(idle_s))
        )
        self._child: asyncio.subprocess.Process | None = None
        self._has_spoken = False
        self._dying: list[asyncio.subprocess.Process] = []
        self._turn = asyncio.Lock()

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
        request = json.dumps(asked)
        async with self._turn:
            reply = await self._request(request.encode())
        return _utterance(reply)

    async def close(self) -> None:
        """End the child; fine when there is none."""
        self._drop()
        dying, self._dying = self._dying, []
        for child in dying:
            await child.wait()

    async def _request(self, request: bytes) -> bytes:
        """Exchange a request for an answer; a child that ended meanwhile is replaced once."""
        try:
            return await self._exchange(request)
        except (asyncio.IncompleteReadError, ConnectionError):
            _log.debug("voice: the child was gone; starting another")
        try:
            return await self._exchange(request)
        except (asyncio.IncompleteReadError, ConnectionError) as e:
            raise Unspeakable("the voice ended without an answer") from e

    async def _exchange(self, request: bytes) -> bytes:
        limit_s = self._deadline_s if self._has_spoken and self._is_alive() else self._start_s
        try:
            async with timeout(limit_s):
                child = await self._alive()
                assert child.stdin is not None
                assert child.stdout is not None
                child.stdin.write(struct.pack(">I", len(request)) + request)
                await child.stdin.drain()
                (size,) = struct.unpack(">I", await child.stdout.readexactly(4))
                reply = await child.stdout.readexactly(min(size, MAX_REPLY))
        except TimeoutError:
            self._drop()
            _log.warning("voice: stuck for %.1f s; killed", limit_s)
            raise Unspeakable("the voice took too long") from None
        except OSError as e:
            self._drop()
            if isinstance(e, ConnectionError):
                raise
            raise VoiceUnavailable(f"the voice cannot be started: {e}") from e
        except BaseException:
            # half an answer may still be in the pipe: this child cannot be used again
            self._drop()
            raise
        self._has_spoken = True
        return reply

    def _is_alive(self) -> bool:
        return self._child is not None and self._child.returncode is None

    async def _alive(self) -> asyncio.subprocess.Process:
        if self._child is None or self._child.returncode is not None:
            self._has_spoken = False
            self._child = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
            _log.debug("voice: child %d started", self._child.pid)
        return self._child

    def _drop(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        self._dying = [c for c in self._dying if c.returncode is None] + [child]


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
