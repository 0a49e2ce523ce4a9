"""Free time from taken time: by hand, and against a clock that ticks every minute."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from tools_cache.api.calendars import Busy
from tools_cache.api.free_slots import free, merged, summary

DAY = datetime(2026, 11, 23, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


def at(hour, minute=0, second=0):
    return DAY + timedelta(hours=hour, minutes=minute, seconds=second)


def busy(*spans):
    return [Busy(start=start, end=end) for start, end in spans]


def told(spans, start, end, minutes=30):
    taken = merged(busy(*spans), start, end)
    slots = free(taken, start, end, minutes=minutes)
    return (
        [(t.start, t.end) for t in taken],
        [(s.start, s.end, s.minutes) for s in slots],
        summary(taken, slots),
    )


@pytest.mark.requirement("S2-123")
@pytest.mark.parametrize(
    ("spans", "words"),
    [
        ([], "0 busy periods, 1 available slots (300 minutes total)"),
        ([(at(10), at(11))], "1 busy periods, 2 available slots (240 minutes total)"),
        (
            [(at(10), at(11)), (at(10, 30), at(12))],
            "1 busy periods, 2 available slots (180 minutes total)",
        ),
        (
            [(at(10), at(11)), (at(11), at(12))],
            "1 busy periods, 2 available slots (180 minutes total)",
        ),
        (
            [(at(10), at(13)), (at(11), at(12))],
            "1 busy periods, 2 available slots (120 minutes total)",
        ),
        (
            [(at(7), at(9, 30)), (at(13, 45), at(20))],
            "2 busy periods, 1 available slots (255 minutes total)",
        ),
        (
            [(at(7), at(9)), (at(14), at(15))],
            "0 busy periods, 1 available slots (300 minutes total)",
        ),
        ([(at(0), at(23))], "1 busy periods, 0 available slots (0 minutes total)"),
        ([(at(9, 29), at(14))], "1 busy periods, 0 available slots (0 minutes total)"),
        ([(at(9, 30), at(14))], "1 busy periods, 1 available slots (30 minutes total)"),
        ([(at(9, 30, 59), at(14))], "1 busy periods, 1 available slots (30 minutes total)"),
        ([(at(9, 29, 59), at(14))], "1 busy periods, 0 available slots (0 minutes total)"),
    ],
)
def test_busy_times_are_joined_and_the_gaps_summed_up(spans, words):
    assert told(spans, at(9), at(14))[2] == words


@pytest.mark.requirement("S2-123")
def test_the_night_on_which_the_clocks_change_has_the_hours_it_has():
    """25 October 2026, Berlin: 3 o'clock comes twice."""
    start, end = datetime(2026, 10, 25, 1, tzinfo=BERLIN), datetime(2026, 10, 25, 4, tzinfo=BERLIN)
    assert told([], start, end)[2] == "0 busy periods, 1 available slots (240 minutes total)"
    first, second = (
        datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN),
        datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1),
    )
    assert (
        told([(first, second)], start, end)[2]
        == "1 busy periods, 2 available slots (180 minutes total)"
    )


SPANS = st.lists(st.tuples(st.integers(-60, 400), st.integers(1, 120)), max_size=8)


@pytest.mark.requirement("S2-123")
@given(SPANS, st.integers(15, 90))
def test_it_agrees_with_a_clock_that_ticks_every_minute(spans, least):
    start, end = at(9), at(14)
    taken, slots, _ = told(
        [(start + timedelta(minutes=b), start + timedelta(minutes=b + n)) for b, n in spans],
        start,
        end,
        least,
    )
    full = [any(b <= minute < b + n for b, n in spans) for minute in range(300)]
    runs, began = [], None
    for minute, held in enumerate([*full, True]):
        if not held and began is None:
            began = minute
        elif held and began is not None:
            runs.append((began, minute))
            began = None
    assert [(round((s - start).total_seconds() / 60), n) for s, _, n in slots] == [
        (b, e - b) for b, e in runs if e - b >= least
    ]
    assert sum((e - s).total_seconds() / 60 for s, e in taken) == sum(full)
