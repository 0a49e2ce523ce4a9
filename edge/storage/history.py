"""The wearer's history: what was called, shown and said, encrypted, found by keyed hashes of words.

A full-text index would keep the words readable on disk. Here a word is stored as the first eight
bytes of its HMAC under a key derived from the one of encrypted columns. Readable stay: the user,
the kind and the moment of an entry, its length, and which entries have the same word.
"""

import asyncio
import hmac
import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from edge.runtime.clock import Clock
from edge.storage.sqlite.database import (
    MIB,
    Connection,
    DiskUnavailable,
    Row,
    SqliteDatabase,
    StoreFull,
)
from edge.storage.tools.encryption import Altered, Cipher, KeyLost, Keyring
from tools_cache.api.history import (
    Forgotten,
    FoundHistory,
    HistoryEntry,
    HistoryQuery,
    folded_text,
    words_of,
)

FILE_BYTES: Final = 256 * MIB
MAX_TEXT: Final = 4000
"""Characters that are kept of one text: about 15 pages of a lens."""
MAX_WORDS: Final = 400
"""Different words of one entry that can be searched for."""
TOKEN_BYTES: Final = 8
BATCH: Final = 500
"""Entries that are deleted in one transaction, so that calls need not wait for all of them."""
_PURPOSE: Final = b"history words"
_ABOUT_KEY: Final = b"history key"
_DAY_S: Final = 86_400.0
MIGRATIONS: Final = (
    """
    CREATE TABLE entries (
      seq INTEGER PRIMARY KEY AUTOINCREMENT, user TEXT NOT NULL, kind TEXT NOT NULL,
      at REAL NOT NULL, body BLOB NOT NULL, tokens BLOB NOT NULL
    );
    CREATE INDEX entries_at ON entries(at);
    CREATE TABLE words (
      token BLOB NOT NULL, entry INTEGER NOT NULL, PRIMARY KEY (token, entry)
    ) WITHOUT ROWID;
    CREATE TABLE key_check (id INTEGER PRIMARY KEY CHECK (id = 1), sealed BLOB NOT NULL);
    """,
)
ForgetCalls = Callable[[str, HistoryQuery], Awaitable[int]]
"""(user, what) → how many finished calls were emptied."""
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Retention:
    """How long entries stay, and how many at most."""

    days: int = 90
    max_entries: int = 50_000


