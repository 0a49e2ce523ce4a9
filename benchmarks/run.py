"""`make bench`: one run, one table. Ratios against the baseline of the same run are the result; times are its colour."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import lens, process

CONFIG = 'version = 1\n[glasses]\nradio = "bluez"\n'


def row(what: str, value: float, unit: str, baseline: str, base: float) -> None:
    ratio = f"{value / base:6.2f} x" if base else "       -"
    print(f"{what:<46} {value:9.1f} {unit:<4} {ratio}  of {baseline} ({base:.1f} {unit})")


def commands(runs: int) -> None:
    python = [sys.executable, "-c"]
    bare = process.wall_ms([*python, "pass"], runs=runs)
    imports = process.wall_ms([*python, process.BARE_IMPORTS], runs=runs)
    row("python -c pass", bare, "ms", "itself", bare)
    row("the daemon's bare imports", imports, "ms", "python -c pass", bare)
    helped = process.wall_ms([sys.executable, "-m", "edge.cli", "--help"], runs=runs)
    row("glassd --help", helped, "ms", "python -c pass", bare)
    with tempfile.TemporaryDirectory() as folder, process.daemon(Path(folder), CONFIG) as (_, _, env):
        status = process.wall_ms([sys.executable, "-m", "edge.cli", "status"], runs=runs, env=env)
    row("glassd status", status, "ms", "python -c pass", bare)
    ready = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder, process.daemon(Path(folder), CONFIG) as (_, ms, _):
            ready.append(ms)
    row("time to READY", sorted(ready)[1], "ms", "the bare imports", imports)


def idle(seconds: float) -> None:
    base = process.import_rss_mib(process.BARE_IMPORTS)
    with tempfile.TemporaryDirectory() as folder, process.daemon(Path(folder), CONFIG) as (pid, _, _):
        time.sleep(3)  # start-up work is over; what follows is idling
        before = process.cpu_s(pid)
        time.sleep(seconds)
        used = (process.cpu_s(pid) - before) / seconds * 100
        row("idle RSS, radio bluez, no adapter", process.rss_mib(pid), "MiB", "the bare imports", base)
    print(f"{'idle CPU':<46} {used:9.2f} %    of one core, over {seconds:.0f} s")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=9)
    options.add_argument("--idle", type=float, default=60.0, metavar="SECONDS")
    chosen = options.parse_args()
    commands(chosen.runs)
    idle(chosen.idle)
    for what, value, baseline, base in lens.measure(calls=40):
        row(what, value, "ms", baseline, base)


if __name__ == "__main__":
    main()
