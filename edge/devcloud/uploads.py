"""Photos and sounds that edges uploaded, for the tools of this cloud: kept a day, and within a
bound.
"""

import time
from dataclasses import dataclass
from typing import Final

from edge.storage.sqlite.database import Connection, Row, SqliteDatabase

MOST_BYTES: Final = 2 << 20
"""Bytes of one upload."""
MOST_ALL_BYTES: Final = 64 << 20
"""Bytes of all uploads; the oldest go first."""
KEEP_S: Final = 24 * 3600.0

TABLES: Final = """
    CREATE TABLE uploads (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        user TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        kind TEXT NOT NULL,
        data BLOB NOT NULL,
        size INTEGER NOT NULL,
        ends_wall REAL NOT NULL,
        UNIQUE (user, sha256)
    );
    CREATE INDEX uploads_end ON uploads (ends_wall);
"""
"""Migration 5."""
_TOO_MANY: Final = """
    DELETE FROM uploads WHERE number IN (
        SELECT number FROM (
            SELECT number, sum(size) OVER (ORDER BY number DESC) AS total FROM uploads
        ) WHERE total > ?
    )
"""


@dataclass(frozen=True, slots=True)
class Upload:
    """`kind` is a MIME type."""

    kind: str
    data: bytes


class Uploads:
    """Each belongs to the user who sent it; store errors are raised to the caller."""

    def __init__(self, db: SqliteDatabase) -> None:
        self._db = db

    async def put(self, user: str, sha256: str, upload: Upload) -> None:
        """Store it for a day; the same again begins that day again."""
        now = time.time()

        def work(db: Connection) -> None:
            db.execute("DELETE FROM uploads WHERE ends_wall < ?", (now,))
            db.execute("DELETE FROM uploads WHERE user = ? AND sha256 = ?", (user, sha256))
            db.execute(
                "INSERT INTO uploads (user, sha256, kind, data, size, ends_wall) "
                "VALUES (?,?,?,?,?,?)",
                (user, sha256, upload.kind, upload.data, len(upload.data), now + KEEP_S),
            )
            db.execute(_TOO_MANY, (MOST_ALL_BYTES,))

        await self._db.write(work)

    async def find(self, user: str, sha256: str) -> Upload | None:
        """Return this user's upload; None if there is none, or it is too old."""
        sql = "SELECT kind, data FROM uploads WHERE user = ? AND sha256 = ? AND ends_wall >= ?"

        def work(db: Connection) -> Row | None:
            found: Row | None = db.execute(sql, (user, sha256, time.time())).fetchone()
            return found

        row = await self._db.read(work)
        return None if row is None else Upload(row["kind"], bytes(row["data"]))
