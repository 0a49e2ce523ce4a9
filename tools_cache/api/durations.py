"""Durations for people: `90` seconds are "1 min 30 s"."""

from typing import Final

TIME_IS_UP: Final = "Time's up: "
"""Begins what a timer says when it is over."""


def spoken(seconds: float) -> str:
    """Return a duration in hours, minutes and seconds, without parts that are zero."""
    whole = max(0, round(seconds))
    parts = ((whole // 3600, "h"), (whole % 3600 // 60, "min"), (whole % 60, "s"))
    return " ".join(f"{value} {unit}" for value, unit in parts if value) or "0 s"
