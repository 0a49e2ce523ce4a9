"""The latest events, numbered, for all clients that follow them; a slow client learns exactly how
many it missed.

All followers share one ring buffer: each needs only its own cursor.
"""

import asyncio
import json
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import islice
from typing import Final

from edge.runtime.bus import Bus
from edge.runtime.clock import Clock
from edge.runtime.events import DaemonEvent, PrivateWords, as_json

RING: Final = 1024
"""Events kept for replay: minutes of a busy daemon, under 1 MiB."""
BATCH: Final = 64
ALL: Final = "0"
"""As a `Last-Event-ID`: everything that is kept, for a client that started the daemon and wants
its first events.
"""


class EventEntry:
    """One event and when it was. It is written as JSON at the first look: mostly nobody follows."""

    __slots__ = ("_at", "_event", "_text", "number")

    def __init__(self, number: int, event: DaemonEvent, at: float) -> None:
        self.number = number
        self._event = event
        self._at = at
        self._text = ""

    @property
    def text(self) -> str:
        if not self._text:
            values = {**as_json(self._event), "at": round(self._at, 3)}
            self._text = json.dumps(values, ensure_ascii=False, default=str)
        return self._text


def missed(number: int | None) -> str:
    """Return the event that says how many events a follower missed; None if that is unknown."""
    return f"event: missed\ndata: {json.dumps({'event': 'missed', 'missed': number})}"


class Feed:
    """Within `open()` it records the bus; `news()` returns what comes after a cursor.

    Without `calls` it leaves out the events of calls, so that a call wakes no follower that does
    not need them. Ids are `RUN-NUMBER`: `RUN` is one run of the daemon, so that an id from an
    earlier run is never taken for one of this run.
    """

    def __init__(self, bus: Bus, *, clock: Clock, ring: int = RING, calls: bool = True) -> None:
        self._bus = bus
        self._calls = calls
        self._clock = clock
        self._ring: deque[EventEntry] = deque(maxlen=ring)
        self._run = f"{int(clock.wall() * 1000):x}" + (
            "" if calls else "q"
        )  # the two feeds are numbered separately
        self._last = 0
        self._news = asyncio.Event()

    def open(self) -> AbstractContextManager[None]:
        """Record inside of this block."""
        return self._bus.record(self._record, calls=self._calls)

    def _record(self, event: DaemonEvent) -> None:
        if isinstance(event, PrivateWords):
            return
        self._last += 1
        self._ring.append(EventEntry(self._last, event, self._clock.wall()))
        self._news.set()

    def cursor(self, last_event_id: str | None) -> tuple[int, bool]:
        """Return a follower's position: (number it has seen, whether its id is from this run or it
        is new). Without an id it starts now, with `ALL` at the oldest event that is kept.
        """
        if last_event_id is None:
            return self._last, True
        if last_event_id == ALL:
            return 0, True
        run, _, number = last_event_id.rpartition("-")
        if run != self._run or not number.isdecimal():
            return (self._ring[0].number - 1 if self._ring else self._last), False
        return min(int(number[:18]), self._last), True

    async def news(self, after: int) -> tuple[int, list[str]]:
        """Wait for events after `after`; return the new cursor and the event blocks, with gaps as
        `event: missed`.
        """
        while self._last <= after:
            self._news.clear()
            await self._news.wait()
        fresh = list(islice((e for e in self._ring if e.number > after), BATCH))
        return fresh[-1].number, list(self._blocks(after, fresh))

    def _blocks(self, after: int, entries: list[EventEntry]) -> Iterator[str]:
        for entry in entries:
            gap = entry.number - after - 1
            if gap:
                yield missed(gap)
            yield f"id: {self._run}-{entry.number}\ndata: {entry.text}"
            after = entry.number
