"""Counts and latencies of calls since the start, from audit records: JSON and OpenMetrics.

Nothing is measured or sent here.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from edge.core.latency import BOUNDS_MS, TARGETS_MS, Histogram
from edge.core.routing import RouteKind
from tools_cache.api.tool import Delivery, ErrorType, Json, Mode

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

MAX_TOOLS: Final = 256
"""Tools counted each for itself; those that come later share a line."""
MAX_WORD: Final = 255
MAX_WORDS: Final = 64
"""Different words (routes, outcomes, categories) that one counter tells apart."""
MAX_DURATION_MS: Final = 7 * 86_400_000
"""Longer than any call may live."""
BUSIEST: Final = 20
OTHER: Final = "other"
"""What exceeds a bound, and unknown tools: invented names must not fill the table."""
INTERIM: Final = frozenset({"pending", "confirmation"})
"""Outcomes that are no end: the call is counted when it ends."""
REPLAY: Final = "replay"
"""The outcome of a call that got the stored answer of an earlier one."""
RAN: Final = frozenset({"answered", "completed"})
"""Outcomes of calls that ran. Refusals and stored answers would make a slow tool look quick."""
NOT_TIMED: Final = frozenset(
    {
        RouteKind.FALLBACK,
        RouteKind.CACHE,
        RouteKind.QUEUE,
        RouteKind.WEARER,
        RouteKind.LATER,
    }
)
"""Routes that do not show a tool's speed: it did not run, or waited for a network or person."""
_ERROR_TYPES: Final = frozenset(t.value for t in ErrorType)
_DELIVERIES: Final = frozenset(d.value for d in Delivery)
_MODES: Final = frozenset(m.value for m in Mode)


class Gauges(Struct, frozen=True):
    """What is true now, as the layers say it."""

    outbox: int = 0
    outbox_oldest_s: float = 0.0
    running: int = 0
    pending: int = 0
    glasses_ready: bool = False
    uplink_up: bool = False
    audit_lost: int = 0


class _Tool(Struct):
    calls: int = 0
    replays: int = 0
    over_budget: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    took: Histogram = field(default_factory=Histogram)

    def copy(self) -> "_Tool":
        return replace(self, errors=self.errors.copy(), took=self.took.copy())


class _Counts(Struct):
    """Everything counted. `ways` is (route, outcome), `classes` is (category, mode)."""

    tools: dict[str, _Tool] = field(default_factory=dict)
    ways: Counter[tuple[str, str]] = field(default_factory=Counter)
    deliveries: Counter[str] = field(default_factory=Counter)
    classes: dict[tuple[str, str], Histogram] = field(default_factory=dict)
    turns_over_budget: int = 0

    def copy(self) -> "_Counts":
        return replace(
            self,
            tools={name: tool.copy() for name, tool in self.tools.items()},
            ways=self.ways.copy(),
            deliveries=self.deliveries.copy(),
            classes={which: took.copy() for which, took in self.classes.items()},
        )


