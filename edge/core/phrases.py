"""Finds the tool and the arguments of a spoken sentence, by activation phrases, without a model."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from edge.core.tools.snapshot import Entry
from tools_cache.api.tool import Json, ToolDefinition

MAX_WORDS: Final = 120
"""Words of one sentence that are read."""
_WORD: Final = re.compile(r"[^\s]+")
_EDGES: Final = re.compile(r"^\W+|\W+$")
_LEADS: Final = frozenset({"to", "that", "for", "about", "saying", "of", "called", "named"})
_ONES: Final = {
    **dict(
        zip(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
            " fifteen sixteen seventeen eighteen nineteen".split(),
            range(20),
            strict=True,
        )
    ),
    "a": 1,
    "an": 1,
}
_TENS: Final = {
    word: 10 * number
    for number, word in enumerate(
        "twenty thirty forty fifty sixty seventy eighty ninety".split(), 2
    )
}
_UNITS: Final = {
    **dict.fromkeys("second seconds sec secs s".split(), 1),
    **dict.fromkeys("minute minutes min mins m".split(), 60),
    **dict.fromkeys("hour hours h".split(), 3600),
}
_DIGITS: Final = re.compile(r"(\d{1,7})([a-z]*)")


class Match(NamedTuple):
    """The tool a sentence means, the matching phrase, and the arguments in the rest."""

    tool: ToolDefinition
    phrase: str
    args: dict[str, Json]


class _FoundPhrase(NamedTuple):
    """A number in a sentence: words `start` to `end`, value, unit in seconds (0: none)."""

    start: int
    end: int
    value: float
    unit: int


def match(sentence: str, tools: Iterable[ToolDefinition], language: str = "") -> Match | None:
    """Find the tool with the longest phrase in the sentence; of equals the earliest, then by name.

    Beside a tool's phrases, those for `language` (`de-AT`) and for the language alone (`de`) count.
    """
    spoken = _WORD.findall(sentence)[:MAX_WORDS]
    plain = [_plain(word) for word in spoken]
    best: tuple[int, int] | None = None
    chosen: tuple[ToolDefinition, str, int] | None = None
    for tool in tools:
        for phrase in _phrases(tool, language):
            words = [_plain(word) for word in _WORD.findall(phrase)]
            at = _position(words, plain)
            if at is not None and (best is None or (len(words), -at) > best):
                best, chosen = (len(words), -at), (tool, phrase, at + len(words))
    if chosen is None:
        return None
    tool, phrase, end = chosen
    return Match(tool, phrase, arguments(tool.input_schema, spoken[end:]))


def find_tool(
    sentence: str, entries: Iterable[Entry], language: str, why_not: Callable[[ToolDefinition], str]
) -> Match | None:
    """Find the tool a sentence means; tools that can be called now come first."""
    entries = tuple(entries)
    there = [e.definition for e in entries if not (e.hidden or e.missing or why_not(e.definition))]
    return match(sentence, there, language) or match(
        sentence, [e.definition for e in entries], language
    )


def _phrases(tool: ToolDefinition, language: str) -> Iterable[str]:
    if not tool.local_phrases or not language:
        return tool.activation_phrases
    local = (
        tool.local_phrases.get(said, ())
        for said in dict.fromkeys((language, language.partition("-")[0]))
    )
    return (*(phrase for more in local for phrase in more), *tool.activation_phrases)


def _plain(word: str) -> str:
    return _EDGES.sub("", word.casefold().replace("’", "'"))


def _position(words: list[str], sentence: list[str]) -> int | None:
    if not any(words):
        return None
    return next(
        (i for i in range(len(sentence) - len(words) + 1) if sentence[i : i + len(words)] == words),
        None,
    )


# ------------------------------------------------------------------ what is left of the sentence →
# arguments


def arguments(schema: Mapping[str, Json], rest: list[str]) -> dict[str, Json]:
    """Fill a tool's arguments: numbers into number fields, the rest into its one text."""
    properties = {
        name: s for name, s in (schema.get("properties") or {}).items() if isinstance(s, Mapping)
    }
    required = schema.get("required") or []
    numeric = [name for name, s in properties.items() if s.get("type") in ("integer", "number")]
    texts = [name for name, s in properties.items() if s.get("type") == "string"]
    args: dict[str, Json] = {}
    if numeric:
        rest = _take_numbers(args, numeric, properties, rest)
    words = _without_lead(rest)
    # an optional text is a label beside what is required; alone, small talk ("now", "please") would
    # end up in it
    chosen = [name for name in texts if name in required] or (texts if required else [])
    if words and len(chosen) == 1:
        args[chosen[0]] = _of_enum(properties[chosen[0]], " ".join(words))
    return args