class HistoryStore:
    """One per daemon. Opened at its first use; reading creates no file. `close()` at the end."""

    def __init__(
        self,
        path: Path,
        keyring: Callable[[], Keyring],
        clock: Clock,
        *,
        max_bytes: int = FILE_BYTES,
    ) -> None:
        self._path = path
        self._keyring = keyring
        self._clock = clock
        self._max_bytes = max_bytes
        self._db: SqliteDatabase | None = None
        self._opening = asyncio.Lock()

    async def add(self, user: str, entry: HistoryEntry) -> None:
        """Store an entry; its `at` is replaced by the time of now. When the file has its size, the
        oldest entries go. Raise StoreError, KeyLost.
        """
        db = await self._open()

        def work(c: Connection) -> None:
            _insert(c, self._key(c), user, entry, self._now(c))

        try:
            await db.write(work)
        except DiskUnavailable:
            raise
        except StoreFull:
            await db.write(lambda c: _delete(c, _oldest(c, BATCH)), grows=False)
            await db.write(work)

    async def sweep(self, keep: Retention) -> int:
        """Delete what is too old, and the oldest of too many; return how many. Raise StoreError."""
        if not await self._there():
            return 0
        before = self._clock.wall() - keep.days * _DAY_S
        trusted = self._clock.synced()
        gone = await self._delete_all(lambda c: _too_old(c, before, keep.days, trusted=trusted))
        gone += await self._delete_all(lambda c: _too_many(c, keep.max_entries))
        return gone

    async def search(self, user: str, query: HistoryQuery) -> FoundHistory:
        """Return the newest entries that match. Raise StoreError, KeyLost."""
        if not await self._there():
            return FoundHistory()
        return await (await self._open()).read(lambda c: self._search(c, user, query))

    async def forget(self, user: str, query: HistoryQuery) -> int:
        """Delete what matches; return how many when it is gone from the files. Without words it
        works without the key, too. Raise StoreError, KeyLost.
        """
        if not await self._there():
            return 0
        db = await self._open()
        words = [folded for word in query.words if (folded := folded_text(word))]
        if words:
            seqs = await self._holding(user, query, words)
            gone = await self._delete_all(lambda c: _rows(c, seqs))
        else:
            gone = await self._delete_whole(user) if query == HistoryQuery() else 0
            gone += await self._delete_all(lambda c: _matching(c, user, query, BATCH))
        await db.write(_forget_key_check, grows=False)
        await db.compact()
        await asyncio.to_thread(self._remove_damaged)
        return gone

    async def close(self) -> None:
        """Fine when it was never opened."""
        if self._db is not None:
            await self._db.close()

    # -------------------------------------------------------------- the file

    async def _there(self) -> bool:
        return self._db is not None or await asyncio.to_thread(self._path.exists)

    async def _open(self) -> SqliteDatabase:
        async with self._opening:
            if self._db is None:
                self._db = await SqliteDatabase.open(
                    self._path, MIGRATIONS, max_bytes=self._max_bytes, secure_delete=True
                )
            return self._db

    def _remove_damaged(self) -> None:
        """Delete damaged files that were put aside: what is forgotten must not be in them."""
        for path in self._path.parent.glob(f"{self._path.name}.bad-*"):
            path.unlink(missing_ok=True)

    async def _delete_all(self, find: Callable[[Connection], Sequence[Row]]) -> int:
        """Delete what `find` finds, batch by batch, until it finds nothing."""
        db, gone = await self._open(), 0
        while done := await db.write(lambda c: _delete(c, find(c)), grows=False):
            gone += done
        return gone

    async def _delete_whole(self, user: str) -> int:
        """Delete everything at once, if it is all of this user: a hundred times as fast as by
        batches. 0 if it is not, or if the disk has no room for so large a change.
        """
        try:
            return await (await self._open()).write(lambda c: _delete_whole(c, user), grows=False)
        except StoreFull:
            return 0

    async def _holding(self, user: str, query: HistoryQuery, words: Sequence[str]) -> list[int]:
        """Return the numbers of the entries whose text has all words, also as parts of others."""
        db, seqs, last = await self._open(), list[int](), 0
        while True:

            def work(c: Connection, last: int = last) -> list[tuple[int, bool]]:
                cipher = self._key(c)
                return [
                    (row["seq"], _holds(_opened(cipher, row), words))
                    for row in _matching(c, user, query, BATCH, after=last)
                ]

            found = await db.read(work)
            if not found:
                return seqs
            seqs += [seq for seq, holds in found if holds]
            last = found[-1][0]

    # -------------------------------------------------------------- in the store's thread

    def _key(self, c: Connection) -> Cipher:
        """Return the key; a new one is noted, so that another one is refused later. Raise KeyLost,
        OSError.
        """
        cipher = self._keyring().cipher()
        row = c.execute("SELECT sealed FROM key_check").fetchone()
        if row is None:
            sealed = cipher.seal("history", _ABOUT_KEY)
            c.execute("INSERT INTO key_check(id, sealed) VALUES (1, ?)", (sealed,))
            return cipher
        try:
            cipher.open(row["sealed"], _ABOUT_KEY)
        except KeyLost:
            fix = "put the old key back, or give the history up with continuum:forget, everything"
            raise KeyLost("The history was encrypted with another key", fix) from None
        return cipher

    def _now(self, c: Connection) -> float:
        """Return the time of now. A clock that is not set must not make new entries look old."""
        wall = self._clock.wall()
        if self._clock.synced():
            return wall
        row = c.execute("SELECT at FROM entries ORDER BY seq DESC LIMIT 1").fetchone()
        return wall if row is None else max(wall, float(row["at"]))

    def _search(self, c: Connection, user: str, query: HistoryQuery) -> FoundHistory:
        if c.execute("SELECT 1 FROM key_check").fetchone() is None:
            return FoundHistory()  # nothing was ever stored, or all is forgotten
        cipher = self._key(c)
        where, values = _where(user, query)
        for token in _tokens(cipher, user, words_of(" ".join(query.words), MAX_WORDS)):
            where += " AND seq IN (SELECT entry FROM words WHERE token = ?)"
            values.append(token)
        sql = f"SELECT count(*) FROM entries WHERE {where}"  # noqa: S608 - only placeholders are put in
        total = c.execute(sql, values).fetchone()[0]
        sql = f"SELECT * FROM entries WHERE {where} ORDER BY seq DESC LIMIT ?"  # noqa: S608 - as above
        rows = c.execute(sql, (*values, query.limit)).fetchall()
        opened = (_opened(cipher, row) for row in rows)
        return FoundHistory(tuple(one for one in opened if one is not None), total)


class UserHistory:
    """One user's part of the history: `tools_cache.api.history.History`."""

    def __init__(
        self, store: HistoryStore, user: str, *, recording: bool, forget_calls: ForgetCalls
    ) -> None:
        self._store = store
        self._user = user
        self._forget_calls = forget_calls
        self.recording = recording

    async def search(self, query: HistoryQuery) -> FoundHistory:
        return await self._store.search(self._user, query)

    async def forget(self, query: HistoryQuery) -> Forgotten:
        entries = await self._store.forget(self._user, query)
        return Forgotten(entries, await self._forget_calls(self._user, query))


# ------------------------------------------------------------------ rows


