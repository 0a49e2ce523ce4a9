"""Idempotency keys of the worker: when a call is a repeat of an earlier one, and whether its answer
may be reused.

Rules, and SQL functions that run inside the caller's transaction.
"""

from dataclasses import dataclass
from typing import Final

from edge.storage.sqlite.database import Connection, Row
from tools_cache.api.tool import ErrorType, ToolCall, ToolResponse

PER_SESSION: Final = 100
"""Keys per edge, user and session; the least recently used one is dropped first."""
WRITES_KEEP_S: Final = 24 * 3600.0
"""Seconds the key of a call that must not run twice is kept."""
_NEVER_AGAIN: Final = frozenset(
    {
        ErrorType.VALIDATION,
        ErrorType.BUDGET_EXCEEDED,
        ErrorType.MODE_RESTRICTED,
        ErrorType.CONFIRMATION_REQUIRED,
        ErrorType.CONFIRMATION_EXPIRED,
        ErrorType.TRANSIENT,
        ErrorType.RATE_LIMIT,
    }
)

TABLES: Final = """
    ALTER TABLE calls ADD COLUMN follows TEXT;
    CREATE INDEX calls_follow ON calls (edge, follows) WHERE follows IS NOT NULL;
    CREATE INDEX calls_held ON calls (ends_wall) WHERE state IN ('waits', 'pending');
    CREATE TABLE keys (
        edge TEXT NOT NULL,
        user TEXT NOT NULL,
        key TEXT NOT NULL,
        session TEXT NOT NULL,
        id TEXT NOT NULL,
        tool TEXT NOT NULL,
        turn TEXT NOT NULL,
        repeatable INTEGER NOT NULL,
        hit INTEGER NOT NULL,
        keep_wall REAL NOT NULL,
        PRIMARY KEY (edge, user, key)
    ) WITHOUT ROWID;
    CREATE INDEX keys_by_hit ON keys (edge, user, session, hit);
    CREATE INDEX keys_by_call ON keys (edge, id);
    CREATE INDEX keys_by_end ON keys (keep_wall);
    INSERT OR IGNORE INTO keys
        SELECT edge, json_extract(request, '$.user_id'), json_extract(request, '$.idempotency_key'), '', id, tool,
               json_extract(request, '$.turn_id'), 0, 0, max(ends_wall + 600, taken_wall + 86400)
        FROM calls WHERE state <> 'done' AND json_extract(request, '$.idempotency_key') IS NOT NULL
        ORDER BY taken_wall;
"""  # noqa: E501
"""Migration 2. Calls that an older worker left running bring their keys along; it did not know
whether they may repeat.
"""


@dataclass(frozen=True, slots=True)
class HeldKey:
    """A known key: its call, that call's tool and turn, and whether the tool may run twice."""

    id: str
    tool: str
    turn: str
    repeatable: bool


def keeps(response: ToolResponse, *, repeatable: bool) -> bool:
    """Return whether an answer may be reused for a later call with the same key: successes and
    final failures.

    Also failures whose outcome is unknown, of a tool that must not run twice: a second run is what
    the key is meant to prevent.
    """
    error = response.error
    if error is None or (error.partial_side_effects and not repeatable):
        return True
    return not (error.retryable or error.type in _NEVER_AGAIN)


def find(db: Connection, edge: str, call: ToolCall, now: float) -> HeldKey | None:
    """Look up the call's key; finding it counts as a use."""
    if call.idempotency_key is None:
        return None
    name = (edge, call.user_id, call.idempotency_key)
    sql = "SELECT * FROM keys WHERE edge = ? AND user = ? AND key = ? AND keep_wall >= ?"
    row = db.execute(sql, (*name, now)).fetchone()
    if row is None:
        return None
    hit = _next_hit(db, edge, call.user_id, row["session"])
    db.execute("UPDATE keys SET hit = ? WHERE edge = ? AND user = ? AND key = ?", (hit, *name))
    return _held(row)


def keep(db: Connection, edge: str, call: ToolCall, *, repeatable: bool, keep_wall: float) -> None:
    """Store the call's key; if a session has too many, those of finished calls are dropped."""
    if call.idempotency_key is None:
        return
    session = (edge, call.user_id, call.session)
    key = (call.idempotency_key, call.call_id, call.tool, call.turn_id, repeatable)
    db.execute(
        "INSERT OR REPLACE INTO keys (edge, user, session, key, id, tool, turn, repeatable, hit,"
        " keep_wall) VALUES (?,?,?,?,?,?,?,?,?,?)",
        (*session, *key, _next_hit(db, *session), keep_wall),
    )
    scope = "edge = ? AND user = ? AND session = ?"
    count = db.execute(f"SELECT count(*) FROM keys WHERE {scope}", session).fetchone()[0]  # noqa: S608 - our own words
    if count > PER_SESSION:
        # A key whose call still runs is what keeps it from running twice: it stays, and their
        # number has its own bound.
        db.execute(
            f"DELETE FROM keys WHERE {scope} AND key IN (SELECT key "  # noqa: S608
            "FROM keys JOIN calls USING (edge, id)"
            f" WHERE {scope} AND state = 'done' ORDER BY hit LIMIT ?)",
            (*session, *session, count - PER_SESSION),
        )


def of_call(db: Connection, edge: str, call_id: str) -> HeldKey | None:
    """Return the key of a call, or None."""
    sql = "SELECT * FROM keys WHERE edge = ? AND id = ?"
    row = db.execute(sql, (edge, call_id)).fetchone()
    return None if row is None else _held(row)


def _held(row: Row) -> HeldKey:
    return HeldKey(row["id"], row["tool"], row["turn"], bool(row["repeatable"]))


def hand_over(db: Connection, edge: str, call_id: str, *, heir: str, turn: str) -> None:
    sql = "UPDATE keys SET id = ?, turn = ? WHERE edge = ? AND id = ?"
    db.execute(sql, (heir, turn, edge, call_id))


def forget(db: Connection, edge: str, call_id: str) -> None:
    db.execute("DELETE FROM keys WHERE edge = ? AND id = ?", (edge, call_id))


def prune(db: Connection, now: float) -> None:
    db.execute("DELETE FROM keys WHERE keep_wall < ?", (now,))


def _next_hit(db: Connection, edge: str, user: str, session: str) -> int:
    """Order of hits within a session; a count, because clocks step."""
    sql = "SELECT coalesce(max(hit), 0) + 1 FROM keys WHERE edge = ? AND user = ? AND session = ?"
    return int(db.execute(sql, (edge, user, session)).fetchone()[0])
