"""Spoken answers to a question: yes, no, or one of its choices."""

import re
from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

from firmware_bridge.messages import Reading, Transcript

MARGIN: Final = 3.0
"""How much likelier (natural logarithm) a reading must be than the best one of another meaning: the
model's own readings of clean speech are 4 or more apart, those it mixes up less than 2.
"""
BEHIND: Final = 2.0
"""How much less likely a choice may be than words that answer nothing: what is on the lens is said
rather than "fooless" for "Thomas".
"""
BEHIND_PER_WORD: Final = 1.0
"""The same of yes and no, for each word after the first: "see you" comes near to a yes, but nothing
else comes near to "yes, do it".
"""
UNCLEAR: Final = -4.0
"""What is less likely is never certain: of clean answers the least likely have -3."""
UNCLEAR_PER_WORD: Final = -1.3
"""The same of a longer answer, for each word and for the end."""
_WORDS: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


class YesOrNo(Enum):
    """An answer that is no choice."""

    YES = "yes"
    NO = "no"


class SpokenAnswer(NamedTuple):
    """`answer`: yes, no, or the number of a choice, from 1. `certain`: no other was nearly as
    likely.
    """

    answer: YesOrNo | int
    certain: bool


def find_answer(said: Transcript, choices: Sequence[str] = ()) -> SpokenAnswer | None:
    """Return the answer in recognised words; None if they are none. Words without readings are
    taken as they are.

    A no counts although it is not certain: nothing is done because of it.
    """
    readings = said.readings or (Reading(said.text, 0.0),)
    best: dict[YesOrNo | int, Reading] = {}
    no_answer = float("-inf")
    for reading in sorted(readings, key=lambda each: -each.log_probability):
        found = read(reading.text, choices)
        if found is None:
            no_answer = max(reading.log_probability, no_answer)
        else:
            best.setdefault(found, reading)
    if not best:
        return None
    answer = max(best, key=lambda each: best[each].log_probability)
    likely = best[answer].log_probability
    if no_answer - likely > _behind(answer, best[answer].text):
        return None
    others = [best[other].log_probability for other in best if other != answer]
    words = len(plain_words(best[answer].text))
    clear = likely >= min(UNCLEAR, UNCLEAR_PER_WORD * (words + 1))
    return SpokenAnswer(answer, certain=clear and (not others or likely - max(others) >= MARGIN))


def _behind(answer: YesOrNo | int, text: str) -> float:
    words = len(plain_words(text))
    return BEHIND if isinstance(answer, int) else min(BEHIND, BEHIND_PER_WORD * (words - 1))


def read(text: str, choices: Sequence[str] = ()) -> YesOrNo | int | None:
    """Return what a sentence answers; None if it is no answer, or not clearly one. Among choices a
    yes names none, and is what short words sound like: it counts only as one of them.
    """
    words = plain_words(text)
    if choices and (number := _choice(words, choices)) is not None:
        return number
    said, words = words, _without_politeness(words)
    if not words:
        return None
    if tuple(words) in NO or words[0] in NO_AT_ONCE or words[0] == "don't":
        return YesOrNo.NO
    if not choices and (_is_made_of(words, YES) or _is_made_of(said, YES)):  # "please do"
        return YesOrNo.YES
    return None


def plain_words(text: str) -> list[str]:
    """Return the words of a sentence in small letters, without marks."""
    return [word.replace("’", "'") for word in _WORDS.findall(text.casefold())]


# ------------------------------------------------------------------ yes and no

_POLITE: Final = frozenset(
    "please thanks thank you well oh um uh er hm hmm so okay ok alright".split()
)
NO_AT_ONCE: Final = frozenset("no nope nah never".split())
"""A sentence that begins so is a no, whatever follows it."""


def _phrases(*said: str) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(phrase.split()) for phrase in said)


