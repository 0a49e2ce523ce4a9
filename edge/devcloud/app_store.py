"""Stored data of the cloud: submitted apps, sessions, apps a user removed; each change has a serial
number.

Other processes see by the serial number that something changed.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from edge.storage.sqlite.database import Connection, Row, SqliteDatabase
from tools_cache.api.tool import Json

log = logging.getLogger(__name__)

MAX_SESSIONS: Final = 10_000
MAX_REMOVED: Final = 100_000


class AppStoreFull(Exception):
    """There is no room for another entry."""


@dataclass(frozen=True, slots=True)
class StoredApp:
    """All data as of one serial. `apps`: bodies as submitted; `issued`: apps whose key was issued
    here.
    """

    serial: int = 0
    apps: Mapping[str, Json] = field(default_factory=dict)
    issued: frozenset[str] = frozenset()
    sessions: Mapping[str, float] = field(default_factory=dict)
    removed: frozenset[tuple[str, str]] = frozenset()


class AppStore:
    """Every change is on disk when its method returns. Store errors are raised to the caller."""

    def __init__(self, db: SqliteDatabase) -> None:
        self._db = db

    async def serial(self) -> int:
        return await self._db.read(_serial)

    async def load(self) -> StoredApp:
        return await self._db.read(_all)

    async def put_app(self, package: str, body: Json, *, key_issued: bool = False) -> None:
        """Store an app's latest submission; an issued key stays marked as such."""
        text = json.dumps(body, ensure_ascii=False)
        sql = (
            "INSERT INTO apps (package, body, key_issued) VALUES "
            "(?,?,?) ON CONFLICT (package) DO UPDATE"
            " SET body = excluded.body, key_issued = max(key_issued, excluded.key_issued)"
        )

        def work(db: Connection) -> None:
            db.execute(sql, (package, text, key_issued))
            _changed(db)

        await self._db.write(work)

    async def open_session(self, user: str, *, ends_wall: float, now: float) -> None:
        """Open or extend a session. Raises AppStoreFull."""

        def work(db: Connection) -> None:
            db.execute("DELETE FROM sessions WHERE ends_wall < ? OR user = ?", (now, user))
            _bound(db, "sessions", MAX_SESSIONS)
            db.execute("INSERT INTO sessions (user, ends_wall) VALUES (?,?)", (user, ends_wall))
            _changed(db)

        await self._db.write(work)

    async def end_session(self, user: str) -> bool:
        """End a session; False if there was none."""

        def work(db: Connection) -> bool:
            _changed(db)
            return db.execute("DELETE FROM sessions WHERE user = ?", (user,)).rowcount > 0

        return await self._db.write(work, grows=False)

    async def set_installed(self, user: str, package: str, *, installed: bool) -> None:
        """Record an app as removed or installed; apps are installed for all users by default.
        Raises AppStoreFull.
        """

        def work(db: Connection) -> None:
            if installed:
                db.execute("DELETE FROM removed WHERE user = ? AND package = ?", (user, package))
            else:
                _bound(db, "removed", MAX_REMOVED)
                db.execute(
                    "INSERT OR IGNORE INTO removed (user, package) VALUES (?,?)", (user, package)
                )
            _changed(db)

        await self._db.write(work)


def _serial(db: Connection) -> int:
    found: int = db.execute("SELECT number FROM serial").fetchone()[0]
    return found


def _changed(db: Connection) -> None:
    db.execute("UPDATE serial SET number = number + 1")


def _bound(db: Connection, table: str, most: int) -> None:
    count = db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - our own words
    if count >= most:
        raise AppStoreFull(f"{table}: there are {most} already, which is the most this cloud holds")


def _all(db: Connection) -> StoredApp:
    apps = db.execute("SELECT package, body, key_issued FROM apps ORDER BY package").fetchall()
    return StoredApp(
        _serial(db),
        {row["package"]: body for row in apps if (body := _body(row)) is not None},
        frozenset(row["package"] for row in apps if row["key_issued"]),
        {row["user"]: row["ends_wall"] for row in db.execute("SELECT * FROM sessions")},
        frozenset((user, app) for user, app in db.execute("SELECT user, package FROM removed")),
    )


def _body(row: Row) -> Json:
    """Return the body of an app; an unreadable one is skipped and does not affect the others."""
    try:
        return json.loads(row["body"])
    except ValueError as e:
        log.warning("the stored app %s cannot be read and is skipped: %s", row["package"], e)
        return None
