"""Durations of calls: budgets per tool and spoken turn, targets, histograms.

Nothing is stopped here: `policy` limits the calls of a turn; slowness is only reported.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tools_cache.api.tool import Json, ToolDefinition, Turn

MAX_TURNS: Final = 256
"""Turns whose time is remembered; an edge has a handful of sessions, so this is hours of talk."""
TURN_MS: Final = 1500
"""Milliseconds all calls of one spoken turn may take together without a warning."""
BOUNDS_MS: Final = (5, 10, 25, 50, 100, 200, 400, 800, 1500, 2000, 4000, 5000, 10000, 20000, 30000)
"""Upper ends of the buckets: a local note to a slow cloud. Every limit (800, 1500, 2000, 4000,
5000) is one of them, so the share within it is counted, not estimated.
"""
TARGETS_MS: Final[Mapping[tuple[str, str], int]] = MappingProxyType(
    {
        ("retrieval", "voice"): 800,
        ("retrieval", "text"): 2000,
        ("action", "voice"): 5000,
        ("action", "text"): 5000,
    }
)
"""(category, mode) → what its calls should take at most. Others have no target."""


class LatencyLedger:
    """Adds up the durations of one turn's calls. A call without a turn is a turn of its own."""

    def __init__(self, *, most: int = MAX_TURNS) -> None:
        self._most = most
        self._turns: OrderedDict[Turn, int] = OrderedDict()

    def spent(self, turn: Turn | None, ms: int) -> int:
        """Add one call's time; return its turn's total. The oldest turn is forgotten first."""
        if turn is None:
            return ms
        total = self._turns.pop(turn, 0) + ms
        self._turns[turn] = total
        while len(self._turns) > self._most:
            self._turns.popitem(last=False)
        return total


def over_budget(tool: ToolDefinition | None, duration_ms: int) -> bool:
    """Return whether one call took longer than its tool should."""
    return tool is not None and duration_ms > tool.latency_budget_ms


def turn_over_budget(duration_ms: int, turn_total_ms: int, limit_ms: int = TURN_MS) -> bool:
    """Return whether this call took its turn over the limit; true for one call per turn."""
    return turn_total_ms - duration_ms <= limit_ms < turn_total_ms


def warnings(
    tool: ToolDefinition | None, duration_ms: int, turn_total_ms: int = 0, limit_ms: int = TURN_MS
) -> tuple[str, ...]:
    """Return warnings about slow calls. `turn_total_ms` 0: not in a spoken turn."""
    found = []
    if tool is not None and over_budget(tool, duration_ms):
        found.append(
            f"{tool.name} took {duration_ms} ms; its latency budget is {tool.latency_budget_ms} ms"
        )
    if turn_over_budget(duration_ms, turn_total_ms, limit_ms):
        found.append(
            f"the calls of this turn took {turn_total_ms} ms by now; "
            f"a spoken turn should stay within {limit_ms} ms"
        )
    return tuple(found)


class Histogram:
    """Durations in fixed buckets, with percentiles and counts per bucket."""

    __slots__ = ("_counts", "_max", "total_ms")

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_MS) + 1)
        self._max = 0
        self.total_ms = 0

    def observe(self, ms: int) -> None:
        self._counts[bisect_left(BOUNDS_MS, ms)] += 1
        self.total_ms += ms
        self._max = max(self._max, ms)

    @property
    def count(self) -> int:
        return sum(self._counts)

    @property
    def average_ms(self) -> int | None:
        """The average; None without observations."""
        count = self.count
        return round(self.total_ms / count) if count else None

    def percentile_ms(self, share: float) -> int | None:
        """Estimate the duration within which `share` (0…1) of the calls ended: linear within its
        bucket, at most the longest observed. None without observations.
        """
        wanted, below = share * self.count, 0
        if not self.count:
            return None
        for at, inside in enumerate(self._counts):
            if inside and below + inside >= wanted:
                low = BOUNDS_MS[at - 1] if at else 0
                high = BOUNDS_MS[at] if at < len(BOUNDS_MS) else self._max
                return min(self._max, round(low + (high - low) * (wanted - below) / inside))
            below += inside
        return self._max

    def within(self, bound_ms: int) -> int:
        """Count the calls that took at most this long; exact if it is one of `BOUNDS_MS`."""
        return sum(self._counts[: bisect_left(BOUNDS_MS, bound_ms) + 1])

    def cumulative(self) -> list[int]:
        """Return the number of calls up to each bound; the last is all of them."""
        sums, so_far = [], 0
        for count in self._counts:
            so_far += count
            sums.append(so_far)
        return sums

    def to_json(self, target_ms: int | None = None) -> dict[str, Json]:
        """Return percentiles for people; with a target, the share of calls within it."""
        said: dict[str, Json] = {
            "count": self.count,
            "p50_ms": self.percentile_ms(0.5),
            "p95_ms": self.percentile_ms(0.95),
            "p99_ms": self.percentile_ms(0.99),
        }
        if target_ms is not None and self.count:
            said |= {
                "target_ms": target_ms,
                "within": round(self.within(target_ms) / self.count, 3),
            }
        return said

    def copy(self) -> "Histogram":
        """Return an independent copy."""
        other = Histogram()
        other._counts, other._max, other.total_ms = self._counts[:], self._max, self.total_ms
        return other
