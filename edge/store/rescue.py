"""Saves what can be read of a damaged database into a fresh one, and notices one that is missing, empty or an older copy.

The damaged files are only read, then put aside. The fresh database is complete on disk before it takes their place.
"""

import os
import secrets
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from edge.store import pages
from edge.store.files import set_aside, sync_directory
from edge.store.marks import Marks
from edge.store.schema import migrate

_HEADER: Final = b"SQLite format 3\x00"
_AT_MOST: Final = 256 * 1024 * 1024
"""Bytes read of any file; a database has at most 64 MiB, its WAL about one."""
Connection = sqlite3.Connection


@dataclass(frozen=True, slots=True)
class Saved:
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
        """Words to be kept beside the database."""
        ...

    def count(self, connection: Connection) -> int:
        """How many promises are open."""
        ...

    def mend(self, connection: Connection) -> int:
        """End or forget rows of promises that hold no readable text, which SQLite does not notice; give how many."""
        ...

    def settle(self, connection: Connection, *, stale: bool, whole: bool) -> Saved:
        """Make saved rows safe to go on with: nothing that may have been done is done again. `stale`: rows may be older than
        the last ones that were stored; `whole`: no row is missing.
        """
        ...


@dataclass(frozen=True, slots=True)
class Damage:
    """Why a database cannot be used as it is. `stale`: what can be read may be older than what was stored last."""

    why: str
    stale: bool = False


@dataclass(slots=True)
class _Table:
    root: int
    columns: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    number: int | None = None
    """The column that is the row's number, which is not stored among the others."""


# ------------------------------------------------------------------ before SQLite opens it


def finish(path: Path) -> None:
    """Bring a rescue to its end that was cut off before its last step, or clear away one that was cut off earlier."""
    fresh = _fresh(path)
    if not fresh.exists():
        return
    if not path.exists() and not _beside(fresh, "-journal").exists():
        fresh.replace(path)
        sync_directory(path.parent)
        return
    for tail in ("", "-journal"):
        _beside(fresh, tail).unlink(missing_ok=True)


def examine(path: Path, marks: Marks | None, index: pages.Index | None, *, killed: bool, known: bool) -> Damage | None:
    """Look at the files before SQLite does: it deletes the WAL of a database that is missing or empty. `killed`: since this
    boot somebody had it open and did not close it, so what `index` says of the WAL is true; `known`: something else says
    that it was used before.
    """
    size, log = _size(path), _size(_beside(path, "-wal"))
    if size <= 0:
        if marks is None and not known and log <= 0:
            return None
        return Damage(f"{path.name} is {'missing' if size < 0 else 'empty'}")
    with path.open("rb") as file:
        if file.read(len(_HEADER)) != _HEADER:
            return Damage(f"{path.name} does not begin like a database")
    if index is None or not killed:
        return Damage(f"{path.name}-wal is missing", stale=True) if killed and log <= 0 else None
    if index.committed <= index.copied:
        return None
    if log < 0:
        return Damage(f"{path.name}-wal is missing", stale=True)
    with _beside(path, "-wal").open("rb") as file:
        salts = file.read(24)[16:]
    if salts != index.salts or log < 32 + index.committed * (24 + pages.PAGE):
        return Damage(f"{path.name}-wal is damaged", stale=True)
    return None


def index_of(path: Path) -> pages.Index | None:
    try:
        with _beside(path, "-shm").open("rb") as file:
            return pages.read_index(file.read(136))
    except OSError:
        return None


def lost_in_log(path: Path, before: pages.Index | None) -> Damage | None:
    """Whether SQLite, having opened the database, found fewer commits in the WAL than its index named before."""
    if before is None or (now := index_of(path)) is None:
        return None
    if now.committed < before.committed and before.copied < before.committed:
        return Damage(f"{path.name}-wal is damaged", stale=True)
    return None


def older_copy(connection: Connection, marks: Marks | None) -> Damage | None:
    """Whether this is another database than the one that was here, or an older copy of it."""
    if marks is None or not marks.id:
        return None
    if identity(connection) not in (0, marks.id):
        return Damage("it is not the database that was here before", stale=True)
    have = numbers(connection)
    missing = sum(max(0, number - have.get(table, 0)) for table, number in marks.numbers.items())
    return Damage(f"it is an older copy, without the last {missing} rows", stale=True) if missing else None


def identity(connection: Connection) -> int:
    return int(connection.execute("PRAGMA application_id").fetchone()[0])


def new_identity() -> int:
    return secrets.randbelow(2**31 - 1) + 1


def numbers(connection: Connection) -> dict[str, int]:
    """The highest row number ever given in each table that counts them."""
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'").fetchone() is None:
        return {}
    return {str(row[0]): int(row[1]) for row in connection.execute("SELECT name, seq FROM sqlite_sequence")}


# ------------------------------------------------------------------ saving


