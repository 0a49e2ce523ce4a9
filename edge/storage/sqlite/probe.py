"""Look into a database from outside, read-only: does it open, is it whole, which schema it has."""

import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

_NO_INDEX: Final = frozenset(
    {
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
    }
)
"""Results of a disk without room for the index that SQLite makes beside a WAL database."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What was seen. `damage` is SQLite's text; `unfinished`: checking every page took too long."""

    bytes: int
    schema: int = 0
    damage: str = ""
    busy: str = ""
    unfinished: bool = False


def look(path: Path, *, seconds: float) -> Looked:
    """Open read-only and check every page. Raise FileNotFoundError, PermissionError only."""
    with path.open("rb"):  # SQLite would say "unable to open database file" to all of these
        size = path.stat().st_size
    if size == 0:
        return Looked(0)
    try:
        return _checked(path, "mode=ro", size, seconds)
    except sqlite3.OperationalError as e:
        wal = path.with_name(path.name + "-wal")
        if _code(e) not in _NO_INDEX or (wal.exists() and wal.stat().st_size > 0):
            return Looked(size, busy=str(e))
    try:  # without a WAL no index is needed
        return _checked(path, "immutable=1", size, seconds)
    except sqlite3.OperationalError as e:
        return Looked(size, busy=str(e))


def _checked(path: Path, how: str, size: int, seconds: float) -> Looked:
    end, uri = time.monotonic() + seconds, f"file:{quote(str(path))}?{how}"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=1.0)) as connection:
            connection.set_progress_handler(lambda: time.monotonic() > end, 10_000)
            schema = int(connection.execute("PRAGMA user_version").fetchone()[0])
            found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
            return Looked(size, schema, damage="" if found == "ok" else found)
    except sqlite3.OperationalError as e:
        if _code(e) == sqlite3.SQLITE_INTERRUPT:
            return Looked(size, unfinished=True)
        raise
    except sqlite3.DatabaseError as e:
        return Looked(size, damage=str(e))


def _code(error: sqlite3.Error) -> int:
    return error.sqlite_errorcode & 0xFF
