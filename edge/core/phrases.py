"""Finds the tool and the arguments of a spoken sentence, by activation phrases, without a model."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from edge.core.tools.snapshot import Entry
from edge.core.words.spoken_numbers import FoundNumber, number_at, numbers, plain_word
from tools_cache.api.tool import Json, ToolDefinition

MAX_WORDS: Final = 120
"""Words of one sentence that are read."""
_WORD: Final = re.compile(r"[^\s]+")
_REQUEST: Final = re.compile(
    r"(?:(?:please|hey|hi|ok|okay|um|uh|so|well|now|and|then|just|also|go ahead"
    r"|(?:can|could|would|will) you|do you know|do i have|i(?:'d| would) like(?: you)?(?: to)?"
    r"|i want(?: you)?(?: to)?|i need(?: you)?(?: to)?|let's|show|tell|give|read|list|open|turn"
    r"|what(?: is|'s| are)|(?:how|when)(?: is|'s| are)|(?:is|are) there|is|are|do|the|me|my) )*"
)
"""Words before a phrase that make a request of it: "could you please", "what is the"."""
_ASKED: Final = re.compile(r"\b(?:can|could|would|will) you\b")
"""Words that make a question of a request: the mark at its end is no part of an argument."""
_LEADS: Final = frozenset("to that for about saying of called named dass daß que che".split())
"""Words between a phrase and its text: "note that …", "merke dir, dass …", "anota que …"."""
_ASKING: Final = frozenset("what when where who which how do does is are can".split())
"""First words of phrases that are questions: the mark at the end is no part of an argument."""
ARTICLES: Final = frozenset({"a", "an", "the", "my"})
_BETWEEN: Final = ARTICLES | {"me"}
"""Words that may stand between those of a phrase: "show me my notes" is "show notes"."""
_LONGER: Final = frozenset(
    "day days week weeks month months year years tag tage tagen woche wochen monat monate monaten "
    "día días semana semanas jour jours semaine semaines giorno giorni settimana settimane".split()
)
"""Units beyond those of timers: "two days" are not two seconds."""
_OPEN: Final = frozenset(
    "about at for from in near of to für in nach von zu zum zur a de en para por à pour sur da di"
    " per su".split()
)
"""Last words of phrases after which a text must follow: "what is the weather in"."""
_BEFORE_NUMBERS: Final = frozenset("for in of and number to auf".split())
"""Words that belong to the number behind them: "dim the lamp to 30"."""
_PERCENT: Final = frozenset({"percent", "prozent", "%"})
ON_OFF: Final = "on"
"""Name of the argument that turns something on and off."""
_ON: Final = frozenset(
    "on start show begin enable"
    " an ein anschalten einschalten enciende encender allume allumer accendi accendere".split()
)
_OFF: Final = frozenset(
    "off stop hide end disable"
    " aus ab ausschalten abschalten apaga apagar éteins éteindre spegni spegnere".split()
)
_SWITCHES: Final = frozenset("on off an ein aus ab".split())
CONTRACTIONS: Final = {
    **{f"{word}'s": (word, "is") for word in ("what", "when", "where", "who", "how", "that")},
    "i'm": ("i", "am"),
    "what're": ("what", "are"),
}


class Match(NamedTuple):
    """The tool a sentence means, the matching phrase, and the arguments in the rest.

    `before` and `rest`: the words before and after the phrase; a duration within it is first in
    `rest`.
    """

    tool: ToolDefinition
    phrase: str
    args: dict[str, Json]
    before: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()


def match(
    sentence: str, tools: Iterable[ToolDefinition], language: str = "", *, leading: bool = False
) -> Match | None:
    """Find the tool with the longest phrase in the sentence; of equals the earliest, then by name.

    Beside a tool's phrases, those for `language` (`de-AT`) and for the language alone (`de`) count.
    `leading`: a phrase with which the request begins counts before all others. A tool that needs
    what no sentence says is found only if no other is.
    """
    spoken = _WORD.findall(sentence)[:MAX_WORDS]
    plain, places = expanded(spoken)
    present = {*plain}
    best: tuple[bool, bool, int, int] | None = None
    chosen: tuple[ToolDefinition, str, _Span] | None = None
    for tool in tools:
        for phrase in phrases_of(tool, language):
            first = phrase.partition(" ")[0].casefold()
            if first.isalnum() and first not in present:
                continue  # as nearly all of thousands of phrases, of which each reading is asked
            words, _ = expanded(_WORD.findall(phrase))
            span = _span(words, plain)
            if span is None:
                continue
            if _is_longer(tool, plain[span.end :]):
                continue
            leads_it = leading and leads(plain[: span.start])
            rank = (leads_it, can_be_said(tool.input_schema), len(words), -span.start)
            if best is None or rank > best:
                best, chosen = rank, (tool, phrase, span)
    if chosen is None:
        return None
    tool, phrase, span = chosen
    before = tuple(spoken[: places[span.start]])
    within = [spoken[places[at]] for at in range(*span.within)]
    rest = (*within, *spoken[places[span.end - 1] + 1 :])
    if rest and _ASKED.search(" ".join(plain[: span.start])):
        rest = (*rest[:-1], *filter(None, [rest[-1].rstrip("?")]))
    return Match(tool, phrase, arguments(tool, list(rest), phrase), before, rest)


def find_tool(
    sentence: str,
    entries: Iterable[Entry],
    language: str,
    why_not: Callable[[ToolDefinition], str],
    *,
    leading: bool = False,
) -> Match | None:
    """Find the tool a sentence means; tools that can be called now come first, then those that
    could be called at another time.
    """
    entries = tuple(entries)
    active = [e.definition for e in entries if not (e.hidden or e.missing)]
    there = [tool for tool in active if not why_not(tool)]
    for tools in (there, active, [e.definition for e in entries]):
        if found := match(sentence, tools, language, leading=leading):
            return found
    return None


def leads(before: Iterable[str]) -> bool:
    """Return whether these words may come before what is asked for."""
    plain = filter(None, map(plain_word, before))
    return _REQUEST.fullmatch("".join(f"{word} " for word in plain)) is not None


def phrases_of(tool: ToolDefinition, language: str) -> Iterable[str]:
    """Return a tool's phrases for this language, and those for all."""
    if not tool.local_phrases or not language:
        return tool.activation_phrases
    local = (
        tool.local_phrases.get(said, ())
        for said in dict.fromkeys((language, language.partition("-")[0]))
    )
    return (*(phrase for more in local for phrase in more), *tool.activation_phrases)


