"""Which worker runs which mini-app, on disk: one process of an app for all workers, started again
when its worker died.

Refuses to start anything; `activation.py` does.
"""

from dataclasses import dataclass

from edge.devcloud.roster import Roster
from edge.store.db import Connection, Database, Row


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Another worker runs this app, here; `connected` once it answered."""

    worker: str
    url: str
    api_key_hash: str
    connected: bool


class Seats:
    """One worker's view. Store errors pass through."""

    def __init__(self, db: Database, roster: Roster) -> None:
        self._db = db
        self._roster = roster

    async def take(self, package: str, *, instead_of: Elsewhere | None = None) -> Elsewhere | None:
        """Make an app this worker's to start; or say who has it. `instead_of`: that one does
        not answer any more.
        """
        me = self._roster.name

        def work(db: Connection) -> Elsewhere | None:
            row = db.execute("SELECT * FROM seats WHERE package = ?", (package,)).fetchone()
            if (
                row is not None
                and row["worker"] != me
                and self._roster.alive(row["worker"])
                and _elsewhere(row) != instead_of
            ):
                return _elsewhere(row)
            db.execute("INSERT OR REPLACE INTO seats (package, worker) VALUES (?,?)", (package, me))
            return None

        return await self._db.write(work)

    async def say(self, package: str, *, url: str, api_key_hash: str, connected: bool) -> None:
        """Tell the others where it is, if it is still ours to tell."""
        sql = (
            "UPDATE seats SET url = ?, key_hash = ?, connected = ? WHERE package = ? AND worker = ?"
        )
        values = (url, api_key_hash, connected, package, self._roster.name)
        await self._db.write(lambda db: db.execute(sql, values).rowcount, grows=False)

    async def leave(self, package: str) -> None:
        """Give a seat up: the app ended, whoever needs it next starts it."""
        values = (package, self._roster.name)
        sql = "DELETE FROM seats WHERE package = ? AND worker = ?"
        await self._db.write(lambda db: db.execute(sql, values).rowcount, grows=False)


def _elsewhere(row: Row) -> Elsewhere:
    return Elsewhere(row["worker"], row["url"], row["key_hash"], bool(row["connected"]))
