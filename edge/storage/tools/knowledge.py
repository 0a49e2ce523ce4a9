"""The knowledge base: a folder's documents and the wearer's notes in one full-text index.

Implements `tools_cache.api.knowledge.Knowledge`. Opened at the first question and brought up to
date before each answer. The index (SQLite FTS5) is a copy: a damaged one is built again.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from edge.runtime.clock import Clock
from edge.runtime.unreadable import folder_problem
from edge.storage.sqlite.database import (
    MIB,
    Connection,
    Row,
    SqliteDatabase,
    StoreError,
    StoreFull,
    T,
    Work,
)
from edge.storage.tools import documents
from tools_cache.api.knowledge import Document, Evidence, Question, ranked
from tools_cache.api.tool import ErrorCode, ToolError, ToolFailure

FILE_BYTES: Final = 64 * MIB
LOOK_AGAIN_S: Final = 2.0
"""A second question of the same turn does not walk the folder again."""
RACY_S: Final = 2.0
"""A file changed this shortly before it was read may change again with the same time."""
CANDIDATES: Final = 50
SNIPPET_WORDS: Final = 24
PREFIX: Final = 3
"""From this many letters on a word also stands for longer ones; the index keeps beginnings."""
BATCH: Final = 32
NOTE: Final = "note"
MIGRATIONS: Final = (
    """
    CREATE TABLE documents (
      row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, namespace TEXT NOT NULL, kind TEXT NOT NULL, source TEXT NOT NULL,
      tags TEXT NOT NULL, url TEXT, updated REAL NOT NULL, mtime_ns INTEGER NOT NULL, size INTEGER NOT NULL, sha256 TEXT NOT NULL,
      read_at REAL NOT NULL
    );
    CREATE VIRTUAL TABLE words USING fts5(title, body, labels, tokenize = "unicode61 remove_diacritics 2", prefix = '3');
    """,  # noqa: E501
)
Notes = Callable[[], Awaitable[Sequence[tuple[str, str, float]]]]
"""Returns the wearer's notes: (id, text, when it was written)."""
_log = logging.getLogger(__name__)


