"""The storm over the link: the same seed is the same storm, a small one recovers, and one that
does not is told.
"""

import pytest

from tests.chaos.links import KINDS, Report, Strike, plan, storm


def test_the_same_seed_is_the_same_storm_and_a_storm_has_every_kind():
    assert plan(3, 40) == plan(3, 40)
    assert plan(3, 40) != plan(4, 40)
    assert {strike.kind for strike in plan(1, len(KINDS))} == set(KINDS)
    assert sum(1 for strike in plan(1, 1000) if strike.then) > 100


@pytest.mark.timeout(120)
@pytest.mark.requirement("I4-link-storm")
async def test_after_one_fault_of_every_kind_the_page_is_back_each_time(tmp_path):
    report = await storm(tmp_path, 1, len(KINDS))
    assert report.recovered == len(KINDS), report.line()
    assert set(report.kinds) == set(KINDS)


async def test_a_fault_that_is_not_recovered_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.chaos.links.PATIENCE_S", 1.0)
    monkeypatch.setattr(
        "tests.chaos.links.HEARTBEAT_S", 60.0
    )  # a busy machine's silence would lose the link all the same
    monkeypatch.setattr(
        "tests.chaos.links.plan", lambda _seed, _number: [Strike("battery", 50)]
    )  # it loses no link
    report = await storm(tmp_path, 1, 1)
    assert (report.recovered, len(report.lost)) == (0, 1)
    assert "NOT RECOVERED 1 Strike(kind='battery'" in report.line()


def test_the_report_is_in_numbers():
    report = Report(7, 4, took_s=8.0, waits_s=[0.4, 0.1, 0.2, 0.3])
    assert "recovered 4; time to page restored p50 0.30 s, p95 0.40 s, max 0.40 s" in report.line()
