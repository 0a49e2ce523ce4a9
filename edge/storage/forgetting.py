"""Forgets finished calls: their arguments and answers leave the daemon's own database."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from edge.storage.emptied_calls import ASKED, EMPTIED, emptied_request, emptied_response
from edge.storage.sqlite.database import Connection, Row, SqliteDatabase
from tools_cache.api.history import HistoryQuery, folded_text

BATCH: Final = 100
"""Calls of one transaction, so that others need not wait for all of them."""
_NO_CONTENT: Final = frozenset({"meta", "layout", "type", "code"})


class CallForgetting:
    """Forgets finished calls in the daemon's own database."""

    def __init__(self, db: SqliteDatabase) -> None:
        self._db = db

    async def forget(self, user: str, query: HistoryQuery) -> int:
        """Empty the user's finished calls that match; return how many when no file has their text
        any more. A call matches by its time if it began or was answered within it. Raise
        StoreError.
        """
        words = [folded for word in query.words if (folded := folded_text(word))]
        gone, last = 0, 0
        while True:
            after = last
            seen, last, emptied = await self._db.write(
                lambda c, after=after: _empty_batch(c, user, query, words, after),  # type: ignore[misc]
                grows=False,
            )
            gone += emptied
            if not seen:
                break
        await self._db.write(lambda c: _drop_results(c, user, query, words), grows=False)
        await self._db.compact(rewrite=True)
        await asyncio.to_thread(_remove_damaged, self._db.path)
        return gone


# ------------------------------------------------------------------ in the store's thread


def _empty_batch(
    c: Connection, user: str, query: HistoryQuery, words: Sequence[str], after: int
) -> tuple[int, int, int]:
    """Return how many calls were looked at, the number of the last, how many were emptied."""
    rows = c.execute(
        "SELECT seq, call_id, tool, request, response FROM calls WHERE user_id = :user"
        " AND response IS NOT NULL AND seq > :after"
        " AND max(wall_at, coalesce(answered_wall, wall_at)) >= coalesce(:since, -9e18)"
        " AND min(wall_at, coalesce(answered_wall, wall_at)) < coalesce(:until, 9e18)"
        " ORDER BY seq LIMIT :most",
        {
            "user": user,
            "after": after,
            "since": query.since,
            "until": query.until,
            "most": BATCH,
        },
    ).fetchall()
    matching = [row for row in rows if _matches(row, words)]
    for row in matching:
        _empty(c, row)
    return len(rows), rows[-1]["seq"] if rows else after, len(matching)


def _matches(row: Row, words: Sequence[str]) -> bool:
    request = json.loads(row["request"])
    if request.get(EMPTIED):
        return False
    asked = [request.get(name) for name in ASKED]
    return _holds([row["tool"], asked, json.loads(row["response"])], words)


def _holds(value: object, words: Sequence[str]) -> bool:
    """Return whether a stored JSON value has all words, also as parts of others."""
    if not words:
        return True
    text = folded_text("\n".join(_texts(value)))
    return all(word in text for word in words)


def _texts(value: object) -> Iterator[str]:
    """Yield the texts and numbers of a value. Names of fields are no content: "route" and "text"
    are in every answer.
    """
    if isinstance(value, Mapping):
        for name, part in value.items():
            if name not in _NO_CONTENT:
                yield from _texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _texts(part)
    elif value is not None:
        yield str(value)


def _empty(c: Connection, row: Row) -> None:
    """Empty a call everywhere in the database. What the cloud has not acknowledged stays."""
    request, response = emptied_request(row["request"]), emptied_response(row["response"])
    less = len(row["request"]) + len(row["response"]) - len(request) - len(response)
    sql = "UPDATE calls SET request = ?, response = ?, size = max(0, size - ?) WHERE seq = ?"
    c.execute(sql, (request, response, less, row["seq"]))
    sql = "UPDATE pending SET result = ?, size = ? WHERE call_id = ? AND result IS NOT NULL"
    c.execute(sql, (response, len(response), row["call_id"]))
    sql = "SELECT seq, answer FROM inbox WHERE kind = 'call' AND id = ? AND answer IS NOT NULL"
    for sent in c.execute(sql, (row["call_id"],)).fetchall():
        answer = emptied_response(sent["answer"])
        less = len(sent["answer"]) - len(answer)
        sql = "UPDATE inbox SET answer = ?, size = max(0, size - ?) WHERE seq = ?"
        c.execute(sql, (answer, less, sent["seq"]))


def _drop_results(c: Connection, user: str, query: HistoryQuery, words: Sequence[str]) -> None:
    """Delete stored results that match. They only stand in for a network that is away."""
    rows = c.execute(
        "SELECT used, tool, response FROM results WHERE user_id = :user"
        " AND wall_at >= coalesce(:since, -9e18) AND wall_at < coalesce(:until, 9e18)",
        {"user": user, "since": query.since, "until": query.until},
    ).fetchall()
    for row in rows:
        if _holds([row["tool"], json.loads(row["response"])], words):
            c.execute("DELETE FROM results WHERE used = ?", (row["used"],))


def _remove_damaged(path: Path) -> None:
    """Delete damaged files that were put aside: what was in them and whole was saved from them."""
    for damaged in path.parent.glob(f"{path.name}.bad-*"):
        damaged.unlink(missing_ok=True)
