"""`make hear-sheet`: 100 sentences a wearer says, 30 that are no commands, and a radio. Prints how
many became the right call; `--out` keeps each take in a file.
"""

import argparse
import asyncio
import dataclasses
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from edge.core.hearing import expected_of_tools
from edge.core.hearing.expected import ExpectedWords
from edge.listening_ports import RecognitionPort
from firmware_bridge.messages import Transcript
from tests.hearing_eval import answers, endurance, hearing, radio_play, report
from tests.hearing_eval.report import Judged
from tests.hearing_eval.score import Outcome, judge
from tests.hearing_eval.sentences import COMMANDS, NO_COMMANDS, Kind, Sentence
from tests.hearing_eval.voices import CODINGS, NOISES, Noise, Speaker, Take, takes
from tests.hearing_eval.wearer import Place


class Ears(NamedTuple):
    """What makes words of a sentence that is spoken."""

    speaker: Speaker
    recogniser: RecognitionPort
    heard: hearing.Heard


async def main(chosen: argparse.Namespace) -> int:
    out = Path(chosen.out)
    out.mkdir(parents=True, exist_ok=True)
    speaker = Speaker(Path(chosen.sounds or out / "sounds"))
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        async with hearing.recogniser() as recogniser:
            if chosen.every:
                ears = Ears(speaker, recogniser, hearing.Heard(chosen.heard))
                judged = await sentences(chosen, ears, place)
                write(out / "takes.jsonl", judged)
                _say(*report.table(judged), "", *report.faults(judged), "")
            if chosen.endurance:
                for endured in await endurance.endure(recogniser, place, speaker, chosen.endurance):
                    _say(*endured.lines())
            if chosen.radio:
                for wake_phrase in ("", chosen.wake_phrase):
                    played = await radio_play.play(
                        chosen.radio, speaker, recogniser, place, wake_phrase
                    )
                    _say(*played.lines())
                _say(await radio_play.wake_rate(speaker, recogniser, place, chosen.wake_phrase))
    return 0


async def sentences(chosen: argparse.Namespace, ears: "Ears", place: Place) -> list[Judged]:
    judged = []
    for number, sentence in enumerate((*COMMANDS, *NO_COMMANDS)[:: chosen.every]):
        for take in takes(
            number, every_speed=chosen.every_speed, noises=chosen.noises, codings=chosen.codings
        ):
            outcome = await _hear(sentence, take, ears, place)
            judged.append(Judged(sentence, take, outcome, judge(sentence, outcome)))
    return judged


async def _hear(sentence: Sentence, take: Take, ears: "Ears", place: Place) -> Outcome:
    """One take: its sound to words, each final one to what the daemon makes of it."""
    pcm, expected = ears.speaker.speak(sentence.text, take), expected_of(sentence, place)
    heard, seconds = await ears.heard.recognise(ears.recogniser, pcm, take.coding, expected)
    text = " ".join(said.text for said in heard)
    if not heard:
        return Outcome(recognised_s=seconds)
    if sentence.kind is Kind.ANSWER:
        outcome = answers.answer(sentence, heard[0])
    else:
        outcome = await place.take(
            *(_addressed(said) for said in heard), before=sentence.before, meant=sentence
        )
    return dataclasses.replace(outcome, heard=text, recognised_s=seconds)


def expected_of(sentence: Sentence, place: Place) -> ExpectedWords:
    """Return what may be said at this moment."""
    if sentence.kind is Kind.ANSWER:
        return expected_of_tools.of_question(sentence.choices)
    if sentence.kind is Kind.CORRECTION:
        return expected_of_tools.join(place.expected, expected_of_tools.of_correction())
    return place.expected


def _addressed(said: Transcript) -> Transcript:
    """As after push to talk."""
    return replace(said, addressed=True)


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def write(file: Path, judged: Sequence[Judged]) -> None:
    file.write_text("".join(json.dumps(j.row()) + "\n" for j in judged), encoding="utf-8")


def options() -> argparse.Namespace:
    found = argparse.ArgumentParser(description=__doc__)
    found.add_argument("--out", default="hear-sheet-out")
    found.add_argument("--sounds", help="where spoken sentences are kept, to be used again")
    found.add_argument("--every", type=int, default=1, help="only every Nth sentence; 0: none")
    found.add_argument(
        "--every-speed", action="store_true", help="each voice at all three speeds, not at one"
    )
    found.add_argument(
        "--noises",
        nargs="+",
        type=Noise.parse,
        default=NOISES,
        help="none, and kinds of noise with the dB of speech above it: room:20 white:10",
    )
    found.add_argument("--codings", nargs="+", default=CODINGS, choices=CODINGS)
    found.add_argument(
        "--heard", type=Path, help="file of recognised words, to be used again if it exists"
    )
    found.add_argument("--radio", type=float, default=30.0, metavar="MINUTES")
    found.add_argument("--wake-phrase", default="hello glasses")
    found.add_argument("--endurance", type=float, default=10.0, metavar="MINUTES")
    return found.parse_args()


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main(options())))