class Metrics:
    """`observe` every audit record; `summary` and `openmetrics` ask for `gauges`."""

    def __init__(self, gauges: Callable[[], Gauges] = Gauges) -> None:
        self._gauges = gauges
        self._counts = _Counts()

    def observe(self, record: Mapping[str, Json]) -> None:
        """Count one record (keys as in the audit log), as far as it is well formed."""
        counts, outcome = self._counts, _word(record.get("outcome"))
        counts.ways[_bounded(counts.ways, (_word(record.get("route")), outcome))] += 1
        counts.turns_over_budget += record.get("turnOverBudget") is True
        if outcome in INTERIM:
            return
        counts.deliveries[_delivery(record.get("delivery"))] += 1
        tool = self._tool(record)
        tool.calls += 1
        tool.replays += outcome == REPLAY
        tool.over_budget += record.get("overBudget") is True
        if record.get("ok") is not True:
            tool.errors[_one_of(record.get("errorType"), _ERROR_TYPES)] += 1
        took = _duration(record.get("duration"))
        if outcome in RAN and _word(record.get("route")) not in NOT_TIMED and took is not None:
            self._took(tool, record, took)

    def _tool(self, record: Mapping[str, Json]) -> _Tool:
        """Return the counts of the record's tool. A tool without a version was not found."""
        name, tools = _word(record.get("toolId")), self._counts.tools
        full = name not in tools and len(tools) >= MAX_TOOLS
        if not name or record.get("version") is None or full:
            name = OTHER
        return tools.setdefault(name, _Tool())

    def _took(self, tool: _Tool, record: Mapping[str, Json], ms: int) -> None:
        tool.took.observe(ms)
        classes = self._counts.classes
        which = _word(record.get("category")) or OTHER, _one_of(record.get("mode"), _MODES)
        classes.setdefault(_bounded(classes, which), Histogram()).observe(ms)

    def summary(self) -> dict[str, Any]:
        """Return the `calls` of the status document: totals, busiest tools, latency classes."""
        counts = self._counts
        busiest = sorted(counts.tools.items(), key=lambda item: (-item[1].calls, item[0]))[:BUSIEST]
        tools = counts.tools.values()
        return {
            "total": sum(t.calls for t in tools),
            "errors": sum(t.errors.total() for t in tools),
            "replays": sum(t.replays for t in tools),
            "over_budget": {
                "calls": sum(t.over_budget for t in tools),
                "turns": counts.turns_over_budget,
            },
            "routes": _sums(counts.ways, 0),
            "outcomes": _sums(counts.ways, 1),
            "deliveries": dict(counts.deliveries),
            "tools": {name: _tool_summary(tool) for name, tool in busiest},
            "classes": _classes(counts.classes),
        }

    async def openmetrics(self) -> str:
        """Return OpenMetrics 1.0 text. Raise ModuleNotFoundError without prometheus-client.

        Written in a thread (0.1 s for 256 tools), from a copy, so that calls go on meanwhile.
        """
        return await asyncio.to_thread(_write, self._counts.copy(), self._gauges())


