"""Tracks live workers: each holds a lock on its own file, which the kernel releases when it dies.

They share a file system, as they share a database.
"""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Self

from firmware_bridge.deadlines import timeout

FOLDER: Final = "workers"
ALONE_S: Final = 30.0
LOOK_S: Final = 0.02


class Workers:
    """Entering it registers this worker; `alive(name)` checks any worker. Thread-safe and
    non-blocking.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder / FOLDER
        self._handle: int | None = None
        self.name = name

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._handle = _lock(self._folder / self.name, os.O_CREAT)
        if self._handle is None:
            raise OSError(f"{self._folder / self.name}: another worker has this name")
        return self

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            (self._folder / self.name).unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = None

    def alive(self, name: str) -> bool:
        """Return whether a worker is alive; unknown ones are not. Files of dead ones are
        removed.
        """
        if name == self.name:
            return self._handle is not None
        if not name:
            return False
        path = self._folder / name
        try:
            handle = _lock(path, 0)
        except FileNotFoundError:
            return False
        if handle is None:
            return True
        path.unlink(missing_ok=True)  # names are never reused, so nothing waits for this one
        os.close(handle)
        return False


@asynccontextmanager
async def alone(path: Path, *, within_s: float = ALONE_S) -> AsyncIterator[None]:
    """Wait until no other process is inside with the same path; for short openings that must not
    overlap.

    Raises OSError if another one stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        async with timeout(within_s):
            while (handle := _lock(path, os.O_CREAT)) is None:  # noqa: ASYNC110 - no event comes from another process
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        raise OSError(f"{path}: another process has held it for {within_s:g} s") from None
    try:
        yield
    finally:
        os.close(handle)


def _lock(path: Path, flags: int) -> int | None:
    """Open and lock; None if another process holds it."""
    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle
