"""Limits for a tool's SQL in the daemon's connection: what it may do, how long, how large."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_SELECTING: Final = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    }
)
_FORBIDDEN: Final = frozenset(
    {
        sqlite3.SQLITE_ATTACH,
        sqlite3.SQLITE_DETACH,
        sqlite3.SQLITE_PRAGMA,
        sqlite3.SQLITE_TRANSACTION,
        sqlite3.SQLITE_SAVEPOINT,
        sqlite3.SQLITE_CREATE_VTABLE,
        sqlite3.SQLITE_DROP_VTABLE,
    }
)


@contextmanager
def restricted(
    connection: sqlite3.Connection, *, select_only: bool, seconds: float, value_bytes: int
) -> Iterator[None]:
    """Let SQL touch only this file, leave our transaction open and end after `seconds`."""

    def allow(action: int, *_names: str | None) -> int:
        refused = action not in _SELECTING if select_only else action in _FORBIDDEN
        return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK

    end = time.monotonic() + seconds
    before = connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, value_bytes)
    connection.set_authorizer(allow)
    # 10,000 virtual-machine steps are well under a millisecond.
    connection.set_progress_handler(lambda: time.monotonic() > end, 10_000)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)
        connection.set_authorizer(None)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, before)


SqlError: Final = (sqlite3.Error, sqlite3.Warning)
"""What bad SQL raises; Warning is what Python 3.11 says to two statements at once."""
