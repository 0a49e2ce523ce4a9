"""Soft budgets are told and never stop anything; histograms count exactly and estimate within
their bucket.
"""

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from edge.core.latency import (
    BOUNDS_MS,
    MAX_TURNS,
    TARGETS_MS,
    TURN_MS,
    Histogram,
    LatencyLedger,
    over_budget,
    turn_over_budget,
    warnings,
)
from edge.core.policy import VoiceBudget, budget_problem
from edge.core.session import Spent
from tools_cache.api.tool import ErrorCode, Mode, Source, ToolDefinition


def tool(budget_ms=300, category="retrieval"):
    return ToolDefinition(
        name="notes:list",
        description="d",
        input_schema={},
        source=Source.LOCAL,
        category=category,
        latency_budget_ms=budget_ms,
    )


# ------------------------------------------------------------------ budgets


@pytest.mark.requirement("S2-91")
def test_a_tool_over_its_budget_is_reported_with_both_numbers():
    assert warnings(tool(300), 301) == ("notes:list took 301 ms; its latency budget is 300 ms",)
    assert warnings(tool(300), 300) == ()
    assert (over_budget(tool(300), 301), over_budget(tool(300), 300), over_budget(None, 10**6)) == (
        True,
        False,
        False,
    )


@pytest.mark.requirement("S2-92")
def test_two_calls_of_900_ms_exceed_a_turns_limit_and_warn_once():
    ledger = LatencyLedger()
    told = [warnings(tool(1000), 900, ledger.spent(("ann", "", "t1"), 900), 1500) for _ in range(4)]
    assert [len(t) for t in told] == [0, 1, 0, 0]
    assert told[1] == (
        "the calls of this turn took 1800 ms by now; a spoken turn should stay within 1500 ms",
    )


@pytest.mark.requirement("S2-92")
@pytest.mark.parametrize(
    ("duration", "total", "over"),
    [
        (1500, 1500, False),
        (1501, 1501, True),
        (1, 1501, True),
        (1, 1502, False),
        (0, 1501, False),
        (0, 0, False),
    ],
)
def test_exactly_one_call_takes_a_turn_over_its_limit(duration, total, over):
    assert turn_over_budget(duration, total, 1500) is over


def test_outside_a_spoken_turn_only_the_tools_own_budget_counts():
    assert warnings(tool(10_000), 9000) == ()
    assert TURN_MS == 1500


def test_both_warnings_can_come_together():
    assert len(warnings(tool(300), 2000, 2000)) == 2
    assert len(warnings(None, 2000, 2000)) == 1


def test_turns_and_users_are_kept_apart_and_a_call_without_a_turn_stands_alone():
    ledger = LatencyLedger()
    assert [
        ledger.spent(("ann", "", "t1"), 900),
        ledger.spent(("bob", "", "t1"), 5),
        ledger.spent(("ann", "", "t2"), 7),
        ledger.spent(("ann", "", "t1"), 1),
    ] == [900, 5, 7, 901]
    assert [ledger.spent(None, 900), ledger.spent(None, 900)] == [900, 900]


def test_the_turn_longest_unheard_of_is_forgotten_first():
    ledger = LatencyLedger(most=2)
    ledger.spent(("ann", "", "old"), 1)
    ledger.spent(("ann", "", "new"), 1)
    ledger.spent(("ann", "", "old"), 1)
    ledger.spent(("ann", "", "third"), 1)
    assert ledger.spent(("ann", "", "old"), 1) == 3
    assert ledger.spent(("ann", "", "new"), 1) == 1
    assert MAX_TURNS == 256


@pytest.mark.requirement("S2-94")
def test_a_latency_budget_of_one_millisecond_changes_no_count():
    hasty, budget = tool(1), VoiceBudget()
    assert [budget_problem(hasty, Mode.VOICE, Spent(n, n), budget) is None for n in range(3)] == [
        True,
        True,
        False,
    ]
    assert budget_problem(hasty, Mode.VOICE, Spent(2, 2), budget).code is ErrorCode.BUDGET_EXCEEDED
    assert warnings(hasty, 2)


# ------------------------------------------------------------------ histograms

durations = st.lists(st.integers(0, 60_000), min_size=1, max_size=200)


def observed(values):
    histogram = Histogram()
    for ms in values:
        histogram.observe(ms)
    return histogram


def test_an_empty_histogram_says_nothing():
    empty = Histogram()
    assert (empty.count, empty.average_ms, empty.percentile_ms(0.5)) == (0, None, None)
    assert empty.to_json(800) == {"count": 0, "p50_ms": None, "p95_ms": None, "p99_ms": None}


@given(durations, st.sampled_from([0.01, 0.5, 0.95, 0.99, 1.0]))
def test_a_percentile_lies_in_the_bucket_of_the_true_one(values, share):
    values.sort()
    true = values[max(0, -(-int(share * 1000) * len(values) // 1000) - 1)]
    ends = [0, *BOUNDS_MS, 10**6]
    low, high = next((a, b) for a, b in pairwise(ends) if true <= b)
    assert low <= observed(values).percentile_ms(share) <= min(high, values[-1])


@given(durations)
def test_percentiles_rise_and_counts_are_exact(values):
    histogram = observed(values)
    estimates = [histogram.percentile_ms(n / 20) for n in range(1, 21)]
    assert estimates == sorted(estimates)
    assert estimates[-1] == max(values)
    assert histogram.count == len(values)
    assert histogram.average_ms == round(sum(values) / len(values))
    assert histogram.cumulative() == [sum(ms <= end for ms in values) for end in BOUNDS_MS] + [
        len(values)
    ]
    assert [histogram.within(end) for end in BOUNDS_MS] == histogram.cumulative()[:-1]


def test_within_a_bucket_the_estimate_goes_straight():
    histogram = observed([401, 402, 799, 800])
    assert [histogram.percentile_ms(share) for share in (0.25, 0.5, 0.75, 1.0)] == [
        500,
        600,
        700,
        800,
    ]


@pytest.mark.requirement("S2-140")
def test_every_target_is_the_end_of_a_bucket_so_that_keeping_it_is_counted():
    assert set(TARGETS_MS.values()) | {TURN_MS, 4000} <= set(BOUNDS_MS)
    assert (
        TARGETS_MS["retrieval", "voice"],
        TARGETS_MS["retrieval", "text"],
        TARGETS_MS["action", "voice"],
    ) == (800, 2000, 5000)
    assert observed([800, 801]).to_json(800)["within"] == 0.5


def test_a_copy_is_its_own():
    first = observed([5])
    second = first.copy()
    first.observe(7)
    assert (first.count, second.count, second.total_ms, second.percentile_ms(1.0)) == (2, 1, 5, 5)
