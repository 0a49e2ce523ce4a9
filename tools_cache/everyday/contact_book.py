"""A user's contacts: encrypted, found by id or by name."""

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from tools_cache.api.handed import Database, Json
from tools_cache.api.notes import folded
from tools_cache.api.tool import Named
from tools_cache.errors import ErrorCode, ToolFailure
from tools_cache.everyday.naming import name_one

MAX_CONTACTS: Final = 2000
MOST_NAMED: Final = 10
"""Contacts that are named when several match."""
FIELDS: Final = ("name", "phones", "emails", "addresses", "birthday", "note")
_TABLE: Final = "contacts"
_COLUMNS: Final = {
    "uuid": "TEXT NOT NULL UNIQUE",
    "encrypted__card": "TEXT",
    "encrypted__origin": "TEXT",
}
_THERE: Final = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'contacts'"
_PAGE: Final = "SELECT id FROM contacts WHERE id > ? ORDER BY id LIMIT 1000"
_MATCHES: Final = (str.__eq__, str.startswith, str.__contains__)
"""How a name is looked for, one after the other."""
CHANGING: Final = asyncio.Lock()
"""Held from looking whether a name is free until it is stored."""


@dataclass(frozen=True, slots=True)
class KnownContact:
    """One contact. `card` has the fields that are known, `name` among them; `origin` tells which
    card of a file or server it is (see `contact_cards`).
    """

    id: str
    card: Mapping[str, Json]
    origin: Mapping[str, Json] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(self.card["name"])

    def to_json(self) -> dict[str, Json]:
        return {"id": self.id, **self.card}

    def _birthday(self) -> str:
        """Return "Born 4 May 1981"."""
        try:
            day = date.fromisoformat(str(self.card.get("birthday", "")))
        except ValueError:
            return ""
        return f"Born {day.day} {day:%b %Y}"

    def lines(self) -> str:
        """Return what the lens shows: the name, then a line for each number and address."""
        known = [
            *self.card.get("phones", ()),
            *self.card.get("emails", ()),
            *self.card.get("addresses", ()),
            *filter(None, (self._birthday(), self.card.get("note"))),
        ]
        return "\n".join([self.name, *known])


