"""Compares what was recognised and called with what was said; has no code of what it judges."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from tests.hearing_eval.sentences import DICTATION_ERRORS, Kind, Sentence

_ONES: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
).split()
_TENS: Final = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()
_SPELLINGS: Final = {
    "'s": " is",
    "’s": " is",
    "%": " percent",
    "€": " euros ",
    "×": " times ",
    "*": " times ",
    "+": " plus ",
    "&": " and ",
}
_ORDINALS: Final = {"1st": "first", "2nd": "second", "3rd": "third", "4th": "fourth"}


def words(text: str) -> list[str]:
    """Split a text into words in one spelling: small letters, no marks, numbers in words without
    "and".
    """
    text = text.casefold()
    for written, spoken in _SPELLINGS.items():
        text = text.replace(written, spoken)
    found = []
    for found_word in re.findall(r"[^\W_]+", text):
        word = _ORDINALS.get(found_word, found_word)
        found += _spelled(int(word)) if word.isdecimal() and len(word) <= 4 else [word]
    return [
        word
        for place, word in enumerate(found)
        if not (word == "and" and found[place - 1 : place] in (["hundred"], ["thousand"]))
    ]


def _spelled(number: int) -> list[str]:
    if number < 20:
        return [_ONES[number]]
    if number < 100:
        tens, ones = divmod(number, 10)
        return [_TENS[tens], *([_ONES[ones]] if ones else [])]
    size, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
    first, rest = divmod(number, size)
    return [*_spelled(first), name, *(_spelled(rest) if rest else [])]


def errors(said: Sequence[str], heard: Sequence[str]) -> int:
    """Count the words that were missed, invented or replaced (edit distance)."""
    row = list(range(len(heard) + 1))
    for at, word in enumerate(said, 1):
        before, row[0] = row[0], at
        for to, other in enumerate(heard, 1):
            before, row[to] = row[to], min(row[to] + 1, row[to - 1] + 1, before + (word != other))
    return row[-1]


def error_rate(said: str, heard: str) -> float:
    wanted = words(said)
    return errors(wanted, words(heard)) / max(1, len(wanted))


@dataclass(frozen=True, slots=True)
class Called:
    """A call that came of a sentence. `asked`: it ran only after the wearer's yes. `changes`: the
    tool does more than to read.
    """

    tool: str
    args: Mapping[str, Any]
    asked: bool = False
    changes: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one take: the words, the calls, the answer of a question."""

    heard: str = ""
    calls: tuple[Called, ...] = ()
    answer: str = ""
    recognised_s: float = 0.0
    questions: tuple[str, ...] = field(default=())


class Verdict(StrEnum):
    RIGHT = "right"
    """done at once"""
    ASKED = "asked"
    """done after a question that the wearer answers with yes"""
    REFUSED = "refused"
    """asked for something else; the wearer says no"""
    NOTHING = "nothing"
    """no call"""
    WRONG = "wrong"
    """another call, which only reads"""
    HARM = "harm"
    """another call, which changes something: must not be"""

    @property
    def is_right(self) -> bool:
        return self in (Verdict.RIGHT, Verdict.ASKED)


def judge(sentence: Sentence, outcome: Outcome) -> Verdict:
    """Judge one take. Of several calls the worst counts."""
    if sentence.kind is Kind.ANSWER:
        return _judge_answer(sentence, outcome)
    if not outcome.calls:
        refused = Verdict.REFUSED if outcome.questions else Verdict.NOTHING
        if sentence.kind is Kind.NONE and refused is Verdict.NOTHING:
            return Verdict.RIGHT
        return refused
    worst = sorted((_judge_call(sentence, call) for call in outcome.calls), key=list(Verdict).index)
    return worst[-1]


def _judge_answer(sentence: Sentence, outcome: Outcome) -> Verdict:
    if outcome.calls:
        return Verdict.HARM if any(call.changes for call in outcome.calls) else Verdict.WRONG
    if not outcome.answer:
        return Verdict.NOTHING
    if outcome.answer == sentence.answer:
        return Verdict.RIGHT
    return Verdict.WRONG if outcome.answer == "no" else Verdict.HARM  # after a no nothing happens


def _judge_call(sentence: Sentence, call: Called) -> Verdict:
    if (
        sentence.kind is not Kind.NONE
        and call.tool == sentence.tool
        and _equal(sentence, call.args)
    ):
        return Verdict.ASKED if call.asked else Verdict.RIGHT
    if call.asked:
        return Verdict.REFUSED
    return Verdict.HARM if call.changes else Verdict.WRONG


def _equal(sentence: Sentence, args: Mapping[str, Any]) -> bool:
    """Compare what was meant; arguments that were filled with defaults do not count."""
    if sentence.kind is Kind.DICTATION:
        ((name, text),) = sentence.args.items()
        got = str(args.get(name, ""))
        return _same(text, got) or error_rate(text, got) <= DICTATION_ERRORS
    named = {name: args.get(name) for name in sentence.args}
    free = ("label", "query", "text", "title", "place", "expression")
    extra = [name for name in free if name in args and name not in sentence.args]
    return not extra and all(_same(value, named[name]) for name, value in sentence.args.items())


def _same(wanted: Any, got: Any) -> bool:
    if isinstance(wanted, str):
        return "".join(words(wanted)) == "".join(words(str(got)))  # wifi, Wi-Fi; per cent
    return wanted == got
