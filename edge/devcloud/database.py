"""The SQLite file of the reference cloud: its migrations, and opening it from several worker
processes.
"""

from pathlib import Path
from typing import Final

from edge.devcloud import pager_relay, uploads
from edge.devcloud.worker import keys
from edge.devcloud.worker.workers import alone
from edge.storage.sqlite.database import SqliteDatabase

_CALLS: Final = """
    CREATE TABLE calls (
        edge TEXT NOT NULL,
        id TEXT NOT NULL,
        tool TEXT NOT NULL,
        state TEXT NOT NULL,
        runs INTEGER NOT NULL DEFAULT 0,
        request TEXT,
        response TEXT,
        told INTEGER NOT NULL DEFAULT 0,
        ends_wall REAL NOT NULL,
        taken_wall REAL NOT NULL,
        PRIMARY KEY (edge, id)
    ) WITHOUT ROWID;
    CREATE INDEX calls_open ON calls (taken_wall) WHERE told = 0;
    CREATE INDEX calls_end ON calls (ends_wall);
"""
# The key holds the edge: no edge can ask for another one's answer by its id.

_SHARED: Final = """
    ALTER TABLE calls ADD COLUMN owner TEXT NOT NULL DEFAULT '';
    CREATE INDEX calls_by_owner ON calls (owner) WHERE told = 0;
    CREATE TABLE apps (
        package TEXT PRIMARY KEY,
        body TEXT NOT NULL,
        key_issued INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE TABLE sessions (
        user TEXT PRIMARY KEY,
        ends_wall REAL NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE removed (
        user TEXT NOT NULL,
        package TEXT NOT NULL,
        PRIMARY KEY (user, package)
    ) WITHOUT ROWID;
    CREATE TABLE seats (
        package TEXT PRIMARY KEY,
        worker TEXT NOT NULL,
        url TEXT NOT NULL DEFAULT '',
        key_hash TEXT NOT NULL DEFAULT '',
        connected INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE TABLE serial (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        number INTEGER NOT NULL
    );
    INSERT INTO serial VALUES (1, 0);
"""
"""Migration 3. App keys are stored as hashes, the form in which they are sent."""

MIGRATIONS: Final = (_CALLS, keys.TABLES, _SHARED, pager_relay.TABLES, uploads.TABLES)


async def open_shared(path: Path) -> SqliteDatabase:
    """Open or create it. Raises StoreError, OSError."""
    # One process at a time: several would conflict in creating, upgrading or renaming the file.
    async with alone(path.with_name(path.name + ".opening")):
        return await SqliteDatabase.open(path, MIGRATIONS, shared=True)
