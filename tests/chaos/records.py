"""Records of what happened, one JSON object a line, written by one process each and read by the
judges. Standard library only.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self


class Record:
    """Appends lines; `sure` ones are on disk before `say` returns."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)
        self._lock = threading.Lock()

    def say(self, *, sure: bool = False, **fields: Any) -> None:
        line = (
            json.dumps(
                {"t": round(time.monotonic(), 4), **fields},
                separators=(",", ":"),
                ensure_ascii=False,
            )
            + "\n"
        )
        with self._lock:
            self._file.write(line.encode())
            if sure:
                os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()


def announce(**fields: Any) -> None:
    """One line of JSON on stdout, for whoever started this process."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Every whole line of a record; none when there is no such file."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield json.loads(line)
