"""Counts and latencies: what status shows, and OpenMetrics text that the library's own parser
reads back.
"""

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings, strategies as st
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from edge.control.routes import OPENMETRICS
from edge.core.latency import BOUNDS_MS
from edge.observability import metrics as module
from edge.observability.metrics import BUSIEST, MAX_TOOLS, MAX_WORD, MAX_WORDS, Gauges, Metrics


def record(tool="notes:list", **changes):
    fields = {
        "toolId": tool,
        "version": "1",
        "category": "retrieval",
        "mode": "voice",
        "route": "local",
        "duration": 40,
        "outcome": "answered",
        "ok": True,
        "errorType": None,
        "delivery": "shown",
        "overBudget": False,
        "turnOverBudget": False,
    }
    return {**fields, **changes}


def failed(kind, tool="notes:list", **changes):
    return record(tool, ok=False, errorType=kind, **changes)


def counted(*records):
    metrics = Metrics()
    for each in records:
        metrics.observe(each)
    return metrics.summary()


async def exposed(*records, gauges=Gauges):
    """The samples of the exposition, as the library's parser reads them: {(name, labels):
    value}.
    """
    metrics = Metrics(gauges)
    for each in records:
        metrics.observe(each)
    families = list(text_string_to_metric_families(await metrics.openmetrics()))
    return {
        (s.name, tuple(sorted(s.labels.items()))): s.value
        for family in families
        for s in family.samples
    }


# ------------------------------------------------------------------ the summary


@pytest.mark.requirement("S2-132")
def test_each_tool_has_its_calls_errors_and_times():
    summary = counted(
        record(duration=10),
        record(duration=30),
        failed("TRANSIENT", duration=80),
        record("a:b", duration=7),
    )
    assert (summary["total"], summary["errors"]) == (4, 1)
    assert summary["tools"]["notes:list"] == {
        "calls": 3,
        "errors": 1,
        "avg_ms": 40,
        "p50_ms": 38,
        "p99_ms": 80,
    }
    assert summary["tools"]["a:b"] == {
        "calls": 1,
        "errors": 0,
        "avg_ms": 7,
        "p50_ms": 7,
        "p99_ms": 7,
    }


def test_before_the_first_call_there_is_a_summary_too():
    summary = counted()
    assert (summary["total"], summary["errors"], summary["tools"], summary["classes"]) == (
        0,
        0,
        {},
        {},
    )


def test_refusals_and_stored_answers_count_as_calls_but_are_not_timed():
    summary = counted(
        record(duration=900),
        failed("BUDGET_EXCEEDED", outcome="refused", route=None, duration=0),
        record(outcome="replay", duration=0, delivery="none"),
        failed("TRANSIENT", route="fallback", duration=1),
    )
    assert summary["tools"]["notes:list"] == {
        "calls": 4,
        "errors": 2,
        "avg_ms": 900,
        "p50_ms": 900,
        "p99_ms": 900,
    }
    assert summary["replays"] == 1
    assert summary["outcomes"] == {"answered": 2, "refused": 1, "replay": 1}
    assert summary["routes"] == {"local": 2, "none": 1, "fallback": 1}


def test_a_call_that_never_ran_has_no_time():
    summary = counted(failed("MODE_RESTRICTED", outcome="refused"))
    assert summary["tools"]["notes:list"] == {
        "calls": 1,
        "errors": 1,
        "avg_ms": None,
        "p50_ms": None,
        "p99_ms": None,
    }


def test_a_pending_call_is_counted_once_when_it_ends():
    summary = counted(
        record(outcome="pending", duration=4000), record(outcome="completed", duration=9000)
    )
    assert (summary["total"], summary["tools"]["notes:list"]["avg_ms"]) == (1, 9000)
    assert summary["outcomes"] == {"pending": 1, "completed": 1}
    assert summary["deliveries"] == {"shown": 1}


def test_deliveries_are_counted_by_state_with_or_without_a_reason():
    words = (
        "shown",
        {"state": "dropped", "reason": "glasses away"},
        None,
        "lost in space",
        {"state": 5},
        ["shown"],
    )
    summary = counted(*(record(delivery=word) for word in words))
    assert summary["deliveries"] == {"shown": 1, "dropped": 1, "none": 1, "other": 3}


