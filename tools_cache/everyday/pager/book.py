"""The user's own pagers with their keys, and the senders they know. Everything is encrypted."""

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from tools_cache.api.handed import Database, Json
from tools_cache.api.notes import folded
from tools_cache.errors import ErrorCode, ToolFailure
from tools_cache.everyday.pager import keys
from tools_cache.everyday.pager.messages import PAGER, invalid, letters

MAX_ACTIVE: Final = 10
MAX_EVER: Final = 100
MAX_SENDERS: Final = 900
TRUSTED, CONFLICTED, REVOKED = "trusted", "conflicted", "revoked"
_PAGERS: Final = "pagers"
_PAGER_COLUMNS: Final = {
    "pager": "TEXT NOT NULL UNIQUE",
    "active": "INTEGER NOT NULL",
    "encrypted__facts": "TEXT",
}
_SENDERS: Final = "senders"
_SENDER_COLUMNS: Final = {"pager": "TEXT NOT NULL UNIQUE", "encrypted__facts": "TEXT"}
_TO: Final = frozenset("to an a à".split())
_THERE: Final = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
CHANGING: Final = asyncio.Lock()
"""Held from looking until what was decided is stored: one call at a time changes a user's book."""


@dataclass(frozen=True, slots=True)
class OwnPager:
    """One of the user's pagers."""

    id: str
    name: str
    private_key: str
    active: bool = True

    def to_json(self) -> dict[str, Json]:
        key = keys.public_key(self.private_key)
        return {
            "pager": self.id,
            "name": self.name,
            "active": self.active,
            "fingerprint": keys.shown_fingerprint(key),
        }


@dataclass(frozen=True, slots=True)
class Sender:
    """A pager that sent something. `key` is trusted; `new_key` came later and is not, "" if none
    did. `alias` is what the wearer calls it, `name` what it calls itself.
    """

    pager: str
    key: str
    name: str = ""
    alias: str = ""
    new_key: str = ""
    revoked: bool = False

    @property
    def state(self) -> str:
        if self.revoked:
            return REVOKED
        return CONFLICTED if self.new_key else TRUSTED

    @property
    def latest_key(self) -> str:
        return self.new_key or self.key

    def to_json(self) -> dict[str, Json]:
        return {
            "pager": self.pager,
            "name": self.alias or self.name,
            "state": self.state,
            "fingerprint": keys.shown_fingerprint(self.latest_key),
        }

    def facts(self) -> dict[str, Json]:
        words = ("key", "name", "alias", "new_key", "revoked")
        return {word: getattr(self, word) for word in words}


def new_pager_id() -> str:
    return f"PAGER-{letters(secrets.token_bytes(16), 4)}"