NO: Final = _phrases(
    "no thanks",
    "no thank you",
    "don't",
    "don't do it",
    "don't do that",
    "not",
    "not now",
    "not right now",
    "not yet",
    "not today",
    "maybe not",
    "maybe later",
    "later",
    "not that",
    "not this",
    "do not",
    "do not do it",
    "do not do that",
    "rather not",
    "i'd rather not",
    "cancel",
    "cancel it",
    "cancel that",
    "stop",
    "stop it",
    "stop that",
    "forget it",
    "forget that",
    "leave it",
    "skip",
    "skip it",
    "wrong",
    "that's wrong",
    "that is wrong",
    "incorrect",
    "negative",
    "deny",
    "refuse",
    "i don't",
    "i don't want",
    "i don't want that",
    "i said no",
)
YES: Final = _phrases(
    "yes",
    "yeah",
    "yep",
    "yup",
    "aye",
    "sure",
    "sure thing",
    "okay",
    "ok",
    "alright",
    "all right",
    "fine",
    "right",
    "correct",
    "exactly",
    "absolutely",
    "definitely",
    "certainly",
    "of course",
    "do it",
    "do that",
    "do this",
    "go on",
    "go ahead",
    "confirm",
    "confirmed",
    "allow",
    "allow it",
    "affirmative",
    "that's right",
    "that is right",
    "that's correct",
    "that is correct",
    "that's it",
    "i said yes",
    "yes i do",
    "yeah i do",
    "yes i would",
    "yeah i would",
    "please do",
    "sounds good",
    "that sounds good",
)


def _without_politeness(words: list[str]) -> list[str]:
    """Leave out what changes no answer; what is nothing else is kept ("okay" is a yes)."""
    left = [word for word in words if word not in _POLITE]
    return left or [word for word in words if (word,) in YES]


def _is_made_of(words: list[str], phrases: frozenset[tuple[str, ...]]) -> bool:
    """Return whether the sentence is one or more of the phrases, and nothing else."""
    at = 0
    while at < len(words):
        length = next(
            (
                n
                for n in (4, 3, 2, 1)
                if tuple(words[at : at + n]) in phrases and at + n <= len(words)
            ),
            0,
        )
        if not length:
            return False
        at += length
    return True


# ------------------------------------------------------------------ choices

_ORDINALS: Final = dict(
    zip(
        "first second third fourth fifth sixth seventh eighth ninth".split(),
        range(1, 10),
        strict=True,
    )
)
_CARDINALS: Final = dict(
    zip("one two three four five six seven eight nine".split(), range(1, 10), strict=True)
)
_AROUND: Final = frozenset(
    "the number option choice answer one i i'd i'll want would like choose pick take prefer have go"
    " let's with for on in at it's it is that works me please thanks thank you yes yeah okay ok um"
    " uh well".split()
)
"""Words around a choice that change nothing."""
_NOT: Final = frozenset("no not don't never neither none nor".split())
NONE_OF_THEM: Final = _phrases(
    "none",
    "none of them",
    "none of these",
    "none of those",
    "neither",
    "neither of them",
    "nothing",
)


def _choice(words: list[str], choices: Sequence[str]) -> int | YesOrNo | None:
    """Return the number of the choice that is meant: its own words count before any number."""
    named = [plain_words(choice) for choice in choices]
    exact = [n for n, own in enumerate(named, 1) if own and own == words]
    if len(exact) == 1:
        return exact[0]
    if tuple(_without_politeness(words)) in NONE_OF_THEM:
        return YesOrNo.NO
    if _NOT.intersection(words):
        return None
    inside = _longest([(n, own) for n, own in enumerate(named, 1) if _contains(words, own)])
    if inside:
        return inside[0] if len(inside) == 1 else None
    return _choice_by_number(words, len(choices))


def _contains(words: list[str], own: list[str]) -> bool:
    """Return whether a choice's words are in the sentence, with nothing but small words around."""
    for at in range(len(words) - len(own) + 1):
        if own and words[at : at + len(own)] == own:
            return all(word in _AROUND for word in words[:at] + words[at + len(own) :])
    return False


def _longest(found: list[tuple[int, list[str]]]) -> list[int]:
    most = max((len(own) for _, own in found), default=0)
    return [number for number, own in found if len(own) == most]


def _choice_by_number(words: list[str], count: int) -> int | None:
    left = [word for word in words if word not in _AROUND or word == "one"]
    if left and left[-1] == "one" and len(left) > 1:
        left = left[:-1]  # the second one
    if len(left) != 1:
        return None
    word = left[0]
    if word == "last":
        return count
    number = _ORDINALS.get(word) or _CARDINALS.get(word)
    if number is None and word.isdecimal() and len(word) == 1:
        number = int(word)
    return number if number is not None and 1 <= number <= count else None
