"""The bus: events are published here, and every listener gets them.

Each listener has its own bounded queue; a slow one loses its oldest events, counted in `missed`,
and slows nobody.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Final

from edge.runtime.deadlines import Within, unwatched
from edge.runtime.events import DaemonEvent

QUEUE: Final = 512
"""Events one listener may lag behind: seconds of the busiest traffic seen (audio is elsewhere)."""
HANDLED_S: Final = 60.0
"""A listener asks for the next event within this; longer work belongs into its own task."""


class Listener:
    """One subscription: iterate it. `missed` counts what was dropped because it lagged."""

    def __init__(self, bound: int, within: Within = unwatched, *, calls: bool = True) -> None:
        self.calls = calls
        self._within = within
        self._handling = within(HANDLED_S, "")
        self._handling.done()
        self._queue: deque[DaemonEvent] = deque(maxlen=bound)
        self._wake = asyncio.Event()
        self.missed = 0

    def put(self, event: DaemonEvent) -> None:
        if len(self._queue) == self._queue.maxlen:
            self.missed += 1
        self._queue.append(event)
        self._wake.set()

    def over(self) -> None:
        """End the deadline: a traceback may keep the iteration alive for a while."""
        self._handling.done()

    async def __aiter__(self) -> AsyncIterator[DaemonEvent]:
        task = asyncio.current_task()
        name = task.get_name() if task is not None else "a listener"
        while True:
            while self._queue:
                event = self._queue.popleft()
                what = f"{name}: {type(event).__name__}"
                with self._within(HANDLED_S, what) as self._handling:
                    yield event
            self._wake.clear()
            await self._wake.wait()


class Bus:
    """Publish never waits; a subscription begins when `listen()` is entered."""

    def __init__(self, within: Within = unwatched) -> None:
        self._within = within
        self._listeners: list[Listener] = []
        self._recorders: list[tuple[Callable[[DaemonEvent], None], bool]] = []

    def publish(self, event: DaemonEvent) -> None:
        for record, calls in self._recorders:
            if calls or not event.of_a_call:
                record(event)
        for listener in self._listeners:
            if listener.calls or not event.of_a_call:
                listener.put(event)

    @contextmanager
    def record(self, put: Callable[[DaemonEvent], None], *, calls: bool = True) -> Iterator[None]:
        """Call `put` with each event as it is published. It only notes the event, and never raises:
        the publisher waits for it.
        """
        recorder = (put, calls)
        self._recorders.append(recorder)
        try:
            yield
        finally:
            self._recorders.remove(recorder)

    @contextmanager
    def listen(self, bound: int = QUEUE, *, calls: bool = True) -> Iterator[Listener]:
        """Subscribe; without `calls` to everything but the progress of calls, which are many."""
        listener = Listener(bound, self._within, calls=calls)
        self._listeners.append(listener)
        try:
            yield listener
        finally:
            self._listeners.remove(listener)
            listener.over()
