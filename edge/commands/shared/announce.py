"""Announces where a long-running verb can be reached: one JSON line for programs, a short line
for people.
"""

from collections.abc import Callable, Mapping
from typing import Any

from edge.commands.shared.console import Screen, plain


def announcer(screen: Screen, what: str) -> Callable[[Mapping[str, Any]], None]:
    """Return the function that a simulator or a cloud calls when it is up."""

    def announce(facts: Mapping[str, Any]) -> None:
        if screen.as_json:
            screen.json(dict(facts), lines=True)
        else:
            where = ", ".join(
                f"{key} {plain(value)}"
                for key, value in facts.items()
                if key != "event" and value not in (None, "")
            )
            screen.line(f"{what} is up: {where} (Ctrl-C ends it)")
            screen.flush()

    return announce
