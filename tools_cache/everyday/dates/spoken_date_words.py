"""The words in which English and German name moments, and the patterns they stand in.

A pattern is a regular expression in which `{num}`, `{ord}`, `{unit}`, `{weekday}`, `{month}` and
`{part}` stand for the words of the language, `{clock}` for an hour with its minutes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class DateWords:
    """The words of a language; numbers and names by their lower-case form."""

    numbers: Mapping[str, int]
    ordinals: Mapping[str, int]
    units: Mapping[str, timedelta | int]
    """Unit → its length, or its months."""
    weekdays: Mapping[str, int]
    months: Mapping[str, int]
    parts_of_day: Mapping[str, str]
    patterns: Sequence[tuple[str, str]]
    """(name of a meaning, pattern)."""


def _count(
    ones: Sequence[str], tens: Mapping[str, int], joined: Callable[[str, str], str]
) -> dict[str, int]:
    """Return the number words from 0 to 59."""
    numbers = {word: value for value, word in enumerate(ones)}
    for ten, value in tens.items():
        numbers[ten] = value
        for one in range(1, 10):
            numbers[joined(ten, ones[one])] = value + one
    return numbers


_EN_NUMBERS: Final = {
    **_count(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen".split(),
        {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50},
        lambda ten, one: f"{ten} {one}",
    ),
    "a": 1,
    "an": 1,
    "a couple of": 2,
}
_EN_ORDINALS: Final = {
    word: number
    for number, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
        "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth "
        "twenty-first twenty-second twenty-third twenty-fourth twenty-fifth twenty-sixth "
        "twenty-seventh twenty-eighth twenty-ninth thirtieth thirty-first".split(),
        1,
    )
}
_DE_NUMBERS: Final = {
    **_count(
        "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn "
        "fünfzehn sechzehn siebzehn achtzehn neunzehn".split(),
        {"zwanzig": 20, "dreißig": 30, "vierzig": 40, "fünfzig": 50},
        lambda ten, one: f"{'ein' if one == 'eins' else one}und{ten}",
    ),
    **dict.fromkeys(("ein", "eine", "einem", "einer", "einen"), 1),
}
_DE_ORDINALS: Final = {
    f"{stem}{ending}": number
    for number, stem in enumerate(
        "erst zweit dritt viert fünft sechst siebt acht neunt zehnt elft zwölft dreizehnt "
        "vierzehnt fünfzehnt sechzehnt siebzehnt achtzehnt neunzehnt zwanzigst einundzwanzigst "
        "zweiundzwanzigst dreiundzwanzigst vierundzwanzigst fünfundzwanzigst sechsundzwanzigst "
        "siebenundzwanzigst achtundzwanzigst neunundzwanzigst dreißigst "
        "einunddreißigst".split(),
        1,
    )
    for ending in ("e", "en", "er")
}


def _units(names: Mapping[str, timedelta | int]) -> dict[str, timedelta | int]:
    return {word: length for words, length in names.items() for word in words.split()}


_YEAR: Final = r"(?: (?P<y>20\d\d))?"
_NUMERIC: Final = r"(?:on |am |den )?(?P<o>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>\d{4}|\d\d)?"
_ISO: Final = r"(?:on |am )?(?P<iso>\d{4}-\d\d-\d\d)"

_EN_AROUND: Final = (
    r"(?:at )?(?:a )?(?P<n>quarter|half|{num})(?: minutes)? (?P<dir>past|after|to|before) "
    r"(?P<hour>{num})(?: o'?clock)?"
)

ENGLISH: Final = DateWords(
    numbers=_EN_NUMBERS,
    ordinals={**_EN_ORDINALS, **{k.replace("-", " "): v for k, v in _EN_ORDINALS.items()}},
    units=_units(
        {
            "seconds second": timedelta(seconds=1),
            "minutes minute mins min": timedelta(minutes=1),
            "hours hour": timedelta(hours=1),
            "days day": timedelta(days=1),
            "weeks week": timedelta(days=7),
            "months month": 1,
            "years year": 12,
        }
    ),
    weekdays={
        form: number
        for number, word in enumerate(
            "monday tuesday wednesday thursday friday saturday sunday".split()
        )
        for form in (word, f"{word}s")
    },
    months={
        form: number
        for number, word in enumerate(
            "january february march april may june july august september october november "
            "december".split(),
            1,
        )
        for form in (word, word[:3])
    },
    parts_of_day={
        "morning": "morning",
        "afternoon": "afternoon",
        "evening": "evening",
        "night": "night",
    },
    patterns=(
        ("span", r"in (?P<n>{num}) (?P<u>{unit})(?: and (?P<n2>{num}) (?P<u2>{unit}))?"),
        ("span", r"in (?P<n>{num}) (?P<u>{unit}) (?P<half>and a half)"),
        ("span", r"in (?P<n>{num}) (?P<half>and a half) (?P<u>{unit})"),
        ("span", r"(?P<n>{num}) (?P<u>{unit}) from now"),
        ("half an hour", r"in (?:half an hour|a half hour)"),
        ("quarter of an hour", r"in (?:a quarter of an hour|a quarter hour|quarter of an hour)"),
        ("three quarters", r"in three quarters of an hour"),
        ("today", "today"),
        ("tomorrow", "tomorrow"),
        ("day after tomorrow", "(?:the )?day after tomorrow"),
        ("next week", "next week"),
        ("next month", "next month"),
        ("next year", "next year"),
        ("weekday", r"(?:on )?(?:(?P<next>next)|this|coming|the coming)? ?(?P<d>{weekday})"),
        ("month day", rf"(?:on )?(?:the )?(?P<o>{{ord}}) (?:of )?(?P<m>{{month}}){_YEAR}"),
        ("month day", rf"(?:on )?(?P<m>{{month}}) (?:the )?(?P<o>{{ord}}){_YEAR}"),
        ("numeric day", _NUMERIC),
        ("iso day", _ISO),
        ("clock", r"(?:at |by )?{clock} ?(?P<half>am|pm)"),
        ("clock", r"(?:at |by ){clock}(?P<whole> hours| hundred)?(?: o'?clock)?"),
        ("clock", r"(?P<hour>{num}) o'?clock"),
        ("clock", r"(?P<hour>\d{1,2}):(?P<min>\d\d)"),
        ("around", _EN_AROUND),
        ("noon", "(?:at )?(?:noon|midday)"),
        ("midnight", "(?:at )?midnight"),
        ("part of day", r"(?:in the |at )?(?P<p>{part})"),
        ("part of today", r"this (?P<p>{part})"),
        ("tonight", "tonight"),
        ("every", r"every (?:(?P<other>other) |(?P<n>{num}) )?(?P<u>{unit})"),
        ("daily", "daily"),
        ("every weekday", r"(?:every|on every) (?P<days>{weekday}(?:(?: and)? {weekday})*)"),
        ("every weekday", r"on (?P<days>(?:mon|tues|wednes|thurs|fri|satur|sun)days)"),
        ("every part", r"every (?P<p>{part})"),
        ("workdays", "(?:every weekday|on weekdays|every workday|every working day)"),
    ),
)
GERMAN: Final = DateWords(
    numbers=_DE_NUMBERS,
    ordinals=_DE_ORDINALS,
    units=_units(
        {
            "sekunden sekunde": timedelta(seconds=1),
            "minuten minute": timedelta(minutes=1),
            "stunden stunde": timedelta(hours=1),
            "tagen tage tag": timedelta(days=1),
            "wochen woche": timedelta(days=7),
            "monaten monate monat": 1,
            "jahren jahre jahr": 12,
        }
    ),
    weekdays={
        form: number
        for number, names in enumerate(
            (
                "montag",
                "dienstag",
                "mittwoch",
                "donnerstag",
                "freitag",
                "samstag sonnabend",
                "sonntag",
            )
        )
        for word in names.split()
        for form in (word, f"{word}s")
    },
    months={
        form: number
        for number, word in enumerate(
            "januar februar märz april mai juni juli august september oktober november "
            "dezember".split(),
            1,
        )
        for form in (word, {"januar": "jänner"}.get(word, word))
    },
    parts_of_day={
        "früh": "morning",
        "morgen": "morning",
        "morgens": "morning",
        "vormittag": "morning",
        "vormittags": "morning",
        "mittag": "noon",
        "mittags": "noon",
        "nachmittag": "afternoon",
        "nachmittags": "afternoon",
        "abend": "evening",
        "abends": "evening",
        "nacht": "night",
        "nachts": "night",
    },
    patterns=(
        ("span", r"in (?P<n>{num}) (?P<u>{unit})(?: und (?P<n2>{num}) (?P<u2>{unit}))?"),
        ("half an hour", r"in einer halben stunde"),
        ("quarter of an hour", r"in einer viertelstunde"),
        ("three quarters", r"in einer dreiviertelstunde"),
        ("today", "heute"),
        ("tomorrow", "morgen"),
        ("day after tomorrow", "übermorgen"),
        ("next week", "nächste woche"),
        ("next month", "nächsten monat"),
        ("next year", "nächstes jahr"),
        ("weekday", r"(?:am )?(?:(?P<next>nächsten|nächster)|diesen|kommenden)? ?(?P<d>{weekday})"),
        ("month day", rf"(?:am |den )?(?P<o>{{ord}}) (?P<m>{{month}}){_YEAR}"),
        ("numeric day", _NUMERIC),
        ("iso day", _ISO),
        ("clock", r"(?:um |gegen )?(?P<hour>{num})(?P<whole> uhr)(?: (?P<min>{num}))?"),
        ("clock", r"(?:um |gegen )(?P<hour>{num})(?:[:.](?P<min>\d\d))?(?P<whole> uhr)?"),
        ("clock", r"(?P<hour>\d{1,2}):(?P<min>\d\d)(?P<whole> uhr)?"),
        ("around", r"(?:um )?(?P<n>viertel|{num})(?: minuten)? (?P<dir>nach|vor) (?P<hour>{num})"),
        ("half to", r"(?:um )?halb (?P<hour>{num})"),
        ("quarter to", r"(?:um )?dreiviertel (?P<hour>{num})"),
        ("midnight", "(?:um )?mitternacht"),
        ("part of day", r"(?:am )?(?P<p>{part})"),
        ("part of today", r"heute (?P<p>{part})"),
        ("every", r"(?:alle|jede|jeden|jedes) (?:(?P<n>{num}) )?(?P<u>{unit})"),
        ("daily", "täglich"),
        ("every weekday", r"(?:jeden|jeden einzelnen) (?P<days>{weekday}(?:(?: und)? {weekday})*)"),
        ("every part", r"jeden (?P<p>{part})"),
        ("workdays", "(?:werktags|jeden werktag|an werktagen)"),
    ),
)
