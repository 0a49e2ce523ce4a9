"""How a verb that runs on tells where it can be reached: one JSON line for programs, a few
words for people.
"""

from collections.abc import Callable, Mapping
from typing import Any

from edge.verbs.screen import Screen, plain


def announcer(screen: Screen, what: str) -> Callable[[Mapping[str, Any]], None]:
    """Make the function a simulator or a cloud calls when it is up."""

    def announce(facts: Mapping[str, Any]) -> None:
        if screen.as_json:
            screen.json(dict(facts), lines=True)
        else:
            told = ", ".join(
                f"{key} {plain(value)}"
                for key, value in facts.items()
                if key != "event" and value not in (None, "")
            )
            screen.line(f"{what} is up: {told} (Ctrl-C ends it)")
            screen.flush()

    return announce
