"""`make bench`: one run, one table. Ratios against the baseline of the same run are the result;
times are its colour.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from pathlib import Path

from benchmarks import (
    backlog,
    broker,
    calls,
    durable,
    growth,
    hearing,
    lens,
    listing,
    mcp,
    paths,
    peers,
    pictures,
    process,
    registry,
    scripts,
    steps,
)
from benchmarks.compare import compare
from benchmarks.table import Lines, Row, bar, not_measured

CONFIG = 'version = 1\n[glasses]\nradio = "bluez"\n'
UPLINK_S = 30.0


def commands(runs: int) -> Lines:
    python = [sys.executable, "-c"]
    bare = process.wall_ms([*python, "pass"], runs=runs)
    least = process.wall_ms([*python, process.LEAST_IMPORTS], runs=runs)
    imports = process.wall_ms([*python, process.BARE_IMPORTS], runs=runs)
    yield Row("python -c pass", bare, "ms", "itself", bare)
    yield Row("the daemon's bare imports", imports, "ms", "python -c pass", bare)
    helped = process.wall_ms([sys.executable, "-m", "edge.cli", "--help"], runs=runs)
    yield Row("glassd --help", helped, "ms", "python -c pass", bare)
    with (
        tempfile.TemporaryDirectory() as folder,
        process.daemon(Path(folder), CONFIG) as (_, _, env),
    ):
        status = process.wall_ms([sys.executable, "-m", "edge.cli", "status"], runs=runs, env=env)
    yield Row("glassd status", status, "ms", "python -c pass", bare)
    ready = []
    for _ in range(runs):
        with (
            tempfile.TemporaryDirectory() as folder,
            process.daemon(Path(folder), CONFIG) as (_, ms, _),
        ):
            ready.append(ms)
    middle = sorted(ready)[len(ready) // 2]
    yield Row("time to READY", middle, "ms", "the bare imports", imports)
    yield Row("time to READY", middle, "ms", "asyncio, sqlite3 and uvloop", least)


def idle(seconds: float) -> Lines:
    base = process.import_rss_mib(process.BARE_IMPORTS)
    with (
        tempfile.TemporaryDirectory() as folder,
        process.daemon(Path(folder), CONFIG) as (pid, _, _),
    ):
        time.sleep(3)  # start-up work is over; what follows is idling
        before = process.cpu_s(pid)
        time.sleep(seconds)
        used = (process.cpu_s(pid) - before) / seconds * 100
        rss = process.rss_mib(pid)
    yield Row("idle RSS, radio bluez, no adapter", rss, "MiB", "the bare imports", base)
    yield Row(f"idle CPU of one core, over {seconds:.0f} s", used, "%")
    if why := broker.why_not():
        yield not_measured("idle RSS with a broker and a cloud", why)
        return
    rss = _idle_with_cloud_mib()
    yield Row("idle RSS with a broker and a cloud", rss, "MiB", "the bare imports", base)


def _idle_with_cloud_mib() -> float:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with broker.mosquitto(folder) as port, process.devcloud(folder, port) as url:
            config = f"{CONFIG}[uplink]\nhost = '127.0.0.1'\nport = {port}\ntls = false\n"
            with process.daemon(folder, f"{config}[cloud]\nurl = '{url}'\n") as (pid, _, _):
                wire = lens.UnixConnection(folder / "glassd" / "control.sock")
                until, state, origin = time.monotonic() + UPLINK_S, "", ""
                while (state, origin) != ("up", "cloud"):
                    if time.monotonic() > until:
                        raise SystemExit(f"the uplink is {state}, the registry of {origin}")
                    time.sleep(0.2)
                    wire.request("GET", "/v1/status")
                    status = json.loads(wire.getresponse().read())
                    state, origin = status["uplink"]["state"], status["registry"]["origin"]
                time.sleep(3)
                return process.rss_mib(pid)


def _spoken() -> Lines:
    if missing := hearing.why_not():
        yield not_measured("hearing", missing)
        return
    yield from _in_ms(hearing.measure())
    yield bar(hearing.BAR, "x", "the answer to a sentence, without the pause")
    yield bar(hearing.LAG_BAR_MS, "ms", "the lag of captions")


def _durable() -> Lines:
    for rate in durable.measure():
        who = f"{rate.callers} caller{'s' if rate.callers > 1 else ''}"
        rows = f"{rate.callers} row{'s' if rate.callers > 1 else ''} a commit"
        base = f"bare inserts, {rows}"
        yield Row(f"durable admissions, {who}", rate.per_s, "/s", base, rate.bare_per_s)
        yield Row(f"commits (fsyncs) an admission, {who}", rate.commits, "")


def _listing(runs: int) -> Lines:
    yield from _in_ms(listing.measure(runs))
    yield bar(listing.BAR_MS, "ms", "listing 1,000 cached tools, p99")


def _registry(runs: int) -> Lines:
    for line in registry.measure(runs):
        yield Row(*line)
    yield bar(registry.BAR, "x", "`glassd tools` without a daemon")


def _mcp(count: int) -> Lines:
    yield from mcp.measure(count)
    for way, most in mcp.BARS.items():
        yield bar(most, "ms", f"{way}, p50")


def _scripts(runs: int) -> Lines:
    yield from _in_ms(scripts.measure(runs))
    for which, most in scripts.BARS.items():
        yield bar(most, "x", f"the {which} page")
    before, after = scripts.memory()
    yield Row("RSS after drawing, when its child has ended", after, "MiB", "before", before)


def _steps() -> Lines:
    few = argparse.Namespace(runs=1, idle=5, paths=40, mcp=40, lists=20, memory=2000)
    watched = {name: partial(SECTIONS[name], few) for name in WATCHED}
    yield from steps.measure(watched)
    yield bar(steps.BAR_MS, "ms", "any step of the event loop")


def _in_ms(rows: Iterable[tuple[str, float, str, float]]) -> Lines:
    for what, value, baseline, base in rows:
        yield Row(what, value, "ms", baseline, base)


SECTIONS: dict[str, Callable[[argparse.Namespace], Lines]] = {
    "commands": lambda chosen: commands(chosen.runs),
    "idle": lambda chosen: idle(chosen.idle),
    "lens": lambda _: lens.measure(calls=40),
    "pictures": lambda _: pictures.measure(),
    "hearing": lambda _: _spoken(),
    "scripts": lambda _: _scripts(7),
    "calls": lambda chosen: _in_ms(calls.measure(chosen.calls)),
    "durable": lambda _: _durable(),
    "backlog": lambda _: backlog.measure(),
    "paths": lambda chosen: paths.measure(chosen.paths),
    "mcp": lambda chosen: _mcp(chosen.mcp),
    "peers": lambda chosen: peers.measure(chosen.paths),
    "listing": lambda chosen: _listing(chosen.lists),
    "registry": lambda chosen: _registry(chosen.runs),
    "growth": lambda chosen: growth.measure(chosen.memory),
    "steps": lambda _: _steps(),
}
"""What can be measured alone, in the order of the table."""
WATCHED = ("idle", "lens", "pictures", "scripts", "paths", "mcp", "listing", "registry", "growth")
"""Sections with daemons."""


NUMBERS = {
    "runs": (9, "starts of a command"),
    "idle": (60, "seconds of idling"),
    "calls": (5000, "calls of the orchestrator"),
    "paths": (300, "calls of each whole way"),
    "mcp": (400, "calls of each way of an agent"),
    "lists": (300, "listings of 1,000 tools"),
    "memory": (20_000, "calls while memory is looked at"),
}
"""How often things are measured: fewer is faster and noisier."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--only",
        action="append",
        choices=tuple(SECTIONS),
        help="measure this alone; may be given again",
    )
    for name, (stock, what) in NUMBERS.items():
        options.add_argument(
            f"--{name}", type=int, default=stock, metavar="N", help=f"{what} ({stock})"
        )
    options.add_argument("--json", action="store_true", help="print a JSON object a line")
    options.add_argument(
        "--compare", type=Path, metavar="CHECKOUT", help="measure another checkout too, in turns"
    )
    options.add_argument(
        "--turns", type=int, default=3, metavar="N", help="of each checkout with --compare (3)"
    )
    chosen = options.parse_args()
    sections = chosen.only or list(SECTIONS)
    if chosen.compare:
        numbers = [f"--{name}={getattr(chosen, name)}" for name in NUMBERS]
        for text in compare(chosen.compare, sections, numbers, chosen.turns):
            print(text, flush=True)
        return
    for name in sections:
        for line in SECTIONS[name](chosen):
            print(json.dumps(asdict(line)) if chosen.json else line, flush=True)


if __name__ == "__main__":
    main()
