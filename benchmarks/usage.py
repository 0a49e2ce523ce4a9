"""What a daemon uses for a call: CPU time, and commits of its database (each one waits for the
disk).
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import process
from benchmarks.table import Row

DATABASE = "glassd.db"


def commits(database: Path) -> int:
    """SQLite's own count of write transactions: `iChange` of the WAL index header
    (walformat.html, section 2.1).
    """
    with database.with_name(database.name + "-shm").open("rb") as shm:
        return int(struct.unpack_from("=I", shm.read(12), 8)[0])


class Usage:
    """Sums over the calls of a path; what runs between them is not counted."""

    def __init__(self, pid: int, state: Path) -> None:
        self._pid = pid
        self._database = state / DATABASE
        self._calls = self._commits = 0
        self._cpu_s = 0.0

    @contextmanager
    def of(self, calls: int) -> Iterator[None]:
        """Count what so many calls in this block used. End it when nothing of them runs on."""
        cpu_s, written = process.cpu_s(self._pid), commits(self._database)
        yield
        self._cpu_s += process.cpu_s(self._pid) - cpu_s
        self._commits += commits(self._database) - written
        self._calls += calls

    def rows(self, what: str) -> Iterator[Row]:
        """Yield CPU and commits a call."""
        if self._calls:
            yield Row(f"  {what}, CPU a call", self._cpu_s / self._calls * 1e3)
            yield Row(f"  {what}, commits a call", self._commits / self._calls, "")
