"""Small durable facts of the daemon itself (last glasses, last scene): name → JSON."""

import json
from collections.abc import Callable

from edge.storage.sqlite.database import Connection, SqliteDatabase, Work
from tools_cache.api.tool import Json


class Notes:
    """Facts by name. An unknown name reads as None; putting None deletes."""

    def __init__(self, db: SqliteDatabase) -> None:
        self._db = db

    async def get(self, name: str) -> Json:
        sql = "SELECT value FROM notes WHERE name = ?"
        row = await self._db.read(lambda c: c.execute(sql, (name,)).fetchone())
        return None if row is None else json.loads(row["value"])

    async def put(self, name: str, value: Json) -> None:
        """Store a fact; returns after that is on disk."""
        # A note replaces its older self, so a full store still takes it.
        await self._db.write(self._putting(name, value), grows=False)

    async def put_soon(
        self, name: str, value: Json, *, failed: Callable[[BaseException], None]
    ) -> None:
        """Queue a fact that nobody waits for: it is on disk with what is stored next, or in a
        moment. `failed` gets the reason if it never is. Raise StoreClosed.
        """
        await self._db.behind(self._putting(name, value), failed=failed)

    @staticmethod
    def _putting(name: str, value: Json) -> Work[None]:
        text = json.dumps(value, separators=(",", ":"))

        def work(connection: Connection) -> None:
            if value is None:
                connection.execute("DELETE FROM notes WHERE name = ?", (name,))
            else:
                connection.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, text))

        return work