@pytest.mark.parametrize(
    ("route", "timed"),
    [
        ("local", True),
        ("glasses", True),
        ("cloud", True),
        ("upstream", True),
        ("queue", False),
        ("cache", False),
        ("wearer", False),
        ("later", False),
        ("fallback", False),
    ],
)
def test_only_a_route_on_which_the_tool_itself_answers_is_timed(route, timed):
    tool = counted(record(route=route, duration=40))["tools"]["notes:list"]
    assert (tool["calls"], tool["avg_ms"]) == (1, 40 if timed else None)


@pytest.mark.requirement("S2-91")
@pytest.mark.requirement("S2-92")
def test_slow_calls_and_slow_turns_are_counted():
    summary = counted(
        record(overBudget=True), record(overBudget=True, turnOverBudget=True), record()
    )
    assert summary["over_budget"] == {"calls": 2, "turns": 1}


@pytest.mark.requirement("S2-140")
def test_latency_classes_are_percentiles_by_category_and_mode_beside_their_target():
    calls = [record(duration=ms) for ms in (100, 300, 700, 801)]
    summary = counted(
        *calls,
        record(mode="text", duration=1999),
        record(category="action", duration=4999),
        record(category=None),
    )
    voice = summary["classes"]["retrieval"]["voice"]
    assert (voice["count"], voice["target_ms"], voice["within"]) == (4, 800, 0.75)
    assert 200 < voice["p50_ms"] <= 400 < voice["p99_ms"] <= 801
    assert summary["classes"]["retrieval"]["text"]["within"] == 1.0
    assert summary["classes"]["action"]["voice"]["target_ms"] == 5000
    assert "target_ms" not in summary["classes"]["other"]["voice"]


def test_the_busiest_tools_are_listed_and_all_are_in_the_totals():
    summary = counted(*(record(f"a:t{n:02}") for n in range(40) for _ in range(n + 1)))
    assert list(summary["tools"]) == [f"a:t{n:02}" for n in range(39, 39 - BUSIEST, -1)]
    assert summary["total"] == 820


def test_tools_beyond_the_bound_share_a_line():
    summary = counted(*(record(f"a:t{n}") for n in range(MAX_TOOLS + 10)), record("a:t0"))
    assert summary["tools"]["other"]["calls"] == 10
    assert summary["tools"]["a:t0"]["calls"] == 2


def test_names_of_tools_that_do_not_exist_take_no_place():
    made_up = [
        failed("NOT_FOUND", f"a:made-up-{n}", version=None, outcome="refused")
        for n in range(MAX_TOOLS)
    ]
    summary = counted(*made_up, record())
    assert {name: tool["calls"] for name, tool in summary["tools"].items()} == {
        "other": MAX_TOOLS,
        "notes:list": 1,
    }


def test_routes_outcomes_and_categories_are_bounded():
    flood = [
        record(route=f"r{n}", outcome="answered", category=f"c{n}") for n in range(2 * MAX_WORDS)
    ]
    summary = counted(*flood)
    assert len(summary["routes"]) == len(summary["classes"]) == MAX_WORDS + 1
    assert summary["routes"]["other"] == summary["classes"]["other"]["other"]["count"] == MAX_WORDS


@pytest.mark.parametrize("duration", [float("nan"), float("inf"), -1, 10**400, True, "40", None])
def test_a_duration_that_is_none_is_not_measured(duration):
    tool = counted(record(duration=duration))["tools"]["notes:list"]
    assert (tool["calls"], tool["avg_ms"]) == (1, None)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(sorted(record())),
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(st.characters(codec=None))
        | st.lists(st.none(), max_size=1),
    )
)
async def test_whatever_a_record_holds_it_is_counted_and_can_be_shown(odd):
    metrics = Metrics()
    metrics.observe({**record(), **odd})
    metrics.observe({})
    json.dumps(metrics.summary(), allow_nan=False)
    list(text_string_to_metric_families(await metrics.openmetrics()))


# ------------------------------------------------------------------ OpenMetrics


