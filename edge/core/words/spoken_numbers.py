"""Numbers and durations in a sentence, in words or digits."""

import re
from typing import Final, NamedTuple

_EDGES: Final = re.compile(r"^\W+|\W+$")
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
    # German, Spanish, French, Italian: recognisers of these languages write numbers in digits
    **dict.fromkeys(
        "sekunde sekunden segundo segundos seconde secondes secondo secondi".split(), 1
    ),
    **dict.fromkeys("minuten minuto minutos minuti".split(), 60),
    **dict.fromkeys("stunde stunden hora horas heure heures ora ore".split(), 3600),
}
_DIGITS: Final = re.compile(r"(\d{1,7}|\d{1,3}(?:,\d{3})+)(\.\d{1,3})?-?([a-z]*)")
_FRACTIONS: Final = {
    ("half", "an", "hour"): (30, 60),
    ("half", "a", "minute"): (30, 1),
    ("a", "quarter", "of", "an", "hour"): (15, 60),
    ("quarter", "of", "an", "hour"): (15, 60),
    ("three", "quarters", "of", "an", "hour"): (45, 60),
    ("a", "couple", "of", "minutes"): (2, 60),
    ("a", "couple", "of", "hours"): (2, 3600),
}
"""Durations that begin with no number, or another: value, unit in seconds."""
_PARTS: Final = {"half": 0.5, "quarter": 0.25}
_SMALLER: Final = {3600: 60, 60: 1}
"""Unit → what a bare number after it counts: "one hour thirty"."""
_AFTER: Final = frozenset("please thanks thank now for to called".split())
"""Words before which such a number ends a duration; before others it may count something."""


class FoundNumber(NamedTuple):
    """A number in a sentence: words `start` to `end`, value, unit in seconds (0: none)."""

    start: int
    end: int
    value: float
    unit: int


def plain_word(word: str) -> str:
    """Return a word in small letters, without the marks around it."""
    return _EDGES.sub("", word.casefold().replace("’", "'"))


def numbers(words: list[str]) -> list[FoundNumber]:
    """Return the numbers in a sentence, in order."""
    plain = [plain_word(word) for word in words]
    found: list[FoundNumber] = []
    at = 0
    while at < len(plain):
        number = number_at(plain, at)
        if number is None:
            at += 1
        else:
            found.append(number)
            at = number.end
    return found


def number_at(plain: list[str], at: int) -> FoundNumber | None:
    """Return the number that begins at this word."""
    for words, (amount, seconds) in _FRACTIONS.items():
        if tuple(plain[at : at + len(words)]) == words:
            return FoundNumber(at, at + len(words), amount, seconds)
    value: float
    digits = _DIGITS.fullmatch(plain[at])
    if digits:
        unit = _UNITS.get(digits[3], 0)
        if digits[3] and not unit:
            return None
        value = float(digits[1].replace(",", "") + (digits[2] or ""))
        value, end = int(value) if value.is_integer() else value, at + 1
    else:
        spelled = _spelled(plain, at)
        if spelled is None:
            return None
        value, end = spelled
        unit = 0
    if not unit:
        more, after = _part(plain, end)
        if after < len(plain) and plain[after] in _UNITS:
            value += more
            unit, end = _UNITS[plain[after]], after + 1
    if unit:
        more, end = _part(plain, end)
        value += more
        more, end = _smaller(plain, end, unit)
        value += more
    return FoundNumber(at, end, value, unit)


def _smaller(plain: list[str], at: int, unit: int) -> tuple[float, int]:
    """Read the minutes of "one hour thirty", as a part of the unit, and where they end."""
    if unit not in _SMALLER or at >= len(plain) or plain[at] in ("a", "an"):
        return 0, at
    digits = plain[at].isdecimal() and len(plain[at]) <= 2
    minutes, end = (int(plain[at]), at + 1) if digits else _below_hundred(plain, at) or (60, at)
    if minutes >= 60 or (end < len(plain) and plain[end] not in _AFTER):
        return 0, at
    return minutes * _SMALLER[unit] / unit, end


def _part(plain: list[str], at: int) -> tuple[float, int]:
    """Read "and a half": the part, and where it ends."""
    if plain[at : at + 2] == ["and", "a"] and plain[at + 2 : at + 3]:
        part = _PARTS.get(plain[at + 2], 0)
        return part, at + 3 if part else at
    return 0, at


def _spelled(plain: list[str], at: int) -> tuple[float, int] | None:
    """Read a number in words: its value, and where it ends."""
    small = _below_hundred(plain, at)
    if small is None:
        return None
    value, end = small
    if value < 10 and plain[end : end + 1] == ["hundred"]:
        value, end = value * 100, end + 1
        rest = end + (plain[end : end + 1] == ["and"])
        more = _below_hundred(plain, rest)
        if more and plain[rest] not in ("a", "an"):
            value, end = value + more[0], more[1]
    if plain[end : end + 1] == ["point"] and plain[end + 1 : end + 2]:
        tenth = _ONES.get(plain[end + 1], 10)
        if tenth < 10 and plain[end + 1] not in ("a", "an"):
            return value + tenth / 10, end + 2
    return value, end


def _below_hundred(plain: list[str], at: int) -> tuple[int, int] | None:
    if at >= len(plain):
        return None
    tens, dash, ones = plain[at].partition("-")
    if dash and tens in _TENS and ones in _ONES:
        return _TENS[tens] + _ONES[ones], at + 1
    if plain[at] in _TENS:
        following = plain[at + 1] if at + 1 < len(plain) else ""
        if 0 < _ONES.get(following, 0) < 10 and following not in ("a", "an"):
            return _TENS[plain[at]] + _ONES[following], at + 2
        return _TENS[plain[at]], at + 1
    return (_ONES[plain[at]], at + 1) if plain[at] in _ONES else None
