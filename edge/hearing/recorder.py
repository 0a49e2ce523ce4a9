"""Sound of the microphone as it came, to be passed on, not understood."""

import asyncio
import json
import struct
from collections.abc import AsyncIterator
from typing import Final

from edge.core.hearing.expected import ExpectedWords
from edge.hearing import child_messages
from edge.listening_ports import CannotListen, SpeechBegan
from edge.runtime.clock import Clock
from firmware_bridge.deadlines import timeout
from firmware_bridge.messages import AudioFormat, MicrophoneChunk, Transcript
from tools_cache import subprocess_call

MOST_BYTES: Final = 2 << 20
"""Of sound as it came: 30 s of samples are half of it."""
DECODE_S: Final = 20.0
_SIZE: Final = struct.Struct(">I")
_CODE: Final = "from edge.hearing import sound_file; sound_file.main()"


class Recorder:
    """One recording. `ended` is set when it is over before its time; `why` says why."""

    def __init__(self, form: AudioFormat, rate: int, clock: Clock) -> None:
        self._form = form
        self._rate = rate
        self._clock = clock
        self._parts: list[bytes] = []
        self._bytes = 0
        self.ended = asyncio.Event()
        self.why = ""

    def take(self, chunk: MicrophoneChunk) -> None:
        """Keep it; never waits."""
        part = child_messages.pack_sound(chunk, self._clock.boot())
        if self._bytes + len(part) > MOST_BYTES:
            self.end("The recording became too long.")
            return
        self._bytes += len(part)
        self._parts.append(_SIZE.pack(len(part)) + part)

    def end(self, why: str) -> None:
        """It is over; the first reason counts."""
        if not self.ended.is_set():
            self.why = why
            self.ended.set()

    async def wait(self, seconds: float) -> None:
        """Wait until it is as long as wanted. Raises `CannotListen` if it ends before."""
        try:
            async with timeout(seconds):
                await self.ended.wait()
        except TimeoutError:
            return
        raise CannotListen(self.why)

    def packed(self, seconds: float, *, rate: int) -> bytes:
        """Return it as a question to `sound_file`, which answers with at most `seconds` of samples
        of `rate` Hz.
        """
        head = {
            "format": self._form.value,
            "rate": self._rate,
            "seconds": seconds,
            "as_rate": rate,
        }
        return json.dumps(head).encode() + b"\n" + b"".join(self._parts)


class NoWords:
    """Implements `RecognitionStream` where nothing is to be recognised."""

    def __init__(self) -> None:
        self._finished = asyncio.Event()

    def feed(self, chunk: MicrophoneChunk) -> None:
        """Do nothing."""

    def expect(self, expected: ExpectedWords) -> None:
        """Do nothing."""

    def finish(self) -> None:
        self._finished.set()

    async def __aiter__(self) -> AsyncIterator[SpeechBegan | Transcript]:
        await self._finished.wait()
        nothing: tuple[Transcript, ...] = ()
        for words in nothing:
            yield words

    async def close(self) -> None:
        self._finished.set()


async def to_wav(packed: bytes) -> bytes:
    """Return the sound of a question as WAV, decoded in a child process. Raises `CannotListen`."""
    try:
        wav, status = await subprocess_call.ask(_CODE, question=packed, limit_s=DECODE_S)
    except (TimeoutError, OSError):
        wav, status = b"", None
    if status != 0 or not wav:
        raise CannotListen("The sound cannot be decoded on this computer.")
    return wav
