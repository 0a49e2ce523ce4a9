"""Events that one task waits for: bounded, read in order, each wait with an end."""

import asyncio
from contextlib import suppress
from typing import Final, Generic, TypeVar

from edge.runtime.clock import Clock
from firmware_bridge.deadlines import timeout

E = TypeVar("E")
_SLICE_S: Final = 30.0
"""Longest sleep at once: timers stand still while the machine sleeps, CLOCK_BOOTTIME does not."""


class Mailbox(Generic[E]):
    """`most` events of one kind may wait; further ones are dropped, those of the kinds in `kept`
    never are.
    """

    def __init__(self, clock: Clock, *, most: int, kept: tuple[type, ...]) -> None:
        self._clock = clock
        self._most = most
        self._kept = kept
        self.waiting: list[E] = []
        self._wake = asyncio.Event()

    def put(self, event: E) -> None:
        """Add an event, unless too many like it wait."""
        same = any(type(one) is type(event) for one in self.waiting)
        if len(self.waiting) < self._most or not same or isinstance(event, self._kept):
            self.waiting.append(event)
            self._wake.set()

    async def get(self, until: float) -> E | None:
        """Return the next event; None when it is `until` (boot clock)."""
        while not self.waiting:
            left = until - self._clock.boot()
            if left <= 0:
                return None
            self._wake.clear()
            with suppress(TimeoutError):
                async with timeout(min(left, _SLICE_S)):
                    await self._wake.wait()
        return self.waiting.pop(0)
