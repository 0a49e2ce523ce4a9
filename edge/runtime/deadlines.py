"""Operations that must finish by a deadline; the watchdog is fed only while none is overdue.

Nothing is ended here: each wait has a shorter timeout of its own, and this notices one that did not
work. Waiting for events has no deadline: glasses or brokers may be away for days.
"""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self


class Deadline:
    """One operation's deadline, a context. `again` begins its next step, `done` ends it early."""

    __slots__ = ("_at", "_now", "_open", "what")

    def __init__(
        self, open_: "dict[int, Deadline]", now: Callable[[], float], seconds: float, what: str
    ) -> None:
        self._open = open_
        self._now = now
        self.again(seconds, what)

    def again(self, seconds: float, what: str) -> None:
        self.what = what
        self._at = self._now() + seconds
        self._open[id(self)] = self

    def done(self) -> None:
        self._open.pop(id(self), None)

    @property
    def late_s(self) -> float:
        return self._now() - self._at

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.done()


class Deadlines:
    """All open deadlines. `now` is CLOCK_MONOTONIC, so suspended time makes nothing late."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._open: dict[int, Deadline] = {}

    def within(self, seconds: float, what: str) -> Deadline:
        """Open a deadline for what follows: it ends within `seconds`, with or without success."""
        return Deadline(self._open, self._now, seconds, what)

    def overdue(self) -> list[str]:
        """Return what should have ended long ago, the latest first; empty while all is well."""
        late = sorted((b for b in self._open.values() if b.late_s > 0), key=lambda b: -b.late_s)
        return [f"{b.what} ({b.late_s:.0f} s late)" for b in late]


Within = Callable[[float, str], Deadline]
"""How a service opens a deadline: `within(seconds, what)`."""


def unwatched(seconds: float, what: str) -> Deadline:
    """Stand in where nobody feeds a watchdog: a deadline that nobody looks at."""
    return Deadline({}, time.monotonic, seconds, what)
