"""Reads an address book on a server into a user's contacts: only the cards that changed.

What is kept: the version of each card by its key (`contact_cards`), and that of the whole address
book. A contact that was removed here has its card's version still, so it stays removed until the
card changes.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tools_cache.api.handed import Database, Json
from tools_cache.api.tool import ErrorType, ToolContext
from tools_cache.everyday.contact_cards import ContactCards, counted, counts

DEADLINE_S: Final = 45.0
"""Of one child: a listing, and four REPORTs."""
MAX_ROUNDS: Final = 26
"""Children of one call; 5,000 cards at 200 each, and one more."""
MOST_NAMED: Final = 20
"""Refused cards that are named in the answer."""
LAST: Final = "address_book"
_TABLE: Final = "contact_cards"
_COLUMNS: Final = {"card": "TEXT NOT NULL UNIQUE", "server": "TEXT NOT NULL", "etag": "TEXT"}
_THERE: Final = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'contact_cards'"
_PAGE: Final = (
    "SELECT id, card, etag FROM contact_cards WHERE server = ? AND id > ? ORDER BY id LIMIT 1000"
)
_STORE: Final = (
    "INSERT INTO contact_cards (card, server, etag) VALUES {rows} "
    "ON CONFLICT (card) DO UPDATE SET etag = excluded.etag"
)
_FORGET: Final = "DELETE FROM contact_cards WHERE card IN ({cards})"
_OTHERS: Final = "DELETE FROM contact_cards WHERE server <> ?"
_AT_ONCE: Final = 500


class ContactSync:
    """One reading of the address book that the settings name."""

    def __init__(self, ctx: ToolContext) -> None:
        self._ctx = ctx
        names = ("url", "username", "password_file", "ca_file")
        self._settings = {name: ctx.config.get(name, "") for name in names}
        place = f"{self._settings['username']}@{self._settings['url']}"
        self._server = hashlib.sha256(place.encode()).hexdigest()[:16]
        self._cards = ContactCards(ctx.db, self._server)
        self._versions = _Versions(ctx.db, self._server)
        self._results: list[dict[str, Json]] = []

    async def run(self) -> dict[str, Json]:
        """Read what changed and store it; return the counts and a text. Raises `ToolFailure`: what
        was read until then is stored.
        """
        known = await self._versions.all()
        last = await self._ctx.kv.get(LAST) or {}
        ctag = last.get("ctag", "") if last.get("server") == self._server else ""
        removed = kept = 0
        for _ in range(MAX_ROUNDS):
            page = await self._ctx.workers.ask(
                "contacts",
                {"do": "read", **self._settings, "ctag": ctag, "known": known},
                deadline_s=DEADLINE_S,
            )
            if page.get("same"):
                break
            ctag = ""
            known |= await self._take(page)
            if not page["more"]:
                removed, kept = await self._finish(page, known)
                break
        return self._answer(removed, kept)

    async def _take(self, page: Mapping[str, Any]) -> dict[str, str]:
        """Store the cards of one answer; return their versions."""
        cards = page["cards"]
        results = await self._cards.take(cards, page["here"])
        self._results += results
        versions = {card["key"]: card["etag"] for card in cards}
        await self._versions.store(
            {
                card["key"]: card["etag"]
                for card, result in zip(cards, results, strict=True)
                if result.get("error") != ErrorType.CONFLICT  # the next time it may fit
            }
        )
        return versions

    async def _finish(self, page: Mapping[str, Any], known: Mapping[str, str]) -> tuple[int, int]:
        """Remove what is gone from the server, and note its version. An empty address book is more
        likely a mistake than meant: then nothing is removed.
        """
        gone = known.keys() - set(page["here"])
        removed = kept = 0
        if gone and not page["here"]:
            return 0, len(gone)
        if gone:
            removed, kept = await self._cards.drop(gone)
            await self._versions.forget(sorted(gone))
        await self._versions.forget_others()
        again = any(result.get("error") == ErrorType.CONFLICT for result in self._results)
        version = {"server": self._server, "ctag": "" if again else page["ctag"]}
        if await self._ctx.kv.get(LAST) != version:
            await self._ctx.kv.set(LAST, version)
        return removed, kept

    def _answer(self, removed: int, kept: int) -> dict[str, Json]:
        numbers = {**counts(self._results), "removed": removed, "kept": kept}
        refused = [one for one in self._results if one["result"] == "refused"]
        left_out = sum("left_out" in one for one in self._results)
        told = counted({what: n for what, n in numbers.items() if what != "unchanged"})
        text = f"Contacts: {told}" if told else "The contacts are up to date"
        lines = [f"- {one['name'] or 'a card'}: {one['message']}" for one in refused[:MOST_NAMED]]
        return {
            **numbers,
            "left_out": left_out,
            "problems": refused[:MOST_NAMED],
            "text": "\n".join([text, *lines[:3]]),
        }


class _Versions:
    """The versions of the cards of one server. Reading creates no table."""

    def __init__(self, db: Database, server: str) -> None:
        self._db = db
        self._server = server

    async def all(self) -> dict[str, str]:
        found: dict[str, str] = {}
        rows: list[dict[str, Any]] = [{"id": 0}] if await self._db.fetch(_THERE) else []
        while rows:
            rows = await self._db.fetch(_PAGE, self._server, rows[-1]["id"])
            found |= {row["card"]: row["etag"] for row in rows}
        return found

    async def store(self, versions: Mapping[str, str]) -> None:
        if versions:
            await self._db.create_table(_TABLE, _COLUMNS)
            values = [
                word for card, etag in versions.items() for word in (card, self._server, etag)
            ]
            await self._db.execute(
                _STORE.format(rows=", ".join(["(?, ?, ?)"] * len(versions))), *values
            )

    async def forget(self, cards: Sequence[str]) -> None:
        for at in range(0, len(cards), _AT_ONCE):
            some = cards[at : at + _AT_ONCE]
            await self._db.execute(_FORGET.format(cards=", ".join("?" * len(some))), *some)

    async def forget_others(self) -> None:
        if await self._db.fetch(_THERE):
            await self._db.execute(_OTHERS, self._server)
