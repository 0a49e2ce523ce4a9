"""Records on disk which worker runs which mini-app: one process for all workers, restarted if its
worker died.
"""

from dataclasses import dataclass

from edge.devcloud.worker.workers import Workers
from edge.storage.sqlite.database import Connection, Row, SqliteDatabase


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Another worker runs this app, at this address; `connected` once it answered."""

    worker: str
    url: str
    api_key_hash: str
    connected: bool


class AppProcesses:
    """One worker's view. Store errors are raised to the caller."""

    def __init__(self, db: SqliteDatabase, workers: Workers) -> None:
        self._db = db
        self._workers = workers

    async def take(self, package: str, *, instead_of: Elsewhere | None = None) -> Elsewhere | None:
        """Make this worker the one that starts an app, or return which has it. `instead_of`: that
        one no longer answers.
        """
        me = self._workers.name

        def work(db: Connection) -> Elsewhere | None:
            row = db.execute("SELECT * FROM seats WHERE package = ?", (package,)).fetchone()
            other = row is not None and row["worker"] != me and self._workers.alive(row["worker"])
            if other and _elsewhere(row) != instead_of:
                return _elsewhere(row)
            db.execute("INSERT OR REPLACE INTO seats (package, worker) VALUES (?,?)", (package, me))
            return None

        return await self._db.write(work)

    async def say(self, package: str, *, url: str, api_key_hash: str, connected: bool) -> None:
        """Publish the app's address to the other workers, if this one still owns it."""
        sql = (
            "UPDATE seats SET url = ?, key_hash = ?, connected = ? WHERE package = ? AND worker = ?"
        )
        values = (url, api_key_hash, connected, package, self._workers.name)
        await self._db.write(lambda db: db.execute(sql, values).rowcount, grows=False)

    async def leave(self, package: str) -> None:
        """Release an app: it ended, the next worker that needs it starts it."""
        values = (package, self._workers.name)
        sql = "DELETE FROM seats WHERE package = ? AND worker = ?"
        await self._db.write(lambda db: db.execute(sql, values).rowcount, grows=False)


def _elsewhere(row: Row) -> Elsewhere:
    return Elsewhere(row["worker"], row["url"], row["key_hash"], bool(row["connected"]))
