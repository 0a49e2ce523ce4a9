"""Corrections of what was said a moment ago ("no, at ten", "I said …", "not Oslo, Bergen"), and the
words that stop or take back.
"""

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from enum import Enum
from typing import Final, NamedTuple

from edge.core import phrases
from edge.core.hearing.answers import plain_words
from edge.core.words.spoken_numbers import numbers, plain_word

WITHIN_S: Final = 10.0
"""Seconds after a call in which its wearer may correct it."""
MAX_WORDS: Final = 40


class Act(Enum):
    """What a correction does with the call before it."""

    NO = "no"
    """end what runs"""
    STOP = "stop"
    """end what runs, or take away what is shown"""
    UNDO = "undo"
    """take back what was done"""
    CHANGE = "change"
    """do it with other words"""


class Correction(NamedTuple):
    """`words` are said instead of `instead_of`; of nothing in particular if that is empty."""

    act: Act
    words: tuple[str, ...] = ()
    instead_of: tuple[str, ...] = ()


def _sentences(*sentences: str) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(sentence.split()) for sentence in sentences)


NO: Final = _sentences("no", "no no", "no no no", "nope")
STOP: Final = _sentences("stop", "stop it", "stop that", "no stop")
UNDO: Final = _sentences(
    "cancel",
    "cancel it",
    "cancel that",
    "no cancel",
    "no cancel that",
    "never mind",
    "nevermind",
    "no never mind",
    "forget it",
    "forget that",
    "no forget it",
    "undo",
    "undo it",
    "undo that",
    "no undo that",
    "take it back",
    "take that back",
    "that's wrong",
    "that is wrong",
    "no that's wrong",
    "that was wrong",
    "not that",
    "no not that",
)
LEADS: Final = (
    *(("i", verb) for verb in ("said", "mean", "meant")),
    ("make", "it"),
    ("make", "that"),
    ("change", "it", "to"),
    ("change", "that", "to"),
    ("it", "should", "be"),
    ("no",),
    ("nope",),
    ("sorry",),
    ("wait",),
    ("oops",),
    ("actually",),
)
"""How a correction begins; several may follow each other."""
_ALIKE: Final = 0.7
"""How alike (0 to 1) words must look to be taken for those that were said before."""
_FILLERS: Final = frozenset("oh well um uh please".split())


def read(sentence: str, former: Sequence[str] = ()) -> Correction | None:
    """Return the correction in a sentence; None if it is none. `former`: the words that followed
    the phrase of the call before it.
    """
    words = sentence.split()[:MAX_WORDS]
    plain = [" ".join(plain_words(word)) for word in words]
    whole = tuple(word for word in plain if word and word not in _FILLERS)
    if whole in NO:
        return Correction(Act.NO)
    if whole in STOP:
        return Correction(Act.STOP)
    if whole in UNDO:
        return Correction(Act.UNDO)
    led = _after_leads(plain)
    words, plain = words[led:], plain[led:]
    if not any(plain):
        return None
    if (exchange := _exchange(words, plain, [plain_word(word) for word in former])) is not None:
        return exchange
    return Correction(Act.CHANGE, tuple(words)) if led else None


def _after_leads(plain: list[str]) -> int:
    """Return where the new words begin; 0 if the sentence does not begin as a correction."""
    at, led = 0, 0
    while at < len(plain):
        lead = next((lead for lead in LEADS if tuple(plain[at : at + len(lead)]) == lead), None)
        if lead is not None:
            at = led = at + len(lead)
        elif plain[at] in _FILLERS or not plain[at]:
            at += 1
        else:
            break
    return led


def _exchange(words: list[str], plain: list[str], former: list[str]) -> Correction | None:
    """Read "not Oslo, Bergen", "not Oslo but Bergen" and "Bergen, not Oslo"."""
    if "not" not in plain:
        return None
    at = plain.index("not")
    if at == 0:
        end = _said_before(plain[1:], former) + 1
        new = words[end:]
        if new and plain_word(new[0]) in ("but", "rather"):
            new = new[1:]
        if end == 1 or not new:
            return None
        return Correction(Act.CHANGE, tuple(new), tuple(plain[1:end]))
    old, new = _nearest(plain[at + 1 :], former), words[:at]
    return Correction(Act.CHANGE, (*new[:-1], new[-1].rstrip(",;.")), old) if old else None


def _nearest(words: list[str], former: list[str]) -> tuple[str, ...]:
    """Return as many words that were said before and look like these: "Austin" for "Austen"."""
    count, said = len(words), " ".join(words)
    parts = [former[at : at + count] for at in range(len(former) - count + 1)] if count else []
    alike = {tuple(p): SequenceMatcher(None, said, " ".join(p)).ratio() for p in parts}
    best = max(alike, key=alike.__getitem__, default=())
    return best if best and alike[best] >= _ALIKE else ()


def _said_before(words: list[str], former: list[str]) -> int:
    """Return how many of these words, from the first on, stand so in what was said before."""
    return next(
        (n for n in range(len(words), 0, -1) if _position(former, words[:n]) is not None), 0
    )


# ------------------------------------------------------------------ the sentence with other words