def _word(value: Json) -> str:
    """Bound a word; half a surrogate pair, which UTF-8 cannot carry, becomes a question mark."""
    return value[:MAX_WORD].encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _duration(value: Json) -> int | None:
    """Read milliseconds; what is none (or no number at all) is not measured."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= MAX_DURATION_MS else None


def _one_of(value: Json, known: frozenset[str]) -> str:
    return value if isinstance(value, str) and value in known else OTHER


def _delivery(value: Json) -> str:
    state = value.get("state") if isinstance(value, Mapping) else value or Delivery.NONE.value
    return _one_of(state, _DELIVERIES)


def _bounded(counted: Mapping[tuple[str, str], object], pair: tuple[str, str]) -> tuple[str, str]:
    return pair if pair in counted or len(counted) < MAX_WORDS else (OTHER, OTHER)


def _sums(ways: Counter[tuple[str, str]], which: int) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for pair, count in ways.items():
        sums[pair[which] or "none"] += count
    return dict(sums)


def _tool_summary(tool: _Tool) -> dict[str, Any]:
    return {
        "calls": tool.calls,
        "errors": tool.errors.total(),
        "avg_ms": tool.took.average_ms,
        "p50_ms": tool.took.percentile_ms(0.5),
        "p99_ms": tool.took.percentile_ms(0.99),
    }


def _classes(classes: Mapping[tuple[str, str], Histogram]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for (category, mode), took in sorted(classes.items()):
        found.setdefault(category, {})[mode] = took.to_json(TARGETS_MS.get((category, mode)))
    return found


# ------------------------------------------------------------------ OpenMetrics


def _write(counts: _Counts, gauges: Gauges) -> str:
    from prometheus_client import metrics_core  # noqa: PLC0415 - 5 MiB, loaded when asked for
    from prometheus_client.openmetrics.exposition import generate_latest  # noqa: PLC0415 - as above
    from prometheus_client.registry import CollectorRegistry  # noqa: PLC0415 - as above

    registry = CollectorRegistry()
    registry.register(_Collector(metrics_core, counts, gauges))
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call] # the library does not say
    return text.decode()


class _Collector:
    """What prometheus-client asks for: our numbers in its families (`make`, its module of them)."""

    def __init__(self, make: ModuleType, counts: _Counts, gauges: Gauges) -> None:
        self._make = make
        self._counts = counts
        self._gauges = gauges

    def collect(self) -> "Iterator[Metric]":
        counts = self._counts
        yield from self._of_tools(counts.tools)
        yield self._durations(
            "glassd_tool_duration",
            "How long calls of this tool ran.",
            ("tool",),
            [((name,), tool.took) for name, tool in counts.tools.items()],
        )
        yield self._durations(
            "glassd_class_duration",
            "How long calls of this category and mode ran.",
            ("category", "mode"),
            list(counts.classes.items()),
        )
        yield from self._totals()
        yield from self._now()

    def _of_tools(self, tools: Mapping[str, _Tool]) -> "Iterator[Metric]":
        yield self._counter(
            "glassd_tool_calls",
            "Calls of this tool that were answered, refusals included.",
            ("tool",),
            (((name,), tool.calls) for name, tool in tools.items()),
        )
        yield self._counter(
            "glassd_tool_errors",
            "Calls of this tool that failed, by type of error.",
            ("tool", "type"),
            (((n, kind), k) for n, tool in tools.items() for kind, k in tool.errors.items()),
        )
        yield self._counter(
            "glassd_tool_replays",
            "Calls of this tool answered with a stored answer.",
            ("tool",),
            (((name,), tool.replays) for name, tool in tools.items()),
        )
        yield self._counter(
            "glassd_tool_over_budget",
            "Calls that took longer than their tool should.",
            ("tool",),
            (((name,), tool.over_budget) for name, tool in tools.items()),
        )

    def _counter(
        self,
        name: str,
        text: str,
        labels: tuple[str, ...],
        counts: Iterable[tuple[tuple[str, ...], int]],
    ) -> "Metric":
        family: Metric = self._make.CounterMetricFamily(name, text, labels=labels)
        for values, count in counts:
            family.add_metric(values, count)  # type: ignore[attr-defined] # a counter's own
        return family

    def _durations(
        self,
        name: str,
        text: str,
        labels: tuple[str, ...],
        counted: Sequence[tuple[tuple[str, ...], Histogram]],
    ) -> "Metric":
        ends = [*(str(ms / 1000) for ms in BOUNDS_MS), "+Inf"]
        family: Metric = self._make.HistogramMetricFamily(name, text, labels=labels, unit="seconds")
        for values, took in counted:
            buckets = list(zip(ends, took.cumulative(), strict=True))
            family.add_metric(values, buckets, took.total_ms / 1000)  # type: ignore[attr-defined] # a histogram's own
        return family

    def _totals(self) -> "Iterator[Metric]":
        make, counts = self._make.CounterMetricFamily, self._counts
        text, labels = "Answers by route and outcome; pending is no end.", ("route", "outcome")
        yield self._counter("glassd_calls", text, labels, counts.ways.items())
        text = "How far answers had got when they were given."
        deliveries = (((delivery,), count) for delivery, count in counts.deliveries.items())
        yield self._counter("glassd_deliveries", text, ("delivery",), deliveries)
        text = "Spoken turns whose calls took too long together."
        yield make("glassd_turns_over_budget", text, counts.turns_over_budget)
        text = "Audit lines that could not be written."
        yield make("glassd_audit_lost", text, self._gauges.audit_lost)

    def _now(self) -> "Iterator[Metric]":
        make, now = self._make.GaugeMetricFamily, self._gauges
        yield make("glassd_outbox_depth", "Messages the cloud has not acknowledged.", now.outbox)
        age, text = now.outbox_oldest_s, "Age of the oldest of them."
        yield make("glassd_outbox_oldest_age", text, age, unit="seconds")
        yield make("glassd_calls_running", "Calls in flight.", now.running)
        yield make("glassd_calls_pending", "Calls whose answer comes later.", now.pending)
        text = "1 when the glasses are connected and ready."
        yield make("glassd_glasses_ready", text, int(now.glasses_ready))
        yield make("glassd_uplink_up", "1 when the broker is connected.", int(now.uplink_up))
