"""A tool package's own tables: one small database file per package.

The SQL is the package's; it is bounded in time, rows, bytes and in what it may touch.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from edge.storage.sqlite.database import MIB, Connection, SqliteDatabase, StoreError
from edge.storage.tools.sandboxed_sql import SqlError, restricted
from tools_cache.api.tool import Json

MAX_ROWS: Final = 1000
MAX_VALUE: Final = MIB
"""Bytes of one value."""
MAX_RESULT: Final = 4 * MIB
"""Bytes of text and blobs in one result."""
FILE_BYTES: Final = 16 * MIB
STATEMENT_S: Final = 2.0
_OF_THE_DISK: Final = frozenset(
    {"database or disk is full", "disk I/O error", "database disk image is malformed"}
)


class BadSql(StoreError):
    """A package's statement is wrong, forbidden, too slow or too big; nothing of it happened."""


class Packages:
    """The files of all packages; each is opened at its first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, SqliteDatabase] = {}
        self._opening = asyncio.Lock()

    async def database(self, package: str) -> SqliteDatabase:
        async with self._opening:
            found = self._open.get(package)
            if found is None:
                # quote() keeps `/` and NUL out of the name and is one to one.
                path = self._folder / f"{quote(package, safe='')[:200]}.db"
                found = self._open[package] = await SqliteDatabase.open(
                    path, (), max_bytes=FILE_BYTES, reserve=False
                )
            return found

    async def close(self) -> None:
        for database in self._open.values():
            await database.close()
        self._open.clear()


class PackageStorage:
    """`tools_cache.api.handed.ToolStorage` for one package."""

    def __init__(self, packages: Packages, package: str) -> None:
        self._packages = packages
        self._package = package

    async def execute(self, sql: str, *params: Json) -> int:
        """Run one writing statement, committed on return. Raise BadSql, StoreFull."""
        database = await self._packages.database(self._package)
        deletes = sql.lstrip()[:6].upper() == "DELETE"
        return await database.write(lambda c: execute_in(c, sql, params), grows=not deletes)

    async def fetch(self, sql: str, *params: Json) -> list[dict[str, Json]]:
        """Run one SELECT; at most 1,000 rows. Raise BadSql."""
        database = await self._packages.database(self._package)
        return await database.read(lambda c: fetch_in(c, sql, params))


def execute_in(connection: Connection, sql: str, params: Sequence[Any]) -> int:
    """Run one writing statement that is not ours, in the store's thread. Raise BadSql."""
    try:
        with restricted(connection, select_only=False, seconds=STATEMENT_S, value_bytes=MAX_VALUE):
            cursor = connection.execute(sql, params)
            inserted = sql.lstrip()[:6].upper() in ("INSERT", "REPLAC")
            return (cursor.lastrowid or 0) if inserted else max(0, cursor.rowcount)
    except SqlError as error:
        raise complaint(error, sql) from error


def fetch_in(connection: Connection, sql: str, params: Sequence[Any]) -> list[dict[str, Json]]:
    """Run one SELECT that is not ours, in the store's thread. Raise BadSql."""
    rows: list[dict[str, Json]] = []
    size = 0
    try:
        with restricted(connection, select_only=True, seconds=STATEMENT_S, value_bytes=MAX_VALUE):
            for row in connection.execute(sql, params):
                size += sum(len(value) for value in row if isinstance(value, str | bytes))
                if size > MAX_RESULT:
                    raise BadSql(f"the result is over {MAX_RESULT // MIB} MiB; select less")
                rows.append(dict(row))
                if len(rows) == MAX_ROWS:
                    break
    except SqlError as error:
        raise complaint(error, sql) from error
    return rows


def complaint(error: Exception, sql: str) -> Exception:
    """Return what is wrong with the statement; a full or damaged disk is not its fault."""
    if str(error) in _OF_THE_DISK:
        return error
    return BadSql(f"{error} (in: {' '.join(sql.split())[:120]})")
