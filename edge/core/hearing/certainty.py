"""How sure it is what the wearer said: by how much likelier its readings are than all others."""

import math
import re
from collections.abc import Callable, Hashable, Mapping
from enum import Enum
from typing import Final, Generic, NamedTuple, TypeVar

from edge.core.hearing.grammar import letters
from edge.core.words.spoken_numbers import numbers, plain_word
from firmware_bridge.messages import Reading, Transcript
from tools_cache.api.tool import Json

MARGIN: Final = 3.0
"""Natural logarithm: how much likelier a meaning must be than any other."""
FREE_MARGIN: Final = 5.0
"""The same for words that anybody may choose: the right ones may be none of the readings."""
FREE_LESS: Final = 2.0
"""How much less likely such words are than those of a phrase, before anything was heard."""
OTHER_KIND: Final = 2.0
"""After a no, something of another kind is asked about before what is so much likelier."""
FAR: Final = 2.0
"""How much less likely its best reading may be than the likeliest words."""
PER_WORD: Final = 1.0
"""How unlikely its best reading may be for each word (and for the end)."""
LOST: Final = 14.0
"""A meaning whose best reading is so much less likely than other words is none."""
LOST_PER_WORD: Final = 4.0
FREE_LOST: Final = 8.0
"""`LOST` and `LOST_PER_WORD` of words that anybody may choose: they come near to any sound."""
FREE_LOST_PER_WORD: Final = 3.0
OVERHEARD: Final = 2.0
"""`LOST` and `LOST_PER_WORD` of words that were perhaps not said to the glasses."""
OVERHEARD_PER_WORD: Final = 1.0
MUMBLED: Final = 0.75
MUMBLED_MARGIN: Final = 6.0
"""The recogniser's own confidence below which the margin must be this: speech in noise."""
TWIN_MARGIN: Final = 6.0
TWIN_CONFIDENCE: Final = 0.9
"""The margin, and the recogniser's own confidence, of a number that sounds like another."""
OPPOSITE_MARGIN: Final = 12.0
"""How much likelier a meaning must be than its opposite: the search keeps nothing less likely, and
"start captions" was heard as "stop captions" with the right words 10 behind.
"""
_TWINS: Final = frozenset({*range(13, 20), *range(30, 100, 10)})
"""Numbers that sound like another: thirteen and thirty."""
_SWALLOWED: Final = re.compile(r"[24]\d+")
"""Numbers in which a "to" or "for" may stand for a digit: "for twenty eight" sounds like 428."""
_BEFORE_NUMBERS: Final = frozenset("a an the in of at to for by past number and".split())

Meaning = TypeVar("Meaning")


class Certainty(Enum):
    CERTAIN = "certain"
    UNSURE = "unsure"
    NOTHING = "nothing"


class Judgement(NamedTuple, Generic[Meaning]):
    """`meaning`: the likeliest, with its best reading; None if it is NOTHING. `margin`: how much
    likelier it is than any other (natural logarithm). `reason`: why it is not CERTAIN, for the log.
    `others`: what may have been meant if that was not.
    """

    certainty: Certainty
    meaning: Meaning | None = None
    reading: Reading | None = None
    margin: float = math.inf
    reason: str = ""
    others: tuple[Meaning, ...] = ()


class _Candidate(Generic[Meaning]):
    """A meaning with its best reading, and how likely all its readings are together."""

    def __init__(self, meaning: Meaning, reading: Reading) -> None:
        self.meaning = meaning
        self.reading = reading
        self.likely = -math.inf

    def add(self, reading: Reading) -> None:
        least, most = sorted((self.likely, reading.log_probability))
        self.likely = most + math.log1p(math.exp(least - most))


