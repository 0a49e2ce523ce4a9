"""What the soak says at its end: the sentence, the exit code behind it, and files that can be
read again.
"""

import json
from collections import Counter

from benchmarks.soak.report import Report
from benchmarks.soak.samples import Series
from benchmarks.soak.verdict import Verdict


def report(*words, **more):
    verdicts = [
        Verdict(f"series {n}", 60.0, 61.0, 1.0, 0.5, 1.5, 3.0, word) for n, word in enumerate(words)
    ]
    more = {"broken": [], "broken_count": 0, "problems": [], **more}
    return Report(
        seconds=3600.0,
        preload_per_s=200.0,
        setting={"broker": "mosquitto"},
        verdicts=verdicts,
        outcomes={"local": Counter(ok=10, refused=2)},
        left_out=0,
        **more,
    )


def test_flat_and_bounded_and_noisy_pass():
    said = report("flat", "bounded", "noisy", "told", "few")
    assert said.passed
    assert said.sentence() == "PASSED: 12 acts in 3600 s; of 3 series 1 flat, 1 bounded, 1 noisy"


def test_one_growing_series_fails_the_whole():
    said = report("flat", "growing")
    assert not said.passed
    assert "1 growing" in said.sentence()


def test_a_broken_promise_fails_the_whole_and_is_shown():
    said = report("flat", broken=["replay: BROKEN: a key was used twice"], broken_count=3)
    assert not said.passed
    assert "3 promises broken" in said.sentence()
    assert "a key was used twice" in said.markdown()
    assert "a key was used twice" in said.text()


def test_an_end_before_its_time_fails_the_whole():
    assert (
        "daemon ended by itself" in report("flat", problems=["daemon ended by itself"]).sentence()
    )
    assert not report("flat", problems=["daemon ended by itself"]).passed


def test_the_files_hold_every_reading(tmp_path):
    series = Series()
    series.add(10.0, 61.25)
    report("flat").write(tmp_path / "out", {"daemon RSS MiB": series})
    document = json.loads((tmp_path / "out" / "soak.json").read_text())
    assert document["series"]["daemon RSS MiB"] == {"at": [10.0], "values": [61.25]}
    assert document["passed"] is True
    assert "| series 0 | 60.00 | 61.00 | +1.00 |" in (tmp_path / "out" / "soak.md").read_text()