class KnowledgeBase:
    """One per daemon. `folder` None: nobody named one, so there are only notes."""

    def __init__(self, path: Path, *, folder: Path | None, notes: Notes, clock: Clock) -> None:
        self._path = path
        self._folder = folder
        self._notes = notes
        self._clock = clock
        self._db: SqliteDatabase | None = None
        self._looked = float("-inf")
        self._looking = asyncio.Lock()
        self._logged = ""
        self._problem = ""
        """Why the folder could not be read last time; its old documents are still found."""
        self._no_text: dict[str, tuple[int, int]] = {}

    async def search(self, question: Question) -> Sequence[Evidence]:
        """See `Knowledge`. Raise ToolFailure, StoreFull."""
        found = await self._read(lambda c: _search(c, question)) if question.terms else []
        if not found:
            self._check_folder()
        return found

    async def get(self, document: str) -> Document | None:
        """See `Knowledge`. Raise ToolFailure, StoreFull."""
        found = await self._read(lambda c: _get(c, document))
        if found is None:
            self._check_folder()
        return found

    def _check_folder(self) -> None:
        """Raise `ToolFailure` if the folder that may hold the answer cannot be read."""
        if self._problem:
            why = f"The knowledge base's folder {self._folder} cannot be used: {self._problem}"
            raise _unavailable(
                why, "Make or mount that folder, or correct [kb] folder in glassd.toml"
            )

    async def _read(self, work: Work[T]) -> T:
        try:
            return await (await self._up_to_date()).read(work)
        except StoreFull:
            raise
        except StoreError as e:
            _log.warning("the knowledge base cannot be read: %s", e)
            fix = "Restart glassd: it is built again then"
            raise _unavailable("The knowledge base cannot be read", fix) from e

    def follow(self, folder: Path | None) -> None:
        """From the next question on the documents are those of this folder."""
        self._folder, self._problem = folder, ""
        self._looked = float("-inf")

    async def close(self) -> None:
        """Fine when it was never opened."""
        if self._db is not None:
            await self._db.close()

    # -------------------------------------------------------------- keeping up

    async def _up_to_date(self) -> SqliteDatabase:
        async with self._looking:
            if self._db is None:
                self._db = await SqliteDatabase.open(
                    self._path, MIGRATIONS, max_bytes=FILE_BYTES, reserve=False
                )
            if self._clock.boot() - self._looked >= LOOK_AGAIN_S:
                folder = self._folder
                try:
                    await self._look(self._db)
                except StoreFull as e:  # what is known already can still be found
                    self._say(0, f"the knowledge base takes nothing new: {e}")
                # Else it follows another one since, or looks again.
                if self._folder == folder and not self._problem:
                    self._looked = self._clock.boot()
            return self._db

    async def _look(self, db: SqliteDatabase) -> None:
        """Take in what is new or changed and drop what is gone. It can be cut short."""
        there, left_out = await self._standing()
        files = there or {}
        notes = {f"note:{n}": (text, at) for n, text, at in await self._notes()}
        sql = "SELECT id, source, mtime_ns, size, sha256, read_at FROM documents"
        rows = await db.read(lambda c: c.execute(sql).fetchall())
        known = {row["id"]: row for row in rows}
        gone = [
            name
            for name, row in known.items()
            if name not in (notes if row["source"] == NOTE else known if there is None else files)
        ]
        changed = [one for one in files.values() if self._worth_reading(known.get(one.id), one)]
        new = [
            (name, text, at)
            for name, (text, at) in notes.items()
            if name not in known or known[name]["sha256"] != _digest(text)
        ]
        if gone:
            await db.write(lambda c: _drop(c, gone), grows=False)
        for at in range(0, len(changed), BATCH):
            await self._take_in(db, changed[at : at + BATCH], known)
        if new:
            await db.write(lambda c: _put_notes(c, new))
        self._no_text = {name: seen for name, seen in self._no_text.items() if name in files}
        if there is not None:
            self._say(left_out + len(self._no_text))

    async def _standing(self) -> tuple[dict[str, documents.Standing] | None, int]:
        """List the folder; None if it cannot be read: then its documents stay."""
        folder, self._problem = self._folder, ""
        if folder is None:
            return {}, 0
        self._problem = await asyncio.to_thread(folder_problem, folder)
        if not self._problem:
            try:
                found, left_out = await asyncio.to_thread(documents.standing, folder)
            except OSError as e:
                self._problem = f"cannot be read: {e.strerror}"
            else:
                return {one.id: one for one in found}, left_out
        self._say(0, f"the knowledge base's folder {folder}: {self._problem}")
        return None, 0

    async def _take_in(
        self, db: SqliteDatabase, batch: list[documents.Standing], known: dict[str, Row]
    ) -> None:
        """Read and index some files; what is no text is looked at again when it changes."""
        wall = self._clock.wall()
        leaves = await asyncio.to_thread(lambda: [(one, documents.read(one)) for one in batch])

        def work(c: Connection) -> None:
            for one, leaf in leaves:
                if leaf is None:
                    _drop(c, [one.id])
                elif one.id in known and known[one.id]["sha256"] == leaf.sha256:
                    sql = "UPDATE documents SET mtime_ns = ?, size = ?, read_at = ? WHERE id = ?"
                    c.execute(sql, (*one.version, wall, one.id))
                else:
                    _put(c, one, leaf, wall)

        await db.write(work)
        self._no_text |= {one.id: one.version for one, leaf in leaves if leaf is None}

    def _worth_reading(self, row: Row | None, one: documents.Standing) -> bool:
        if row is None:
            return self._no_text.get(one.id) != one.version
        racy = row["read_at"] - one.mtime_ns / 1e9 < RACY_S
        return racy or (row["mtime_ns"], row["size"]) != one.version

    def _say(self, left_out: int, trouble: str = "") -> None:
        """Warn at the first failure of a cycle and at its end; what stays the same is said once."""
        text = trouble
        if left_out and not text:
            why = "too large, too many, no text, or not ours to read"
            text = f"{left_out} documents are left out of the knowledge base ({why})"
        if text and text != self._logged:
            _log.warning("%s", text)
        elif self._logged and not text:
            _log.info("the knowledge base is whole again")
        self._logged = text


def _unavailable(why: str, fix: str) -> ToolFailure:
    return ToolFailure(ToolError.of(ErrorCode.TOOL_UNAVAILABLE, why, suggestion=fix))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# ------------------------------------------------------------------ rows


def _put(c: Connection, one: documents.Standing, leaf: documents.Leaf, wall: float) -> None:
    about = (one.id, one.namespace, leaf.kind, "file", leaf.tags, leaf.url)
    row = (*about, one.mtime_ns / 1e9, *one.version, leaf.sha256, wall)
    _insert(c, row, leaf.title, leaf.body)


def _put_notes(c: Connection, notes: Sequence[tuple[str, str, float]]) -> None:
    for name, text, at in notes:
        title = " ".join(text.split())[:60]
        about = (name, "personal", NOTE, NOTE, (), None)
        _insert(c, (*about, at, 0, len(text), _digest(text), at), title, text)


