"""Rules of things that happen again: checked when they come in, bounded when they run."""

import time
from datetime import datetime, timedelta

import pytest

from tools_cache.errors import ToolFailure
from tools_cache.everyday.dates.recurrence import check, describe, next_after

START = datetime.fromisoformat("2026-11-30T09:00")
"""A Monday."""


def moments(rule, count, start=START):
    """Take each moment as the start of what is left, as the daemon does."""
    plain, moment = check(rule, start)
    found = [moment]
    while len(found) < count and (moment := next_after(plain, moment, moment)):
        found.append(moment)
    return [f"{m:%m-%d %H:%M}" for m in found]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("FREQ=DAILY", ["11-30 09:00", "12-01 09:00", "12-02 09:00", "12-03 09:00"]),
        ("rrule:freq=weekly;byday=we,mo", ["11-30 09:00", "12-02 09:00", "12-07 09:00"]),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR", ["11-30 09:00", "12-04 09:00", "12-14 09:00"]),
        ("FREQ=MONTHLY;BYDAY=-1FR", ["12-25 09:00", "01-29 09:00"]),
        ("FREQ=MONTHLY;BYMONTHDAY=-1", ["11-30 09:00", "12-31 09:00", "01-31 09:00"]),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", ["11-30 09:00", "12-31 09:00"]),
        ("FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=24", ["12-24 09:00", "12-24 09:00"]),
    ],
)
def test_a_rule_gives_its_moments_one_after_the_other(rule, expected):
    assert moments(rule, len(expected)) == expected


@pytest.mark.parametrize(
    ("rule", "count"),
    [
        ("FREQ=DAILY;COUNT=3", 3),
        ("FREQ=DAILY;UNTIL=20261202", 3),
        ("FREQ=DAILY;UNTIL=20261202T080000Z", 2),
        ("FREQ=WEEKLY;BYDAY=MO;COUNT=1", 1),
    ],
)
def test_a_rule_ends(rule, count):
    assert len(moments(rule, 20)) == count


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("", "not understood"),
        ("FREQ=SECONDLY", "FREQ is not understood"),
        ("FREQ=HOURLY", "FREQ is not understood"),
        ("INTERVAL=2", "no FREQ"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL is not understood"),
        ("FREQ=DAILY;FREQ=WEEKLY", "twice"),
        ("FREQ=DAILY;BYDAY=XX", "BYDAY is not understood"),
        ("FREQ=DAILY;BYMONTHDAY=3", "FREQ=MONTHLY or YEARLY"),
        ("FREQ=DAILY;COUNT=2;UNTIL=20270101", "both COUNT and UNTIL"),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "never comes true"),
        ("FREQ=DAILY;UNTIL=20250101", "never comes true"),
        ("FREQ=DAILY;BYHOUR=1,2,3", "BYHOUR is not understood"),
        ("FREQ=MONTHLY;" + "X" * 300, "not understood"),
    ],
)
def test_a_rule_that_cannot_serve_is_refused(rule, why):
    with pytest.raises(ToolFailure, match=why):
        check(rule, START)


@pytest.mark.parametrize("rule", ["FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=31", "FREQ=DAILY"])
def test_no_rule_looks_further_than_ten_years(rule):
    asked = START + timedelta(days=20)
    found = next_after(rule, START, asked)
    assert found is None or found - asked <= timedelta(days=1)
    begin = time.process_time()
    next_after("FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30", START, START)
    assert time.process_time() - begin < 5


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("FREQ=DAILY", "every day"),
        ("FREQ=WEEKLY;BYDAY=MO,WE", "every Mon and Wed"),
        ("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", "every workday"),
        ("FREQ=WEEKLY;INTERVAL=2", "every 2 weeks"),
        ("FREQ=YEARLY;UNTIL=20300101T000000", "every year"),
    ],
)
def test_a_rule_is_described_in_words(rule, words):
    assert describe(rule) == words
