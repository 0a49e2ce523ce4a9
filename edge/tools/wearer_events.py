"""Numbered events of the wearer, for tools that wait for the next: gestures, worn, battery.

Transcripts are not kept.
"""

import asyncio
from collections import deque
from collections.abc import Container, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from edge.runtime.clock import Clock
from firmware_bridge.deadlines import timeout
from firmware_bridge.messages import BatteryChanged, Event, Gestured, WornChanged
from tools_cache.api.handed import Json

KEPT: Final = 64
"""Events kept: minutes of a busy wearer."""


@dataclass(frozen=True, slots=True)
class WearerEvent:
    """One gesture, or change of the glasses; `at` on the boot clock."""

    number: int
    event: str
    at: float
    details: Mapping[str, Json]


class WearerEvents:
    """Implements `tools_cache.api.handed.Wearer`; numbers start again with each daemon."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._events: deque[WearerEvent] = deque(maxlen=KEPT)
        self._last = 0
        self._changed = asyncio.Event()

    def note(self, event: Event) -> None:
        """Record an event of the glasses, if it is one that tools can wait for."""
        known = _describe(event)
        if known is None:
            return
        self._last += 1
        self._events.append(WearerEvent(self._last, known[0], self._clock.boot(), known[1]))
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def next(
        self, events: Container[str] | None, *, after: int | None, timeout_s: float
    ) -> dict[str, Json]:
        """See `Wearer`."""
        # A number above the last one comes from an earlier daemon and means nothing here.
        seen = self._last if after is None else after if after <= self._last else 0
        missed = max(0, self._events[0].number - 1 - seen) if self._events else 0
        with suppress(TimeoutError):
            async with timeout(timeout_s):
                while (found := self._first(events, seen)) is None:
                    await self._changed.wait()
                age_s = round(max(0.0, self._clock.boot() - found.at), 1)
                said = {"event": found.event, **found.details, "age_s": age_s}
                return {**said, "after": found.number, **({"missed": missed} if missed else {})}
        return {"event": None, "after": self._last}

    def _first(self, events: Container[str] | None, seen: int) -> WearerEvent | None:
        return next(
            (d for d in self._events if d.number > seen and (events is None or d.event in events)),
            None,
        )


def _describe(event: Event) -> tuple[str, dict[str, Json]] | None:
    match event:
        case Gestured(gesture=gesture):
            return gesture.value, {}
        case WornChanged(worn=worn):
            return ("worn" if worn else "not_worn"), {}
        case BatteryChanged(level=level, charging=charging, side=side):
            return "battery", {
                "level": level,
                "charging": charging,
                **({"side": side.value} if side is not None else {}),
            }
        case _:
            return None