PREPOSITIONS: Final = frozenset(
    "at in on for to from with about of by called named saying until before after".split()
)
_DAYS: Final = frozenset(
    "today tomorrow tonight yesterday monday tuesday wednesday thursday friday saturday"
    " sunday".split()
)
_PARTS: Final = frozenset(("half", "quarter"))
_OF_CLOCK: Final = frozenset("o'clock oclock am pm a.m p.m".split())


class _WordRange(NamedTuple):
    """Words `start` to `end` of one kind; a preposition before them is not among them."""

    start: int
    end: int
    unit: bool = False


def apply(former: Sequence[str], correction: Correction, phrase: str = "") -> list[str]:
    """Return the words that followed the phrase, with the correction made.

    A number, a time or a day replaces what was there of its kind; words after "at" or "in" replace
    those that were there after it, in the phrase too ("weather in"); any other words replace all.
    """
    old, new = list(former), list(correction.words)
    plain = [plain_word(word) for word in old]
    if correction.instead_of:
        at = _position(plain, correction.instead_of)
        if at is not None:
            return old[:at] + new + old[at + len(correction.instead_of) :]
    for spans in (_clocks, _numbers, _days):
        if (changed := _same_kind(old, new, spans)) is not None:
            return changed
    first = plain_word(new[0])
    if first in PREPOSITIONS and len(new) > 1:
        if first not in plain:
            follows = phrase.split()[-1:] == [first]
            return new[1:] if follows else old + new
        at = len(plain) - 1 - plain[::-1].index(first)
        end = next((i for i in range(at + 1, len(old)) if plain[i] in PREPOSITIONS), len(old))
        return old[:at] + new + old[end:]
    kept = 1 if plain and plain[0] in PREPOSITIONS | {"that"} and len(old) > 1 else 0
    return old[:kept] + new


def _same_kind(
    old: list[str], new: list[str], spans: Callable[[list[str]], list[_WordRange]]
) -> list[str] | None:
    """Return the old words with the new ones in the place of what is of their kind; None if the new
    words are not of this kind alone, or nothing of it was there.
    """
    mine, theirs = spans(new), spans(old)
    if len(mine) != 1 or not theirs:
        return None
    if any(plain_word(word) != "please" for word in new[mine[0].end :]):
        return None
    (begin, end, unit), there = mine[0], theirs[-1]
    value = new[:end]
    if there.unit and not unit:
        value.append(old[there.end - 1])  # "no, fifteen" of "ten minutes"
    before = [plain_word(word) for word in new[:begin]]
    start = there.start - begin
    if start >= 0 and before == [plain_word(word) for word in old[start : there.start]]:
        return old[:start] + value + old[there.end :]  # the same words before it: "level five"
    if begin > 1 or (begin and before[0] not in PREPOSITIONS):
        return None
    prepositional = there.start and plain_word(old[there.start - 1]) in PREPOSITIONS
    start = there.start - bool(begin and prepositional)
    return old[:start] + value + old[there.end :]


def _numbers(words: list[str]) -> list[_WordRange]:
    """Find numbers and durations; parts of one duration are one."""
    found: list[_WordRange] = []
    for number in numbers(words):
        if plain_word(words[number.start]) in ("a", "an") and not number.unit:
            continue
        joined = found and found[-1].unit and number.unit
        gap = [plain_word(w) for w in words[found[-1].end : number.start]] if joined else []
        if joined and set(gap) <= {"and"}:
            found[-1] = _WordRange(found[-1].start, number.end, unit=True)
        else:
            found.append(_WordRange(number.start, number.end, unit=bool(number.unit)))
    return found


def _clocks(words: list[str]) -> list[_WordRange]:
    """Find times of the day: `half past nine`, `10:30`, `ten thirty pm`, `at ten`, `noon`."""
    plain = [plain_word(word) for word in words]
    bare = {n.start: n.end for n in numbers(words) if not n.unit}
    found: list[_WordRange] = []
    at = 0
    while at < len(plain):
        end = _clock_end(plain, at, bare)
        if end:
            found.append(_WordRange(at, end))
        at = max(at + 1, end)
    return found


def _clock_end(plain: list[str], at: int, bare: dict[int, int]) -> int:
    """Return where the time of the day ends that begins here; 0: none does."""
    if plain[at] in ("noon", "midnight", "midday"):
        return at + 1
    hours, colon, minutes = plain[at].partition(":")
    if colon and hours.isdecimal() and minutes.isdecimal():
        return _with_half_of_day(plain, at + 1)
    part = at + 1 if plain[at] in _PARTS else bare.get(at, 0)
    if part and plain[part : part + 1] in (["past"], ["to"]):
        return _with_half_of_day(plain, bare.get(part + 1, 0))
    end = bare.get(at, 0)
    if not end:
        return 0
    end = bare.get(end, end)  # ten thirty
    clock = _with_half_of_day(plain, end)
    return clock if clock > end or (at and plain[at - 1] == "at") else 0


def _with_half_of_day(plain: list[str], end: int) -> int:
    return end + 1 if end and plain[end : end + 1] and plain[end] in _OF_CLOCK else end


def _days(words: list[str]) -> list[_WordRange]:
    plain = [plain_word(word) for word in words]
    return [
        _WordRange(i - (i > 0 and plain[i - 1] in ("next", "this")), i + 1)
        for i, word in enumerate(plain)
        if word in _DAYS
    ]


def _position(words: Sequence[str], part: Sequence[str]) -> int | None:
    return phrases.position(list(part), list(words))
