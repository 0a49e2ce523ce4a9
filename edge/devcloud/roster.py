"""Which workers live: each holds a lock on a file of its own, which the kernel lets go the moment it dies, however it dies.

Refuses to know calls, clocks and the network. Workers of one roster share one file system, as they share one database.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

FOLDER: Final = "workers"


class Roster:
    """`with Roster(folder, name):` is being alive; `alive(name)` tells about anybody. From any thread, never blocking."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder / FOLDER
        self._handle: int | None = None
        self.name = name

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._handle = _locked(self._folder / self.name, os.O_CREAT)
        if self._handle is None:
            raise OSError(f"{self._folder / self.name}: another worker has this name")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._handle is not None:
            (self._folder / self.name).unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = None

    def alive(self, name: str) -> bool:
        """Tell whether a worker lives; one that never was does not. What a dead one left is cleared away."""
        if name == self.name:
            return self._handle is not None
        if not name:
            return False
        path = self._folder / name
        try:
            handle = _locked(path, 0)
        except FileNotFoundError:
            return False
        if handle is None:
            return True
        path.unlink(missing_ok=True)  # names are never used twice, so nobody waits for this one
        os.close(handle)
        return False


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Wait until no other process is inside with the same path; for openings that must not cross, a moment each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _locked(path: Path, flags: int) -> int | None:
    """Open and lock; None when somebody else holds it."""
    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle
