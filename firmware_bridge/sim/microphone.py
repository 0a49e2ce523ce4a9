"""The simulated microphone: what is said around the glasses, over the noise of the room.

Sound waits for a limited time until the microphone is open. Once begun it goes on, as speech does:
what is said while the microphone is closed, or the link lost, is not heard.
"""

import math
import random
import struct
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from firmware_bridge.sim.time import SimTime
from firmware_bridge.sim.wav import MAX_SOUND_S, RATE, SoundError, mix, scale

CHUNK_MS: Final = 40
CHUNK_SAMPLES: Final = RATE * CHUNK_MS // 1000
WAITS_S: Final = 10.0
"""Real seconds that sound waits for a microphone that is closed; radio links run in real time."""
MAX_WORDS: Final = 512
WORD_S: Final = 0.2
"""One word as a tone, about 250 words a minute with the pause after it."""
PAUSE_S: Final = 0.04
_LOUD: Final = 8000
_BYTES: Final = 2
_NOISE_S: Final = 2
_ECHO_PIECES: Final = 4096
"""Pieces of sound that may wait to be played, each some 20 ms or longer."""
QUIETEST_DB: Final = -90.0
LOUDEST_DB: Final = -10.0


@dataclass(frozen=True, slots=True)
class _Sound:
    pcm: bytes
    name: str
    queued_at: float


class SimMicrophone:
    """One microphone. `tell` receives an event when a sound is over."""

    def __init__(self, time: SimTime, tell: Callable[[dict[str, Any]], None]) -> None:
        self._time = time
        self._tell = tell
        self._queue: deque[_Sound] = deque()
        self._at = 0
        """Bytes of the first sound that are over."""
        self._heard = 0
        """Bytes of the first sound that the microphone took."""
        self._closed_at = time.now()
        self._noise = b""
        self._noise_at = 0
        self.echo = Echo(time)
        self._recorders = 0

    @property
    def open(self) -> bool:
        return self._recorders > 0

    # -------------------------------------------------------------- around the glasses

    def hear(self, pcm: bytes, name: str = "sound") -> float:
        """Play 16 kHz mono samples after what is being played; return the seconds until it is over.
        Raises `SoundError` if too much is waiting.
        """
        self._forget_missed()
        queued = sum(len(each.pcm) for each in self._queue) - self._at
        if queued + len(pcm) > MAX_SOUND_S * RATE * _BYTES:
            raise SoundError(f"more than {MAX_SOUND_S:.0f} s of sound wait to be heard")
        if pcm:
            self._queue.append(_Sound(pcm, name, self._time.now()))
        return (queued + len(pcm)) / _BYTES / RATE

    def say(self, text: str) -> None:
        """Play a tone for each word; a sentence that finds no room is dropped."""
        words = text.split()[:MAX_WORDS]
        pause = bytes(_BYTES * round(PAUSE_S * RATE))
        try:
            self.hear(b"".join(_tone(_pitch(word)) + pause for word in words), "say")
        except SoundError:
            return

    def set_noise(self, level_db: float | None) -> None:
        """Set the noise of the room, in dB of full scale; None is silence. Raises `SoundError`."""
        if level_db is None:
            self._noise = b""
            return
        if not QUIETEST_DB <= level_db <= LOUDEST_DB:
            allowed = f"{QUIETEST_DB:g} to {LOUDEST_DB:g}"
            raise SoundError(f"noise of {level_db:g} dB; {allowed} are possible")
        source, loud = random.Random(1), 32768 * 10 ** (level_db / 20)
        count = _NOISE_S * RATE
        samples = (max(-32768, min(32767, round(source.gauss(0, loud)))) for _ in range(count))
        self._noise = struct.pack(f"<{count}h", *samples)

    # -------------------------------------------------------------- in the glasses

    @contextmanager
    def recording(self) -> Iterator[Callable[[int], bytes]]:
        """Open the microphone and yield `read(samples)`, which returns the next samples."""
        self._forget_missed()
        self._recorders += 1
        try:
            yield self._read
        finally:
            self._recorders -= 1
            self._closed_at = self._time.now()

    @property
    def half_heard(self) -> bool:
        """Whether the microphone is in the second half of a sound."""
        return bool(self._queue) and 2 * self._at >= len(self._queue[0].pcm)

    def _read(self, count: int) -> bytes:
        wanted, taken = _BYTES * count, bytearray()
        while self._queue and len(taken) < wanted:
            sound = self._queue[0]
            piece = sound.pcm[self._at : self._at + wanted - len(taken)]
            taken += piece
            self._heard += len(piece)
            self._advance(len(piece))
        pcm, echo = bytes(taken.ljust(wanted, b"\0")), self.echo.read(count)
        return self._over_noise(mix(pcm, echo) if echo else pcm)

    def _advance(self, size: int) -> None:
        """Let the first sound go on by this many bytes, and report it when it is over."""
        self._at += size
        sound = self._queue[0]
        if self._at < len(sound.pcm):
            return
        seconds, whole = len(sound.pcm) / _BYTES / RATE, self._heard == len(sound.pcm)
        self._queue.popleft()
        self._at = self._heard = 0
        event = {"event": "heard", "name": sound.name, "seconds": round(seconds, 3), "whole": whole}
        self._tell(event)

    def _forget_missed(self) -> None:
        """Drop what was said, or waited for too long, while the microphone was closed."""
        if self.open:
            return
        now = self._time.now()
        gone = round((now - self._closed_at) * RATE) * _BYTES
        self._closed_at = now
        while self._queue and self._at and gone:
            passed = min(gone, len(self._queue[0].pcm) - self._at)
            gone -= passed
            self._advance(passed)
        while self._queue and self._time.real(now - self._queue[0].queued_at) > WAITS_S:
            if self._at:
                return
            self._advance(len(self._queue[0].pcm))

    def _over_noise(self, pcm: bytes) -> bytes:
        if not self._noise:
            return pcm
        noise = self._noise
        while len(noise) - self._noise_at < len(pcm):
            noise += self._noise
        piece = noise[self._noise_at : self._noise_at + len(pcm)]
        self._noise_at = (self._noise_at + len(pcm)) % len(self._noise)
        return mix(pcm, piece) if any(pcm) else piece


