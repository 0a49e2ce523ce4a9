"""`glassd run` with its event loop watched: how long each step takes, and what ran in the longest.

`python -m benchmarks.watch REPORT run …`. A step is one callback of the loop: what it does between
two moments in which anything else can happen. SIGUSR1 begins the counting, SIGUSR2 writes the
report. The loop is asyncio's own, because uvloop's callbacks cannot be reached from Python; what is
measured of it is no time of the product.
"""

# ruff: noqa: SLF001 - asyncio has no public place to watch its callbacks from

import asyncio
import gc
import json
import signal
import sys
import threading
import time
from asyncio import events
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

KEPT_MS = 2.0
"""Shorter steps are only counted."""
LOOK_S = 0.001
"""So often is looked at what a long step does."""
SHOWN = 3
"""Places of a stack that are named."""


@dataclass
class Step:
    """One kind of step. `ms`: what its longest computed, of it `gc_ms` for the garbage collector;
    `waited_ms`: the longest wait of one, for the disk, another thread or another process. `at`:
    where the longest was most of the time, from the inside. `imports`: whether it loaded a module,
    which happens once.
    """

    name: str
    imports: bool
    times: int
    ms: float
    waited_ms: float
    gc_ms: float
    at: list[str]


class Watch:
    """Times every step of the loop in this thread."""

    def __init__(self, report: Path) -> None:
        self._report = report
        self._loop_thread = threading.get_ident()
        self._counts = False
        self._began = 0.0
        self._looks: Counter[tuple[str, ...]] = Counter()
        self._gc_began = self._gc_s = 0.0
        self._all = 0
        self._kept: dict[tuple[str, bool], Step] = {}

    def start(self) -> None:
        gc.callbacks.append(self._collecting)
        sys.setswitchinterval(LOOK_S)
        threading.Thread(target=self._look, daemon=True).start()
        signal.signal(signal.SIGUSR1, lambda *_: self._count())
        signal.signal(signal.SIGUSR2, lambda *_: self._write())
        watch, run, computed_s = self, events.Handle._run, time.thread_time

        def timed(handle: Any) -> None:
            callback = handle._callback  # a handle that was cancelled meanwhile has none
            watch._gc_s, modules = 0.0, len(sys.modules)
            watch._looks.clear()
            cpu, began = computed_s(), time.perf_counter()
            watch._began = began
            run(handle)
            wall, computed = time.perf_counter() - began, computed_s() - cpu
            watch._began = 0.0
            if watch._counts:
                imports = len(sys.modules) > modules
                watch._note(callback, computed * 1e3, (wall - computed) * 1e3, imports=imports)

        events.Handle._run = timed  # type: ignore[method-assign]

    def _count(self) -> None:
        self._counts = True

    def _note(self, callback: Any, ms: float, waited_ms: float, *, imports: bool) -> None:
        self._all += 1
        if max(ms, waited_ms) < KEPT_MS:
            return
        key = describe(callback), imports
        step = self._kept.setdefault(key, Step(*key, 0, 0.0, 0.0, 0.0, []))
        step.times += 1
        step.waited_ms = max(step.waited_ms, waited_ms)
        if ms > step.ms:
            step.ms, step.gc_ms = ms, self._gc_s * 1e3
            step.at = [place for places, _ in self._looks.most_common(1) for place in places]

    def _look(self) -> None:
        """Look again and again at what a step does that is long already."""
        while True:
            time.sleep(LOOK_S)
            began = self._began
            if began and time.perf_counter() - began > KEPT_MS / 1e3:
                frame = sys._current_frames().get(self._loop_thread)
                if self._began == began:
                    self._looks[places(frame)] += 1

    def _collecting(self, phase: str, _info: object) -> None:
        if threading.get_ident() == self._loop_thread:
            now = time.thread_time()
            if phase == "stop":
                self._gc_s += now - self._gc_began
            self._gc_began = now

    def _write(self) -> None:
        self._counts = False
        part = self._report.with_suffix(".part")
        steps = [asdict(step) for step in self._kept.values()]
        part.write_text(json.dumps({"all": self._all, "steps": steps}))
        part.rename(self._report)


def describe(callback: Any) -> str:
    """Name what a step belongs to: its task, or the function."""
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        coroutine: Any = task.get_coro()
        return f"task {getattr(coroutine, '__qualname__', coroutine)}"
    function = getattr(callback, "func", callback)
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)


def places(frame: FrameType | None) -> tuple[str, ...]:
    """Return where a stack is, and the innermost functions of it in this project, from the inside.
    Their first lines are given: a function counts as one place.
    """
    found: list[str] = []
    while frame is not None and len(found) < SHOWN:
        code = frame.f_code
        path = Path(code.co_filename)
        ours = {"edge", "firmware_bridge", "tools_cache"} & set(path.parts)
        if not found or (ours and "site-packages" not in path.parts):
            found.append(f"{Path(*path.parts[-3:])}:{code.co_firstlineno} {code.co_name}")
        frame = frame.f_back
    return tuple(found)


def main() -> None:
    import uvloop

    from edge import cli

    uvloop.new_event_loop = asyncio.new_event_loop  # type: ignore[assignment]
    watch = Watch(Path(sys.argv[1]))
    watch.start()
    sys.argv[1:] = sys.argv[2:]
    sys.exit(cli.main())


if __name__ == "__main__":
    main()
