"""When somebody is free: taken times in, free slots out (S2-123). Pure.

Refuses to know calendars: moments come in with their zone, and a day that is 23 hours long is no
special case.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tools_cache.calendars import Busy


@dataclass(frozen=True, slots=True)
class Slot:
    """A stretch of time, in UTC; `minutes` are whole ones, rounded down."""

    start: datetime
    end: datetime

    @property
    def minutes(self) -> int:
        return (self.end - self.start) // timedelta(minutes=1)


def merged(busy: Iterable[Busy], start: datetime, end: datetime) -> list[Slot]:
    """Join what overlaps or touches, cut to the window; in order, in UTC: Python compares and
    subtracts two moments of one zone by their wall clocks, which is wrong twice a year.
    """
    start, end = start.astimezone(UTC), end.astimezone(UTC)
    moments = ((one.start.astimezone(UTC), one.end.astimezone(UTC)) for one in busy)
    inside = sorted(
        (max(begins, start), min(ends, end))
        for begins, ends in moments
        if ends > start and begins < end
    )
    joined: list[Slot] = []
    for begins, ends in inside:
        if joined and begins <= joined[-1].end:
            joined[-1] = Slot(joined[-1].start, max(joined[-1].end, ends))
        else:
            joined.append(Slot(begins, ends))
    return joined


def free(taken: Iterable[Slot], start: datetime, end: datetime, *, minutes: int) -> list[Slot]:
    """Give the gaps of at least so many whole minutes; `taken` is what `merged` gave."""
    slots = []
    at, end = start.astimezone(UTC), end.astimezone(UTC)
    for one in taken:
        slots.append(Slot(at, one.start))
        at = one.end
    slots.append(Slot(at, end))
    return [slot for slot in slots if slot.minutes >= minutes]


def summary(taken: list[Slot], slots: list[Slot]) -> str:
    """Say it in the seed's words, counted from the data (C-16)."""
    total = sum(slot.minutes for slot in slots)
    return f"{len(taken)} busy periods, {len(slots)} available slots ({total} minutes total)"