def expanded(words: list[str]) -> tuple[list[str], list[int]]:
    """Return the plain words, with "what's" as "what is", and which of the words each is from."""
    plain: list[str] = []
    places: list[int] = []
    for place, word in enumerate(words):
        parts = CONTRACTIONS.get(plain_word(word)) or (plain_word(word),)
        plain += parts
        places += [place] * len(parts)
    return plain, places


class _Span(NamedTuple):
    """Where a phrase stands in a sentence, with the duration `within` it."""

    start: int
    end: int
    within: tuple[int, int]


def _span(words: list[str], sentence: list[str]) -> _Span | None:
    """Find these words in a sentence, whatever articles are between them ("cancel the timer" for
    "cancel timer", "show me the notes" for "show notes"), and with a duration there ("set a ten
    minute timer").
    """
    if not any(words):
        return None
    wanted = [words[0], *(word for word in words[1:] if word not in ARTICLES)]
    return next(
        (
            span
            for start, first in enumerate(sentence)
            if first == wanted[0] and (span := _span_at(wanted, sentence, start))
        ),
        None,
    )


def _span_at(wanted: list[str], sentence: list[str], start: int) -> _Span | None:
    at, within = start + 1, (0, 0)
    for word in wanted[1:]:
        while sentence[at : at + 1] and sentence[at] in _BETWEEN and sentence[at] != word:
            at += 1
        number = None if within[1] or at >= len(sentence) else number_at(sentence, at)
        if number and number.unit and sentence[number.end : number.end + 1] == [word]:
            within, at = (number.start, number.end), number.end
        if sentence[at : at + 1] != [word]:
            return None
        at += 1
    return _Span(start, at, within)


