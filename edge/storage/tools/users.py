"""What belongs to one user of one package: a folder (0700) with a database and files.

Users' names come from outside, so none is used as a path; what is open at once is bounded.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from edge.storage.sqlite.database import MIB, SqliteDatabase, StoreFull

FILE_BYTES: Final = 16 * MIB
MOST_OPEN: Final = 8
"""Idle database files open at once, each with a thread and half a MiB of cache."""
MOST_USERS: Final = 64
_LONGEST: Final = 100


def escaped(word: str) -> str:
    """Turn any text into a file name, one to one: `/`, a leading `.` and long names are escaped."""
    if not word:
        return "%"
    plain = quote(word.encode("utf-8", "surrogatepass"), safe="").replace("~", "%7E")
    if plain.startswith("."):
        plain = "%2E" + plain[1:]
    if len(plain) <= _LONGEST:
        return plain
    return "~" + hashlib.sha256(word.encode("utf-8", "surrogatepass")).hexdigest()[:40]


class Owner(NamedTuple):
    """Whose tables and files: one user's, within one tool package."""

    user: str
    package: str


@dataclass(slots=True)
class _OpenUser:
    database: SqliteDatabase
    in_use: int = 0


class Users:
    """The folders and database files of all users. `close()` at the end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: OrderedDict[Path, _OpenUser] = OrderedDict()
        self._opening = asyncio.Lock()

    def folder(self, owner: Owner) -> Path:
        """Name the folder; it need not be there."""
        return self._folder / escaped(owner.user) / "tools" / escaped(owner.package)

    def make_folder(self, owner: Owner) -> Path:
        """Return the folder, made if need be. Blocking. Raise StoreFull, OSError."""
        folder = self.folder(owner)
        if not folder.is_dir():
            mine = self._folder / escaped(owner.user)
            others = self._folder.iterdir() if self._folder.is_dir() else ()
            if not mine.is_dir() and sum(p.is_dir() for p in others) >= MOST_USERS:
                raise StoreFull(f"{MOST_USERS} users have data here already")
            for path in (self._folder, mine, folder.parent, folder):
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    @asynccontextmanager
    async def database(self, owner: Owner) -> AsyncIterator[SqliteDatabase]:
        """Hold the database file open while inside. Raise StoreError."""
        path = self.folder(owner) / "data.db"
        held = self._open.get(path)
        if held is None:
            async with self._opening:
                held = self._open.get(path)  # it may have been opened during the wait
                if held is None:
                    await self._make_room()
                    await asyncio.to_thread(self.make_folder, owner)
                    held = self._open[path] = _OpenUser(
                        await SqliteDatabase.open(path, (), max_bytes=FILE_BYTES, reserve=False)
                    )
        self._open.move_to_end(path)
        held.in_use += 1
        try:
            yield held.database
        finally:
            held.in_use -= 1

    async def close(self) -> None:
        while self._open:
            _, held = self._open.popitem()
            await held.database.close()

    async def _make_room(self) -> None:
        idle = [path for path, held in self._open.items() if not held.in_use]
        for path in idle[: max(0, len(self._open) - MOST_OPEN + 1)]:
            await self._open.pop(path).database.close()
