"""From sound to words: the recogniser as the daemon uses it, fed faster than real time."""

import hashlib
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec.structs import asdict

from edge.core.hearing.expected import ExpectedWords
from edge.hearing.recogniser import Recogniser, RecogniserChoice
from edge.listening_ports import RecognitionPort
from edge.runtime.clock import Clock
from firmware_bridge.messages import AudioFormat, MicrophoneChunk, Reading, Transcript
from tests.hearing_eval.voices import RATE

FRAME_BYTES: Final = RATE // 100 * 2
"""10 ms."""
LC3_BYTES: Final = 20
"""Bytes of a coded frame of an Even G1."""
FRAMES: Final = 10
"""Frames in one chunk: 100 ms."""
SENTENCE_S: Final = 60.0
"""Longest wait for the words of one sentence, on a machine that does other things too."""


@asynccontextmanager
async def recogniser() -> AsyncIterator[Recogniser]:
    """The daemon's recogniser with its child, which ends with the block."""
    found = Recogniser(RecogniserChoice(language="en-GB"), Clock.system())
    try:
        yield found
    finally:
        await found.close()


class Encoder(Protocol):
    def encode(self, pcm: bytes) -> bytes: ...


def chunks(pcm: bytes, coding: str, stream: int = 1) -> Iterator[MicrophoneChunk]:
    """Yield sound as the glasses send it."""
    pcm = pcm + bytes(-len(pcm) % FRAME_BYTES)
    frames = [pcm[at : at + FRAME_BYTES] for at in range(0, len(pcm), FRAME_BYTES)]
    if coding == "lc3":
        from firmware_bridge import lc3

        encoder = lc3.Encoder(LC3_BYTES)
        frames = [encoder.encode(frame) for frame in frames]
    for index, at in enumerate(range(0, len(frames), FRAMES)):
        yield MicrophoneChunk(stream, index, tuple(frames[at : at + FRAMES]))


def form(coding: str) -> AudioFormat:
    return AudioFormat.LC3 if coding == "lc3" else AudioFormat.PCM16


async def recognise(
    recogniser: RecognitionPort, pcm: bytes, coding: str, expected: ExpectedWords
) -> tuple[list[Transcript], float]:
    """Return the final words of a sound, and how long it took to recognise them."""
    began = time.monotonic()
    stream = await recogniser.begin(form(coding), expected)
    try:
        for chunk in chunks(pcm, coding):
            stream.feed(chunk)
        stream.finish()
        heard = [words async for words in stream if isinstance(words, Transcript) and words.final]
    finally:
        await stream.close()
    return heard, time.monotonic() - began


class Heard:
    """What was recognised, kept in a file: a second evaluation with the same recogniser needs not
    listen again.
    """

    def __init__(self, file: Path | None) -> None:
        self._known: dict[str, tuple[list[Transcript], float]] = {}
        self._file = file
        if file is not None and file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                said = [_transcript(each) for each in row["transcripts"]]
                self._known[row["key"]] = said, row["seconds"]

    async def recognise(
        self, recogniser: RecognitionPort, pcm: bytes, coding: str, expected: ExpectedWords
    ) -> tuple[list[Transcript], float]:
        lists = sorted(expected.lists.items())
        about = f"{coding} {expected.sentences} {lists}".encode()
        key = hashlib.sha256(pcm + about).hexdigest()
        if (known := self._known.get(key)) is None:
            known = self._known[key] = await recognise(recogniser, pcm, coding, expected)
            if self._file is not None:
                row = {
                    "key": key,
                    "transcripts": [asdict(t) for t in known[0]],
                    "seconds": known[1],
                }
                with self._file.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
        return known


def _transcript(document: dict[str, Any]) -> Transcript:
    readings = tuple(Reading(**each) for each in document.pop("readings"))
    return Transcript(**document, readings=readings)