def _insert(c: Connection, cipher: Cipher, user: str, entry: HistoryEntry, at: float) -> None:
    last = c.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entries'").fetchone()
    seq = (last["seq"] if last else 0) + 1
    text = entry.text[:MAX_TEXT]
    body = cipher.seal([text, entry.tool, entry.delivery], _about(user, seq))
    tokens = list(_tokens(cipher, user, words_of(f"{text} {entry.tool}", MAX_WORDS)))
    sql = "INSERT INTO entries(seq, user, kind, at, body, tokens) VALUES (?,?,?,?,?,?)"
    c.execute(sql, (seq, user, entry.kind, at, body, b"".join(tokens)))
    sql = "INSERT OR IGNORE INTO words(token, entry) VALUES (?, ?)"
    c.executemany(sql, [(token, seq) for token in tokens])


def _about(user: str, seq: int) -> bytes:
    """Name the one place a text belongs to, so that it opens nowhere else."""
    return json.dumps(["history", user, seq]).encode()


def _tokens(cipher: Cipher, user: str, words: Sequence[str]) -> Iterator[bytes]:
    """Yield what stands for each word; the same word of another user is something else."""
    key = cipher.derive(_PURPOSE)
    owner = user.encode("utf-8", "surrogatepass")
    for word in words:
        text = owner + b"\0" + word.encode("utf-8", "surrogatepass")
        yield hmac.digest(key, text, "sha256")[:TOKEN_BYTES]


def _opened(cipher: Cipher, row: Row) -> HistoryEntry | None:
    """Decrypt an entry; one that was altered on disk is left out."""
    try:
        text, tool, delivery = cipher.open(row["body"], _about(row["user"], row["seq"]))
    except Altered as e:
        _log.warning("entry %d of the history cannot be read: %s", row["seq"], e)
        return None
    return HistoryEntry(row["at"], row["kind"], text, tool, delivery)


def _holds(entry: HistoryEntry | None, words: Sequence[str]) -> bool:
    """Return whether it has all words. One that nobody can read is deleted with them: it may."""
    if entry is None:
        return True
    text = folded_text(f"{entry.text} {entry.tool}")
    return all(word in text for word in words)


def _where(user: str, query: HistoryQuery) -> tuple[str, list[object]]:
    wanted: list[tuple[str, object]] = [
        ("user = ?", user),
        ("at >= ?", query.since),
        ("at < ?", query.until),
        ("kind = ?", query.kind or None),
    ]
    there = [(clause, value) for clause, value in wanted if value is not None]
    return " AND ".join(clause for clause, _ in there), [value for _, value in there]


def _matching(
    c: Connection, user: str, query: HistoryQuery, most: int, *, after: int = 0
) -> list[Row]:
    """Return entries by number that match in all but their words."""
    where, values = _where(user, query)
    sql = f"SELECT * FROM entries WHERE {where} AND seq > ? ORDER BY seq LIMIT ?"  # noqa: S608 - only placeholders are put in
    return c.execute(sql, (*values, after, most)).fetchall()


def _rows(c: Connection, seqs: Sequence[int]) -> list[Row]:
    sql = "SELECT seq, tokens FROM entries WHERE seq IN (SELECT value FROM json_each(?)) LIMIT ?"
    return c.execute(sql, (json.dumps(list(seqs)), BATCH)).fetchall()


def _oldest(c: Connection, most: int) -> list[Row]:
    return c.execute("SELECT seq, tokens FROM entries ORDER BY seq LIMIT ?", (most,)).fetchall()


def _too_old(c: Connection, before: float, days: int, *, trusted: bool) -> list[Row]:
    """Return entries older than so many days. By a clock that is not set: than the newest entry,
    so that a jump to a far year deletes nothing.
    """
    if not trusted:
        row = c.execute("SELECT at FROM entries ORDER BY seq DESC LIMIT 1").fetchone()
        before = before if row is None else min(before, float(row["at"]) - days * _DAY_S)
    sql = "SELECT seq, tokens FROM entries WHERE at < ? ORDER BY at LIMIT ?"
    return c.execute(sql, (before, BATCH)).fetchall()


def _too_many(c: Connection, most: int) -> list[Row]:
    more: int = c.execute("SELECT count(*) FROM entries").fetchone()[0] - most
    return _oldest(c, min(more, BATCH)) if more > 0 else []


def _delete(c: Connection, rows: Sequence[Row]) -> int:
    """Delete entries with their words; return how many."""
    sql = "DELETE FROM words WHERE token = ? AND entry = ?"
    for row in rows:
        tokens, seq = row["tokens"], row["seq"]
        steps = range(0, len(tokens), TOKEN_BYTES)
        c.executemany(sql, [(tokens[at : at + TOKEN_BYTES], seq) for at in steps])
        c.execute("DELETE FROM entries WHERE seq = ?", (seq,))
    return len(rows)


def _delete_whole(c: Connection, user: str) -> int:
    if c.execute("SELECT 1 FROM entries WHERE user <> ? LIMIT 1", (user,)).fetchone() is not None:
        return 0
    c.execute("DELETE FROM words")
    return c.execute("DELETE FROM entries").rowcount


def _forget_key_check(c: Connection) -> None:
    """An empty history takes any key."""
    if c.execute("SELECT 1 FROM entries LIMIT 1").fetchone() is None:
        c.execute("DELETE FROM key_check")
