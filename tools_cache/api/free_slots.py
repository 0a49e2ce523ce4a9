"""Computes free time slots from busy times, with time zones and days of 23 or 25 hours."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tools_cache.api.calendars import Busy


@dataclass(frozen=True, slots=True)
class Slot:
    """A period in UTC; `minutes` are whole minutes, rounded down."""

    start: datetime
    end: datetime

    @property
    def minutes(self) -> int:
        return (self.end - self.start) // timedelta(minutes=1)


def merged(busy: Iterable[Busy], start: datetime, end: datetime) -> list[Slot]:
    """Join periods that overlap or touch, cut to the window, in order and in UTC.

    UTC, because Python compares two moments of one zone by wall clock, which is wrong when the
    clocks change.
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
    """Return the gaps of at least `minutes` whole minutes; `taken` comes from `merged`."""
    slots = []
    at, end = start.astimezone(UTC), end.astimezone(UTC)
    for one in taken:
        slots.append(Slot(at, one.start))
        at = one.end
    slots.append(Slot(at, end))
    return [slot for slot in slots if slot.minutes >= minutes]


def summary(taken: list[Slot], slots: list[Slot]) -> str:
    """Return a summary in one sentence, counted from the data."""
    total = sum(slot.minutes for slot in slots)
    return f"{len(taken)} busy periods, {len(slots)} available slots ({total} minutes total)"


def text(slots: list[Slot], start: datetime, end: datetime) -> str:
    """Return the free time for a person; the lens writes its moments in the wearer's form."""
    if not slots:
        return f"No free time {_written(start, end)}"
    return "Free " + ", ".join(_written(slot.start, slot.end) for slot in slots)


def _written(start: datetime, end: datetime) -> str:
    return "–".join(at.astimezone(UTC).isoformat(timespec="minutes") for at in (start, end))
