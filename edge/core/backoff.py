"""Delays between attempts: full jitter for reconnects, a little jitter for resends.

`Backoff.after` counts the failures itself; the link to the glasses uses `Backoff.nth`, because
`recovery.py` counts them by kind. Full jitter keeps a thousand edges from reconnecting in the same
second. Time and random numbers are arguments.
"""

from collections.abc import Callable
from typing import Final

Chance = Callable[[], float]
"""A number in [0, 1)."""
RESEND_CAP_S: Final = 60.0


class Backoff:
    """Delays between connection attempts: a random part of a ceiling, doubled from `first_s` to
    `most_s`.

    The ceiling falls back only after a link that was up for `stable_s`: one that is closed right
    after its CONNACK (client id in use, ACL) must not reconnect in a storm.
    """

    def __init__(
        self, chance: Chance, *, first_s: float = 0.5, most_s: float = 60.0, stable_s: float = 60.0
    ) -> None:
        self._chance = chance
        self._first_s = first_s
        self._most_s = most_s
        self._stable_s = stable_s
        self._failures = 0

    def after(self, up_s: float, *, at_least_s: float = 0.0) -> float:
        """Return the delay after an attempt that was connected for `up_s` seconds (0: never)."""
        if up_s >= self._stable_s:
            self._failures = 0
        # 2**40 is beyond any ceiling; the bound only keeps the power from growing for years.
        ceiling = min(self._most_s, self._first_s * 2.0 ** min(self._failures, 40))
        self._failures += 1
        return max(at_least_s, ceiling * self._chance())

    def nth(self, failure: int, *, at_least_s: float = 0.0) -> float:
        """Return the delay after failure number `failure` (from 1), counted by the caller."""
        ceiling = min(self._most_s, self._first_s * 2.0 ** min(max(failure, 1) - 1, 40))
        return max(at_least_s, ceiling * self._chance())


def resend_after(attempt: int, chance: Chance, *, first_s: float = 1.0) -> float:
    """Return how long attempt number `attempt` (from 1) may stay unanswered before the next one:
    1, 2, 4 … s, ± 20 %.
    """
    base = min(RESEND_CAP_S, first_s * 2.0 ** min(max(attempt, 1) - 1, 30))
    return base * (0.8 + 0.4 * chance())
