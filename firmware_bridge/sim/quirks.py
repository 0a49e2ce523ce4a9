"""Firmware variants of simulated glasses: where sources conflict, the simulator can be either.

A family's `quirks.py` has `QUIRKS`: name → value → what it means; the first value is the default.
"""

from collections.abc import Mapping, Sequence
from typing import Any


class QuirkError(ValueError):
    """An unknown quirk or value; the message lists the known ones."""


def choose(quirks: Mapping[str, Mapping[str, Any]], words: Sequence[str]) -> dict[str, str]:
    """Parse `NAME=VALUE` words; return a value for every quirk. Raises `QuirkError`."""
    chosen = {name: next(iter(values)) for name, values in quirks.items()}
    for word in words:
        name, equals, value = word.partition("=")
        if name not in quirks or not equals:
            raise QuirkError(f"{word!r} is not a quirk; known, with their values: {usage(quirks)}")
        if value not in quirks[name]:
            raise QuirkError(f"{name} is {value!r}; {', '.join(quirks[name])} are known")
        chosen[name] = value
    return chosen


def usage(quirks: Mapping[str, Mapping[str, Any]]) -> str:
    """Return every quirk with its values, the default first."""
    return " · ".join(f"{name}={'|'.join(values)}" for name, values in quirks.items())