def rescue(
    path: Path, damage: Damage, promises: Promises, *, migrations: Sequence[str], marks: Marks | None, index: pages.Index | None
) -> str:
    """Put the damaged files aside and a database with what was readable in their place; say so for `status`. Raises
    sqlite3.Error, OSError: then nothing has changed.
    """
    log = pages.read_log(_bytes(_beside(path, "-wal")))
    stale = damage.stale or not log.whole or (index is not None and index.copied < index.committed and index.committed > log.frames)
    image = pages.Image(_bytes(path), log.pages)
    fresh = _fresh(path)
    with closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        migrate(connection, migrations)
        connection.execute(f"PRAGMA application_id={marks.id if marks is not None and marks.id else new_identity()}")
        connection.execute("BEGIN")
        refused = _copy(image, connection, _tables(image, migrations), promises.tables)
        refused += promises.mend(connection)
        whole = not (refused or image.damaged or stale) and image.count > 0
        saved = promises.settle(connection, stale=stale, whole=whole)
        connection.execute("COMMIT")
    left = any(_size(_beside(path, tail)) > 0 for tail in ("", "-wal"))
    aside = set_aside(path)
    fresh.replace(path)
    sync_directory(path.parent)
    kept = f"what was left of it is kept as {aside.name}" if left else "nothing was left of it"
    return f"The database was damaged ({damage.why}); {kept}. {_count(saved, marks, whole=whole)}"


def _count(saved: Saved, marks: Marks | None, *, whole: bool) -> str:
    total = saved.kept + saved.lost
    if whole and not total:
        said = "No promised call waited for its answer, and everything in it was saved"
    elif whole:
        said = f"All {saved.kept} promised calls were saved"
    elif saved.lost:
        said = f"{saved.kept} of at least {total} promised calls were saved"
    elif marks is not None and marks.promised and marks.promised > saved.kept:
        said = f"{saved.kept} promised calls were saved; {marks.promised} waited when this was last noted"
    else:
        said = f"{saved.kept} promised calls were saved; whether there were more is not known"
    return f"{said}. Next: see what waits with glassd calls --pending, and look for disk errors with dmesg"


def _copy(image: pages.Image, connection: Connection, tables: Mapping[str, _Table], wanted: Sequence[str]) -> int:
    """Insert every row that can be read; give how many the fresh database refused."""
    refused = 0
    for name in wanted:
        if (table := tables.get(name)) is None:
            continue
        rows = [row for number, values in image.rows(table.root) if (row := _row(table, number, values)) is not None]
        for row in sorted(rows, key=_open_last):
            sql = f"INSERT INTO {name}({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"  # noqa: S608 - names of our own schema
            try:
                connection.execute(sql, tuple(row.values()))
            except sqlite3.IntegrityError:
                refused += 1
    return refused


def _open_last(row: Mapping[str, pages.Value]) -> bool:
    """Of two readings of one row the finished one is newer, so it comes first."""
    return "response" in row and row["response"] is None


def _row(table: _Table, number: int, values: list[pages.Value]) -> dict[str, pages.Value] | None:
    if not pages.fits(values, table.types):
        return None
    row = dict(zip(table.columns, values, strict=False))
    if table.number is not None:
        row[table.columns[table.number]] = number
    return row


def _tables(image: pages.Image, migrations: Sequence[str]) -> dict[str, _Table]:
    """Where each table begins and what its columns are: the same in every database of a schema, for SQLite keeps the first
    pages of the tables of such a database together in the order in which they were made.
    """
    first = (image.log.get(1) or image.file[: pages.PAGE])[:100]
    version = int.from_bytes(first[60:64], "big") if first.startswith(_HEADER) else 0
    known = version if 0 < version <= len(migrations) else len(migrations)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
        model.execute("PRAGMA auto_vacuum=INCREMENTAL")
        migrate(model, migrations[:known])
        found = {name: _Table(root) for name, root in model.execute("SELECT name, rootpage FROM sqlite_schema WHERE type = 'table'")}
        for name, table in found.items():
            without = "WITHOUT ROWID" in str(model.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).fetchone()[0])
            for at, column, kind, _not_null, _default, key in model.execute(f"PRAGMA table_info({name})"):
                table.columns.append(column)
                table.types.append(kind)
                if key and kind == "INTEGER" and not without:
                    table.number = at
    return found


def _fresh(path: Path) -> Path:
    return _beside(path, ".new")


def _beside(path: Path, tail: str) -> Path:
    return path.with_name(path.name + tail)


def _size(path: Path) -> int:
    """-1 when it is not there."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1


def _bytes(path: Path) -> bytes:
    with suppress(FileNotFoundError), path.open("rb") as file:
        return file.read(_AT_MOST)
    return b""


def keeping_log(path: Path, close: Callable[[], None]) -> None:
    """Close a database without losing its WAL, which SQLite deletes when the last connection closes."""
    log, kept = _beside(path, "-wal"), _beside(path, "-wal.kept")
    with suppress(OSError):  # a file system without links keeps what SQLite leaves
        kept.unlink(missing_ok=True)
        os.link(log, kept)
    close()
    with suppress(FileNotFoundError):
        kept.replace(log)