class ContactBook:
    """The contacts of one user."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def all(self) -> list[KnownContact]:
        """Return all contacts, by name. Creates no table, so it works on a full disk."""
        found: list[KnownContact] = []
        if not await self._db.fetch(_THERE):
            return found
        numbers = [0]
        while numbers := [row["id"] for row in await self._db.fetch(_PAGE, numbers[-1])]:
            rows = await self._db.select(_TABLE, where={"id": numbers}, limit=len(numbers))
            found += [
                KnownContact(
                    row["uuid"], row["encrypted__card"], row.get("encrypted__origin") or {}
                )
                for row in rows
            ]
        return sorted(found, key=lambda contact: (folded(contact.name), contact.id))

    async def matches(self, word: str) -> list[KnownContact]:
        """Return the contact of this id; else those of this name; else those whose name begins so;
        else those whose name contains it. Capitals do not matter.
        """
        contacts, wanted = await self.all(), folded(" ".join(word.split()))
        if by_id := [contact for contact in contacts if contact.id == wanted]:
            return by_id
        for match in _MATCHES:
            found = [contact for contact in contacts if match(folded(contact.name), wanted)]
            if found:
                return found
        return []

    async def resolve(self, word: str, *, field: str) -> KnownContact:
        """Return the one contact that is meant (see `matches`). Raises `ToolFailure` if there is
        none, or several: then up to ten are named, and the id is required.
        """
        found = await self.matches(word)
        if len(found) == 1:
            return found[0]
        if not found:
            raise ToolFailure.of(
                ErrorCode.INVALID_ARGUMENTS,
                f"Invalid parameters: /{field} there is no contact {word!r}",
                suggestion="contacts:list gives the names",
                for_wearer=f"There is no contact “{word}”.",
            )
        named = found[:MOST_NAMED]
        more = f", and {len(found) - len(named)} more" if len(found) > len(named) else ""
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            f"Invalid parameters: /{field} {word!r} could be {len(found)} contacts: "
            + ", ".join(f"{contact.name} ({contact.id})" for contact in named)
            + more,
            suggestion="Give the id of one of them",
            for_wearer=f"Which one? {', '.join(contact.name for contact in named)}{more}",
        )

    async def add(self, card: Mapping[str, Json]) -> KnownContact:
        """Store a new contact. Raises `ToolFailure`: CONFLICT if its name is taken."""
        card = tidy(card)
        async with CHANGING:
            contacts = await self.all()
            check_free(card["name"], contacts)
            check_room(len(contacts))
            return await self.insert(card, {})

    async def insert(self, card: Mapping[str, Json], origin: Mapping[str, Json]) -> KnownContact:
        """Store a new contact. The caller holds `CHANGING`, and has checked it (`check_free`,
        `check_room`).
        """
        new = KnownContact(str(uuid.uuid4()), dict(card), dict(origin))
        await self._db.create_table(_TABLE, _COLUMNS)
        row = {"uuid": new.id, "encrypted__card": new.card}
        await self._db.insert(_TABLE, {**row, "encrypted__origin": new.origin} if origin else row)
        return new

    async def replace(self, contact: KnownContact) -> None:
        """Store a contact with its origin. The caller holds `CHANGING`, and has checked it."""
        await self._db.create_table(_TABLE, _COLUMNS)
        row = {"encrypted__card": dict(contact.card), "encrypted__origin": dict(contact.origin)}
        await self._db.update(_TABLE, row, where={"uuid": contact.id})

    async def change(self, contact: KnownContact, changes: Mapping[str, Json]) -> KnownContact:
        """Store changed fields; an empty value removes a field. Raises `ToolFailure`: CONFLICT if
        the new name is taken, INVALID_ARGUMENTS if the contact is gone.
        """
        async with CHANGING:
            contacts = {each.id: each for each in await self.all()}
            card = tidy({**contacts.get(contact.id, contact).card, **changes})
            check_free(card["name"], [each for each in contacts.values() if each.id != contact.id])
            row = {"encrypted__card": card}
            if not await self._db.update(_TABLE, row, where={"uuid": contact.id}):
                raise ToolFailure.of(
                    ErrorCode.INVALID_ARGUMENTS,
                    f"Invalid parameters: /contact {contact.name!r} was removed meanwhile",
                    suggestion="Add it with contacts:add",
                )
        return KnownContact(contact.id, card, contact.origin)

    async def remove(self, contact: KnownContact) -> None:
        await self._db.delete(_TABLE, where={"uuid": contact.id})


async def named(book: ContactBook, meant: KnownContact) -> dict[str, Named]:
    """Return the words for the argument `contact`; nothing if another one has the same name."""
    others = [contact.name for contact in await book.all() if contact.id != meant.id]
    return name_one("contact", "contact", meant.name, others)


def tidy(card: Mapping[str, Json]) -> dict[str, Json]:
    """Return the known fields that have a value, without spaces around them. Raises `ToolFailure`
    if the name has none.
    """
    found: dict[str, Json] = {}
    for each in FIELDS:
        value = card.get(each) or ""
        if isinstance(value, str):
            value = " ".join(value.split())
        else:
            value = list(dict.fromkeys(filter(None, (" ".join(one.split()) for one in value))))
        if value:
            found[each] = value
    if "name" not in found:
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            "Invalid parameters: /name holds only blanks",
            suggestion="Give the name of the contact",
        )
    return found


def check_room(stored: int) -> None:
    """Raise `ToolFailure` if there is no room for one more contact."""
    if stored >= MAX_CONTACTS:
        raise ToolFailure.of(
            ErrorCode.CONFLICT,
            f"{MAX_CONTACTS} contacts are stored already",
            suggestion="Remove some with contacts:remove",
        )


def check_free(name: str, contacts: Sequence[KnownContact]) -> None:
    """Raise `ToolFailure` if a contact has this name; capitals do not matter."""
    for contact in contacts:
        if folded(contact.name) == folded(name):
            raise ToolFailure.of(
                ErrorCode.CONFLICT,
                f"There is a contact {contact.name!r} already, id {contact.id}",
                suggestion="Change that one with contacts:update, or give another name",
                for_wearer=f"There is a contact “{contact.name}” already.",
            )
