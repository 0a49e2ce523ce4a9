"""How many rows of a table wait, and their bytes, without counting them at each look."""

import sqlite3
from typing import Final

from edge.storage.sqlite.database import Connection

_COUNTING: Final = """
CREATE TEMP TABLE {name} (part TEXT PRIMARY KEY, count INTEGER, bytes INTEGER) WITHOUT ROWID;
INSERT INTO {name}
  SELECT {part_of_row}, count(*), total({size_of_row}) FROM main.{table} AS row
  WHERE {row_counts} GROUP BY 1;
"""
_ADDING: Final = """
CREATE TEMP TRIGGER {name}_{event}_adds AFTER {event_sql} ON main.{table} WHEN {new_counts} BEGIN
  INSERT INTO {name} VALUES ({part_of_new}, 1, {size_of_new})
    ON CONFLICT (part) DO UPDATE SET count = count + 1, bytes = bytes + excluded.bytes;
END;
"""
_TAKING: Final = """
CREATE TEMP TRIGGER {name}_{event}_takes AFTER {event_sql} ON main.{table} WHEN {old_counts} BEGIN
  UPDATE {name} SET count = count - 1, bytes = bytes - {size_of_old} WHERE part = {part_of_old};
END;
"""


class Totals:
    """Rows and bytes of a table, for each part of it, kept by SQLite.

    They are counted once; from then on triggers of the connection keep them. So they are right
    after a rollback, too, and whichever code deletes a row.
    """

    def __init__(
        self, table: str, *, counts: str, changes: str, size: str = "0", part: str = "''"
    ) -> None:
        """`counts` (a condition), `size` (bytes) and `part` are SQL over a row written `{row}`;
        `changes` lists the columns that they depend on.
        """
        self._name = f"{table}_totals"
        words = {"name": self._name, "table": table}
        for row in ("row", "new", "old"):
            words[f"{row}_counts"] = counts.format(row=row)
            words[f"size_of_{row}"] = size.format(row=row)
            words[f"part_of_{row}"] = part.format(row=row)
        update = f"UPDATE OF {changes}"
        triggers = (
            (_ADDING, "insert", "INSERT"),
            (_TAKING, "delete", "DELETE"),
            (_TAKING, "update", update),
            (_ADDING, "update", update),
        )
        self._first = _COUNTING.format(**words).split(";\n")[:-1]
        self._first += [form.format(event=e, event_sql=sql, **words) for form, e, sql in triggers]

    def of(self, connection: Connection, part: str = "") -> tuple[int, int]:
        """Return how many rows of this part there are, and their bytes."""
        sql = f"SELECT count, bytes FROM temp.{self._name} WHERE part = ?"  # noqa: S608 - a constant
        try:
            row = connection.execute(sql, (part,)).fetchone()
        except sqlite3.OperationalError:  # the first look, or a rollback undid the first
            for statement in self._first:
                connection.execute(statement)
            row = connection.execute(sql, (part,)).fetchone()
        return (0, 0) if row is None else (row["count"], int(row["bytes"]))