def position(words: list[str], sentence: list[str]) -> int | None:
    """Return where these words stand in a sentence; None if they do not."""
    if not any(words):
        return None
    return next(
        (i for i in range(len(sentence) - len(words) + 1) if sentence[i : i + len(words)] == words),
        None,
    )


# ------------------------------------------------------------------ what is left of the sentence →
# arguments


class ArgumentSlots(NamedTuple):
    """What a sentence can fill in: names of number fields, and of one text with its `choices`.
    `duration`: a number field is one of time. `needs_number`: a number field is required.
    """

    numbers: tuple[str, ...]
    text: str
    choices: tuple[str, ...]
    duration: bool
    needs_number: bool


def slots_of(schema: Mapping[str, Json], phrase: str = "") -> ArgumentSlots:
    """Return what a sentence with this phrase can fill in of a tool's arguments."""
    properties = _properties(schema)
    required = schema.get("required") or []
    numeric = [name for name, s in properties.items() if s.get("type") in ("integer", "number")]
    texts = [name for name, s in properties.items() if s.get("type") == "string"]
    # an optional text is a label beside what is required; alone, small talk ("now", "please") would
    # end up in it, unless the phrase must be followed by something
    follows = phrase.rpartition(" ")[2].casefold() in _OPEN
    chosen = [name for name in texts if name in required] or (texts if required or follows else [])
    text = chosen[0] if len(chosen) == 1 else ""
    choices = properties[text].get("enum") if text else None
    return ArgumentSlots(
        tuple(numeric),
        text,
        tuple(c for c in choices if isinstance(c, str)) if isinstance(choices, list) else (),
        duration=any(map(unit_of, numeric)),
        needs_number=any(name in required for name in numeric),
    )


def can_be_said(schema: Mapping[str, Json]) -> bool:
    """Return whether a sentence can fill in all arguments that a tool needs."""
    slots = slots_of(schema)
    filled = {*slots.numbers, slots.text, ON_OFF}
    return filled.issuperset(schema.get("required") or ())


def _properties(schema: Mapping[str, Json]) -> dict[str, Mapping[str, Json]]:
    found = schema.get("properties") or {}
    return {name: s for name, s in found.items() if isinstance(s, Mapping)}


def arguments(tool: ToolDefinition, rest: list[str], phrase: str) -> dict[str, Json]:
    """Fill a tool's arguments: numbers into number fields, first those that the words name; the
    rest into its one text. A last "please" is kept only where the text is kept too.
    """
    slots, properties = slots_of(tool.input_schema, phrase), _properties(tool.input_schema)
    args: dict[str, Json] = {}
    if slots.numbers:
        named = {plain_word(word) for word in (*phrase.split(), *rest)}
        fields = sorted(slots.numbers, key=lambda name: name.casefold() not in named)
        rest = _take_numbers(args, fields, properties, rest)
    words = _without_lead(rest)
    if tool.read_only and len(words) > 1 and plain_word(words[-1]) == "please":
        words = _without_lead(words[:-1])
    if words and (tool.read_only or phrase.partition(" ")[0] in _ASKING):
        words = [*words[:-1], words[-1].rstrip("?")]
    if words and slots.text:
        args[slots.text] = _of_enum(properties[slots.text], " ".join(words))
    if not slots.text:
        args |= _choices(properties, words)
    return args | _named(properties, phrase) | _switch(properties, phrase.split(), rest)


def _named(properties: Mapping[str, Mapping[str, Json]], phrase: str) -> dict[str, Json]:
    """Fill what is true or false and named by the phrase: "one step back" is `back`."""
    said = {plain_word(word) for word in phrase.split()}
    flags = (name for name, schema in properties.items() if schema.get("type") == "boolean")
    return {name: True for name in flags if name != ON_OFF and name.casefold() in said}


def _switch(
    properties: Mapping[str, Mapping[str, Json]], phrase: Sequence[str], rest: Sequence[str]
) -> dict[str, Json]:
    """Fill the argument `on` of a tool that is turned on and off; "captions off" is false. The
    phrase decides before the rest: "turn on the end table". A last "off" decides before its verb:
    "show captions off".
    """
    if properties.get(ON_OFF, {}).get("type") != "boolean":
        return {}
    plain, more = set(map(plain_word, phrase)), set(map(plain_word, rest))
    last = set(map(plain_word, rest[-1:]))
    for said in (plain & _SWITCHES, last & _SWITCHES, plain, more):
        if said & (_ON | _OFF):
            return {ON_OFF: not said & _OFF}
    return {}


