"""Durations for people: `90` seconds are "1 min 30 s"."""

from typing import Final

TIME_IS_UP: Final = "Time's up: "
"""Begins what a timer says when it is over."""


def spoken(seconds: float) -> str:
    """Return a duration in hours, minutes and seconds, without parts that are zero."""
    whole = max(0, round(seconds))
    parts = ((whole // 3600, "h"), (whole % 3600 // 60, "min"), (whole % 60, "s"))
    return " ".join(f"{value} {unit}" for value, unit in parts if value) or "0 s"


_AGES: Final = ((86_400, "day", "day"), (3600, "hour", "h"), (60, "minute", "min"))


def ago(seconds: float, *, short: bool = False) -> str:
    """Return how long ago something was: "20 minutes ago", short "20 min ago"."""
    for size, word, brief in _AGES:
        if seconds >= size:
            count = int(seconds // size)
            plural = "s" * (count > 1 and (not short or word == "day"))
            return f"{count} {brief if short else word}{plural} ago"
    return "just now"
