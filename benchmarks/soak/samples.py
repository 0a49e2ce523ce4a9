"""What is measured of the daemon while the load runs, one value a series every few seconds.

It does not judge. It reads /proc and the state directory; it asks the daemon nothing it would not
say to anybody.
"""

import json
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.process import PAGE, TICKS, family

MIB = 2**20
YARDSTICK = "(yardstick ms)"
"""A fixed piece of work of our own: when it gets slower, the machine did."""


@dataclass
class Series:
    """Moments (s since the sampling began) and values of one thing."""

    at: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def add(self, at: float, value: float) -> None:
        self.at.append(round(at, 2))
        self.values.append(round(value, 4))


class Sampler:
    """`take` adds one value to every series. `others` are processes that are only told beside:
    name → pid.
    """

    def __init__(self, pid: int, state: Path, others: dict[str, int]) -> None:
        self._pid = pid
        self._state = state
        self._others = others
        self._began = time.monotonic()
        self._cpu = (self._began, _cpu_s(pid))
        self.series: dict[str, Series] = {}

    def take(self, more: dict[str, float]) -> None:
        """`more` is what the load knows: latencies of this window, what `status` counts."""
        now = time.monotonic()
        for name, value in {
            **self._process(now),
            **self._files(),
            **self._beside(),
            **more,
        }.items():
            self.series.setdefault(name, Series()).add(now - self._began, value)

    def _process(self, now: float) -> dict[str, float]:
        children = [pid for pid in family(self._pid) if pid != self._pid]
        (before, used), self._cpu = self._cpu, (now, _cpu_s(self._pid))
        return {
            "daemon RSS MiB": _rss_mib(self._pid),
            "children RSS MiB": sum(map(_rss_mib, children)),
            "children": len(children),
            "CPU %": 100 * (self._cpu[1] - used) / max(0.001, now - before),
            "open fds": _count(f"/proc/{self._pid}/fd"),
            "threads": _count(f"/proc/{self._pid}/task"),
        }

    def _files(self) -> dict[str, float]:
        sizes = {
            path.relative_to(self._state).as_posix(): size for path, size in _tree(self._state)
        }
        found = {"state dir MiB": sum(sizes.values()) / MIB}
        for name in ("glassd.db", "glassd.db-wal"):
            found[f"{name} MiB"] = sizes.get(name, 0) / MIB
        audit = [size for name, size in sizes.items() if "audit" in name]
        if audit:
            found["audit files MiB"] = sum(audit) / MIB
        return found

    def _beside(self) -> dict[str, float]:
        beside = {
            f"({name} RSS MiB)": _rss_mib(pid)
            for name, pid in self._others.items()
            if Path(f"/proc/{pid}").exists()
        }
        return {**beside, YARDSTICK: _yardstick_ms()}


def _yardstick_ms() -> float:
    """The middle of five, about 2 ms each."""
    taken = []
    for _ in range(5):
        began = time.perf_counter()
        json.dumps(_WORK)
        taken.append((time.perf_counter() - began) * 1e3)
    return statistics.median(taken)


_WORK = [
    {"n": n, "text": "a line of the usual length, as a lens shows it", "tags": ["one", "two"]}
    for n in range(1000)
]


def _tree(folder: Path) -> list[tuple[Path, int]]:
    """Every file and its size; one that goes while we look was never there."""
    found = []
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                found.append((path, path.stat().st_size))
        except OSError:
            continue
    return found


def _count(folder: str) -> int:
    return sum(1 for _ in Path(folder).iterdir())


def _rss_mib(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / MIB
    except (OSError, IndexError):
        return 0.0  # a child that ended between the listing and the reading


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
