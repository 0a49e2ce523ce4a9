"""SQL for a tool's own tables: names from outside are checked, values are bound."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from edge.storage.tools.packages import BadSql
from tools_cache.api.handed import Json

SEALED: Final = "encrypted__"
MAX_COLUMNS: Final = 40
MAX_SELECT: Final = 1000
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
_FORM: Final = re.compile(r"(TEXT|INTEGER|REAL|BLOB)((?: NOT NULL| UNIQUE){0,2})")


class Statement(NamedTuple):
    sql: str
    params: tuple[Any, ...] = ()


def is_sealed(column: str) -> bool:
    return column.lower().startswith(SEALED)


def name(word: object, what: str) -> str:
    """Return the name as it stands in a statement. Raise BadSql unless it is a plain name.

    In brackets, because SQLite reads a double-quoted name that is no column's as text:
    `delete(where={"nmae": "nmae"})` meant all rows.
    """
    if not isinstance(word, str) or not _NAME.fullmatch(word) or word.lower().startswith("sqlite_"):
        rule = "letters, digits and _ only, a letter first, 63 at most"
        raise BadSql(f"{str(word)[:40]!r} is no name of a {what}: {rule}")
    return f"[{word}]"


def create(table: str, columns: Mapping[str, str]) -> Statement:
    """AUTOINCREMENT: a deleted id is never used again, so a sealed value stays bound to one row."""
    _check_columns(columns)
    parts = [
        "id INTEGER PRIMARY KEY AUTOINCREMENT",
        *(f"{name(c, 'column')} {_form(c, form)}" for c, form in columns.items()),
    ]
    return Statement(f"CREATE TABLE IF NOT EXISTS {name(table, 'table')} ({', '.join(parts)})")


def add_columns(table: str, columns: Mapping[str, str], there: Sequence[str]) -> list[Statement]:
    """Return what brings a table up to these columns; those it has stay as they are."""
    have = {c.lower() for c in there}
    found = []
    for column, form in columns.items():
        if column.lower() in have:
            continue
        if not is_sealed(column) and form.upper().split()[1:]:
            why = "it can be neither NOT NULL nor UNIQUE"
            raise BadSql(f"column {column} is new in a table with rows: {why}")
        more = f"{name(column, 'column')} {_form(column, form)}"
        found.append(Statement(f"ALTER TABLE {name(table, 'table')} ADD COLUMN {more}"))
    return found


def insert(table: str, row: Mapping[str, Json], number: int) -> Statement:
    columns = ", ".join(["id", *(name(c, "column") for c in row)])
    marks = ", ".join("?" * (len(row) + 1))
    sql = f"INSERT INTO {name(table, 'table')} ({columns}) VALUES ({marks})"  # noqa: S608 - checked names
    return Statement(sql, (number, *row.values()))


def next_id(table: str) -> Statement:
    last = "SELECT seq FROM sqlite_sequence WHERE name = ? COLLATE NOCASE"
    return Statement(f"SELECT coalesce(({last}), 0) + 1 AS id", (table,))


def select(
    table: str, *, where: Mapping[str, Json] | None, columns: Sequence[str], order: str, limit: int
) -> Statement:
    condition, params = _where(where or {})
    wanted = ", ".join(name(c, "column") for c in columns) or "*"
    wanted = f"id AS _id, {wanted}"  # what sealed values are bound to
    sql = f"SELECT {wanted} FROM {name(table, 'table')}{condition}{_order(order)} LIMIT ?"  # noqa: S608 - checked names
    return Statement(sql, (*params, max(0, min(limit, MAX_SELECT))))


def ids(table: str, where: Mapping[str, Json]) -> Statement:
    condition, params = _where(where)
    return Statement(f"SELECT id FROM {name(table, 'table')}{condition}", params)  # noqa: S608 - checked names


def update(table: str, row: Mapping[str, Json], where: Mapping[str, Json]) -> Statement:
    condition, params = _where(where)
    changes = ", ".join(f"{name(c, 'column')} = ?" for c in row)
    sql = f"UPDATE {name(table, 'table')} SET {changes}{condition}"  # noqa: S608 - checked names
    return Statement(sql, (*row.values(), *params))


def delete(table: str, where: Mapping[str, Json]) -> Statement:
    condition, params = _where(where)
    return Statement(f"DELETE FROM {name(table, 'table')}{condition}", params)  # noqa: S608 - checked names


def check_row(row: Mapping[str, Json]) -> None:
    """Raise BadSql for what no column can hold; the error never contains a value."""
    if not row:
        raise BadSql("a row needs at least one column")
    for column, value in row.items():
        name(column, "column")
        if column.lower() == "id":
            raise BadSql("id is given by the database; it cannot be set")
        if not is_sealed(column) and not isinstance(value, str | int | float | bytes | None):
            wrong = f"not {type(value).__name__}; json.dumps it first"
            raise BadSql(f"column {column}: text, a number, bytes or null, {wrong}")


def _check_columns(columns: Mapping[str, str]) -> None:
    if not 1 <= len(columns) <= MAX_COLUMNS:
        raise BadSql(f"a table has 1 to {MAX_COLUMNS} columns, not {len(columns)}")
    if any(c.lower() == "id" for c in columns):
        raise BadSql("every table has id by itself; leave it out")


def _form(column: str, form: str) -> str:
    if is_sealed(column):  # whatever comes in past us by SQL of the tool's own cannot be plain text
        return f"BLOB CHECK (typeof({name(column, 'column')}) IN ('blob', 'null'))"
    if not _FORM.fullmatch(form.upper()):
        forms = "TEXT, INTEGER, REAL, BLOB, with NOT NULL or UNIQUE after it"
        raise BadSql(f"column {column}: {form[:40]!r} is none of {forms}")
    return form.upper()


def _where(where: Mapping[str, Json]) -> tuple[str, tuple[Any, ...]]:
    parts: list[str] = []
    params: list[Any] = []
    for column, value in where.items():
        if is_sealed(column):
            fix = "select by another column and look"
            raise BadSql(f"{column} is encrypted: it cannot be searched; {fix}")
        quoted = name(column, "column")
        if value is None:
            parts.append(f"{quoted} IS NULL")
        elif isinstance(value, list | tuple):
            parts.append(f"{quoted} IN ({', '.join('?' * len(value))})")
            params += value
        else:
            parts.append(f"{quoted} = ?")
            params.append(value)
    return (" WHERE " + " AND ".join(parts) if parts else ""), tuple(params)


def _order(order: str) -> str:
    if not order:
        return " ORDER BY id"
    column = order.removeprefix("-")
    if is_sealed(column):
        raise BadSql(f"{column} is encrypted: rows cannot be sorted by it")
    return f" ORDER BY {name(column, 'column')} {'DESC' if order.startswith('-') else 'ASC'}, id"
