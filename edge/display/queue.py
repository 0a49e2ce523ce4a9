"""Items that wait for the lens: results in a bounded queue, and the newest progress of calls."""

from collections import deque
from collections.abc import Iterator
from typing import Final

from edge.display.page_life import place
from edge.display.presentation import AWAY, NEWER, Presentation
from tools_cache.api.tool import Delivery

_READING: Final = "a result is being read"
_CANCELLED: Final = 64
"""Calls, cancelled or over, whose late progress is not shown: twice as many as may run."""
LATER: Final = 4
"""Results that wait for the lens; of more the oldest of the least important is given up. Alarms and
the like go last.
"""
_BEHIND: Final = 16
"""Calls whose progress may wait behind the page that is being read; the oldest is given up."""


class DisplayQueue:
    """`parked` waits for the glasses, the others for the lens: the most important first, and of
    equals the one that came first. Each hears its place, as "2 of 3".
    """

    def __init__(self) -> None:
        self.parked: Presentation | None = None
        self.why = ""
        """What they wait for beside the page on the lens."""
        self._later: deque[Presentation] = deque()

    def __iter__(self) -> Iterator[Presentation]:
        return iter((*self._later, self.parked) if self.parked is not None else self._later)

    @property
    def first(self) -> Presentation | None:
        return self._later[0] if self._later else None

    def pop(self) -> Presentation:
        item = self._later.popleft()
        self._number()
        return item

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
        """The glasses are there: what waited for them waits for the lens, before its equals."""
        if (item := self.take_parked()) is not None:
            self._insert(item, before_equals=True)

    def wait(self, item: Presentation, *, at_least_until: float) -> None:
        """Let a result wait until it expires, an alarm until it can be shown."""
        if not item.call_id:
            item.expires_at = max(item.expires_at, at_least_until)
        if (older := next((w for w in self._later if w.scene == item.scene), None)) is not None:
            self._replace(older, item)
            return
        if len(self._later) >= LATER:
            least = min((*self._later, item), key=lambda each: (not each.call_id, each.rank))
            if least is item:
                item.say(Delivery.DROPPED, "more important results wait", final=True)
                return
            self._later.remove(least)
            least.supersede(NEWER)
        self._insert(item)

    def _replace(self, older: Presentation, item: Presentation) -> None:
        """Put a newer version into the place of the older one."""
        at = self._later.index(older)
        self._later.remove(older)
        older.supersede(NEWER)
        if older.rank == item.rank:
            self._later.insert(at, item)
            self._number()
        else:
            self._insert(item)

    def give_up(self, now: float) -> None:
        """Drop what expired."""
        if self.parked is not None and self.parked.expires_at <= now:
            item, self.parked = self.parked, None
            item.say(Delivery.DROPPED, AWAY, final=True)
        for item in [item for item in self._later if item.expires_at <= now]:
            self._later.remove(item)
            item.say(Delivery.EXPIRED, "the lens was busy", final=True)
            self._number()

    def forget(self, reason: str) -> None:
        """Drop all that waits."""
        items, self.parked = list(self), None
        self._later.clear()
        for item in items:
            item.say(Delivery.DROPPED, reason, final=True)

    def _insert(self, item: Presentation, *, before_equals: bool = False) -> None:
        before = sum(
            waiting.rank > item.rank or (waiting.rank == item.rank and not before_equals)
            for waiting in self._later
        )
        self._later.insert(before, item)
        self._number()

    def _number(self) -> None:
        for number, item in enumerate(self._later, 1):
            where = place(number, len(self._later))
            item.say(Delivery.QUEUED, f"{where}, {self.why}" if self.why else where)


class ProgressIndicator:
    """Progress of calls that waits for the lens: the newest text for the panel, and behind a page
    that is being read the newest of each call.
    """

    def __init__(self) -> None:
        self.waiting: Presentation | None = None
        self._behind: dict[str, Presentation] = {}
        self._cancelled: deque[str] = deque(maxlen=_CANCELLED)
        self._over: deque[str] = deque(maxlen=_CANCELLED)
        self._unseen, self._unseen_until = "", 0.0

    def put(self, item: Presentation) -> None:
        """Take the newest text; it replaces the one before it."""
        if self.waiting is not None:
            self.waiting.supersede(NEWER)
        self.waiting = item

    def take(self) -> Presentation | None:
        item, self.waiting = self.waiting, None
        return item

    # ------------------------------------------------------------------ behind a page

    @property
    def behind(self) -> bool:
        """Whether a call works while the wearer reads something else."""
        return any(item.progress_of for item in self._behind.values())

    def wait_behind(self, item: Presentation) -> None:
        """Let it wait until the page that is being read is over."""
        call_id = item.progress_of or item.scene
        before = self._behind.pop(call_id, None)
        if before is None and len(self._behind) >= _BEHIND:
            before = self._behind.pop(next(iter(self._behind)))
        if before is not None:
            before.supersede(NEWER)
        self._behind[call_id] = item
        item.say(Delivery.QUEUED, _READING)

    def next_behind(self) -> Presentation | None:
        """Take the newest of what waits behind the page."""
        return self._behind.popitem()[1] if self._behind else None

    def over(self, call_id: str) -> bool:
        """A call is over: none of its progress is worth showing. Return whether any waited."""
        self._over.append(call_id)
        waited = self._unseen == call_id
        if self.waiting is not None and self.waiting.progress_of == call_id:
            self.waiting.supersede("by its result")
            self.waiting, waited = None, True
        if (behind := self._behind.pop(call_id, None)) is not None:
            behind.supersede("by its result")
            waited = True
        if self._unseen == call_id:
            self._unseen = ""
        return waited

    def is_over(self, call_id: str) -> bool:
        return call_id in self._over

    # ------------------------------------------------------------------ cancelled, or not seen

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
