"""Whole processes: how long they take to answer, to be READY, and what they cost while idle."""

import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
BARE_IMPORTS = "import asyncio, bleak, aiomqtt, pydantic, sqlite3, uvloop"


def wall_ms(argv: list[str], *, runs: int, env: dict[str, str] | None = None) -> float:
    """Median wall time of a command, in ms, after one warm-up that fills the bytecode cache."""
    taken = []
    for n in range(runs + 1):
        began = time.perf_counter()
        subprocess.run(
            argv, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env
        )
        if n:
            taken.append((time.perf_counter() - began) * 1e3)
    return statistics.median(taken)


def import_rss_mib(imports: str) -> float:
    """Resident memory of a Python that has done only these imports."""
    code = f"{imports}\nimport os\nprint(int(open('/proc/self/statm').read().split()[1]) * {PAGE})"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return int(shown.stdout) / 2**20


@contextmanager
def daemon(folder: Path, config: str) -> Iterator[tuple[int, float, dict[str, str]]]:
    """Run `glassd run`; gives (pid, ms from exec to READY=1, environment for clients)."""
    (folder / "glassd.toml").write_text(config)
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.bind(str(folder / "notify"))
    notify.settimeout(20)
    env = {
        **os.environ,
        "NOTIFY_SOCKET": str(folder / "notify"),
        "XDG_RUNTIME_DIR": str(folder),
        "STATE_DIRECTORY": str(folder / "state"),
    }
    (folder / "glassd").mkdir(exist_ok=True)
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "edge.cli", "run", "--config", str(folder / "glassd.toml")],
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=(folder / "log").open("w"),
    )
    try:
        while b"READY=1" not in notify.recv(4096):
            pass
        yield process.pid, (time.perf_counter() - began) * 1e3, env
    finally:
        process.terminate()
        process.wait(10)
        notify.close()


def rss_mib(pid: int) -> float:
    """Resident memory of a process and its children, in MiB."""
    return (
        sum(int(Path(f"/proc/{p}/statm").read_text().split()[1]) * PAGE for p in family(pid))
        / 2**20
    )


def cpu_s(pid: int) -> float:
    """CPU seconds a process and its children have used so far."""
    total = 0
    for p in family(pid):
        fields = Path(f"/proc/{p}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def family(pid: int) -> list[int]:
    """A process and all that came from it; what ended meanwhile is left out."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(c for child in children for c in family(int(child)))]
