"""What may be said now: the phrases of tools with their arguments, answers, and corrections."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from edge.core import phrases
from edge.core.hearing import answers, corrections
from edge.core.hearing.expected import ExpectedWords
from edge.core.hearing.names import KnownNames
from edge.core.hearing.spoken_values import ONES, ORDINALS
from edge.core.tools.snapshot import Entry

MAX_SENTENCES: Final = 600
MAX_TOOLS: Final = 200
MAX_PHRASES: Final = 20
"""Phrases of one tool."""
MAX_CHOICES: Final = 50
"""Values of one argument, and choices of a question."""
_POLITE: Final = (
    "",
    "please",
    "can you",
    "could you",
    "would you",
    "can you please",
    "could you please",
    "I want to",
    "I'd like to",
    "hey",
    "okay",
    "now",
)
_SHOW: Final = (
    "",
    "show",
    "show me",
    "tell",
    "tell me",
    "do you know",
    "do I have",
    "is there",
    "are there",
    "give me",
    "read",
    "read me",
    "list",
    "what is",
    "what's",
    "what are",
    "when is",
    "when's",
    "how is",
    "how's",
)
_FOR_ME: Final = frozenset(("show", "tell", "give", "read"))
_LAST: Final = ("", "please", "now", "thank you")
_LINKS: Final = ("", "for", "in", "of", "to", "at", "number")
_CONTRACTIONS: Final = {
    "_".join(long): (short, " ".join(long)) for short, long in phrases.CONTRACTIONS.items()
}
_LISTS: Final[Mapping[str, tuple[str, ...]]] = {
    "polite": _POLITE,
    "show": _SHOW,
    "last": _LAST,
    "link": _LINKS,
    **_CONTRACTIONS,
    "me": ("", "me"),
    "percent": ("", "percent"),
    "article": ("", *sorted(phrases.ARTICLES)),
}


def of_tools(
    entries: Iterable[Entry], language: str = "", names: KnownNames | None = None
) -> ExpectedWords:
    """Return the sentences that call an active tool, with the names that may be said to it."""
    sentences: list[str] = []
    lists = {**_LISTS}
    active = [e.definition for e in entries if not (e.hidden or e.missing)]
    said = [t for t in active if t.activation_phrases and phrases.can_be_said(t.input_schema)]
    for number, tool in enumerate(said[:MAX_TOOLS]):
        slots = phrases.slots_of(tool.input_schema)
        if slots.text and slots.choices:
            lists[f"value{number}"] = slots.choices[:MAX_CHOICES]
        value = f"{{value{number}}}" if slots.choices else "{text}"
        called = names.of_tool.get(tool.name) if names is not None else None
        if called is not None:
            lists[f"name{number}"] = tuple(called.stored)
        for phrase in [*phrases.phrases_of(tool, language)][:MAX_PHRASES]:
            spoken = phrases.slots_of(tool.input_schema, phrase)
            lead = "{polite} {show} {article}" if tool.read_only else "{polite}"
            forms = [*_with_values(phrase, spoken, value)]
            if called is not None:
                forms.append(f"{forms[0]} {{name{number}}}{' {text}' * called.text_follows}")
            for words in forms:
                last = "" if words.endswith("{text}") else " {last}"
                sentences.append(f"{lead} {words}{last}")
    return ExpectedWords(tuple(dict.fromkeys(sentences))[:MAX_SENTENCES], lists)


def _with_values(phrase: str, slots: phrases.ArgumentSlots, value: str) -> Iterable[str]:
    """Return a phrase alone, and with what may follow it or stand within it."""
    first, *others = phrases.expanded(phrase.split())[0] or [""]
    if len(others) == 1:
        others.insert(0, "the")  # "cancel timer" is said "cancel the timer"
    if first in _FOR_ME:
        first = f"{first} {{me}}"
    plain = " ".join([first, *("{article}" if w in phrases.ARTICLES else w for w in others)])
    for name, (_short, long) in _CONTRACTIONS.items():
        plain = plain.replace(long, f"{{{name}}}") if f" {long} " in f" {plain} " else plain
    yield plain
    number = "{duration}" if slots.duration else "{number} {percent}" if slots.numbers else ""
    if number and (slots.needs_number or not slots.text):
        yield f"{plain} {{link}} {number}"
        if slots.duration and others:
            yield f"{plain.rpartition(' ')[0]} {number} {others[-1]}"
        if slots.text:
            yield f"{plain} {{link}} {number} {value}"
            yield f"{plain} for {value} {{link}} {number}"
    elif slots.text:
        yield f"{plain} {value}"


# ------------------------------------------------------------------ answers and corrections


def of_question(choices: Sequence[str] = ()) -> ExpectedWords:
    """Return the answers to a question (see `answers.py`)."""
    sentences = [*_ANSWERS]
    lists = {"last": _LAST, **_ANSWER_LISTS}
    if choices:
        lists["ordinal"] = ("last", *ORDINALS[: min(9, len(choices))])
        lists["cardinal"] = tuple(ONES[: len(choices)])
        lists["choice"] = tuple(choices[:MAX_CHOICES])
        sentences += _CHOOSING
    return ExpectedWords(tuple(f"{sentence} {{last}}" for sentence in sentences), lists)


def of_correction() -> ExpectedWords:
    """Return how what was said a moment ago is corrected (see `corrections.py`)."""
    return ExpectedWords(_CORRECTIONS, _CORRECTION_LISTS)


def join(*parts: ExpectedWords) -> ExpectedWords:
    """Return all sentences of the parts; of lists of one name the first counts."""
    lists: dict[str, tuple[str, ...]] = {}
    for part in reversed(parts):
        lists.update(part.lists)
    sentences = dict.fromkeys(sentence for part in parts for sentence in part.sentences)
    return ExpectedWords(tuple(sentences), lists)


def _joined(phrases: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(sorted(map(" ".join, phrases)))


_ANSWERS: Final = ("{yes}", "{yes} {yes}", "{no}", "{no} {no}")
_ANSWER_LISTS: Final[Mapping[str, tuple[str, ...]]] = {
    "yes": _joined(answers.YES),
    "no": (*_joined(answers.NO), *sorted(answers.NO_AT_ONCE)),
    "choose": (
        "",
        "take",
        "I take",
        "I'll take",
        "I'll have",
        "I want",
        "I'd like",
        "I prefer",
        "I choose",
        "go with",
        "let's take",
        "let's go with",
    ),
    "none": _joined(answers.NONE_OF_THEM),
}
_CHOOSING: Final = (
    "{choose} the {ordinal}",
    "{choose} the {ordinal} one",
    "{choose} {cardinal}",
    "{choose} number {cardinal}",
    "{choose} option {cardinal}",
    "{choose} {choice}",
    "{choose} the {choice}",
    "{none}",
)
_CORRECTION_LISTS: Final[Mapping[str, tuple[str, ...]]] = {
    "correcting": (
        *_joined(corrections.LEADS),
        *(f"no {lead}" for lead in _joined(corrections.LEADS) if lead not in ("no", "nope")),
    ),
    "meant": ("I said", "I meant", "I mean", "no I said", "no I meant", "no I mean"),
    "at": ("", "at", "on", "for"),
    "preposition": tuple(sorted(corrections.PREPOSITIONS)),
}
_CORRECTIONS: Final = (
    *_joined(corrections.NO | corrections.STOP | corrections.UNDO),
    "{correcting} {at} {time}",
    "{correcting} {at} {day}",
    "{correcting} {at} {day} at {time}",
    "{correcting} {number}",
    "{correcting} {at} {duration}",
    "{meant} {text}",
    "no {preposition} {text}",
    "not {text} but {text}",
    "not {text}",
)
