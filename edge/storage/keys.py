"""Idempotency keys on disk: which call a key stands for, how long, and which keys go first."""

import json
from collections.abc import Callable, Sequence
from typing import Final

from edge.storage.sqlite.database import Connection, Row
from edge.storage.timestamps import Stamper, Timestamp
from tools_cache.api.tool import ToolCall, ToolResponse

LIFE_S: Final = 24 * 3600.0
"""Life of a key whose call must not run twice; it begins again with the answer."""
REPEATABLE_LIFE_S: Final = 3600.0
"""The same for a call that may run twice: only a courtesy to the network."""
SESSION_CALLS: Final = 100
"""Answered calls of a session whose keys stay, by last hit; open calls are not counted."""
KEY_BYTES: Final = 150
"""What a key costs beside its own text."""

Replayable = Callable[[ToolResponse], bool]


def row_response(row: Row) -> ToolResponse | None:
    """Read the stored answer of a row of `calls`."""
    return ToolResponse.from_json(json.loads(row["response"])) if row["response"] else None


class Keys:
    """Called in the store's thread, within the caller's transaction."""

    def __init__(self, replayable: Replayable, stamper: Stamper, *, session_calls: int) -> None:
        self._replayable = replayable
        self._stamper = stamper
        self._session_calls = session_calls

    def find(self, connection: Connection, call: ToolCall, key: str) -> Row | None:
        """Return the call this key stands for; None if there is none that may be answered again."""
        row: Row | None = connection.execute(
            "SELECT c.*, k.life_s, k.boot_id AS key_boot_id, k.boot_at AS key_boot_at,"
            " k.wall_at AS key_wall_at, k.synced AS key_synced"
            " FROM call_keys k JOIN calls c ON c.seq = k.call"
            " WHERE k.user_id = ? AND k.session = ? AND k.key = ?",
            (call.user_id, call.session, key),
        ).fetchone()
        if row is None:
            return None
        response = row_response(row)
        if response is None:
            return row  # it still runs, however long
        stamp = Timestamp(
            row["key_boot_id"], row["key_boot_at"], row["key_wall_at"], bool(row["key_synced"])
        )
        alive = self._stamper.age_s(stamp) <= row["life_s"]
        return row if alive and self._replayable(response) else None

    def remember(
        self,
        connection: Connection,
        call: ToolCall,
        seq: int,
        keys: Sequence[str],
        stamp: Timestamp,
        *,
        repeatable: bool,
    ) -> None:
        """Let the first key, which is known to be free, and each other free one stand for this
        call.
        """
        hit = self._next_hit(connection, call.user_id, call.session)
        life_s = REPEATABLE_LIFE_S if repeatable else LIFE_S
        for key in dict.fromkeys(keys):
            if key != keys[0] and self.find(connection, call, key) is not None:
                continue
            connection.execute(
                "INSERT OR REPLACE INTO call_keys VALUES (?,?,?,?,0,?,?,?,?,?,?)",
                (call.user_id, call.session, key, seq, hit, life_s, *stamp),
            )

    def renew(self, connection: Connection, row: Row) -> None:
        """Count a hit of this call."""
        hit = self._next_hit(connection, row["user_id"], row["session"])
        connection.execute("UPDATE call_keys SET hit = ? WHERE call = ?", (hit, row["seq"]))

    def answered(self, connection: Connection, row: Row) -> None:
        """Begin the keys' life with the answer; delete those of the session's least used calls."""
        changed = connection.execute(
            "UPDATE call_keys SET answered = 1, boot_id = ?, boot_at = ?, wall_at = ?, synced = ?"
            " WHERE call = ?",
            (*self._stamper.now(), row["seq"]),
        ).rowcount
        if changed:
            self.renew(connection, row)
            self._forget_least_used(connection, row["user_id"], row["session"])

    def _forget_least_used(self, connection: Connection, user_id: str, session: str) -> None:
        # All keys of a call share its hit, and no two calls of a session share one: distinct hits
        # are calls. The inner SELECT stands alone because SQLite 3.40 forgets the OFFSET of a
        # DISTINCT used as a value.
        connection.execute(
            "DELETE FROM call_keys WHERE user_id = :user AND session = :session AND answered"
            " AND hit <= (SELECT max(hit) FROM (SELECT DISTINCT hit FROM call_keys"
            " WHERE user_id = :user AND session = :session AND answered"
            " ORDER BY hit DESC LIMIT -1 OFFSET :calls))",
            {"user": user_id, "session": session, "calls": self._session_calls},
        )

    def _next_hit(self, connection: Connection, user_id: str, session: str) -> int:
        sql = "SELECT coalesce(max(hit), 0) + 1 FROM call_keys WHERE user_id = ? AND session = ?"
        hit: int = connection.execute(sql, (user_id, session)).fetchone()[0]
        return hit
