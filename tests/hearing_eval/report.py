"""The figures of an evaluation, and what they were counted from."""

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.hearing_eval.score import Outcome, Verdict, errors, words
from tests.hearing_eval.sentences import Kind, Sentence
from tests.hearing_eval.voices import Noise, Take

_SHOWN = 60
"""Misunderstood takes that are printed; all are in the file."""


@dataclass(frozen=True, slots=True)
class Judged:
    sentence: Sentence
    take: Take
    outcome: Outcome
    verdict: Verdict

    def row(self) -> dict[str, Any]:
        return {
            "said": self.sentence.text,
            "kind": self.sentence.kind.value,
            "voice": self.take.voice,
            "speed": self.take.speed,
            "noise": str(self.take.noise or "none"),
            "coding": self.take.coding,
            "heard": self.outcome.heard,
            "verdict": self.verdict.value,
            "calls": [[call.tool, dict(call.args), call.asked] for call in self.outcome.calls],
            "questions": list(self.outcome.questions),
            "answer": self.outcome.answer,
            "recognised_s": round(self.outcome.recognised_s, 3),
        }


def table(judged: Sequence[Judged]) -> Iterable[str]:
    """Yield the lines of the summary: one for each noise and coding, commands and no commands."""
    yield (
        "speech            takes  words wrong   right  at once  asked  refused  nothing  wrong"
        "  CHANGED WRONGLY  p50 s"
    )
    conditions = sorted(
        {(j.take.noise, j.take.coding) for j in judged}, key=lambda c: (_loudness(c[0]), c[1])
    )
    for title, commands in (("commands", True), ("no commands", False)):
        yield f"{title}:"
        for noise, coding in conditions:
            some = [
                j
                for j in judged
                if (j.take.noise, j.take.coding) == (noise, coding)
                and (j.sentence.kind is not Kind.NONE) is commands
            ]
            if some:
                yield _line(f"{noise or 'clean'} {coding}", some)


def _loudness(noise: Noise | None) -> tuple[int, str]:
    """Sort clean speech first, then by the noise."""
    return (-noise.db, noise.kind) if noise is not None else (-99, "")


def _line(title: str, some: Sequence[Judged]) -> str:
    found = Counter(j.verdict for j in some)
    right = sum(n for verdict, n in found.items() if verdict.is_right)
    return (
        f"  {title:<15} {len(some):>5}  {word_error_rate(some):>10.1%}  {right / len(some):>6.1%}"
        f"  {found[Verdict.RIGHT]:>7}  {found[Verdict.ASKED]:>5}  {found[Verdict.REFUSED]:>7}"
        f"  {found[Verdict.NOTHING]:>7}  {found[Verdict.WRONG]:>5}  {found[Verdict.HARM]:>15}"
        f"  {statistics.median(j.outcome.recognised_s for j in some):>5.2f}"
    )


def word_error_rate(some: Sequence[Judged]) -> float:
    said = [words(j.sentence.text) for j in some]
    wrong = sum(errors(was, words(j.outcome.heard)) for was, j in zip(said, some, strict=True))
    return wrong / max(1, sum(map(len, said)))


def faults(judged: Sequence[Judged]) -> Iterable[str]:
    """Yield what went wrong: what changed something first, then clean speech."""
    bad = [j for j in judged if not j.verdict.is_right]
    bad.sort(key=lambda j: (j.verdict is not Verdict.HARM, _loudness(j.take.noise)))
    for j in bad[:_SHOWN]:
        calls = ", ".join(f"{call.tool} {dict(call.args)}" for call in j.outcome.calls)
        take = f"{j.take.noise or 'clean'} {j.take.coding} {j.take.voice} {j.take.speed:g}"
        yield (
            f"{j.verdict.value:<8} {take:<29}"
            f"  {j.sentence.text!r} heard {j.outcome.heard!r} → {calls or j.outcome.answer or '-'}"
        )
    if len(bad) > _SHOWN:
        yield f"… and {len(bad) - _SHOWN} more"
