"""What is no speech to the glasses, for long: noise, silence, two people at once. Nothing may be
called, and the recogniser may not grow.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from edge.hearing.recogniser import Recogniser
from firmware_bridge.messages import Transcript
from tests.hearing_eval import hearing
from tests.hearing_eval.sentences import NO_COMMANDS, NOTES, TIMERS
from tests.hearing_eval.voices import RATE, VOICES, Speaker, Take, mix, white_noise
from tests.hearing_eval.wearer import Place

MINUTES: Final = 10.0
_BLOCK_S: Final = 10.0
_MIXED: Final = 20
_WARM: Final = 3
"""Sentences first, so that the model is loaded before memory is compared."""


@dataclass(frozen=True, slots=True)
class Endured:
    what: str
    seconds: float
    heard: tuple[str, ...]
    calls: tuple[str, ...]
    asked: int
    grown_mib: float

    def lines(self) -> Iterator[str]:
        yield (
            f"{self.what:<28} {self.seconds / 60:5.1f} min  {len(self.heard):>3} utterances"
            f"  {len(self.calls):>2} calls at once  {self.asked:>2} questions"
            f"  child {self.grown_mib:+.1f} MiB"
        )
        yield from (f"    heard {text!r}" for text in self.heard[:5])
        yield from (f"    called {call}" for call in self.calls)


async def endure(
    recogniser: Recogniser, place: Place, speaker: Speaker, minutes: float = MINUTES
) -> list[Endured]:
    said = speaker.speak(TIMERS[0].text, Take())
    for _ in range(_WARM):
        await hearing.recognise(recogniser, said, "pcm", place.expected)
    blocks = int(minutes * 60 / _BLOCK_S)
    silence = bytes(int(_BLOCK_S * RATE) * 2)
    noises = (white_noise(_BLOCK_S, level, at) for at in range(blocks) for level in (_level(at),))
    return [
        await _endure("silence", (silence for _ in range(blocks)), recogniser, place),
        await _endure("noise, soft to loud", noises, recogniser, place),
        await _endure("two wearers at once", two_at_once(speaker), recogniser, place),
    ]


def _level(at: int) -> float:
    """Share of full scale: from hardly audible to a loud fan."""
    return (0.002, 0.01, 0.03, 0.1)[at % 4]


def two_at_once(speaker: Speaker) -> Iterator[bytes]:
    """One gives a command while the other says something else."""
    for at, (one, other) in enumerate(zip((*TIMERS, *NOTES), NO_COMMANDS, strict=False)):
        if at < _MIXED:
            yield mix(
                speaker.speak(one.text, Take(VOICES[at % 2])),
                speaker.speak(other.text, Take(VOICES[(at + 1) % 2])),
            )


async def _endure(
    what: str, sounds: Iterator[bytes], recogniser: Recogniser, place: Place
) -> Endured:
    seconds, heard, calls, asked, first = 0.0, list[Transcript](), list[str](), 0, 0.0
    for pcm in sounds:
        seconds += len(pcm) / 2 / RATE
        found, _ = await hearing.recognise(recogniser, pcm, "pcm", place.expected)
        first = first or _child_mib(recogniser)
        heard += found
    for said in heard:
        outcome = await place.take(said)
        asked += bool(outcome.questions)
        calls += [f"{call.tool} {dict(call.args)}" for call in outcome.calls if not call.asked]
    texts = tuple(said.text for said in heard)
    return Endured(what, seconds, texts, tuple(calls), asked, _child_mib(recogniser) - first)


def _child_mib(recogniser: Recogniser) -> float:
    assert recogniser._child is not None
    status = Path(f"/proc/{recogniser._child.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024