def _is_longer(tool: ToolDefinition, after: list[str]) -> bool:
    """Return whether a sentence names a span in days or longer where a tool counts seconds."""
    named = next((i for i, word in enumerate(after[:4]) if word in _LONGER), 0)
    return bool(named) and slots_of(tool.input_schema).duration and bool(numbers(after[:named]))


def _choices(properties: Mapping[str, Mapping[str, Json]], words: Sequence[str]) -> dict[str, Json]:
    """Fill optional arguments that have choices with the one that was said: "my reminders for
    tomorrow".
    """
    said = {plain_word(word) for word in words}
    named = {
        name: [c for c in s["enum"] if isinstance(c, str) and c.casefold() in said]
        for name, s in properties.items()
        if s.get("type") == "string" and isinstance(s.get("enum"), list)
    }
    return {name: choices[0] for name, choices in named.items() if len(choices) == 1}


def _take_numbers(
    args: dict[str, Json],
    fields: Sequence[str],
    properties: Mapping[str, Mapping[str, Json]],
    rest: list[str],
) -> list[str]:
    found = numbers(rest)
    times = [n for n in found if n.unit]
    seconds = sum(n.value * n.unit for n in times)
    timed = [name for name in fields if unit_of(name)]
    used: list[FoundNumber] = []
    if times and timed:
        _spread(args, sorted(timed, key=unit_of, reverse=True), properties, seconds)
        used += times
    bare = [n for n in found if not n.unit and rest[n.start].casefold() not in ("a", "an")]
    open_fields = [f for f in fields if f not in args and (not used or f not in timed)]
    for name, number in zip(open_fields, bare, strict=False):
        args[name] = _number(properties[name], number.value)
        used.append(number)
    gone = {i for n in used for i in range(n.start, n.end)}
    gone |= {i - 1 for i in gone if i and plain_word(rest[i - 1]) in _BEFORE_NUMBERS}
    gone |= {i + 1 for i in gone if plain_word("".join(rest[i + 1 : i + 2])) in _PERCENT}
    return [word for i, word in enumerate(rest) if i not in gone]


def _spread(
    args: dict[str, Json],
    fields: list[str],
    properties: Mapping[str, Mapping[str, Json]],
    seconds: float,
) -> None:
    """Divide a duration into hours, minutes and seconds, largest first; the last gets the rest."""
    for position, name in enumerate(fields):
        unit = unit_of(name)
        last = position == len(fields) - 1
        share = seconds / unit if last else seconds // unit
        seconds -= share * unit
        if share or (last and not any(f in args for f in fields)):
            args[name] = _number(properties[name], share)


def _number(schema: Mapping[str, Json], value: float) -> Json:
    thousandths = round(value, 3)
    if thousandths == int(thousandths):
        return int(thousandths)
    # Validation refuses 0.5 for an integer.
    return thousandths if schema.get("type") == "integer" else value


def unit_of(name: str) -> int:
    """Return the seconds of the unit that a field's name tells; 0 if it tells none."""
    plain = name.casefold()
    if "minute" in plain or plain.endswith("_min"):
        return 60
    if "hour" in plain:
        return 3600
    return 1 if "second" in plain or plain.endswith("_s") or "duration" in plain else 0


def _without_lead(words: list[str]) -> list[str]:
    if len(words) > 1 and plain_word(words[0]) in _LEADS:
        words = words[1:]
    elif len(words) == 1 and plain_word(words[0]) in _LEADS | {"please"}:
        return []
    while words and not plain_word(words[0]):
        words = words[1:]
    if words and not words[-1].isalnum():
        words = [*words[:-1], words[-1].rstrip(".!,;:")]
    return words


def _of_enum(schema: Mapping[str, Json], text: str) -> Json:
    choices = schema.get("enum")
    if not isinstance(choices, list):
        return text
    said = f" {' '.join(map(plain_word, text.split()))} "
    return next((c for c in choices if isinstance(c, str) and f" {c.casefold()} " in said), text)
