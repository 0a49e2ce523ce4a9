"""`make soak`: start the cast, fill what is bounded, run the mixed load, sample, judge. Exit 1 when
something grows.

`--seconds N` for shorter ones (below half an hour slopes are weighed, not judged); `--out` for
soak.json and soak.md.
"""

import argparse
import asyncio
import os
import signal
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import httpx

from benchmarks.soak import report, verdict
from benchmarks.soak.cast import AUDIT_MIB, Cast
from benchmarks.soak.load import Load
from benchmarks.soak.samples import YARDSTICK, Sampler
from benchmarks.soak.wires import Wires
from edge.demo.processes import StartFailed

READY = ("ready", "up", "cloud")
"""Glasses, uplink, and where the registry came from."""
READY_S = 40.0
LINE_S = 60.0
SLACK_MIB = 0.05
"""A line that is longer than what was left of its file."""
DRAIN_S = 60.0
SETTLE_S = 5.0
FEWEST_TO_JUDGE = 0.5
"""Part of the windows an act must have happened in for its latency to be a series."""


class Soak:
    """One soak: `run` gives its report. Raises `StartFailed` when it cannot begin."""

    def __init__(self, chosen: argparse.Namespace, folder: Path) -> None:
        self._chosen = chosen
        self._cast = Cast(folder)
        self._stop = asyncio.Event()

    async def run(self) -> report.Report:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._stop.set)
        async with AsyncExitStack() as stack:
            await self._begin(stack)
            preload = await self._load.preload(self._chosen.preload)
            await asyncio.sleep(SETTLE_S)
            others = {"cloud": self._cast.cloud.pid, "glasses": self._cast.glasses.pid}
            self._sampler = Sampler(self._cast.daemon.pid, self._cast.state, others)
            began = time.monotonic()
            problems = await self._sampled()
            ran = time.monotonic() - began
            await self._load.mend()
            problems += [] if problems else await self._drained()
            return self._report(preload, ran, problems)

    async def _begin(self, stack: AsyncExitStack) -> None:
        chosen, cast = self._chosen, self._cast
        await cast.enter(stack)
        self._wires = Wires(cast.control, cast.cloud_url, cast.mock_control)
        stack.push_async_callback(self._wires.close)
        await self._ready()
        self._load = Load(self._wires, cast, rate=chosen.rate, seed=chosen.seed)
        print(
            f"{cast.broker_kind}, cloud, mock:full and the daemon are up in "
            f"{cast.folder}; {chosen.preload} quick calls first",
            flush=True,
        )

    async def _ready(self) -> None:
        """Wait until glasses, uplink and registry are there. Raises `StartFailed`."""
        status: dict[str, Any] = {}
        try:
            async with asyncio.timeout(READY_S):
                while True:
                    with suppress(httpx.HTTPError):
                        status = await self._wires.get("/v1/status")
                        if (
                            status["glasses"]["state"],
                            status["uplink"]["state"],
                            status["registry"]["origin"],
                        ) == READY:
                            return
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise StartFailed(
                f"not all is there after {READY_S:.0f} s: {status.get('next_action')}"
            ) from None

    # -------------------------------------------------------------- the hour

    async def _sampled(self) -> list[str]:
        """Run the load and sample it until the time is over; what ended it early."""
        cast, every, whole = self._cast, self._chosen.every, self._chosen.seconds
        began = said = time.monotonic()
        running = asyncio.ensure_future(self._load.run())
        try:
            while (left := began + whole - time.monotonic()) > 0:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), min(every, left))
                if self._stop.is_set():
                    return ["it was stopped early"]
                if running.done():
                    running.result()
                if gone := [
                    member.name
                    for member in (cast.daemon, cast.cloud, cast.glasses)
                    if not member.running
                ]:
                    return [f"{name} ended by itself" for name in gone]
                self._sampler.take(await self._counted())
                if time.monotonic() - said >= LINE_S:
                    said = time.monotonic()
                    self._progress(said - began)
            return []
        finally:
            running.cancel()
            await asyncio.wait({running})

    async def _counted(self) -> dict[str, float]:
        """Latencies of this window, and what the daemon counts of itself."""
        found = {
            f"{name} ms": statistics.median(taken)
            for name, taken in self._load.tally.window().items()
            if taken
        }
        with suppress(httpx.HTTPError, ValueError):
            status = await self._wires.get("/v1/status")
            found["outbox"] = float(status["outbox"].get("waiting", 0))
            found["calls in flight"] = float(status["calls"].get("running", 0))
            if isinstance(tasks := status.get("tasks"), int):
                found["asyncio tasks"] = float(tasks)
        return found

    def _progress(self, at: float) -> None:
        series, tally = self._sampler.series, self._load.tally
        rss, fds, db, cpu = (
            series[name].values[-1]
            for name in ("daemon RSS MiB", "open fds", "glassd.db MiB", "CPU %")
        )
        print(
            f"{at / 60:5.1f} of {self._chosen.seconds / 60:.0f} min  "
            f"{tally.done:>6} acts  RSS {rss:.1f} MiB  fds {fds:.0f}"
            f"  db {db:.2f} MiB  CPU {cpu:.0f} %  in flight "
            f"{self._load.in_flight}  broken {tally.broken_count}",
            flush=True,
        )

    # -------------------------------------------------------------- the end

    async def _drained(self) -> list[str]:
        """After the load everything accepted must come to its end: nothing waits, nothing runs."""
        left = "the daemon did not say"
        try:
            async with asyncio.timeout(DRAIN_S):
                while True:
                    with suppress(httpx.HTTPError):
                        status = await self._wires.get("/v1/status")
                        pending = (await self._wires.get("/v1/calls?pending=1"))["calls"]
                        waiting, running = status["outbox"]["waiting"], status["calls"]["running"]
                        if not (waiting or running or pending):
                            return []
                        left = (
                            f"{waiting} in the outbox, {running} running, "
                            f"{len(pending)} without an answer"
                        )
                    await asyncio.sleep(0.5)
        except TimeoutError:
            return [f"not all came to its end {DRAIN_S:.0f} s after the load: {left}"]

    def _report(self, preload: float, ran: float, problems: list[str]) -> report.Report:
        series, tally, chosen = self._sampler.series, self._load.tally, self._chosen
        most = max((len(one.values) for one in series.values()), default=0)
        verdicts = [
            verdict.judge(
                name,
                one.at,
                one.values,
                verdict.rule_for(name, {"audit files MiB": AUDIT_MIB + SLACK_MIB}),
                run_s=ran,
            )
            for name, one in series.items()
            if len(one.values) >= most * FEWEST_TO_JUDGE
        ]
        load = {"acts/s": chosen.rate, "preloaded calls": chosen.preload, "seed": chosen.seed}
        said = report.Report(
            seconds=ran,
            preload_per_s=preload,
            setting=report.setting(broker=self._cast.broker_kind, **load),
            verdicts=verdict.forgive(verdicts, YARDSTICK),
            outcomes=tally.outcomes,
            broken=tally.broken,
            broken_count=tally.broken_count,
            left_out=tally.left_out,
            problems=problems,
        )
        if chosen.out is not None:
            said.write(chosen.out, series)
        return said


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.soak")
    options.add_argument("--seconds", type=float, default=3600.0)
    options.add_argument("--rate", type=float, default=5.0, help="acts a second")
    options.add_argument(
        "--preload",
        type=int,
        default=2500,
        help="quick calls before the sampling, so that bounds are met",
    )
    options.add_argument("--every", type=float, default=10.0, help="seconds between samples")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--out", type=Path, help="folder for soak.json and soak.md")
    options.add_argument(
        "--keep", type=Path, help="folder for logs and state, kept; else a temporary one"
    )
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        folder = chosen.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            said = asyncio.run(Soak(chosen, folder).run())
        except StartFailed as e:
            print(f"the soak cannot begin: {e}", file=sys.stderr)
            return 2
    print(said.text(), flush=True)
    return 0 if said.passed else 1


if __name__ == "__main__":
    os.environ.setdefault("NO_COLOR", "1")
    sys.exit(main())
