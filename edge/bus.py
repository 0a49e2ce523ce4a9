"""The bus: whoever does something says so here, whoever cares listens. Refuses to know what is said.

Each listener has its own bounded queue; a slow one loses its oldest happenings, is told how many, and slows nobody.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Final

from edge.events import Happening

QUEUE: Final = 512
"""Happenings one listener may lag behind: several seconds of the busiest traffic seen (audio is not on the bus)."""


class Listener:
    """One subscription: iterate it. `missed` counts what was dropped because it lagged."""

    def __init__(self, bound: int) -> None:
        self._queue: deque[Happening] = deque(maxlen=bound)
        self._wake = asyncio.Event()
        self.missed = 0

    def put(self, happening: Happening) -> None:
        if len(self._queue) == self._queue.maxlen:
            self.missed += 1
        self._queue.append(happening)
        self._wake.set()

    async def __aiter__(self) -> AsyncIterator[Happening]:
        while True:
            while self._queue:
                yield self._queue.popleft()
            self._wake.clear()
            await self._wake.wait()


class Bus:
    """Publish never waits; a subscription begins when `listen()` is entered, so nothing after that is missed."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def publish(self, happening: Happening) -> None:
        for listener in self._listeners:
            listener.put(happening)

    @contextmanager
    def listen(self, bound: int = QUEUE) -> Iterator[Listener]:
        listener = Listener(bound)
        self._listeners.append(listener)
        try:
            yield listener
        finally:
            self._listeners.remove(listener)
