"""Rests between attempts to listen, after failures."""

from typing import Final

REST_S: Final = (5.0, 30.0, 300.0)
"""After one failure, two, and more."""


class Rest:
    """Seconds are on the clock of the arguments."""

    def __init__(self) -> None:
        self._failures = 0
        self.until = float("-inf")

    def failed(self, now: float) -> None:
        """Rest, longer after each failure."""
        self.until = now + REST_S[min(self._failures, len(REST_S) - 1)]
        self._failures += 1

    def succeeded(self) -> None:
        """The next failure counts as the first."""
        self._failures = 0

    def end(self) -> None:
        """Something has changed: try at once."""
        self._failures, self.until = 0, float("-inf")
