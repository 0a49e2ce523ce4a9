"""What may be said now: the phrases of tools with their arguments, answers, and corrections."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from edge.core import phrases
from edge.core.hearing.expected import ExpectedWords
from edge.core.hearing.spoken_values import ONES, ORDINALS
from edge.core.tools.snapshot import Entry

MAX_SENTENCES: Final = 600
MAX_TOOLS: Final = 200
MAX_PHRASES: Final = 12
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
    "hey",
    "okay",
    "now",
)
_SHOW: Final = (
    *_POLITE,
    "show",
    "show me",
    "tell me",
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
    "article": ("", *sorted(phrases.ARTICLES)),
}


def of_tools(entries: Iterable[Entry], language: str = "") -> ExpectedWords:
    """Return the sentences that call an active tool."""
    sentences: list[str] = []
    lists = {**_LISTS}
    active = [e.definition for e in entries if not (e.hidden or e.missing)]
    for number, tool in enumerate([t for t in active if t.activation_phrases][:MAX_TOOLS]):
        slots = phrases.slots_of(tool.input_schema)
        if slots.text and slots.choices:
            lists[f"value{number}"] = slots.choices[:MAX_CHOICES]
        value = f"{{value{number}}}" if slots.choices else "{text}"
        for phrase in [*phrases.phrases_of(tool, language)][:MAX_PHRASES]:
            lead = "{show} {article}" if tool.read_only else "{polite}"
            for words in _with_values(phrase, slots, value):
                last = "" if words.endswith("{text}") else " {last}"
                sentences.append(f"{lead} {words}{last}")
    return ExpectedWords(tuple(dict.fromkeys(sentences))[:MAX_SENTENCES], lists)


def _with_values(phrase: str, slots: phrases.ArgumentSlots, value: str) -> Iterable[str]:
    """Return a phrase alone, and with what may follow it or stand within it."""
    first, *others = phrases.expanded(phrase.split())[0] or [""]
    if len(others) == 1:
        others.insert(0, "the")  # "cancel timer" is said "cancel the timer"
    plain = " ".join([first, *("{article}" if w in phrases.ARTICLES else w for w in others)])
    for name, (_short, long) in _CONTRACTIONS.items():
        plain = plain.replace(long, f"{{{name}}}") if f" {long} " in f" {plain} " else plain
    yield plain
    number = "{duration}" if slots.duration else "{number}" if slots.numbers else ""
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
    return ExpectedWords(_CORRECTIONS, {"correcting": _CORRECTING, "at": ("", "at", "on", "for")})


def join(*parts: ExpectedWords) -> ExpectedWords:
    """Return all sentences of the parts; of lists of one name the first counts."""
    lists: dict[str, tuple[str, ...]] = {}
    for part in reversed(parts):
        lists.update(part.lists)
    sentences = dict.fromkeys(sentence for part in parts for sentence in part.sentences)
    return ExpectedWords(tuple(sentences), lists)


_ANSWERS: Final = (
    "{yes}",
    "{yes} {indeed}",
    "{indeed}",
    "{no}",
    "{no} {not}",
    "{not}",
)
_ANSWER_LISTS: Final[Mapping[str, tuple[str, ...]]] = {
    "yes": ("yes", "yeah", "yep", "sure", "okay", "yes I do", "yes I would", "yes please"),
    "indeed": (
        "do it",
        "do that",
        "please do",
        "go ahead",
        "of course",
        "that's right",
        "that's correct",
        "sounds good",
        "that sounds good",
    ),
    "no": ("no", "nope", "no thanks", "no I don't"),
    "not": ("don't", "don't do it", "not now", "cancel", "stop", "never mind", "forget it"),
}
_CHOOSING: Final = (
    "the {ordinal}",
    "the {ordinal} one",
    "{cardinal}",
    "number {cardinal}",
    "option {cardinal}",
    "{choice}",
    "the {choice}",
    "none of them",
)
_CORRECTING: Final = (
    "no",
    "no I said",
    "no I meant",
    "I said",
    "I meant",
    "I mean",
    "make it",
    "no make it",
    "make that",
    "change it to",
    "sorry",
    "wait",
    "actually",
)
_CORRECTIONS: Final = (
    "no",
    "stop",
    "stop it",
    "cancel",
    "cancel that",
    "never mind",
    "forget it",
    "undo that",
    "undo",
    "take it back",
    "that's wrong",
    "no not that",
    "{correcting} {at} {time}",
    "{correcting} {at} {day}",
    "{correcting} {at} {day} at {time}",
    "{correcting} {number}",
    "{correcting} {at} {duration}",
    "I said {text}",
    "I meant {text}",
    "no I said {text}",
    "no I meant {text}",
)
