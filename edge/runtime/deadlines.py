"""The vigil: what must end, and by when. The watchdog is fed only while nothing is overdue.

Refuses to end anything: each wait has a shorter deadline of its own, and this notices that one did
not work. It refuses to judge idleness and success too: waiting for news is no fault, and glasses or
brokers may be away for days.
"""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self


class Deadline:
    """Something that ends within a time; a context. `again` begins the next step of the same
    thing, `done` ends it early.
    """

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
    """Every bound that is open now. `now` is CLOCK_MONOTONIC like systemd's own watchdog and
    asyncio's deadlines: time a machine slept through makes nothing late.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._open: dict[int, Deadline] = {}

    def within(self, seconds: float, what: str) -> Deadline:
        """Promise that what follows ends within `seconds`, however it ends."""
        return Deadline(self._open, self._now, seconds, what)

    def overdue(self) -> list[str]:
        """Say what should have ended long ago, the latest first; empty while all is well."""
        late = sorted((b for b in self._open.values() if b.late_s > 0), key=lambda b: -b.late_s)
        return [f"{b.what} ({b.late_s:.0f} s late)" for b in late]


Within = Callable[[float, str], Deadline]
"""What a room is handed of a vigil."""


def unwatched(seconds: float, what: str) -> Deadline:
    """Stand in where nobody feeds a watchdog: a bound that nobody looks at."""
    return Deadline({}, time.monotonic, seconds, what)
