"""The child that turns sound into words. Run: `python -I -m edge.hearing.worker SETTINGS`.

It reads sound and requests from its stdin and writes transcripts to its stdout, until stdin ends.
One thread listens and decodes; while it decodes, sound waits in the pipe. Meanwhile another loads
the engine, so that the start of speech is noticed at once.
"""

import contextlib
import ctypes
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

from edge.core.hearing.expected import ExpectedWords
from edge.core.hearing.grammar import Grammar
from edge.hearing import child_messages as messages
from edge.hearing.chunks import Break, Chunks, Samples
from edge.hearing.engines import Decoded, DecodingFailed, EngineMissing, RecognitionEngine
from edge.hearing.engines.choice import choose
from edge.hearing.utterances import Changed, Utterance, Utterances
from edge.hearing.voice_activity import Change, speech_probability
from edge.runtime.stdio import claim_stdio, is_readable, read_frame, write_frame
from firmware_bridge.lc3 import Lc3Missing
from firmware_bridge.messages import AudioFormat, Transcript

PARTIAL_S: Final = 0.7
"""Between two partial transcripts: faster than people read, slow enough to cost little."""
_SHARE: Final = 2.0
"""The pause after a partial transcript is at least this many times as long as its decoding took."""
EARLY_S: Final = 0.3
"""After so much silence the final transcript is decoded already: it is ready when the utterance
ends, and dropped if the speaker goes on.
"""
STALLED_S: Final = 2.0
"""Without sound for so long, an utterance ends with what was heard: the link is gone or stuck."""
_UNREPORTED: Final = 16
"""Messages that are handled before the daemon gets a report of it, while more of them wait."""
_NICENESS: Final = 5
_FIRST_TO_GO: Final = "500"
"""Where memory runs out the kernel ends this process rather than the daemon."""
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_LARGE: Final = 1 << 20
"""Bytes."""


class EngineLoader:
    """Loads the engine beside the listening."""

    def __init__(self, make: Callable[[], RecognitionEngine]) -> None:
        self._make = make
        self._engine: RecognitionEngine | None = None
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._load, daemon=True)
        self._thread.start()

    def _load(self) -> None:
        try:
            engine = self._make()
            engine.load()
            self._engine = engine
        except Exception as e:  # noqa: BLE001 - raised by `engine`
            self._error = e

    def check(self) -> None:
        """Raise what its loading raised, if it has failed already."""
        if self._error is not None:
            raise self._error

    def engine(self) -> RecognitionEngine:
        """Wait for it. Raises what its loading raised."""
        self._thread.join()
        self.check()
        assert self._engine is not None
        return self._engine


class StreamWorker:
    """One stream of sound. `write` gets its messages."""

    def __init__(
        self,
        number: int,
        chunks: Chunks,
        loader: EngineLoader,
        write: Callable[[bytes], None],
    ) -> None:
        self._number = number
        self._loader = loader
        self._write = write
        self._chunks = chunks
        self._utterances = Utterances(speech_probability())
        self._expected: ExpectedWords | None = None
        self._grammar: Grammar | None = None
        self._partial_at = 0.0
        self._partial = ""
        self._early: tuple[Utterance, float, Decoded] | None = None
        """Decoded early: the utterance, its end at that time, and its words."""
        self._heard_at = time.monotonic()

    def expect(self, expected: ExpectedWords) -> None:
        """From the next utterance on."""
        self._expected = expected
        self._utterances.expect(commands=bool(expected.sentences))

    def take(self, body: bytes) -> None:
        """Take a chunk of sound."""
        self._heard_at = time.monotonic()
        self._hear(self._chunks.take(*messages.unpack_sound(body)))

    def finish(self) -> None:
        """There is no more sound."""
        self._hear([*self._chunks.rest(), Break()])
        self._write(messages.pack("end", stream=self._number, lost=self._chunks.lost))

    def while_nothing_waits(self) -> bool:
        """Do what may be left out while there is sound to hear; False if there was nothing."""
        current, now = self._utterances.current, time.monotonic()
        if current is None:
            return False
        if now - self._heard_at >= STALLED_S:
            self._hear([*self._chunks.rest(), Break()])
        elif self._utterances.silent_s >= EARLY_S:
            if self._decoded_early(current) is not None:
                return False
            self._early = current, current.ended_at, self._decode(current, final=True)
        elif now >= self._partial_at:
            decoded = self._decode(current, final=False)
            took = time.monotonic() - now
            self._partial_at = now + took + max(PARTIAL_S - took, _SHARE * took)
            if decoded.text and decoded.text != self._partial:
                self._partial = decoded.text
                self._tell(current, decoded, final=False)
        else:
            return False
        return True

    def _hear(self, parts: list[Samples | Break]) -> None:
        for part in parts:
            if isinstance(part, Break):
                changed = self._utterances.end()
            else:
                changed = self._utterances.hear(part.pcm, part.at)
            for change in changed:
                self._change(change)

    def _change(self, changed: Changed) -> None:
        change, utterance = changed
        if change is Change.BEGAN:
            self._write(messages.pack_began(self._number, utterance.began_at))
            self._partial_at = time.monotonic() + PARTIAL_S
            self._partial = ""
            if self._expected is not None:
                self._grammar, self._expected = Grammar(self._expected), None
            return
        early = self._decoded_early(utterance)
        self._early = None
        self._tell(utterance, early or self._decode(utterance, final=True), final=True)

    def _decoded_early(self, utterance: Utterance) -> Decoded | None:
        """Return its words if they were decoded already, and the speaker has not gone on."""
        if self._early is None or self._early[0] is not utterance:
            return None
        return self._early[2] if self._early[1] == utterance.ended_at else None

    def _decode(self, utterance: Utterance, *, final: bool) -> Decoded:
        began = time.monotonic()
        import numpy as np  # noqa: PLC0415 - the extra may be missing

        samples = np.frombuffer(bytes(utterance.sound), np.int16).astype(np.float32)
        samples *= np.float32(1 / 32768)
        try:
            return self._loader.engine().decode(samples, self._grammar, final=final)
        except DecodingFailed:
            if final:
                raise
            return Decoded("")
        finally:
            self._heard_at += time.monotonic() - began  # sound was not looked for meanwhile

    def _tell(self, utterance: Utterance, decoded: Decoded, *, final: bool) -> None:
        words = Transcript(
            decoded.text,
            final,
            utterance.began_at,
            utterance.ended_at,
            decoded.confidence,
            decoded.readings,
        )
        self._write(messages.pack_words(self._number, words))


