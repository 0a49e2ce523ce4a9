"""The last answers of web searches, for when the network is away: encrypted, of one user."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tools_cache.api.handed import Database, Json
from tools_cache.api.notes import folded

MAX_QUERIES: Final = 50
_TABLE: Final = "last_answers"
_COLUMNS: Final = {"encrypted__answer": "TEXT"}
_THERE: Final = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'last_answers'"
_CHANGING: Final = asyncio.Lock()
"""Held while one answer replaces another."""


@dataclass(frozen=True, slots=True)
class LastAnswer:
    """The results of a query, and when they came (seconds since 1970)."""

    results: Sequence[Mapping[str, Json]]
    at: float


class LastAnswers:
    """The answers to the newest `MAX_QUERIES` queries. No word of a query is stored in plain."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def find(self, query: str) -> LastAnswer | None:
        """Return the last answer to a query. Creates no table, so it works on a full disk."""
        if not await self._db.fetch(_THERE):
            return None
        for row in await self._rows():
            answer = row["encrypted__answer"]
            if answer["query"] == _key(query):
                return LastAnswer(answer["results"], answer["at"])
        return None

    async def store(self, query: str, answer: LastAnswer) -> None:
        """Replace the answer to this query; the oldest ones above the limit are removed."""
        key = _key(query)
        async with _CHANGING:
            await self._db.create_table(_TABLE, _COLUMNS)
            rows = await self._rows()
            same = [row["id"] for row in rows if row["encrypted__answer"]["query"] == key]
            others = [row["id"] for row in rows if row["id"] not in same]
            if gone := [*same, *others[MAX_QUERIES - 1 :]]:
                await self._db.delete(_TABLE, where={"id": gone})
            row = {"query": key, "results": list(answer.results), "at": answer.at}
            await self._db.insert(_TABLE, {"encrypted__answer": row})

    async def _rows(self) -> list[dict[str, Json]]:
        return await self._db.select(_TABLE, order="-id", limit=MAX_QUERIES * 2)


def _key(query: str) -> str:
    return folded(" ".join(query.split()))
