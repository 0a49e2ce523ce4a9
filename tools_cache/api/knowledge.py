"""Knowledge base interface for tools: queries, results and their order."""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol

from tools_cache.api.handed import Json

NAMESPACES: Final = ("studio", "personal", "public")
FIELDS: Final = tuple("id type title snippet score source_type last_updated url metadata".split())
MAX_TERMS: Final = 16
"""Maximum words of a query that are searched."""
MAX_TEXT_BYTES: Final = 128 * 1024
"""Maximum bytes of one answer as JSON: `kb:get` must fit a result (192 KiB) with its envelope."""
_FIRST: Final = -62_135_596_800.0
_LAST: Final = 253_402_300_799.0
"""The years 1 and 9999."""
_WORD: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A search. `since` and `until` are moments (seconds since 1970), `until` exclusive."""

    terms: tuple[str, ...]
    namespace: str = "studio"
    limit: int = 5
    type: str = ""
    tags: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One document that matches a question; `score` is 0 to 1."""

    id: str
    type: str
    title: str
    snippet: str
    score: float
    source_type: str
    updated: float
    url: str | None = None
    metadata: Mapping[str, Json] | None = None

    def to_json(self, fields: Iterable[str] = FIELDS) -> dict[str, Json]:
        """Return the requested fields, in their own order; always with the id."""
        whole: dict[str, Json] = {
            "id": self.id,
            "type": self.type,
            "title": self.title,
            "snippet": self.snippet,
            "score": round(self.score, 3),
            "source_type": self.source_type,
            "last_updated": moment(self.updated),
            "url": self.url,
            "metadata": dict(self.metadata or {}),
        }
        wanted = {"id", *fields}
        return {key: value for key, value in whole.items() if key in wanted}


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One complete document."""

    id: str
    type: str
    title: str
    text: str
    source_type: str
    updated: float
    url: str | None = None
    tags: tuple[str, ...] = ()


class Knowledge(Protocol):
    """The knowledge base."""

    async def search(self, question: Question) -> Sequence[Evidence]:
        """Find at most `limit` documents; an empty list is an answer, not a failure."""

    async def get(self, document: str) -> Document | None:
        """Return one complete document; None if there is none with this id."""


def terms(query: str) -> tuple[str, ...]:
    """Return the words of a query, each once, in order; other characters are ignored."""
    words = _WORD.findall(unicodedata.normalize("NFKC", query))
    return tuple(dict.fromkeys(word.lower() for word in words))[:MAX_TERMS]


def ranked(found: Iterable[Evidence], limit: int) -> list[Evidence]:
    """Sort best first, keep each document once (its best), and the newer of two equals first."""
    best: dict[str, Evidence] = {}
    for one in found:
        if one.id not in best or best[one.id].score < one.score:
            best[one.id] = one
    return sorted(best.values(), key=lambda e: (-e.score, -e.updated, e.id))[:limit]


def moment(wall: float) -> str:
    """Return a moment as UTC text; one outside the calendar's range as the nearest."""
    return datetime.fromtimestamp(min(max(wall, _FIRST), _LAST), UTC).isoformat(timespec="seconds")


def cut(text: str, offset: int, most: int) -> str:
    """Return `most` characters from `offset`, fewer if they would not fit one answer."""
    piece = text[offset : offset + most]
    while len(json.dumps(piece)) > MAX_TEXT_BYTES:
        piece = piece[: len(piece) * 3 // 4]
    return piece
