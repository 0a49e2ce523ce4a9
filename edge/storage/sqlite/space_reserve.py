"""A file that is deleted when the disk is full: without room SQLite cannot even delete."""

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from edge.storage.sqlite.disk_space import ENOUGH, MIB

_log = logging.getLogger(__name__)

COMFORT_BYTES: Final = ENOUGH - MIB
"""Free space at which an emergency ends: the reserve, as much again, and a usual WAL."""


class SpaceReserve:
    """`full_because` is empty while all is well. With `size` 0 there is no file."""

    def __init__(self, path: Path, *, size: int) -> None:
        self._path = path
        self._size = size
        self.full_because = ""

    @property
    def there(self) -> bool:
        """Whether the file is there: then a database was opened here before."""
        return bool(self._size) and self._path.exists()

    def prepare(self) -> None:
        """Create the file; a disk too full for it is known from the start."""
        try:
            self._write()
        except OSError:
            self._declare()

    def give_up(self) -> bool:
        """Declare the emergency; True when that freed something."""
        self._declare()
        if not self._path.exists():
            return False
        self._path.unlink()
        _log.warning("%s", self.full_because)
        return True

    def take_back(self) -> bool:
        """End the emergency when the disk has room again."""
        stat = os.statvfs(self._path.parent)
        if stat.f_bavail * stat.f_frsize < COMFORT_BYTES:
            return False
        with suppress(OSError):
            self._write()
            self.full_because = ""
            _log.info("the disk under %s has room again", self._path.parent)
            return True
        return False

    def _declare(self) -> None:
        self.full_because = f"the disk under {self._path.parent} is full; free some space"

    def _write(self) -> None:
        if not self._size or self._path.exists():
            return
        try:
            with self._path.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, self._size)
        except OSError:
            self._path.unlink(missing_ok=True)
            raise
