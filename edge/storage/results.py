"""The last good results of tools that only read, for times without a route. All may be lost."""

import json
import logging
from typing import Final

from msgspec import Struct

from edge.runtime.clock import Clock
from edge.storage.size_bounds import Bounds, keep_newest
from edge.storage.sqlite.database import Connection, SqliteDatabase
from edge.storage.timestamps import Stamper, Timestamp
from tools_cache.api.tool import ToolResponse

_log = logging.getLogger(__name__)

BOUNDS: Final = Bounds(rows=300, bytes=2 * 1024 * 1024)
MAX_RESULT: Final = 64 * 1024
"""Bytes of one result; a bigger one is not kept."""
_NEWEST: Final = "SELECT coalesce(max(used), 0) + 1 FROM results"
_WHICH: Final = "user_id = ? AND tool = ? AND args_hash = ?"


class StoredResult(Struct, frozen=True):
    """A good result of a tool that only reads, `age_s` seconds old."""

    response: ToolResponse
    age_s: float


class ResultCache:
    """The last result per user, tool and arguments; the least used goes first (column `used`)."""

    def __init__(self, db: SqliteDatabase, clock: Clock, *, bounds: Bounds = BOUNDS) -> None:
        self._db = db
        self._stamper = Stamper(clock)
        self._bounds = bounds

    async def keep(
        self, user_id: str, tool: str, args_hash: str, response: ToolResponse, *, ttl_s: float
    ) -> None:
        """Store it soon in place of the older one; nothing on a full store, or if it is too big."""
        text = json.dumps(response.to_json(), separators=(",", ":"))
        which = (user_id, tool, args_hash)

        def failed(error: BaseException) -> None:
            _log.debug("a result of %s is not kept: %s", tool, error)

        if len(text) > MAX_RESULT or ttl_s <= 0:
            await self._db.behind(lambda c: _forget(c, which), failed=failed)
            return
        values = (*which, text, ttl_s, *self._stamper.now(), len(text))

        def work(connection: Connection) -> None:
            _forget(connection, which)
            connection.execute(
                "INSERT INTO results(used, user_id, tool, args_hash, response, ttl_s, boot_id,"  # noqa: S608 - constants
                f" boot_at, wall_at, synced, size) VALUES (({_NEWEST}),?,?,?,?,?,?,?,?,?,?)",
                values,
            )
            keep_newest(connection, "results", "used", self._bounds)

        await self._db.behind(work, failed=failed, grows=True)

    async def last(self, user_id: str, tool: str, args_hash: str) -> StoredResult | None:
        """None when there is none, its life is over, or its age is not certain."""
        which = (user_id, tool, args_hash)

        def work(connection: Connection) -> StoredResult | None:
            row = connection.execute(f"SELECT * FROM results WHERE {_WHICH}", which).fetchone()  # noqa: S608 - constants
            if row is None:
                return None
            stamp = Timestamp.of_row(row)
            if not self._stamper.sure(stamp) or self._stamper.left_s(stamp, row["ttl_s"]) <= 0:
                _forget(connection, which)
                return None
            renew = f"UPDATE results SET used = ({_NEWEST}) WHERE used = ?"  # noqa: S608 - constants
            connection.execute(renew, (row["used"],))
            response = ToolResponse.from_json(json.loads(row["response"]))
            return StoredResult(response, self._stamper.age_s(stamp))

        return await self._db.write(work, grows=False)


def _forget(connection: Connection, which: tuple[str, str, str]) -> None:
    connection.execute(f"DELETE FROM results WHERE {_WHICH}", which)  # noqa: S608 - constants
