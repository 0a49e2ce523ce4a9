"""One user's own tables within one package: `tools_cache.api.handed.Database`.

They live in a file of their own, so no statement reaches another user's. Columns can be encrypted.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from edge.storage.sqlite.database import Connection, StoreFull
from edge.storage.tools import table_sql
from edge.storage.tools.encryption import Keyring
from edge.storage.tools.packages import BadSql, complaint, execute_in, fetch_in
from edge.storage.tools.sandboxed_sql import SqlError
from edge.storage.tools.users import Owner, Users
from tools_cache.api.handed import Json

T = TypeVar("T")

MAX_ROWS: Final = 10_000
"""Of one table."""
MAX_TABLES: Final = 20
_SEALED: Final = re.compile(re.escape(table_sql.SEALED), re.IGNORECASE)


class UserTables:
    """Made for each call; opens nothing before it is used."""

    def __init__(self, users: Users, keyring: Keyring, owner: Owner) -> None:
        self._users = users
        self._keyring = keyring
        self._owner = owner

    async def create_table(self, table: str, columns: Mapping[str, str]) -> None:
        statement, columns = table_sql.create(table, columns), dict(columns)
        await self._write(lambda c: _create(c, table, columns, statement))

    async def insert(self, table: str, row: Mapping[str, Json]) -> int:
        """Raise BadSql, StoreFull, and `KeyLost` when a column is encrypted."""
        table_sql.check_row(row)
        row = dict(row)

        def work(c: Connection) -> int:
            if _count(c, table) >= MAX_ROWS:
                raise StoreFull(f"table {table} holds its {MAX_ROWS} rows; delete some")
            number: int = fetch_in(c, *table_sql.next_id(table))[0]["id"]
            execute_in(c, *table_sql.insert(table, self._sealed(table, row, number), number))
            return number

        return await self._write(work)

    async def select(
        self,
        table: str,
        *,
        where: Mapping[str, Json] | None = None,
        columns: Sequence[str] = (),
        order: str = "",
        limit: int = 100,
    ) -> list[dict[str, Json]]:
        """Raise BadSql, and `KeyLost` or `Altered` for encrypted columns."""
        statement = table_sql.select(table, where=where, columns=columns, order=order, limit=limit)
        return await self._read(
            lambda c: [self._opened(table, row) for row in fetch_in(c, *statement)]
        )

    async def update(
        self, table: str, row: Mapping[str, Json], *, where: Mapping[str, Json]
    ) -> int:
        table_sql.check_row(row)
        row, where = dict(row), dict(where)
        if not any(map(table_sql.is_sealed, row)):
            return await self._write(lambda c: execute_in(c, *table_sql.update(table, row, where)))

        def work(c: Connection) -> int:
            numbers = _ids(c, table_sql.ids(table, where))
            for number in numbers:  # one by one: a sealed value is of one row
                sealed = self._sealed(table, row, number)
                execute_in(c, *table_sql.update(table, sealed, {"id": number}))
            return len(numbers)

        return await self._write(work)

    async def delete(self, table: str, *, where: Mapping[str, Json]) -> int:
        statement = table_sql.delete(table, where)
        return await self._write(lambda c: execute_in(c, *statement), grows=False)

    async def execute(self, sql: str, *params: Json) -> int:
        """Raise BadSql, also for an encrypted column: it would be stored as plain text."""
        _check_plain(sql)
        grows = sql.lstrip()[:6].upper() != "DELETE"
        return await self._write(lambda c: execute_in(c, sql, params), grows=grows)

    async def fetch(self, sql: str, *params: Json) -> list[dict[str, Json]]:
        _check_plain(sql)
        rows = await self._read(lambda c: fetch_in(c, sql, params))
        for column in rows[0] if rows else ():
            _check_plain(column)
        return rows

    # -------------------------------------------------------------- the file

    async def _write(self, work: Callable[[Connection], T], *, grows: bool = True) -> T:
        async with self._users.database(self._owner) as database:
            return await database.write(work, grows=grows)

    async def _read(self, work: Callable[[Connection], T]) -> T:
        async with self._users.database(self._owner) as database:
            return await database.read(work)

    # -------------------------------------------------------------- in the store's thread

    def _sealed(self, table: str, row: dict[str, Json], number: int) -> dict[str, Json]:
        return {
            c: self._keyring.cipher().seal(value, self._about(table, c, number))
            if table_sql.is_sealed(c) and value is not None
            else value
            for c, value in row.items()
        }

    def _opened(self, table: str, row: dict[str, Json]) -> dict[str, Json]:
        number = row.pop("_id")
        for column, value in row.items():
            if table_sql.is_sealed(column) and value is not None:
                row[column] = self._keyring.cipher().open(value, self._about(table, column, number))
        return row

    def _about(self, table: str, column: str, number: int) -> bytes:
        """Name the one place a value belongs to, so that it opens nowhere else."""
        return json.dumps([*self._owner, table.lower(), column.lower(), number]).encode()


def _create(
    c: Connection, table: str, columns: Mapping[str, str], statement: table_sql.Statement
) -> None:
    there = [row["name"] for row in c.execute("SELECT name FROM pragma_table_info(?)", (table,))]
    if there:
        for change in table_sql.add_columns(table, columns, there):
            # Not restricted: SQLite looks through the rows by a PRAGMA.
            c.execute(*change)
        return
    sql = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    if c.execute(sql).fetchone()[0] >= MAX_TABLES:
        raise StoreFull(f"there are {MAX_TABLES} tables already; drop one")
    execute_in(c, *statement)


def _ids(c: Connection, statement: table_sql.Statement) -> list[int]:
    """Return all of them, more than `fetch_in` does. Raise BadSql."""
    try:
        return [found["id"] for found in c.execute(*statement)]
    except SqlError as error:
        raise complaint(error, statement.sql) from error


def _count(c: Connection, table: str) -> int:
    sql = f"SELECT count(*) AS n FROM {table_sql.name(table, 'table')}"  # noqa: S608 - a checked name
    number: int = fetch_in(c, sql, ())[0]["n"]
    return number


def _check_plain(sql: str) -> None:
    if _SEALED.search(sql):
        why = "an encrypted column cannot be read or written by SQL of your own"
        raise BadSql(f"{why}; use select, insert, update")
