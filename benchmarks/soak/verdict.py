"""Flat or growing? A stated rule for each series, over its last three quarters. Pure: numbers in,
words out.

The slope is Theil–Sen's (the median of the slopes of all pairs: a few wild readings move nothing),
told per hour, with Sen's interval of 99.9 % (some thirty series are judged; one in twenty must not
cry wolf). Only growth is judged.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

HOUR = 3600.0
LONG_S = 1800.0
"""A run of this length is judged by its slope alone; in a shorter one an hour is a guess, so
what it says is weighed.
"""
SHORT_S = 240.0
"""Below this nothing is condemned: a daemon's caches fill in its first minutes."""
FEWEST = 12
"""Readings below which nothing is said."""
MOST = 400
"""Readings a slope is taken from (every k-th of more): 80,000 pairs."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How much a series may grow in an hour: the larger of `grow` and `share` of its median. Below
    `cap` it may do what it likes: a file that is cut at its bound is a saw, not a line.
    """

    grow: float
    share: float = 0.05
    cap: float | None = None
    early: bool = True
    """May a short run condemn it? Not what fills up for a quarter of an hour (ids are remembered
    for ten minutes), and not latencies, which are whatever else the machine does.
    """


@dataclass(frozen=True, slots=True)
class Verdict:
    """`word`: flat · bounded (below what it is cut at) · growing · noisy (points up, and might as
    well not) · unclear (points up, in too short a run) · slowed (a latency that grew while the
    machine itself got slower) · few (readings) · told.
    """

    name: str
    first: float
    last: float
    slope: float
    low: float
    high: float
    allowed: float
    word: str

    @property
    def bad(self) -> bool:
        return self.word == "growing"


SIGMAS = 3.29
"""Of Kendall's statistic: an interval of 99.9 %."""
SLOWER = 1.1
WAL_CAP_MIB = 4.0
"""`journal_size_limit` and the pages of one checkpoint (1 MiB each), doubled: a commit that is
larger is not cut short.
"""


def rule_for(name: str, caps: dict[str, float]) -> Rule | None:
    """The rule of a series by its unit; None for what is only told. `caps`: bounds the daemon
    says of itself.
    """
    if name.startswith("("):
        return None
    if name in caps:
        return Rule(1.0, cap=caps[name])
    if name.endswith("MiB"):
        return Rule(1.0, cap=WAL_CAP_MIB if "-wal" in name else None, early="RSS" in name)
    if name.endswith(" ms"):
        return Rule(2.0, share=0.10, early=False)
    return Rule(1.0)


def judge(
    name: str, at: Sequence[float], values: Sequence[float], rule: Rule | None, *, run_s: float
) -> Verdict:
    """Compare the first and the last quarter, and judge the slope of all but the first."""
    quarter = max(1, len(values) // 4)
    first, last = statistics.median(values[:quarter]), statistics.median(values[-quarter:])
    at, values = at[quarter:], values[quarter:]
    if len(values) < FEWEST:
        return Verdict(name, first, last, 0.0, 0.0, 0.0, 0.0, "few")
    slope, low, high = (s * HOUR for s in theil_sen(at, values))
    if rule is None:
        return Verdict(name, first, last, slope, low, high, 0.0, "told")
    allowed = max(rule.grow, rule.share * abs(statistics.median(values)))
    word = _word(slope, low, allowed, rule, most=max(values), risen=last - first, run_s=run_s)
    return Verdict(name, first, last, slope, low, high, allowed, word)


def _word(
    slope: float, low: float, allowed: float, rule: Rule, *, most: float, risen: float, run_s: float
) -> str:
    if rule.cap is not None and most <= rule.cap:
        return "bounded"
    if slope < allowed:
        return "flat"
    if run_s >= LONG_S:
        return "growing" if low > 0 else "noisy"
    return (
        "growing"
        if rule.early and run_s >= SHORT_S and low > allowed and risen > max(rule.grow, allowed / 4)
        else "unclear"
    )


def forgive(verdicts: Sequence[Verdict], yardstick: str) -> list[Verdict]:
    """Latencies are no fault of the daemon when a fixed piece of work outside it became slower
    in the same time.
    """
    slower = next((v for v in verdicts if v.name == yardstick), None)
    if slower is None or slower.last < slower.first * SLOWER:
        return list(verdicts)
    return [replace(v, word="slowed") if v.bad and v.name.endswith(" ms") else v for v in verdicts]


def theil_sen(at: Sequence[float], values: Sequence[float]) -> tuple[float, float, float]:
    """(slope, its bounds), per unit of `at`."""
    step = max(1, math.ceil(len(values) / MOST))
    at, values = at[::step], values[::step]
    n = len(values)
    slopes = sorted(
        (values[j] - values[i]) / (at[j] - at[i])
        for i in range(n)
        for j in range(i + 1, n)
        if at[j] > at[i]
    )
    if not slopes:
        return 0.0, 0.0, 0.0
    spread = SIGMAS * math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    low = slopes[max(0, math.floor((len(slopes) - spread) / 2))]
    high = slopes[min(len(slopes) - 1, math.ceil((len(slopes) + spread) / 2))]
    return statistics.median(slopes), low, high
