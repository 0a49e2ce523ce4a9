"""What `make bench` measures of calls runs with the ports as they are now."""

from benchmarks import calls


def test_calls_are_measured() -> None:
    rows = calls.measure(20)
    assert [what for what, *_ in rows] == [
        "orchestrator, one call, p50",
        "orchestrator, one call, p99",
        "orchestrator, one call, CPU",
    ]
    assert all(ms > 0 for _, ms, _, _ in rows)