class RecognitionWorker:
    """One per process."""

    def __init__(
        self, source: BinaryIO, sink: BinaryIO, make: Callable[[], RecognitionEngine]
    ) -> None:
        self._source = source
        self._sink = sink
        self._make = make
        self._loader: EngineLoader | None = None
        self._stream: StreamWorker | None = None
        self._unreported = 0

    def run(self) -> None:
        """Serve until the input ends, or something fails; the last message says what."""
        try:
            self._serve()
        except Exception as e:  # noqa: BLE001 - of foreign engines; it crosses the pipe as a text
            self._write(messages.pack("failed", why=_why(e)))

    def _serve(self) -> None:
        while True:
            if self._loader is not None:
                self._loader.check()
            if is_readable(self._source, 0):
                if not (body := read_frame(self._source, messages.MAX_FRAME)):
                    return
                self._handle(body)
                self._unreported += 1
                if self._unreported < _UNREPORTED:
                    continue
            elif self._stream is not None and self._stream.while_nothing_waits():
                continue
            self._report()
            is_readable(self._source, PARTIAL_S / 7 if self._stream is not None else 3600)

    def _report(self) -> None:
        if self._unreported:
            self._write(messages.pack("heard", count=self._unreported))
            self._unreported = 0

    def _handle(self, body: bytes) -> None:
        if body[:1] == messages.SOUND:
            if self._stream is not None:
                self._stream.take(body)
            return
        message = messages.unpack(body)
        match message["do"]:
            case "begin":
                self._begin(message)
            case "expect" if self._stream is not None:
                self._stream.expect(messages.expected_of(message))
            case "finish" if self._stream is not None:
                self._stream.finish()
                self._stream = None
            case "drop":
                self._stream = None

    def _begin(self, message: messages.Message) -> None:
        if self._loader is None:
            self._loader = EngineLoader(self._make)
        chunks = Chunks(AudioFormat(message["format"]), rate=message["rate"])
        self._stream = StreamWorker(message["stream"], chunks, self._loader, self._write)
        self._stream.expect(messages.expected_of(message))

    def _write(self, body: bytes) -> None:
        write_frame(self._sink, body)


def _why(error: Exception) -> str:
    """Return one plain line."""
    if isinstance(error, EngineMissing | DecodingFailed | Lc3Missing):
        return str(error)
    if isinstance(error, ImportError):
        return f"{error.name} is not installed: install glassd[ears]"
    return f"the recogniser failed: {type(error).__name__}: {error}"


def serve(make: Callable[[], RecognitionEngine]) -> None:
    """Listen on stdin until it ends."""
    incoming, outgoing = claim_stdio()
    with contextlib.suppress(OSError):  # a sandbox may forbid it
        os.nice(_NICENESS)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO, encoding="ascii")
    _return_memory()
    with (
        os.fdopen(incoming, "rb", buffering=0) as source,
        os.fdopen(outgoing, "wb") as sink,
        contextlib.suppress(BrokenPipeError),  # the daemon is gone
    ):
        RecognitionWorker(source, sink, make).run()


def _return_memory() -> None:
    """Make glibc give large blocks back as soon as they are free: 40 MiB less after long speech,
    measured.
    """
    with contextlib.suppress(AttributeError, OSError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _LARGE)
        mallopt(_M_TRIM_THRESHOLD, _LARGE)


def main() -> None:
    name, model, language = json.loads(sys.argv[1])
    serve(lambda: choose(name, model, language))


if __name__ == "__main__":
    main()
