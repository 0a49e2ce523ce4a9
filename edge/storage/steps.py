"""A call's steps on disk: its state, and when, why and how often it got there."""

from collections.abc import Callable, Sequence
from typing import Final

from edge.storage.sqlite.database import Connection, Row
from edge.storage.timestamps import Stamper, Timestamp
from tools_cache.api.tool import Json

MAX_STEPS: Final = 64
"""Steps kept of one call: the first and the newest. A call that repeats for days is no log."""
MAX_NOTE: Final = 500
ROW_BYTES: Final = 100
"""What a step costs beside its note: state, boot id, three numbers."""

Check = Callable[[str, str], None]
"""`check(state, to)` raises when a step is not listed."""


class Steps:
    """Called in the store's thread, within the caller's transaction."""

    def __init__(self, check: Check, stamper: Stamper) -> None:
        self._check = check
        self._stamper = stamper

    def listed(self, before: str, after: str) -> bool:
        """Tell whether the table has this step."""
        try:
            self._check(before, after)
        except Exception:  # noqa: BLE001 - the table's own error is the core's to know
            return False
        return True

    def take(self, connection: Connection, row: Row, state: str, note: str = "") -> None:
        """Move the call of `row` (seq, state) along. Raise whatever `check` raises."""
        grown = self.note(connection, row, state, note)
        sql = "UPDATE calls SET state = ?, size = size + ? WHERE seq = ?"
        connection.execute(sql, (state, grown, row["seq"]))

    def note(
        self,
        connection: Connection,
        row: Row,
        state: str,
        note: str = "",
        *,
        at: Timestamp | None = None,
    ) -> int:
        """Write a step of the call of `row` (seq, state) down, without moving the call; return by
        how much its size grows. `at`: when it was taken, if not now. Raise whatever `check` raises.
        """
        self._check(row["state"], state)
        call, note = row["seq"], note[:MAX_NOTE]
        (n,) = connection.execute(
            "INSERT INTO call_steps SELECT ?, coalesce(max(n), 0) + 1, ?,?,?,?,?,? FROM call_steps"
            " WHERE call = ? RETURNING n",
            (call, state, note, *(at or self._stamper.now()), call),
        ).fetchone()
        grown = ROW_BYTES + len(note)
        return grown - (self._forget(connection, call, n - MAX_STEPS + 1) if n > MAX_STEPS else 0)

    def begin(
        self, connection: Connection, call: int, steps: Sequence[tuple[str, Timestamp]]
    ) -> None:
        """Write down the first steps of a call, whose size has ROW_BYTES for each."""
        sql = "INSERT INTO call_steps VALUES (?,?,?,'',?,?,?,?)"
        rows = [(call, n, state, *stamp) for n, (state, stamp) in enumerate(steps, 1)]
        connection.executemany(sql, rows)

    def story(self, connection: Connection, call: int) -> list[dict[str, Json]]:
        """`[{state, at_wall, after_s, note}]`, oldest first; `after_s` counts from the first."""
        sql = "SELECT * FROM call_steps WHERE call = ? ORDER BY n"
        rows = [(row, Timestamp.of_row(row)) for row in connection.execute(sql, (call,))]
        return [
            {
                "state": row["state"],
                "at_wall": row["wall_at"],
                "note": row["note"],
                "after_s": round(self._stamper.between_s(rows[0][1], stamp), 3),
            }
            for row, stamp in rows
        ]

    def _forget(self, connection: Connection, call: int, n: int) -> int:
        sql = "DELETE FROM call_steps WHERE call = ? AND n = ? RETURNING note"
        row = connection.execute(sql, (call, n)).fetchone()
        return ROW_BYTES + len(row["note"]) if row is not None else 0
