"""Backoff: full jitter that doubles, stays under its cap and forgives only a stable link."""

from itertools import pairwise

import pytest

from edge.core.backoff import RESEND_CAP_S, Backoff, resend_after


def test_ceilings_double_from_the_first_to_the_cap():
    backoff = Backoff(lambda: 1.0, first_s=0.5, most_s=60.0)
    assert [backoff.after(0.0) for _ in range(9)] == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]


def test_jitter_is_full():
    assert Backoff(lambda: 0.0).after(0.0) == 0.0
    halves = Backoff(lambda: 0.5, first_s=1.0)
    assert [halves.after(0.0), halves.after(0.0)] == [0.5, 1.0]


def test_only_a_link_that_was_stable_starts_over():
    backoff = Backoff(lambda: 1.0, first_s=1.0, stable_s=60.0)
    assert [backoff.after(0.0), backoff.after(59.9), backoff.after(60.0), backoff.after(0.0)] == [
        1,
        2,
        1,
        2,
    ]


def test_a_minimum_holds_whatever_chance_says():
    assert Backoff(lambda: 0.0).after(0.0, at_least_s=30.0) == 30.0


def test_years_of_failures_do_not_overflow():
    backoff = Backoff(lambda: 1.0)
    for _ in range(5000):
        delay = backoff.after(0.0)
    assert delay == 60.0


def test_sends_are_repeated_at_doubling_distances_with_a_little_jitter():
    assert [resend_after(n, lambda: 0.5) for n in (1, 2, 3, 4)] == pytest.approx([1, 2, 4, 8])
    for low, high in pairwise([0.8, 1.2]):
        assert low <= resend_after(1, lambda: 0.0) < resend_after(1, lambda: 0.999) <= high
    assert resend_after(99, lambda: 0.5) == RESEND_CAP_S


def test_who_counts_failures_apart_gets_the_same_ceilings():
    backoff = Backoff(lambda: 1.0, first_s=0.5, most_s=4.0)
    assert [backoff.nth(n) for n in (0, 1, 2, 3, 4, 5, 2000)] == [0.5, 0.5, 1.0, 2.0, 4.0, 4.0, 4.0]
    assert backoff.nth(1, at_least_s=3.0) == 3.0
    assert Backoff(lambda: 0.0).nth(9) == 0.0
