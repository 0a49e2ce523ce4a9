"""Numbered events of the wearer, for tools that wait for the next: gestures, what was said, worn,
battery.
"""

import asyncio
from collections import deque
from collections.abc import Container, Mapping
from contextlib import suppress
from typing import Final

from msgspec import Struct

from edge.runtime.clock import Clock
from firmware_bridge.deadlines import timeout
from firmware_bridge.messages import BatteryChanged, Event, Gestured, Transcript, WornChanged
from tools_cache.api.handed import Json

KEPT: Final = 64
"""Events kept: minutes of a busy wearer."""
SAID: Final = "said"
SAID_S: Final = 60.0
"""Seconds for which the wearer's words are kept, so that none is lost between two waits."""
MAX_TEXT: Final = 2000
"""Characters of what was said."""


class WearerEvent(Struct, frozen=True):
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
        self._waiting_for_words = 0
        self._words_wanted_until = float("-inf")
        self._changed = asyncio.Event()

    def note(self, event: Event) -> None:
        """Record an event of the glasses, if it is one that tools can wait for."""
        known = _describe(event)
        if known is None:
            return
        self._forget_words()
        self._last += 1
        self._events.append(WearerEvent(self._last, known[0], self._clock.boot(), known[1]))
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def words_wanted(self) -> bool:
        """Return whether a program waits for the wearer's words, or did until a moment ago: it may
        be between two waits.
        """
        return self._waiting_for_words > 0 or self._clock.boot() < self._words_wanted_until

    async def next(
        self, events: Container[str] | None, *, after: int | None, timeout_s: float
    ) -> dict[str, Json]:
        """See `Wearer`. Words are given only to those who name `said`."""
        if events is None or SAID not in events:
            return await self._next(events, after, timeout_s)
        self._waiting_for_words += 1
        try:
            return await self._next(events, after, timeout_s)
        finally:
            self._waiting_for_words -= 1
            self._words_wanted_until = self._clock.boot() + SAID_S

    async def _next(
        self, events: Container[str] | None, after: int | None, timeout_s: float
    ) -> dict[str, Json]:
        self._forget_words()
        # A number above the last one comes from an earlier daemon and means nothing here.
        seen = self._last if after is None else after if after <= self._last else 0
        missed = max(0, self._events[0].number - 1 - seen) if self._events else 0
        with suppress(TimeoutError):
            async with timeout(timeout_s):
                while (found := self._first(events, seen)) is None:
                    await self._changed.wait()
                age_s = round(max(0.0, self._clock.boot() - found.at), 1)
                known = {"event": found.event, **found.details, "age_s": age_s}
                return {**known, "after": found.number, **({"missed": missed} if missed else {})}
        return {"event": None, "after": self._last}

    def _first(self, events: Container[str] | None, seen: int) -> WearerEvent | None:
        for event in self._events:
            wanted = event.event in events if events is not None else event.event != SAID
            if event.number > seen and wanted:
                return event
        return None

    def _forget_words(self) -> None:
        """Remove what was said too long ago."""
        since = self._clock.boot() - SAID_S
        kept = (e for e in self._events if e.event != SAID or e.at >= since)
        self._events = deque(kept, maxlen=KEPT)


def _describe(event: Event) -> tuple[str, dict[str, Json]] | None:
    match event:
        case Gestured(gesture=gesture, side=side):
            return gesture.value, {"side": side.value} if side is not None else {}
        case Transcript(text=text, final=True, confidence=confidence) if text.strip():
            how = {} if confidence is None else {"confidence": round(confidence, 2)}
            return SAID, {"text": text.strip()[:MAX_TEXT], **how}
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
