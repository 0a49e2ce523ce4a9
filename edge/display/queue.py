"""Items that wait for the lens: results in a bounded queue, and the newest progress of calls."""

from collections import deque
from collections.abc import Iterator
from typing import Final

from edge.display.presentation import NEWER, Presentation
from tools_cache.api.tool import Delivery

AWAY: Final = "glasses away"
_CANCELLED: Final = 64
"""Calls whose late progress is not shown again: twice as many as may run."""
LATER: Final = 4
"""Results that wait for the lens; the fifth supersedes the oldest. Alarms and the like go last."""


class DisplayQueue:
    """`parked` waits for the glasses, the others for the lens."""

    def __init__(self) -> None:
        self.parked: Presentation | None = None
        self._later: deque[Presentation] = deque()

    def __iter__(self) -> Iterator[Presentation]:
        return iter((*self._later, self.parked) if self.parked is not None else self._later)

    @property
    def first(self) -> Presentation | None:
        return self._later[0] if self._later else None

    def pop(self) -> Presentation:
        return self._later.popleft()

    def park(self, item: Presentation) -> None:
        """Keep the newest result for glasses that may come back; brief words are not worth it."""
        if item.brief:
            item.say(Delivery.DROPPED, AWAY, final=True)
        elif item.lit:
            item.settle()  # the wearer had it; the scene comes back by itself
        else:
            if self.parked is not None and self.parked is not item:
                self.parked.supersede(NEWER)
            self.parked = item
            item.say(Delivery.QUEUED, AWAY)

    def take_parked(self) -> Presentation | None:
        item, self.parked = self.parked, None
        return item

    def unpark(self) -> None:
        """The glasses are there: what waited for them waits for the lens, before all others."""
        if (item := self.take_parked()) is not None:
            self._later.appendleft(item)

    def wait(self, item: Presentation, why: str, *, at_least_until: float) -> None:
        """Let a result wait until it expires, an alarm until it can be shown."""
        if item.brief:
            item.say(Delivery.DROPPED, why, final=True)
            return
        if not item.call_id:
            item.expires_at = max(item.expires_at, at_least_until)
        if len(self._later) >= LATER:
            oldest = next((waiting for waiting in self._later if waiting.call_id), self._later[0])
            self._later.remove(oldest)
            oldest.supersede(NEWER)
        self._later.append(item)
        item.say(Delivery.QUEUED, why)

    def give_up(self, now: float) -> None:
        """Drop what expired."""
        if self.parked is not None and self.parked.expires_at <= now:
            item, self.parked = self.parked, None
            item.say(Delivery.DROPPED, AWAY, final=True)
        for item in [item for item in self._later if item.expires_at <= now]:
            self._later.remove(item)
            item.say(Delivery.EXPIRED, "the lens was busy", final=True)


class ProgressIndicator:
    """The newest progress text, waiting for the lens; an older one is answered at once."""

    def __init__(self) -> None:
        self.waiting: Presentation | None = None
        self._cancelled: deque[str] = deque(maxlen=_CANCELLED)
        self._unseen, self._unseen_until = "", 0.0

    def put(self, item: Presentation) -> None:
        """Take the newest text; it replaces the one before it."""
        if self.waiting is not None:
            self.waiting.supersede(NEWER)
        self.waiting = item

    def take(self) -> Presentation | None:
        item, self.waiting = self.waiting, None
        return item

    def over(self, call_id: str) -> None:
        """A call has its result: none of its progress is worth showing."""
        if self.waiting is not None and self.waiting.progress_of == call_id:
            self.waiting.supersede("by its result")
            self.waiting = None
        if self._unseen == call_id:
            self._unseen = ""

    def unseen(self, call_id: str, until: float) -> None:
        """There is no lens for this progress; the call is awaited (until: boot clock)."""
        self._unseen, self._unseen_until = call_id, until

    def awaited(self, now: float) -> str:
        """The call whose progress would be shown if there were a lens; "" when there is none."""
        return self._unseen if now < self._unseen_until else ""

    def cancel(self, call_id: str) -> None:
        """The wearer cancelled this call; its further progress is not shown."""
        self._cancelled.append(call_id)
        self.over(call_id)

    def is_cancelled(self, call_id: str) -> bool:
        return call_id in self._cancelled