def _insert(c: Connection, row: tuple[object, ...], title: str, body: str) -> None:
    _drop(c, [str(row[0])])
    tags = row[4]
    assert isinstance(tags, tuple)
    values = (*row[:4], json.dumps(tags), *row[5:])
    number = c.execute(
        "INSERT INTO documents(id, namespace, kind, source, tags, url, updated, mtime_ns, size,"
        " sha256, read_at) VALUES (?,?,?,?,?,?,?,?,?,?,?)",
        values,
    ).lastrowid
    sql = "INSERT INTO words(rowid, title, body, labels) VALUES (?,?,?,?)"
    c.execute(sql, (number, title, body, " ".join(tags)))


def _drop(c: Connection, names: Sequence[str]) -> None:
    for name in names:
        found = c.execute("SELECT row FROM documents WHERE id = ?", (name,)).fetchone()
        if found is not None:
            c.execute("DELETE FROM words WHERE rowid = ?", (found["row"],))
            c.execute("DELETE FROM documents WHERE row = ?", (found["row"],))


# ------------------------------------------------------------------ asking


def _search(c: Connection, question: Question) -> list[Evidence]:
    """Return the best by FTS5's rank, then by how many of the words they have."""
    phrases = [_phrase(term) for term in question.terms]
    where, values = _filters(question)
    sql = (
        "SELECT d.row, bm25(words, 4.0, 1.0, 2.0) AS rank FROM words AS w"  # noqa: S608 - only placeholders are put in
        f" JOIN documents AS d ON d.row = w.rowid WHERE words MATCH ? {where}"
        f" ORDER BY rank LIMIT {CANDIDATES}"
    )
    ranks = {row["row"]: row["rank"] for row in c.execute(sql, (" OR ".join(phrases), *values))}
    held = dict.fromkeys(ranks, 0)
    for phrase in phrases if held else ():
        # Read to the end: with rows named in the query FTS5 would begin again for each.
        for hit in c.execute("SELECT rowid FROM words WHERE words MATCH ?", (phrase,)):
            if hit[0] in held:
                held[hit[0]] += 1
    best = min(ranks.values(), default=0.0)
    scores = {
        row: _score(held[row] / len(phrases), rank / best if best else 1.0)
        for row, rank in ranks.items()
    }
    ordered = sorted(scores.values(), reverse=True)
    least = ordered[question.limit - 1] if len(ordered) > question.limit else 0.0
    chosen = (row for row in scores if scores[row] >= least)  # `ranked` orders equals by age
    return ranked((_evidence(c, row, scores[row], phrases) for row in chosen), question.limit)


def _phrase(term: str) -> str:
    """Quote a word, so that nothing is syntax; a long one also matches what it begins."""
    return f'"{term}" *' if len(term) >= PREFIX else f'"{term}"'


def _score(share: float, rank: float) -> float:
    return max(0.0, min(1.0, 0.7 * share + 0.3 * rank))


def _filters(question: Question) -> tuple[str, list[object]]:
    tagged = "EXISTS (SELECT 1 FROM json_each(d.tags) WHERE value = ?)"
    wanted: list[tuple[str, object]] = [
        ("d.namespace = ?", question.namespace),
        ("d.kind = ?", question.type or None),
        ("d.updated >= ?", question.since),
        ("d.updated < ?", question.until),
        *((tagged, tag.lower()) for tag in question.tags),
    ]
    there = [(clause, value) for clause, value in wanted if value is not None]
    return "".join(f" AND {clause}" for clause, _ in there), [value for _, value in there]


def _evidence(c: Connection, number: int, score: float, phrases: Sequence[str]) -> Evidence:
    sql = (
        f"SELECT d.*, w.title AS title, snippet(words, 1, '', '', '…', {SNIPPET_WORDS}) AS snippet"  # noqa: S608 - as above
        " FROM words AS w JOIN documents AS d ON d.row = w.rowid"
        " WHERE words MATCH ? AND w.rowid = ?"
    )
    row = c.execute(sql, (" OR ".join(phrases), number)).fetchone()
    metadata = {"namespace": row["namespace"], "tags": json.loads(row["tags"])}
    passage = " ".join(row["snippet"].split()).removeprefix(f"# {row['title']}").lstrip()
    return Evidence(
        id=row["id"],
        type=row["kind"],
        title=row["title"],
        snippet=passage,
        score=score,
        source_type=row["source"],
        updated=row["updated"],
        url=row["url"],
        metadata=metadata,
    )


def _get(c: Connection, document: str) -> Document | None:
    sql = (
        "SELECT d.*, w.title AS title, w.body AS body FROM documents AS d"
        " JOIN words AS w ON w.rowid = d.row WHERE d.id = ?"
    )
    row = c.execute(sql, (document,)).fetchone()
    if row is None:
        return None
    return Document(
        id=row["id"],
        type=row["kind"],
        title=row["title"],
        text=row["body"],
        source_type=row["source"],
        updated=row["updated"],
        url=row["url"],
        tags=tuple(json.loads(row["tags"])),
    )
