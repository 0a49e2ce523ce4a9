"""`make bench`: one run, one table. Ratios against the baseline of the same run are the result;
times are its colour.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import calls, durable, hearing, lens, listing, mcp, process, registry, scripts

CONFIG = 'version = 1\n[glasses]\nradio = "bluez"\n'


def row(what: str, value: float, unit: str, baseline: str, base: float) -> None:
    ratio = f"{value / base:6.2f} x" if base else "       -"
    print(
        f"{what:<46} {_number(value):>9} {unit:<4} {ratio}  of {baseline} ({_number(base)} {unit})",
        flush=True,
    )


def _number(value: float) -> str:
    """Three digits that say something: 0.362, 19.9, 6765."""
    return f"{value:.3f}" if value < 1 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def commands(runs: int) -> None:
    python = [sys.executable, "-c"]
    bare = process.wall_ms([*python, "pass"], runs=runs)
    imports = process.wall_ms([*python, process.BARE_IMPORTS], runs=runs)
    row("python -c pass", bare, "ms", "itself", bare)
    row("the daemon's bare imports", imports, "ms", "python -c pass", bare)
    helped = process.wall_ms([sys.executable, "-m", "edge.cli", "--help"], runs=runs)
    row("glassd --help", helped, "ms", "python -c pass", bare)
    with (
        tempfile.TemporaryDirectory() as folder,
        process.daemon(Path(folder), CONFIG) as (_, _, env),
    ):
        status = process.wall_ms([sys.executable, "-m", "edge.cli", "status"], runs=runs, env=env)
    row("glassd status", status, "ms", "python -c pass", bare)
    ready = []
    for _ in range(3):
        with (
            tempfile.TemporaryDirectory() as folder,
            process.daemon(Path(folder), CONFIG) as (_, ms, _),
        ):
            ready.append(ms)
    row("time to READY", sorted(ready)[1], "ms", "the bare imports", imports)


def idle(seconds: float) -> None:
    base = process.import_rss_mib(process.BARE_IMPORTS)
    with (
        tempfile.TemporaryDirectory() as folder,
        process.daemon(Path(folder), CONFIG) as (pid, _, _),
    ):
        time.sleep(3)  # start-up work is over; what follows is idling
        before = process.cpu_s(pid)
        time.sleep(seconds)
        used = (process.cpu_s(pid) - before) / seconds * 100
        row(
            "idle RSS, radio bluez, no adapter",
            process.rss_mib(pid),
            "MiB",
            "the bare imports",
            base,
        )
    print(f"{'idle CPU':<46} {used:9.2f} %    of one core, over {seconds:.0f} s")


def to_the_lens() -> None:
    for what, value, baseline, base in lens.measure(calls=40):
        row(what, value, "ms", baseline, base)


def spoken() -> None:
    if missing := hearing.why_not():
        print(f"{'hearing':<46} {'-':>9}      not measured: {missing}")
        return
    for what, value, baseline, base in hearing.measure():
        row(what, value, "ms", baseline, base)
    print(f"{'':<46} {hearing.BAR:9.1f} x    is the bar without the pause")
    print(f"{'':<46} {hearing.LAG_BAR_MS:9.1f} ms   is the bar for the lag of captions")


def per_call(count: int) -> None:
    for what, value, baseline, base in calls.measure(count):
        row(what, value, "ms", baseline, base)


def admissions() -> None:
    for rate in durable.measure():
        who = f"{rate.callers} caller{'s' if rate.callers > 1 else ''}"
        rows = f"{rate.callers} row{'s' if rate.callers > 1 else ''} a commit"
        row(
            f"durable admissions, {who}", rate.per_s, "/s", f"bare inserts, {rows}", rate.bare_per_s
        )
        print(f"{f'commits (fsyncs) an admission, {who}':<46} {rate.commits:9.3f}")


def tools_listed(runs: int) -> None:
    for what, value, baseline, base in listing.measure(runs):
        row(what, value, "ms", baseline, base)
    print(f"{'':<46} {listing.BAR_MS:9.1f} ms   is the bar for listing 1,000 cached tools, p99")


def ten_thousand(runs: int) -> None:
    for line in registry.measure(runs):
        row(*line)
    print(f"{'':<46} {registry.BAR:9.1f} x    is the bar for `glassd tools` without a daemon")


def mcp_calls(count: int) -> None:
    for what, value, baseline, base in mcp.measure(count):
        row(what, value, "ms", baseline, base)
    for way, bar in mcp.BARS.items():
        print(f"{'':<46} {bar:9.1f} ms   is the bar for {way}, p50")


def other_scripts(runs: int) -> None:
    for line in scripts.measure(runs):
        what, value, baseline, base = line
        row(what, value, "ms", baseline, base)
    for which, bar in scripts.BARS.items():
        print(f"{'':<46} {bar:9.1f} x    is the bar for the {which} page")
    before, after = scripts.memory()
    row("RSS after drawing, when its child has ended", after, "MiB", "before", before)


SECTIONS: dict[str, Callable[[argparse.Namespace], None]] = {
    "commands": lambda chosen: commands(chosen.runs),
    "idle": lambda chosen: idle(chosen.idle),
    "lens": lambda _: to_the_lens(),
    "hearing": lambda _: spoken(),
    "scripts": lambda _: other_scripts(7),
    "calls": lambda chosen: per_call(chosen.calls),
    "durable": lambda _: admissions(),
    "mcp": lambda chosen: mcp_calls(chosen.mcp),
    "listing": lambda chosen: tools_listed(chosen.lists),
    "registry": lambda chosen: ten_thousand(chosen.runs),
}
"""What can be measured alone, in the order of the table."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--only",
        action="append",
        choices=tuple(SECTIONS),
        help="measure this alone; may be given again",
    )
    options.add_argument("--runs", type=int, default=9)
    options.add_argument("--idle", type=float, default=60.0, metavar="SECONDS")
    options.add_argument("--calls", type=int, default=5000)
    options.add_argument("--mcp", type=int, default=400)
    options.add_argument("--lists", type=int, default=300)
    chosen = options.parse_args()
    for name, section in SECTIONS.items():
        if not chosen.only or name in chosen.only:
            section(chosen)


if __name__ == "__main__":
    main()
