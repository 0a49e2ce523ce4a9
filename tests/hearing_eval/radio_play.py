"""Half an hour of radio beside the wearer: how often something is done that nobody asked for."""

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from edge.core.hearing import wake
from edge.listening_ports import RecognitionPort
from firmware_bridge.messages import Transcript
from tests.hearing_eval import hearing
from tests.hearing_eval.radio import prose
from tests.hearing_eval.score import errors, judge, words
from tests.hearing_eval.sentences import COMMANDS, Kind
from tests.hearing_eval.voices import CODINGS, RATE, SPEEDS, VOICES, Speaker, Take
from tests.hearing_eval.wearer import Place

BLOCK_S: Final = 8.0
"""Heard in one go, and the sentence that goes on then: of more than 15 s the child's queue drops
the oldest, because sound comes faster than it can be recognised here.
"""
PAUSE: Final = bytes(int(0.35 * RATE) * 2)
_SHOWN: Final = 20


@dataclass
class Played:
    """What came of it. `wake_phrase`: only what follows it counts; "" is a voice session, in which
    everything counts.
    """

    wake_phrase: str
    seconds: float = 0.0
    recognised_s: float = 0.0
    said: int = 0
    wrong: int = 0
    utterances: int = 0
    woken: int = 0
    came: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        mode = f"wake phrase {self.wake_phrase!r}" if self.wake_phrase else "voice session on"
        yield (
            f"radio, {mode}: {self.seconds / 60:.1f} minutes, {self.utterances} utterances, words"
            f" wrong {self.wrong / max(1, self.said):.1%}, recognised in"
            f" {self.recognised_s / max(1, self.seconds):.2f} of real time"
        )
        if self.wake_phrase:
            yield f"  {self.woken} utterances taken for the wake phrase"
        yield (
            f"  at once: {self.came['changed']} calls that change something, {self.came['read']}"
            f" that read; {self.came['asked']} questions"
        )
        yield from (f"    {example}" for example in self.examples[:_SHOWN])


def blocks(minutes: float, speaker: Speaker) -> Iterator[tuple[str, bytes, str]]:
    """Yield the words, the sound and its coding, about `BLOCK_S` each, until it is enough."""
    left, text, pcm = minutes * 60, "", b""
    turns = itertools.cycle(itertools.product(VOICES, SPEEDS))
    codings = itertools.cycle(CODINGS)
    for sentence, (voice, speed) in zip(prose(), turns, strict=False):
        if left <= 0:
            return
        text, pcm = f"{text} {sentence}", pcm + speaker.speak(sentence, Take(voice, speed)) + PAUSE
        if (seconds := len(pcm) / 2 / RATE) >= BLOCK_S:
            yield text, pcm, next(codings)
            left, text, pcm = left - seconds, "", b""


async def play(
    minutes: float, speaker: Speaker, recogniser: RecognitionPort, place: Place, wake_phrase: str
) -> Played:
    played, expected = Played(wake_phrase), place.expected
    if wake_phrase:
        expected = wake.with_phrase(expected, wake_phrase)
    for text, pcm, coding in blocks(minutes, speaker):
        heard, took = await hearing.recognise(recogniser, pcm, coding, expected)
        said = words(text)
        played.seconds += len(pcm) / 2 / RATE
        played.recognised_s += took
        played.said += len(said)
        played.wrong += errors(said, words(" ".join(part.text for part in heard)))
        for part in heard:
            await _take(played, part, place)
    return played


async def _take(played: Played, said: Transcript, place: Place) -> None:
    played.utterances += 1
    if played.wake_phrase:
        after = wake.after_phrase(said, played.wake_phrase)
        if after is None:
            return
        played.woken += 1
        played.examples.append(f"woken by {said.text!r}")
        if not after.text:
            return
        said = after
    outcome = await place.take(said)
    played.came["asked"] += bool(outcome.questions)
    for call in outcome.calls:
        how = "asked" if call.asked else "changed" if call.changes else "read"
        if not call.asked:
            played.came[how] += 1
        played.examples.append(f"{how}: heard {said.text!r} → {call.tool} {dict(call.args)}")


async def wake_rate(
    speaker: Speaker, recogniser: RecognitionPort, place: Place, wake_phrase: str
) -> str:
    """Return how often the wake phrase before a command is noticed, and the command is right."""
    expected = wake.with_phrase(place.expected, wake_phrase)
    woken = right = count = 0
    for number, sentence in enumerate(COMMANDS):
        if number % 5 or sentence.kind is not Kind.CALL:
            continue
        count += 1
        pcm = speaker.speak(f"{wake_phrase}, {sentence.text}", Take(VOICES[count % len(VOICES)]))
        heard, _ = await hearing.recognise(recogniser, pcm, "pcm", expected)
        found = [after for said in heard if (after := wake.after_phrase(said, wake_phrase))]
        woken += bool(found)
        outcome = await place.take(*(after for after in found if after.text))
        right += judge(sentence, outcome).is_right
    return f"wake phrase {wake_phrase!r} before {count} commands: noticed {woken}, right {right}"
