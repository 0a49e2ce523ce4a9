"""The messages that came to a user's pagers, until they expire; and which ids came already."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tools_cache.api.handed import Database, Json
from tools_cache.errors import ErrorCode, ToolFailure

MAX_MESSAGES: Final = 500
KNOWN_IDS: Final = 5000
RETRY_MS: Final = 60_000
NOT_ANNOUNCED, ANNOUNCED, SILENT = 0, 1, 2
_INBOX: Final = "inbox"
_INBOX_COLUMNS: Final = {
    "token": "TEXT NOT NULL UNIQUE",
    "message": "TEXT NOT NULL",
    "arrived": "REAL NOT NULL",
    "expires": "REAL NOT NULL",
    "unread": "INTEGER NOT NULL",
    "announced": "INTEGER NOT NULL",
    "encrypted__body": "TEXT",
}
_SEEN: Final = "seen"
_SEEN_COLUMNS: Final = {"token": "TEXT NOT NULL UNIQUE"}
_THERE: Final = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
_EXPIRED: Final = "DELETE FROM inbox WHERE expires <= ?"
_COUNT: Final = "SELECT count(*) AS n FROM inbox"
_OLDEST_READ: Final = "DELETE FROM inbox WHERE id = (SELECT min(id) FROM inbox WHERE unread = 0)"
_FORGET: Final = (
    "DELETE FROM seen WHERE id <= (SELECT id FROM seen ORDER BY id DESC LIMIT 1 OFFSET ?)"
)


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message in the inbox. `token` is its sender and id: no sender can take another's id."""

    token: str
    message: str
    arrived: float
    expires: float
    unread: bool
    announced: int
    body: Mapping[str, Json]


def token_of(sender: str, message: str) -> str:
    return f"{sender}/{message}"


class Inbox:
    """The messages of one user. Reading creates no table, so it works on a full disk."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def cleanup_expired(self, now: float) -> None:
        """Remove messages whose time is over; their ids stay known."""
        if await self._db.fetch(_THERE, _INBOX):
            await self._db.execute(_EXPIRED, now)

    async def newest(self, limit: int = MAX_MESSAGES) -> list[StoredMessage]:
        """Return messages, the newest first."""
        if not await self._db.fetch(_THERE, _INBOX):
            return []
        return [_stored(row) for row in await self._db.select(_INBOX, order="-id", limit=limit)]

    async def find(self, token: str) -> StoredMessage | None:
        if not await self._db.fetch(_THERE, _INBOX):
            return None
        rows = await self._db.select(_INBOX, where={"token": token}, limit=1)
        return _stored(rows[0]) if rows else None

    async def knows(self, token: str) -> bool:
        """Return whether this message came before, also if it has expired since."""
        return bool(await self._db.fetch(_THERE, _SEEN)) and bool(
            await self._db.fetch("SELECT 1 FROM seen WHERE token = ?", token)
        )

    async def make_room(self) -> None:
        """Remove the oldest message that was read if the inbox is full. Raises `ToolFailure` if
        all are unread.
        """
        if not await self._db.fetch(_THERE, _INBOX):
            return
        if (await self._db.fetch(_COUNT))[0]["n"] < MAX_MESSAGES:
            return
        if not await self._db.execute(_OLDEST_READ):
            raise ToolFailure.of(
                ErrorCode.RATE_LIMIT,
                f"{MAX_MESSAGES} unread messages wait here",
                retry_after_ms=RETRY_MS,
            )

    async def store(self, message: StoredMessage) -> None:
        """Store a message before anything is shown of it."""
        await self._db.create_table(_INBOX, _INBOX_COLUMNS)
        row = {
            "token": message.token,
            "message": message.message,
            "arrived": message.arrived,
            "expires": message.expires,
            "unread": int(message.unread),
            "announced": message.announced,
            "encrypted__body": dict(message.body),
        }
        await self._db.insert(_INBOX, row)

    async def know(self, token: str) -> None:
        """Remember an id, among the newest 5,000."""
        await self._db.create_table(_SEEN, _SEEN_COLUMNS)
        if not await self.knows(token):
            await self._db.insert(_SEEN, {"token": token})
            await self._db.execute(_FORGET, KNOWN_IDS)

    async def set_announced(self, token: str, how: int) -> None:
        await self._db.update(_INBOX, {"announced": how}, where={"token": token})

    async def mark_read(self, tokens: list[str]) -> None:
        if tokens:
            await self._db.update(_INBOX, {"unread": 0}, where={"token": tokens})


def _stored(row: Mapping[str, Json]) -> StoredMessage:
    return StoredMessage(
        row["token"],
        row["message"],
        row["arrived"],
        row["expires"],
        bool(row["unread"]),
        row["announced"],
        row["encrypted__body"],
    )