class Echo:
    """What the microphone hears of the loudspeaker of the same glasses; nothing at first."""

    def __init__(self, time: SimTime) -> None:
        self._time = time
        self._share = 0.0
        self._played: deque[tuple[bytes, float]] = deque(maxlen=_ECHO_PIECES)

    def set(self, level_db: float | None) -> None:
        """Set how loud it is, in dB of what is played; None is none. Raises `SoundError`."""
        if level_db is not None and not QUIETEST_DB <= level_db <= 0:
            raise SoundError(f"an echo of {level_db:g} dB; {QUIETEST_DB:g} to 0 are possible")
        self._share = 0.0 if level_db is None else 10 ** (level_db / 20)

    def play(self, pcm: bytes, begins_at: float) -> None:
        """The loudspeaker plays these samples, from that moment on."""
        if self._share:
            self._played.append((pcm, begins_at))

    def stop(self) -> None:
        """The loudspeaker stops now."""
        now = self._time.now()
        self._played = deque(
            (
                (pcm[: _BYTES * max(0, round((now - begins_at) * RATE))], begins_at)
                for pcm, begins_at in self._played
            ),
            maxlen=_ECHO_PIECES,
        )

    def read(self, count: int) -> bytes:
        """Return what was heard of it in the time of the last samples; b"" if nothing."""
        if not self._played:
            return b""
        end = self._time.now()
        heard = bytearray(_BYTES * count)
        for pcm, begins_at in self._played:
            at = count + round((begins_at - end) * RATE)
            piece = pcm[_BYTES * max(0, -at) : _BYTES * max(0, count - at)]
            heard[_BYTES * max(0, at) : _BYTES * max(0, at) + len(piece)] = piece
        while self._played and self._played[0][1] + len(self._played[0][0]) / _BYTES / RATE < end:
            self._played.popleft()
        return scale(bytes(heard[: _BYTES * count]), self._share)


def _pitch(word: str) -> int:
    """Return a frequency in hertz, the same for the same word."""
    return 200 + sum(word.encode()) % 64 * 10


@cache
def _tone(hertz: int) -> bytes:
    count = round(WORD_S * RATE)
    wave = (round(_LOUD * math.sin(2 * math.pi * hertz * at / RATE)) for at in range(count))
    return struct.pack(f"<{count}h", *wave)