@pytest.mark.requirement("S2-132")
async def test_the_text_says_what_was_counted():
    samples = await exposed(
        record(duration=800),
        record(duration=801, overBudget=True),
        failed("TRANSIENT", duration=40_000),
        record(outcome="replay", duration=0),
    )
    tool = ("tool", "notes:list")
    assert samples["glassd_tool_calls_total", (tool,)] == 4
    assert samples["glassd_tool_errors_total", (tool, ("type", "TRANSIENT"))] == 1
    assert samples["glassd_tool_replays_total", (tool,)] == 1
    assert samples["glassd_tool_over_budget_total", (tool,)] == 1
    assert samples["glassd_calls_total", (("outcome", "answered"), ("route", "local"))] == 3
    assert samples["glassd_deliveries_total", (("delivery", "shown"),)] == 4
    buckets = {
        end: samples["glassd_tool_duration_seconds_bucket", (("le", end), tool)]
        for end in ("0.4", "0.8", "1.5", "30.0", "+Inf")
    }
    assert buckets == {"0.4": 0, "0.8": 1, "1.5": 2, "30.0": 2, "+Inf": 3}
    assert samples["glassd_tool_duration_seconds_count", (tool,)] == 3
    assert samples["glassd_tool_duration_seconds_sum", (tool,)] == pytest.approx(41.601)
    assert (
        samples[
            "glassd_class_duration_seconds_count", (("category", "retrieval"), ("mode", "voice"))
        ]
        == 3
    )


async def test_gauges_are_what_the_layers_say_when_they_are_asked():
    now = Gauges(
        outbox=7,
        outbox_oldest_s=12.5,
        running=2,
        pending=3,
        glasses_ready=True,
        uplink_up=False,
        audit_lost=4,
    )
    samples = await exposed(gauges=lambda: now)
    assert {name: value for (name, labels), value in samples.items() if not labels} == {
        "glassd_outbox_depth": 7,
        "glassd_outbox_oldest_age_seconds": 12.5,
        "glassd_calls_running": 2,
        "glassd_calls_pending": 3,
        "glassd_glasses_ready": 1,
        "glassd_uplink_up": 0,
        "glassd_audit_lost_total": 4,
        "glassd_turns_over_budget_total": 0,
    }


@pytest.mark.parametrize(
    "name",
    [
        'say "hi"',
        "two\nlines",
        "back\\slash\\n",
        "Grüße 你好 👓",
        "tab\tand\rreturn",
        "nul\x00",
        "{}=,#",
    ],
)
async def test_any_name_comes_back_from_the_text_as_it_was(name):
    samples = await exposed(record(name, category=name, route=name))
    assert samples["glassd_tool_calls_total", (("tool", name),)] == 1
    assert samples["glassd_calls_total", (("outcome", "answered"), ("route", name))] == 1
    assert (
        samples["glassd_class_duration_seconds_count", (("category", name), ("mode", "voice"))] == 1
    )


async def test_names_with_half_a_character_are_one_tool_with_a_question_mark():
    samples = await exposed(record("a:\ud800"), record("a:\udfff"), record("a:?"))
    assert samples["glassd_tool_calls_total", (("tool", "a:?"),)] == 3


async def test_the_text_has_a_bounded_size_with_the_longest_names():
    metrics = Metrics()
    for n in range(MAX_TOOLS):
        metrics.observe(record(f"a:{n:03}" + "\n" * 300))
    text = await metrics.openmetrics()
    samples = [
        s
        for family in text_string_to_metric_families(text)
        for s in family.samples
        if s.name == "glassd_tool_calls_total"
    ]
    assert [len(s.labels["tool"]) for s in samples] == [MAX_WORD] * MAX_TOOLS
    assert len(text) < MAX_TOOLS * (len(BOUNDS_MS) + 8) * 700


async def test_calls_that_end_while_the_text_is_written_do_not_disturb_it(monkeypatch):
    metrics, write = Metrics(), module._write
    metrics.observe(record())

    def meanwhile(counts, gauges):
        metrics.observe(record("new:one"))
        metrics.observe(record())
        return write(counts, gauges)

    monkeypatch.setattr(module, "_write", meanwhile)
    assert 'glassd_tool_calls_total{tool="notes:list"} 1.0' in await metrics.openmetrics()
    assert metrics.summary()["total"] == 3


def test_the_content_type_is_the_librarys():
    assert OPENMETRICS == CONTENT_TYPE_LATEST


def test_the_daemon_counts_without_the_library():
    code = (
        "import sys, edge.observability.metrics; "
        "m = edge.observability.metrics.Metrics(); m.observe({}); "
        "m.summary(); print('prometheus_client' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert ran.stdout.strip() == "False"


async def test_without_the_library_the_text_cannot_be_had(monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(ModuleNotFoundError):
        await Metrics().openmetrics()
