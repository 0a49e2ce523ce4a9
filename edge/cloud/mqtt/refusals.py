"""What the broker refuses to take now, as one alarm with its next action."""

from collections.abc import Callable
from typing import Final

from edge.cloud.mqtt.connection_types import PublishRefused

TOO_LARGE: Final = 0x95
FINAL: Final = frozenset({0x90, TOO_LARGE, 0x99})
"""Codes that no repetition changes: topic name invalid, packet too large, payload invalid."""
_FIXES: Final = {
    0x87: "Let this edge publish to {topic} in the broker's access list",
    TOO_LARGE: "Raise the broker's maximum packet size, or offer fewer tools",
    0x97: "Raise this edge's quota at the broker",
}


class Refusals:
    """`alarm` gets a text while anything is refused, then "".

    A key is a row of the outbox, or the kind of a message that is not in it.
    """

    def __init__(self, alarm: Callable[[str], None]) -> None:
        self._alarm = alarm
        self._now: set[int | str] = set()

    def note(self, key: int | str, error: PublishRefused) -> None:
        self._now.add(key)
        fix = _FIXES.get(error.code, "See the broker's log").format(topic=error.topic)
        self._alarm(
            f"The broker does not take what this edge sends: {error}. {fix}; "
            "calls are kept and tried again meanwhile."
        )

    def known(self, key: int | str) -> bool:
        """Is it refused already?"""
        return key in self._now

    def over(self, key: int | str) -> None:
        """It went through, or nobody wants it to any more."""
        self._forget({key})

    def disconnected(self) -> None:
        """Forget what is not kept in the outbox: the next connection tells what is refused then."""
        self._forget({key for key in self._now if isinstance(key, str)})

    def _forget(self, keys: set[int | str]) -> None:
        if keys & self._now:
            self._now -= keys
            if not self._now:
                self._alarm("")
