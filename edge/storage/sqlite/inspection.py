"""Look at a database that is being opened: is it missing, empty, damaged or an older copy?

rescue.py saves what can be read of a damaged one, and is loaded only then.
"""

import os
import secrets
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from edge.runtime.files import sync_directory
from edge.storage.sqlite.marker import MarkerFile

if TYPE_CHECKING:
    from edge.storage.sqlite.pages import Index

HEADER: Final = b"SQLite format 3\x00"
Connection = sqlite3.Connection


class Saved(Struct, frozen=True):
    """How many promises are in the fresh database, and how many are known to be lost."""

    kept: int
    lost: int


class Promises(Protocol):
    """What the owner of a database knows about its rows."""

    @property
    def tables(self) -> Sequence[str]:
        """What is worth saving, in the order in which it is stored."""
        ...

    @property
    def labels(self) -> Mapping[str, str]:
        """Texts of the owner to be stored beside the database."""
        ...

    def count(self, connection: Connection) -> int:
        """How many promises are open."""
        ...

    def mend(self, connection: Connection) -> int:
        """End or delete rows whose text is unreadable; return how many. SQLite misses these."""
        ...

    def settle(self, connection: Connection, *, stale: bool, whole: bool) -> Saved:
        """Make saved rows safe: what may have been done is not done again.

        `stale`: the last rows may be missing; `whole`: no row is missing.
        """
        ...


class Damage(Struct, frozen=True):
    """Why a database cannot be used. `stale`: what can be read may lack the last writes."""

    why: str
    stale: bool = False


def finish(path: Path) -> None:
    """Complete a rescue that was cut off before its last step; delete one cut off earlier."""
    fresh = fresh_of(path)
    journal = beside(fresh, "-journal")
    if fresh.exists() and not path.exists() and not journal.exists():
        fresh.replace(path)
        sync_directory(path.parent)
    elif fresh.exists():
        fresh.unlink()
        journal.unlink(missing_ok=True)


def examine(path: Path, index: "Index | None", *, killed: bool, known: bool) -> Damage | None:
    """Look at the files before SQLite, which deletes the WAL of a missing or empty database.

    `killed`: it was left open in this boot, so what `index` says of the WAL is true. `known`:
    something else says that it was used before.
    """
    size, log = size_of(path), size_of(beside(path, "-wal"))
    if size <= 0:
        if not known and log <= 0:
            return None
        return Damage(f"{path.name} is {'missing' if size < 0 else 'empty'}")
    with path.open("rb") as file:
        if file.read(len(HEADER)) != HEADER:
            return Damage(f"{path.name} does not begin like a database")
    if index is None or not killed:
        return Damage(f"{path.name}-wal is missing", stale=True) if killed and log <= 0 else None
    if index.committed <= index.copied:
        return None
    from edge.storage.sqlite.pages import PAGE  # noqa: PLC0415 - only after the daemon was killed

    if log < 0:
        return Damage(f"{path.name}-wal is missing", stale=True)
    with beside(path, "-wal").open("rb") as file:
        salts = file.read(24)[16:]
    if salts != index.salts or log < 32 + index.committed * (24 + PAGE):
        return Damage(f"{path.name}-wal is damaged", stale=True)
    return None


def index_of(path: Path) -> "Index | None":
    from edge.storage.sqlite.pages import read_index  # noqa: PLC0415 - only after the daemon was killed

    try:
        with beside(path, "-shm").open("rb") as file:
            return read_index(file.read(136))
    except OSError:
        return None


def lost_in_log(path: Path, before: "Index | None") -> Damage | None:
    """Whether SQLite found fewer commits in the WAL than its index named before."""
    if before is None or (now := index_of(path)) is None:
        return None
    if now.committed < before.committed and before.copied < before.committed:
        return Damage(f"{path.name}-wal is damaged", stale=True)
    return None


def older_copy(connection: Connection, marks: MarkerFile | None) -> Damage | None:
    """Whether this is another database than the one that was here, or an older copy of it."""
    if marks is None or not marks.id:
        return None
    if identity(connection) not in (0, marks.id):
        return Damage("it is not the database that was here before", stale=True)
    have = numbers(connection)
    missing = sum(max(0, number - have.get(table, 0)) for table, number in marks.numbers.items())
    if missing:
        return Damage(f"it is an older copy, without the last {missing} rows", stale=True)
    return None


def identity(connection: Connection) -> int:
    return int(connection.execute("PRAGMA application_id").fetchone()[0])


def new_identity() -> int:
    return secrets.randbelow(2**31 - 1) + 1


def numbers(connection: Connection) -> dict[str, int]:
    """The highest row number ever given in each table that counts them."""
    there = "SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'"
    if connection.execute(there).fetchone() is None:
        return {}
    rows = connection.execute("SELECT name, seq FROM sqlite_sequence")
    return {str(table): int(number) for table, number in rows}


def keeping_log(path: Path, close: Callable[[], None]) -> None:
    """Close a database and keep its WAL, which SQLite deletes with the last connection."""
    log, kept = beside(path, "-wal"), beside(path, "-wal.kept")
    with suppress(OSError):  # a file system without links keeps what SQLite leaves
        kept.unlink(missing_ok=True)
        os.link(log, kept)
    close()
    with suppress(FileNotFoundError):
        kept.replace(log)


def fresh_of(path: Path) -> Path:
    return beside(path, ".new")


def beside(path: Path, tail: str) -> Path:
    return path.with_name(path.name + tail)


def size_of(path: Path) -> int:
    """-1 when it is not there."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1
