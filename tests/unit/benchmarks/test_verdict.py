"""The soak's verdict must see a leak that is there, and must not cry over one that is not."""

import random

import pytest

from benchmarks.soak.verdict import HOUR, Rule, forgive, judge, rule_for, theil_sen

EVERY_S = 10.0
MEMORY = Rule(1.0)


def readings(per_hour, *, minutes=60, start=60.0, noise=0.5, seed=1, warm_up=0.0):
    """A series as the soak takes it: start, slope, noise, and a rise that ends after the first
    tenth.
    """
    chance = random.Random(seed)
    at = [n * EVERY_S for n in range(int(minutes * 60 / EVERY_S))]
    tenth = at[-1] / 10
    values = [
        start + per_hour * t / HOUR + warm_up * min(1.0, t / tenth) + chance.gauss(0, noise)
        for t in at
    ]
    return at, values


def word(series, rule=MEMORY, name="daemon RSS MiB"):
    at, values = series
    return judge(name, at, values, rule, run_s=at[-1]).word


def test_the_slope_is_that_of_the_line_under_the_noise():
    at, values = readings(4.0)
    slope, low, high = (s * HOUR for s in theil_sen(at, values))
    assert slope == pytest.approx(4.0, abs=0.3)
    assert low < slope < high


def test_wild_readings_move_the_slope_by_nothing():
    at, values = readings(0.0)
    values[200:220] = [values[0] + 100] * 20
    assert abs(theil_sen(at, values)[0] * HOUR) < 0.2


def test_what_stands_still_is_flat():
    assert word(readings(0.0)) == "flat"


def test_a_leak_of_a_tenth_an_hour_is_growing():
    assert word(readings(6.0)) == "growing"


def test_a_small_thing_may_grow_by_one_mib_and_no_more():
    assert word(readings(0.9, start=2.0, noise=0.01)) == "flat"
    assert word(readings(1.1, start=2.0, noise=0.01)) == "growing"


def test_warming_up_is_not_growing():
    assert word(readings(0.0, warm_up=20.0)) == "flat"


def test_what_shrinks_is_well():
    assert word(readings(-30.0)) == "flat"


def test_five_minutes_of_a_faint_rise_prove_nothing():
    assert word(readings(8.0, minutes=5)) == "unclear"


def test_five_minutes_of_a_torrent_do():
    assert word(readings(120.0, minutes=5)) == "growing"


def test_two_minutes_condemn_nothing():
    assert word(readings(120.0, minutes=2.5)) == "unclear"


def test_five_minutes_condemn_neither_a_store_that_fills_nor_a_latency():
    for name in ("glassd.db MiB", "local ms"):
        assert word(readings(120.0, minutes=5), rule_for(name, {}), name) == "unclear"
        assert word(readings(120.0), rule_for(name, {}), name) == "growing"


def test_a_file_below_its_bound_may_saw():
    at, values = readings(3.0, start=0.5, noise=0.0)
    assert word((at, values), Rule(1.0, cap=4.0), "glassd.db-wal MiB") == "bounded"
    assert word((at, values), Rule(1.0, cap=3.0), "glassd.db-wal MiB") == "growing"


def test_two_readings_are_no_series():
    assert word(([0.0, 10.0], [1.0, 2.0])) == "few"


def test_our_neighbours_are_told_and_not_judged():
    rule = rule_for("(cloud RSS MiB)", {})
    assert rule is None
    assert word(readings(60.0), rule, "(cloud RSS MiB)") == "told"


def test_a_bound_the_daemon_states_becomes_the_rule():
    assert rule_for("audit files MiB", {"audit files MiB": 12.0}).cap == 12.0
    assert rule_for("audit files MiB", {}).cap is None


def test_noise_that_happens_to_point_up_is_not_growth():
    series = readings(30.0, noise=60.0, start=100.0)
    verdict = judge("local ms", *series, rule_for("local ms", {}), run_s=HOUR)
    assert verdict.low < 0 < verdict.allowed < verdict.slope
    assert verdict.word == "noisy"


def test_a_latency_that_doubles_in_an_hour_is_growing():
    assert word(readings(60.0, noise=10.0), rule_for("local ms", {}), "local ms") == "growing"


def test_a_machine_that_got_slower_excuses_latencies_and_nothing_else():
    rising = [
        judge(name, *readings(60.0), MEMORY, run_s=HOUR)
        for name in ("local ms", "daemon RSS MiB", "(yardstick ms)")
    ]
    assert [v.word for v in forgive(rising, "(yardstick ms)")] == ["slowed", "growing", "growing"]
    steady = [*rising[:2], judge("(yardstick ms)", *readings(0.0), None, run_s=HOUR)]
    assert [v.word for v in forgive(steady, "(yardstick ms)")] == ["growing", "growing", "told"]


def test_an_empty_stretch_is_no_slope():
    assert theil_sen([1.0], [2.0]) == (0.0, 0.0, 0.0)
