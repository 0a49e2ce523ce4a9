"""How numbers, durations, times and days are said and written, for the grammar of sentences."""

from collections.abc import Mapping
from typing import Final

Pattern = tuple[tuple["int | str | Pattern", ...], ...]
"""Alternatives of sequences. A number: so many digits at most; a text: one of its words, parted by
`|`, nothing among them if there is an empty one; a pattern: one of its alternatives.
"""

ONES: Final = "one two three four five six seven eight nine".split()
TEENS: Final = (
    "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
)
TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety".split()
WEEKDAYS: Final = "monday tuesday wednesday thursday friday saturday sunday".split()
MONTHS: Final = (
    "january february march april may june july august september october november december".split()
)
ORDINALS: Final = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth"
    " fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth".split()
)

_ones: Final = "|".join(ONES)
_tens: Final = "|".join(TENS)
_small: Final = "|".join(["zero", *ONES, *TEENS, *TENS])
_below_hundred: Final[Pattern] = ((_small,), (_tens, _ones))
_number: Final[Pattern] = (
    (6,),
    *_below_hundred,
    (f"a|{_ones}", "hundred"),
    (f"a|{_ones}", "hundred", "and|", _below_hundred),
    (_below_hundred, "point", f"zero|{_ones}"),
)
_unit: Final = "second|seconds|minute|minutes|hour|hours|sec|secs|min|mins"
_small_unit: Final = "second|seconds|minute|minutes"
_amount: Final[Pattern] = ((_number, _unit), ("an hour|a minute|a second",))
_duration: Final[Pattern] = (
    (_amount,),
    (_amount, "and|", _number, _small_unit),
    (_amount, "and|", _number, _small_unit, "and|", _number, _small_unit),
    (_amount, "and", "a", "half|quarter"),
    (_number, "and", "a", "half|quarter", _unit),
    ("half an hour|half a minute",),
    ("a quarter|quarter|three quarters", "of an", "hour"),
    ("a couple of", "minutes|hours"),
)
_hour: Final = "|".join([*ONES, *TEENS[:3]])
_minutes: Final[Pattern] = ((2,), *_below_hundred, ("oh|o", _ones))
_clock: Final[Pattern] = (
    (4,),
    (2, "oclock|hundred|"),
    (_hour, "oclock|"),
    (_hour, _minutes),
    (2, 2),
    ("half|quarter|a quarter", "past", _hour),
    ("half|quarter|a quarter", "past", 2),
    ("quarter|a quarter", "to", _hour),
    ("quarter|a quarter", "to", 2),
    (_minutes, "minutes|", "past|to", _hour),
    (_minutes, "minutes|", "past|to", 2),
)
_time: Final[Pattern] = (
    (_clock, "|am|pm|a m|p m|in the morning|in the afternoon|in the evening|at night"),
    ("noon|midnight|midday",),
)
_weekday: Final = "|".join(WEEKDAYS)
_month: Final = "|".join(MONTHS)
_date: Final = "|".join([*ORDINALS, "thirtieth"])
_of_month: Final[Pattern] = (
    (_date,),
    ("twenty", "|".join(ORDINALS[:9])),
    ("thirty", "first"),
    ("|".join(f"{day}{end}" for day in range(1, 32) for end in ("", "st", "nd", "rd", "th")),),
)
_day: Final[Pattern] = (
    ("today|tonight|tomorrow|to morrow|yesterday|the day after tomorrow",),
    ("tomorrow|to morrow|this", "morning|afternoon|evening|night"),
    ("|on|next|this|last", _weekday),
    ("|on|next|this|last", _weekday, "morning|afternoon|evening|night"),
    ("next|this", "week|month"),
    ("|on", "the", _of_month),
    ("|on", "the", _of_month, "of", _month),
    ("|on", _month, "|the", _of_month),
)
VALUES: Final[Mapping[str, Pattern]] = {
    "number": _number,
    "duration": _duration,
    "time": _time,
    "day": _day,
}
"""Name in an expected sentence → how it may be said."""
