"""How the daemon's own database goes on after it was saved from a damaged file.

A call that may have been carried out is never carried out again: it ends as INTERRUPTED.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from edge.core.call_state import ANSWERED_STATES
from edge.core.routing import HERE
from edge.storage.sqlite.database import Connection, Row
from edge.storage.sqlite.guard import BOOT
from edge.storage.sqlite.inspection import Saved
from tools_cache.api.tool import CallOrigin, ErrorCode, Mode, ToolResponse

EDGE_ID: Final = "edge_id"
TABLES: Final = (
    "calls",
    "call_steps",
    "call_keys",
    "confirmations",
    "grants",
    "pending",
    "outbox",
    "inbox",
    "notes",
    "results",
    "sessions",
    "transitions",
    "tool_switches",
    "tool_usage",
)


class CallPromises:
    """`inspection.Promises` of the database of calls. Ids named here are stored beside it."""

    tables = TABLES

    def __init__(self, *, edge_id: str, boot_id: str) -> None:
        self.labels: Mapping[str, str] = {EDGE_ID: edge_id, BOOT: boot_id}

    def count(self, connection: Connection) -> int:
        sql = "SELECT count(*) FROM calls WHERE response IS NULL"
        return int(connection.execute(sql).fetchone()[0])

    def mend(self, connection: Connection) -> int:
        """See `inspection.Promises`. A call with damaged text cannot run, and may have run."""
        for row in (calls := _damaged(connection, "calls")):
            request, reply = _ended(row["call_id"], row["tool"], "", row["user_id"])
            values = {**row, "state": "FAILED", "request": request, "response": reply}
            columns = ", ".join(f"{name} = ?" for name in values)
            connection.execute(
                f"UPDATE calls SET {columns} WHERE seq = ?",  # noqa: S608 - our columns
                (*values.values(), row["seq"]),
            )
        damaged = len(calls)
        for table in ("inbox", "outbox"):
            for row in _damaged(connection, table):
                connection.execute(f"DELETE FROM {table} WHERE seq = ?", (row["seq"],))  # noqa: S608 - two constants
                damaged += 1
        return damaged

    def settle(self, connection: Connection, *, stale: bool, whole: bool) -> Saved:
        """See `inspection.Promises`. The cloud may get a message twice: it knows the id."""
        lost = _forget_orphans(connection)
        if stale:
            here = ", ".join(f"'{kind.value}'" for kind in sorted(HERE))
            connection.execute(
                "UPDATE calls SET state = 'RUNNING', "  # noqa: S608 - words of our own
                "attempts = max(attempts, 1) WHERE response IS NULL"
                " AND state IN ('ADMITTED', 'AWAITING_CONFIRMATION', "
                f"'PENDING') AND route IN ({here})"
            )
        if stale or lost or not whole:
            _end_unknown_invocations(connection)
        return Saved(self.count(connection), lost)


_OPEN: Final = {
    "calls": ("request", "response IS NULL"),
    "inbox": ("body", "body IS NOT NULL"),
    "outbox": ("body", "1"),
}
"""Table → the JSON that the daemon goes on with, and which rows those are."""


def _damaged(connection: Connection, table: str) -> list[dict[str, Any]]:
    """Open rows whose text cannot be read, with what can be read of it."""
    column, which = _OPEN[table]
    found = []
    connection.text_factory, usual = bytes, connection.text_factory
    try:
        cursor = connection.execute(f"SELECT * FROM {table} WHERE {which}")  # noqa: S608 - constants
        names = [description[0] for description in cursor.description]
        for values in cursor:  # one at a time: together they may be most of the database
            row = dict(zip(names, values, strict=True))
            if not _readable(row, column):
                found.append({name: _text(value) for name, value in row.items()})
    finally:
        connection.text_factory = usual
    return found


def _text(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _readable(row: Mapping[str, Any], column: str) -> bool:
    """Whether every text is UTF-8 and `column` holds a JSON object."""
    try:
        for value in row.values():
            if isinstance(value, bytes):
                value.decode()
        return isinstance(json.loads(row[column]), dict)
    except (ValueError, TypeError, RecursionError):
        return False


def _forget_orphans(connection: Connection) -> int:
    """Delete steps and keys of lost calls; return how many of these had no answer yet."""
    last = (
        "SELECT call, state, max(n) FROM call_steps WHERE call NOT IN "
        "(SELECT seq FROM calls) GROUP BY call"
    )
    lost = sum(row[1] not in ANSWERED_STATES for row in connection.execute(last).fetchall())
    for table in ("call_steps", "call_keys"):
        connection.execute(f"DELETE FROM {table} WHERE call NOT IN (SELECT seq FROM calls)")  # noqa: S608 - two constants
    return lost


def _end_unknown_invocations(connection: Connection) -> None:
    """Answer the cloud's calls whose own row is gone: they may have run."""
    sql = (
        "SELECT * FROM inbox WHERE kind = 'call' AND body IS NOT NULL "
        "AND id NOT IN (SELECT call_id FROM calls)"
    )
    rows: list[Row] = connection.execute(sql).fetchall()
    for _, _, _, call_id, body, _, _, _, _, *stamp in map(tuple, rows):
        asked = json.loads(body)
        tool, user_id = str(asked.get("tool", "")), str(asked.get("user_id", "local"))
        request, reply = _ended(call_id, tool, str(asked.get("turn_id", "")), user_id)
        connection.execute(
            "INSERT INTO calls(call_id, user_id, tool, route, state, request, "
            "response, answered_wall, ttl_s, boot_id, boot_at, wall_at,"
            " synced, size) VALUES (?,?,?,'local','FAILED',?,?,0,0,?,?,?,?,?)",
            (call_id, user_id, tool, request, reply, *stamp, len(request) + len(reply)),
        )


def _ended(call_id: str, tool: str, turn_id: str, user_id: str) -> tuple[str, str]:
    """Return request and response, as stored, of a call whose outcome nobody knows."""
    request: dict[str, Any] = {
        "call_id": call_id,
        "tool": tool,
        "args": {},
        "origin": CallOrigin.CLOUD.value,
        "mode": Mode.TEXT.value,
        "turn_id": turn_id,
        "user_id": user_id,
        "idempotency_key": None,
        "keys": [],
    }
    answer = ToolResponse.failure(
        ErrorCode.INTERRUPTED,
        "What became of this call was lost with a damaged database",
        partial_side_effects=True,
        idempotency_required=True,
    ).with_meta(callId=call_id)
    return json.dumps(request), json.dumps(answer.to_json())
