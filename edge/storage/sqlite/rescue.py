"""Save what can be read of a damaged database into a fresh one.

The damaged files are only read, then put aside, once the fresh one is complete on disk.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from edge.runtime.files import sync_directory
from edge.storage.sqlite import pages
from edge.storage.sqlite.files import set_aside
from edge.storage.sqlite.inspection import (
    HEADER,
    Connection,
    Damage,
    Promises,
    Saved,
    beside,
    fresh_of,
    new_identity,
    size_of,
)
from edge.storage.sqlite.marker import MarkerFile
from edge.storage.sqlite.schema import migrate

_AT_MOST: Final = 256 * 1024 * 1024
"""Bytes read of any file; a database has at most 64 MiB, its WAL about one."""


@dataclass(slots=True)
class _Table:
    root: int
    columns: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    number: int | None = None
    """The column that is the row's number, which is not stored among the others."""

    def row(self, number: int, values: Sequence[pages.Value]) -> dict[str, pages.Value]:
        row = dict(zip(self.columns, values, strict=False))
        if self.number is not None:
            row[self.columns[self.number]] = number
        return row


def rescue(
    path: Path,
    damage: Damage,
    promises: Promises,
    *,
    migrations: Sequence[str],
    marks: MarkerFile | None,
    index: pages.Index | None,
) -> str:
    """Put the damaged files aside and what was readable in their place; return a text for `status`.

    Raise sqlite3.Error, OSError: then nothing has changed.
    """
    log = pages.read_log(_bytes(beside(path, "-wal")))
    stale = (
        damage.stale
        or not log.whole
        or (index is not None and index.copied < index.committed and index.committed > log.frames)
    )
    image = pages.Image(_bytes(path), log.pages)
    fresh = fresh_of(path)
    with closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        migrate(connection, migrations)
        number = (marks.id if marks is not None else 0) or new_identity()
        connection.execute(f"PRAGMA application_id={number}")
        connection.execute("BEGIN")
        refused = _copy(image, connection, _tables(image, migrations), promises.tables)
        refused += promises.mend(connection)
        whole = not (refused or image.damaged or stale) and image.count > 0
        saved = promises.settle(connection, stale=stale, whole=whole)
        connection.execute("COMMIT")
    left = any(size_of(beside(path, tail)) > 0 for tail in ("", "-wal"))
    aside = set_aside(path)
    fresh.replace(path)
    sync_directory(path.parent)
    kept = f"what was left of it is kept as {aside.name}" if left else "nothing was left of it"
    return f"The database was damaged ({damage.why}); {kept}. {_count(saved, marks, whole=whole)}"


def _count(saved: Saved, marks: MarkerFile | None, *, whole: bool) -> str:
    total = saved.kept + saved.lost
    if whole and not total:
        text = "No promised call waited for its answer, and everything in it was saved"
    elif whole:
        text = f"All {saved.kept} promised calls were saved"
    elif saved.lost:
        text = f"{saved.kept} of at least {total} promised calls were saved"
    elif marks is not None and marks.promised and marks.promised > saved.kept:
        before = f"{marks.promised} waited when this was last noted"
        text = f"{saved.kept} promised calls were saved; {before}"
    else:
        text = f"{saved.kept} promised calls were saved; whether there were more is not known"
    next_step = "see what waits with glassd calls --pending, and look for disk errors with dmesg"
    return f"{text}. Next: {next_step}"


def _copy(
    image: pages.Image, connection: Connection, tables: Mapping[str, _Table], wanted: Sequence[str]
) -> int:
    """Insert every row that can be read; return how many the fresh database refused."""
    refused = 0
    for name in wanted:
        if (table := tables.get(name)) is None:
            continue
        rows = [
            table.row(number, values)
            for number, values in image.rows(table.root)
            if pages.fits(values, table.types)
        ]
        # Of two readings of one row the finished one is newer, so it comes first.
        for row in sorted(rows, key=lambda row: row.get("response", "") is None):
            sql = f"INSERT INTO {name}({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"  # noqa: S608 - names of our own schema
            try:
                connection.execute(sql, tuple(row.values()))
            except sqlite3.IntegrityError:
                refused += 1
    return refused


def _tables(image: pages.Image, migrations: Sequence[str]) -> dict[str, _Table]:
    """Return where each table begins and its columns.

    They are the same in every database of a schema: SQLite keeps the first pages of tables
    together, in the order in which they were made.
    """
    first = (image.log.get(1) or image.file[: pages.PAGE])[:100]
    version = int.from_bytes(first[60:64], "big") if first.startswith(HEADER) else 0
    known = version if 0 < version <= len(migrations) else len(migrations)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
        model.execute("PRAGMA auto_vacuum=INCREMENTAL")
        migrate(model, migrations[:known])
        found = {}
        made = "SELECT name, rootpage, sql FROM sqlite_schema WHERE type = 'table'"
        for name, root, sql in model.execute(made).fetchall():
            table = found[name] = _Table(root)
            columns = model.execute(f"PRAGMA table_info({name})")
            for at, column, kind, _not_null, _default, key in columns:
                table.columns.append(column)
                table.types.append(kind)
                if key and kind == "INTEGER" and "WITHOUT ROWID" not in str(sql):
                    table.number = at
    return found


def _bytes(path: Path) -> bytes:
    with suppress(FileNotFoundError), path.open("rb") as file:
        return file.read(_AT_MOST)
    return b""