class PagerBook:
    """The pagers and senders of one user. Reading creates no table, so it works on a full disk."""

    def __init__(self, db: Database) -> None:
        self._db = db

    # -------------------------------------------------------------- own pagers

    async def pagers(self) -> list[OwnPager]:
        """Return the user's pagers, the oldest first."""
        if not await self._db.fetch(_THERE, _PAGERS):
            return []
        rows = await self._db.select(_PAGERS, order="id", limit=MAX_EVER)
        return [
            OwnPager(row["pager"], active=bool(row["active"]), **row["encrypted__facts"])
            for row in rows
        ]

    async def active(self, pager: str | None = None, *, field: str = "from") -> OwnPager:
        """Return this pager, or the oldest. Raises `ToolFailure` if it is none, or not active."""
        own = await self.pagers()
        found = [one for one in own if (one.id == pager if pager else one.active)]
        if not found and pager:
            raise invalid(f"/{field} you have no pager {pager}", _have(own))
        if not found:
            raise ToolFailure.of(
                ErrorCode.CONFLICT,
                "You have no pager yet",
                suggestion="Create one with pager:create",
                for_wearer="You have no pager yet. Create one first.",
            )
        if not found[0].active:
            raise ToolFailure.of(
                ErrorCode.DENIED,
                f"{found[0].id} is deactivated: it sends nothing any more",
                suggestion="Create another with pager:create",
            )
        return found[0]

    async def add(self, name: str) -> OwnPager:
        """Create a pager with a new key. Raises `ToolFailure`: CONFLICT if there are too many."""
        own = await self.pagers()
        if sum(one.active for one in own) >= MAX_ACTIVE:
            raise ToolFailure.of(
                ErrorCode.CONFLICT,
                f"You have {MAX_ACTIVE} pagers already",
                suggestion="Deactivate one with pager:deactivate",
            )
        if len(own) >= MAX_EVER:
            raise ToolFailure.of(
                ErrorCode.CONFLICT,
                f"{MAX_EVER} pagers were created already, those deactivated included",
                suggestion="Use one that is active",
            )
        new = OwnPager(new_pager_id(), name, keys.new_private_key())
        await self._db.create_table(_PAGERS, _PAGER_COLUMNS)
        facts = {"name": new.name, "private_key": new.private_key}
        await self._db.insert(_PAGERS, {"pager": new.id, "active": 1, "encrypted__facts": facts})
        return new

    async def remove(self, pager: OwnPager) -> None:
        """Remove a pager that was never used: somebody else has its id."""
        await self._db.delete(_PAGERS, where={"pager": pager.id})

    async def deactivate(self, pager: str) -> OwnPager:
        """Switch a pager off for good. Raises `ToolFailure` if it is none of the user's."""
        own = {one.id: one for one in await self.pagers()}
        if pager not in own:
            raise invalid(f"/pager you have no pager {pager}", _have(list(own.values())))
        await self._db.update(_PAGERS, {"active": 0}, where={"pager": pager})
        return replace(own[pager], active=False)

    # -------------------------------------------------------------- senders

    async def senders(self) -> list[Sender]:
        if not await self._db.fetch(_THERE, _SENDERS):
            return []
        rows = await self._db.select(_SENDERS, order="id", limit=MAX_SENDERS)
        return [_sender(row) for row in rows]

    async def sender(self, pager: str) -> Sender | None:
        if not await self._db.fetch(_THERE, _SENDERS):
            return None
        rows = await self._db.select(_SENDERS, where={"pager": pager}, limit=1)
        return _sender(rows[0]) if rows else None

    async def keep(self, sender: Sender) -> None:
        """Store a sender, new or changed. Raises `ToolFailure` if there are too many."""
        row = {"encrypted__facts": sender.facts()}
        if await self.sender(sender.pager) is not None:
            await self._db.update(_SENDERS, row, where={"pager": sender.pager})
            return
        if len(await self.senders()) >= MAX_SENDERS:
            raise ToolFailure.of(
                ErrorCode.CONFLICT, f"{MAX_SENDERS} senders are known here: no other is taken"
            )
        await self._db.create_table(_SENDERS, _SENDER_COLUMNS)
        await self._db.insert(_SENDERS, {"pager": sender.pager, **row})

    async def name_of(self, pager: str) -> str:
        """Return the name that the wearer gave to a pager, else its id."""
        known = await self.sender(pager)
        return known.alias if known is not None and known.alias else pager

    async def resolve(self, word: str) -> str:
        """Return the pager that is meant: its id, or a name that the wearer gave to a sender, never
        one that a sender gave itself. Raises `ToolFailure`.
        """
        wanted = " ".join(word.split())
        if PAGER.fullmatch(wanted.upper()):
            return wanted.upper()
        named = [s for s in await self.senders() if s.alias and folded(s.alias) == folded(wanted)]
        if len(named) == 1:
            return named[0].pager
        if named:
            raise invalid(
                f"/to {wanted!r} could be " + ", ".join(one.pager for one in named[:10]),
                "Give the id of one of them",
                f"Which one? {', '.join(one.pager for one in named[:10])}",
            )
        raise invalid(
            f"/to {wanted!r} is neither a pager's id nor a name that you gave to a sender",
            "Give an id like PAGER-AB12, or name a sender with pager:trust",
            f"I know no pager of “{wanted}”.",
        )

    async def recipient_within(self, text: str) -> tuple[str, str]:
        """Return the pager whose id or name a text begins with, and the rest of the text. Raises
        `ToolFailure` if it begins with none.
        """
        words = text.split()
        if len(words) > 1 and words[0].casefold() in _TO:  # "send a page to Anna", as it is said
            words = words[1:]
        if words and PAGER.fullmatch(words[0].upper().rstrip(":,")):
            return words[0].upper().rstrip(":,"), " ".join(words[1:])
        aliases = sorted((s.alias for s in await self.senders() if s.alias), key=len, reverse=True)
        for alias in aliases:
            count = len(alias.split())
            if folded(" ".join(words[:count]).rstrip(":,")) == folded(alias):
                return await self.resolve(alias), " ".join(words[count:])
        raise invalid(
            "/to is missing, and the text begins with no name that you gave to a sender",
            "Give to=PAGER-AB12, or name a sender with pager:trust",
            "I do not know whom to page.",
        )


def _sender(row: Mapping[str, Json]) -> Sender:
    return Sender(row["pager"], **row["encrypted__facts"])


def _have(own: list[OwnPager]) -> str:
    active = [one.id for one in own if one.active]
    return f"Yours: {', '.join(active)}" if active else "Create one with pager:create"