def _take_numbers(
    args: dict[str, Json],
    fields: list[str],
    properties: Mapping[str, Mapping[str, Json]],
    rest: list[str],
) -> list[str]:
    found = _numbers(rest)
    times = [n for n in found if n.unit]
    seconds = sum(n.value * n.unit for n in times)
    timed = [name for name in fields if _unit_of(name)]
    used: list[_FoundPhrase] = []
    if times and timed:
        _spread(args, sorted(timed, key=_unit_of, reverse=True), properties, seconds)
        used += times
    bare = [n for n in found if not n.unit and rest[n.start].casefold() not in ("a", "an")]
    for name, number in zip(
        [f for f in fields if f not in args and (not used or f not in timed)], bare, strict=False
    ):
        args[name] = _number(properties[name], number.value)
        used.append(number)
    gone = {i for n in used for i in range(n.start, n.end)}
    gone |= {
        i - 1 for i in gone if i and _plain(rest[i - 1]) in ("for", "in", "of", "and", "number")
    }
    return [word for i, word in enumerate(rest) if i not in gone]


def _spread(
    args: dict[str, Json],
    fields: list[str],
    properties: Mapping[str, Mapping[str, Json]],
    seconds: float,
) -> None:
    """Divide a duration into hours, minutes and seconds, largest first; the last gets the rest."""
    for position, name in enumerate(fields):
        unit = _unit_of(name)
        last = position == len(fields) - 1
        share = seconds / unit if last else seconds // unit
        seconds -= share * unit
        if share or (last and not any(f in args for f in fields)):
            args[name] = _number(properties[name], share)


def _number(schema: Mapping[str, Json], value: float) -> Json:
    if value == int(value):
        return int(value)
    # Validation refuses 0.5 for an integer.
    return round(value, 3) if schema.get("type") == "integer" else value


def _unit_of(name: str) -> int:
    plain = name.casefold()
    if "minute" in plain or plain.endswith("_min"):
        return 60
    if "hour" in plain:
        return 3600
    return 1 if "second" in plain or plain.endswith("_s") or "duration" in plain else 0


def _numbers(words: list[str]) -> list[_FoundPhrase]:
    plain = [_plain(word) for word in words]
    found: list[_FoundPhrase] = []
    at = 0
    while at < len(plain):
        number = _number_at(plain, at)
        if number is None:
            at += 1
        else:
            found.append(number)
            at = number.end
    return found


def _number_at(plain: list[str], at: int) -> _FoundPhrase | None:
    if plain[at] == "half" and plain[at + 1 : at + 3] == ["an", "hour"]:
        return _FoundPhrase(at, at + 3, 30, 60)
    digits = _DIGITS.fullmatch(plain[at])
    if digits:
        value, end, unit = int(digits[1]), at + 1, _UNITS.get(digits[2], 0)
        if digits[2] and not unit:
            return None
    else:
        spelled = _spelled(plain, at)
        if spelled is None:
            return None
        value, end = spelled
        unit = 0
    if not unit and end < len(plain) and plain[end] in _UNITS:
        unit, end = _UNITS[plain[end]], end + 1
    if unit and plain[end : end + 3] == ["and", "a", "half"]:
        return _FoundPhrase(at, end + 3, value + 0.5, unit)
    return _FoundPhrase(at, end, value, unit)


def _spelled(plain: list[str], at: int) -> tuple[int, int] | None:
    tens, dash, ones = plain[at].partition("-")
    if dash and tens in _TENS and ones in _ONES:
        return _TENS[tens] + _ONES[ones], at + 1
    if plain[at] in _TENS:
        following = plain[at + 1] if at + 1 < len(plain) else ""
        if 0 < _ONES.get(following, 0) < 10 and following not in ("a", "an"):
            return _TENS[plain[at]] + _ONES[following], at + 2
        return _TENS[plain[at]], at + 1
    return (_ONES[plain[at]], at + 1) if plain[at] in _ONES else None


def _without_lead(words: list[str]) -> list[str]:
    if len(words) > 1 and _plain(words[0]) in _LEADS:
        words = words[1:]
    elif len(words) == 1 and _plain(words[0]) in _LEADS | {"please"}:
        return []
    while words and not _plain(words[0]):
        words = words[1:]
    if words and not words[-1].isalnum():
        words = [*words[:-1], words[-1].rstrip(".!,;:")]
    return words


def _of_enum(schema: Mapping[str, Json], text: str) -> Json:
    choices = schema.get("enum")
    if not isinstance(choices, list):
        return text
    said = f" {' '.join(map(_plain, text.split()))} "
    return next((c for c in choices if isinstance(c, str) and f" {c.casefold()} " in said), text)
