"""Makes `edge/config/locale_forms.txt` from Unicode's CLDR, as Babel has it:
`python -m tests.locale_forms`. Run it after an update of Babel; a test compares the two.
"""

import json
import re
from pathlib import Path

from babel import Locale, UnknownLocaleError, localedata

FILE = Path(__file__).parents[1] / "edge" / "config" / "locale_forms.txt"
FIELDS = set("E d dd M MM MMM y H HH h hh K KK mm a".split())


def made() -> str:
    """The whole file: a line for each language, and for each region that differs from it."""
    forms = {}
    for name in sorted(localedata.locale_identifiers()):
        locale = Locale.parse(name)
        if locale.variant or not usual(locale):
            continue
        short = "-".join(filter(None, (locale.language, locale.territory)))
        if found := entry(locale):
            forms[short] = found
    lines = [
        f"{name}\t{json.dumps(found, ensure_ascii=False, separators=(',', ':'))}"
        for name, found in sorted(forms.items())
        if "-" not in name or found != forms.get(name.partition("-")[0])
    ]
    return "\n".join(lines) + "\n"


def usual(locale: Locale) -> bool:
    """Whether this is the script in which the language is written there unless said otherwise."""
    if not locale.script:
        return True
    try:
        return Locale.parse("_".join(filter(None, (locale.language, locale.territory)))) == locale
    except (UnknownLocaleError, ValueError):
        return False


def entry(locale: Locale):
    days, months = (
        named(names, numbers, locale.language)
        for names, numbers in ((locale.days, range(7)), (locale.months, range(1, 13)))
    )
    skeletons, marks = locale.datetime_skeletons, locale.number_symbols.get("latn", {})
    periods = locale.day_periods["format"]
    halves = periods.get("abbreviated") or periods.get("wide") or {}
    if not {"MMMEd", "yMMMEd"} <= set(skeletons) or not marks.get("decimal"):
        return None
    patterns = [
        plain(pattern)
        for pattern in (
            skeletons["MMMEd"].pattern,
            skeletons["yMMMEd"].pattern,
            locale.time_formats["short"].pattern,
        )
    ]
    if not all(map(known, patterns)):
        return None
    sizes = [len(part) for part in locale.decimal_formats[None].pattern.split(".")[0].split(",")]
    last = sizes[-1]
    before = sizes[-2] if len(sizes) > 2 else last
    joined = str(locale.datetime_formats["medium"]).replace("'", "")
    mark, group = (clean(marks[key]) for key in ("decimal", "group"))
    named_halves = [clean(str(halves.get(half, half))) for half in ("am", "pm")]
    return [days, months, *patterns, clean(joined), named_halves, mark, group, [last, before]]


def named(names, numbers, locale):
    """Short names; a language without ones of its own is given the long ones."""
    root = Locale("root")
    short, wide = names["format"]["abbreviated"], names["format"]["wide"]
    theirs = [short[n] for n in numbers]
    foreign = theirs in (
        [root.days["format"]["abbreviated"].get(n) for n in numbers],
        [root.months["format"]["abbreviated"].get(n) for n in numbers],
    )
    return [clean(wide[n] if foreign and locale != "en" else short[n]) for n in numbers]


def plain(pattern: str) -> str:
    """Weekdays and months have one length here, years all their digits."""
    pattern = re.sub(r"E+|c+", "E", pattern.replace("L", "M"))
    return clean(re.sub(r"MMM+", "MMM", re.sub(r"y+", "y", pattern)))


def known(pattern: str) -> bool:
    letters = re.sub(r"'[^']*'", "", pattern)
    return {found[0] for found in re.finditer(r"([A-Za-z])\1*", letters)} <= FIELDS


def clean(text: str) -> str:
    """Without marks of direction; every kind of space is the plain one."""
    return re.sub(r"[\u200e\u200f\u061c]", "", re.sub(r"\s", " ", text))


if __name__ == "__main__":
    FILE.write_text(made(), encoding="utf-8")