def judge(
    said: Transcript,
    meaning_of: Callable[[str], Meaning | None],
    key: Callable[[Meaning], Hashable],
    *,
    is_whole: Callable[[Meaning], bool] = lambda _meaning: True,
    is_free: Callable[[Meaning], bool] = lambda _meaning: False,
    kind: Callable[[Meaning], Hashable] = lambda _meaning: None,
    is_opposite: Callable[[Meaning, Meaning], bool] = lambda _meaning, _other: False,
    prior: Callable[[Meaning], float] = lambda _meaning: 0.0,
) -> Judgement[Meaning]:
    """Return what was meant, and how sure that is.

    Readings whose meanings have the same `key` count together. A meaning that is not `is_whole`
    (there are other words around its phrase) comes after all others, and is never certain. One that
    `is_free` holds words of the wearer's choice. Of what else may be meant, what is of another
    `kind` comes first unless it is `OTHER_KIND` less likely. `prior` is added to how likely a
    meaning is (natural logarithm). A transcript without readings is taken as it is.
    """
    if not said.readings:
        meaning = meaning_of(said.text)
        if meaning is None:
            return Judgement(Certainty.NOTHING, reason="no phrase is in it")
        return Judgement(Certainty.CERTAIN, meaning, Reading(said.text, 0.0))
    found: dict[tuple[bool, Hashable], _Candidate[Meaning]] = {}
    for reading in sorted(said.readings, key=lambda r: -r.log_probability):
        meaning = meaning_of(reading.text)
        if meaning is not None:
            name = is_whole(meaning), key(meaning)
            found.setdefault(name, _Candidate(meaning, reading)).add(reading)
    for each in found.values():
        each.likely += prior(each.meaning) - FREE_LESS * is_free(each.meaning)
    likeliest = max(reading.log_probability for reading in said.readings)
    judged = []
    for name in sorted(found, key=lambda n: (n[0], found[n].likely), reverse=True):
        whole, each = name[0], found[name]
        others = [c.likely for n, c in found.items() if n != name]
        margin = each.likely - max(others, default=-math.inf)
        narrow = is_free(each.meaning) or not whole or margin < 0
        far, per_word = _distances(each.reading, likeliest)
        if not _is_lost(far, per_word, addressed=said.addressed, narrow=narrow):
            doubt = _doubt(said, each, margin, far, per_word, whole=whole)
            if any(
                is_opposite(each.meaning, c.meaning) and each.likely - c.likely < OPPOSITE_MARGIN
                for c in found.values()
            ):
                doubt = doubt or "the opposite is nearly as likely"
            judged.append((each, margin, doubt))
    if not judged:
        return Judgement(Certainty.NOTHING, reason="far from every phrase")
    best, margin, reason = judged[0]
    sure = Certainty.UNSURE if reason else Certainty.CERTAIN
    rest = [each for each, *_ in judged[1:] if is_whole(each.meaning)]
    rest.sort(
        key=lambda each: each.likely + OTHER_KIND * (kind(each.meaning) != kind(best.meaning))
    )
    meanings = tuple(each.meaning for each in reversed(rest))
    return Judgement(sure, best.meaning, best.reading, margin, reason, meanings)


def _distances(reading: Reading, likeliest: float) -> tuple[float, float]:
    words = len(reading.text.split()) + 1
    return likeliest - reading.log_probability, -reading.log_probability / words


def _is_lost(far: float, per_word: float, *, addressed: bool, narrow: bool) -> bool:
    if not addressed:
        return far > OVERHEARD or per_word > OVERHEARD_PER_WORD
    if narrow:
        return far > FREE_LOST or per_word > FREE_LOST_PER_WORD
    return far > LOST or per_word > LOST_PER_WORD


def _doubt(
    said: Transcript,
    best: _Candidate[Meaning],
    margin: float,
    far: float,
    per_word: float,
    *,
    whole: bool,
) -> str:
    """Return why it is not certain; "" if it is."""
    mumbled = said.confidence is not None and said.confidence < MUMBLED
    if not whole:
        return "there is more in it than the phrase"
    if margin < (MUMBLED_MARGIN if mumbled else MARGIN):
        return "another meaning is nearly as likely"
    if far > FAR:
        return f"other words are likelier ({far:.1f})"
    if per_word > PER_WORD:
        return f"unclear ({per_word:.1f} a word)"
    words = best.reading.text.split()
    if _is_twin(words, margin, said.confidence):
        return "the number sounds like another"
    if _has_swallowed(words):
        return "the number may have a word in it"
    return ""


def _is_twin(words: list[str], margin: float, confidence: float | None) -> bool:
    """Return whether it has a number that may have been another."""
    if margin >= TWIN_MARGIN and (confidence is None or confidence >= TWIN_CONFIDENCE):
        return False
    return any(int(number.value) in _TWINS for number in numbers(words))


def _has_swallowed(words: list[str]) -> bool:
    """Return whether a time may begin with what was a word, as no such word stands before it."""
    return any(
        number.unit
        and _SWALLOWED.fullmatch(plain_word(words[number.start]))
        and number.start > 0
        and plain_word(words[number.start - 1]) not in _BEFORE_NUMBERS
        for number in numbers(words)
    )


def call_key(tool: str, args: Mapping[str, Json]) -> Hashable:
    """Return a key of a call: the same for arguments that only look different (`level 3`, `level
    three`).
    """
    return tool, tuple(sorted((name, _plain(value)) for name, value in args.items()))


def _plain(value: Json) -> str:
    if not isinstance(value, str):
        return repr(value)
    words = letters(value).split()
    for number in reversed(numbers(words)):
        if words[number.start] not in ("a", "an"):
            amount = round(number.value * (number.unit or 1), 3)
            words[number.start : number.end] = [f"{amount:.10g}{'s' if number.unit else ''}"]
    return "".join(words)
