"""Whole processes: how long they take to answer, to be READY, and what they cost while idle."""

import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypedDict, TypeVar

import uvloop

import edge
from edge.daemon import app

T = TypeVar("T")

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
BARE_IMPORTS = "import asyncio, bleak, aiomqtt, pydantic, sqlite3, uvloop"
"""The libraries of a daemon that is in use."""
LEAST_IMPORTS = "import asyncio, sqlite3, uvloop"
"""What no daemon starts without."""
CODE = Path(edge.__file__).parents[1]
"""The checkout that is measured; `--compare` runs these benchmarks on another one."""
REGISTRY = CODE / "tools_cache" / "tool_registry.json"
HERE = Path(__file__).parents[1]
"""The folder of this package, which is not always in that checkout."""
READY_S = 60.0
REPORT_S = 10.0


class Step(TypedDict):
    """See `benchmarks.watch.Step`."""

    name: str
    imports: bool
    times: int
    ms: float
    waited_ms: float
    gc_ms: float
    at: list[str]


class Steps(TypedDict):
    """The report of one daemon: how many steps its loop made, and the long ones by kind."""

    all: int
    steps: list[Step]


_watched: list[list[Steps]] = []
"""Where reports go while daemons are watched."""


@cache
def environment() -> dict[str, str]:
    """Return the environment of every measured process: it finds compiled code, as an installed
    one does. PYTHONDONTWRITEBYTECODE would make a new checkout compile itself at each start.
    """
    left_out = {"PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"}
    env = {name: value for name, value in os.environ.items() if name not in left_out}
    env["PYTHONPATH"] = os.pathsep.join(dict.fromkeys((str(HERE), str(CODE))))
    packages = [str(CODE / name) for name in ("edge", "firmware_bridge", "tools_cache")]
    compiled = [sys.executable, "-m", "compileall", "-q", *packages, str(HERE / "benchmarks")]
    subprocess.run(compiled, check=False, env=env, stdout=subprocess.DEVNULL)
    return env


def wall_ms(argv: list[str], *, runs: int, env: dict[str, str] | None = None) -> float:
    """Median wall time of a command, in ms, after one warm-up that fills the disk's cache."""
    taken = []
    for n in range(runs + 1):
        began = time.perf_counter()
        subprocess.run(
            argv,
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=env or environment(),
        )
        if n:
            taken.append((time.perf_counter() - began) * 1e3)
    return statistics.median(taken)


def import_rss_mib(imports: str) -> float:
    """Resident memory of a Python that has done only these imports."""
    code = f"{imports}\nimport os\nprint(int(open('/proc/self/statm').read().split()[1]) * {PAGE})"
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, env=environment())
    return int(shown.stdout) / 2**20


@contextmanager
def watching() -> Iterator[list[Steps]]:
    """Watch the event loop of each daemon that is started in this block; gives their reports."""
    found: list[Steps] = []
    _watched.append(found)
    try:
        yield found
    finally:
        _watched.remove(found)


def run_as_daemon(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in this process as the daemon runs: on its loop, with its switches between
    threads.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(getattr(app, "SWITCH_S", before))  # earlier commits have Python's own
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(main)
    finally:
        sys.setswitchinterval(before)


@contextmanager
def daemon(folder: Path, config: str) -> Iterator[tuple[int, float, dict[str, str]]]:
    """Run `glassd run`; gives (pid, ms from exec to READY=1, environment for clients)."""
    (folder / "glassd.toml").write_text(config)
    (folder / "notify").unlink(missing_ok=True)  # of the start before
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.bind(str(folder / "notify"))
    notify.settimeout(READY_S)
    env = {
        **environment(),
        "NOTIFY_SOCKET": str(folder / "notify"),
        "XDG_RUNTIME_DIR": str(folder),
        "STATE_DIRECTORY": str(folder / "state"),
    }
    (folder / "glassd").mkdir(exist_ok=True)
    report = folder / "steps.json"
    module = ["benchmarks.watch", str(report)] if _watched else ["edge.cli"]
    began = time.perf_counter()
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *module, "run", "--config", str(folder / "glassd.toml")],
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
    try:
        _wait_until_ready(notify, folder / "log")
        ready = (time.perf_counter() - began) * 1e3
        if _watched:
            process.send_signal(signal.SIGUSR1)
        yield process.pid, ready, env
        if _watched:
            process.send_signal(signal.SIGUSR2)
            _watched[-1].append(_report(report))
    finally:
        process.terminate()
        process.wait(10)
        notify.close()


def _wait_until_ready(notify: socket.socket, log: Path) -> None:
    try:
        while b"READY=1" not in notify.recv(4096):
            pass
    except TimeoutError:
        raise SystemExit(f"the daemon did not become ready: {log.read_text()[-800:]}") from None


def _report(file: Path) -> Steps:
    until = time.monotonic() + REPORT_S
    while not file.exists():
        if time.monotonic() > until:
            raise SystemExit("the watched daemon did not report its steps")
        time.sleep(0.02)
    steps: Steps = json.loads(file.read_text())
    return steps


@contextmanager
def floor(port: int, folder: Path) -> Iterator[Path]:
    """Run `benchmarks/floor.py` until the block ends; yields its unix socket."""
    path = folder / "floor.sock"
    with (folder / "floor.log").open("w") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.floor", str(port), str(path), str(folder)],
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment(),
        )
    try:
        assert child.stdout is not None
        if not child.stdout.readline():
            raise SystemExit(f"the floor did not start: {(folder / 'floor.log').read_text()}")
        yield path
    finally:
        child.terminate()
        child.communicate(timeout=10)


@contextmanager
def devcloud(folder: Path, port: int) -> Iterator[str]:
    """Run `glassd devcloud` on the broker at `port` until the block ends; yields its URL."""
    words = ["devcloud", "--http", "127.0.0.1:0", "--state", str(folder / "cloud"), "--json"]
    with (folder / "cloud.log").open("w") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "edge.cli", *words, "--broker", f"127.0.0.1:{port}"],
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment(),
        )
    try:
        assert child.stdout is not None
        yield json.loads(child.stdout.readline())["http"]
    finally:
        child.terminate()
        child.communicate(timeout=10)


def rss_mib(pid: int) -> float:
    """Resident memory of a process and its children, in MiB."""
    return (
        sum(int(Path(f"/proc/{p}/statm").read_text().split()[1]) * PAGE for p in family(pid))
        / 2**20
    )


def cpu_s(pid: int) -> float:
    """CPU seconds that a process and its children have used so far. To the microsecond, by the
    clocks of clock_getcpuclockid(3); what ended children used is known in steps of 10 ms.
    """
    return sum(time.clock_gettime(~p << 3 | 2) + _ended_children_s(p) for p in family(pid))


def _ended_children_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / TICKS


def family(pid: int) -> list[int]:
    """A process and all that came from it; what ended meanwhile is left out."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(c for child in children for c in family(int(child)))]
