"""Numbered steps that bring a database's schema up to date, and the check that it is whole."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from edge.storage.sqlite.errors import StoreError


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str = "BEGIN") -> Iterator[None]:
    """Commit what is done inside, or roll it back. A transaction of reads alone costs no fsync."""
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:  # a full disk rolls back by itself
            connection.execute("ROLLBACK")


def check_whole(connection: sqlite3.Connection) -> None:
    """Raise sqlite3.DatabaseError (SQLITE_CORRUPT) unless every page is in order."""
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        damage = sqlite3.DatabaseError(found)
        damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise damage


def migrate(connection: sqlite3.Connection, migrations: Sequence[str]) -> None:
    """Take the missing steps, one a transaction. Raise StoreError if a newer program made it."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(migrations):
        raise StoreError(
            f"the database is of schema {version}, this program knows {len(migrations)}: "
            "install the newer program again, or move the database away"
        )
    for number in range(version, len(migrations)):
        with transaction(connection):
            for statement in _statements(migrations[number]):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version={number + 1}")


def _statements(script: str) -> list[str]:
    """Split a script; `executescript` would commit in the middle of our transaction."""
    found, rest = [], ""
    for line in script.splitlines():
        rest += line + "\n"
        if sqlite3.complete_statement(rest):
            found.append(rest)
            rest = ""
    if rest.strip():
        raise StoreError(f"a migration ends in the middle of a statement: {rest.strip()[:60]}")
    return found
