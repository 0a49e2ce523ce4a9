"""Takes cards of files and servers into a user's contacts.

A contact keeps the card that it came from (`origin.base`). A newer one replaces the values that
came from it; what was changed here stays. Into a contact that is known by its name alone, a card
only adds.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from tools_cache.api.handed import Database, Json
from tools_cache.api.notes import folded
from tools_cache.errors import ErrorCode, ToolFailure
from tools_cache.everyday import contact_book
from tools_cache.everyday.contact_book import FIELDS, ContactBook, KnownContact, tidy

MAX_COUNTS: Final = {"phones": 10, "emails": 10, "addresses": 5}
WHAT: Final = ("added", "updated", "unchanged", "refused")


class ContactCards:
    """The contacts of one user. `server` names the address book that cards come from; "" for a
    file.
    """

    def __init__(self, db: Database, server: str = "") -> None:
        self._book = ContactBook(db)
        self._server = server

    async def take(
        self, cards: Sequence[Mapping[str, Json]], here: Collection[str] = ()
    ) -> list[dict[str, Json]]:
        """Store cards; return for each what happened. `here`: the keys of all cards of the server.
        A card has `card` and `uid` (and of a server `key`), or `name` and `refused`.
        """
        async with contact_book.CHANGING:
            known = _Known(await self._book.all(), self._server, frozenset(here))
            return [await self._take(card, known) for card in cards]

    async def drop(self, gone: Collection[str]) -> tuple[int, int]:
        """Remove the contacts of cards that are gone from the server, and return how many; those
        that were here before, or were changed here, stay, and are the second number.
        """
        removed = stayed = 0
        async with contact_book.CHANGING:
            for contact in await self._book.all():
                origin = contact.origin
                if origin.get("server") != self._server or origin.get("key") not in gone:
                    continue
                if origin.get("made") and dict(contact.card) == origin.get("base"):
                    await self._book.remove(contact)
                    removed += 1
                else:
                    own = {"uid": origin.get("uid", "")}
                    await self._book.replace(replace(contact, origin=own))
                    stayed += 1
        return removed, stayed

    async def _take(self, card: Mapping[str, Json], known: "_Known") -> dict[str, Json]:
        if "refused" in card:
            return _refused(card["name"], ErrorCode.INVALID_ARGUMENTS, card["refused"])
        fields = tidy(card["card"])
        try:
            what, contact, left_out = await self._store(card, fields, known)
        except ToolFailure as failure:
            error = failure.error
            return _refused(fields["name"], error.code, error.message)
        left_out = [*card["left_out"], *left_out]
        more = {"left_out": left_out} if left_out else {}
        return {"name": contact.name, "result": what, "id": contact.id, **more}

    async def _store(
        self, card: Mapping[str, Json], fields: Mapping[str, Json], known: "_Known"
    ) -> tuple[str, KnownContact, list[str]]:
        """Store a card and return what happened. Raises `ToolFailure`: CONFLICT."""
        key, uid = card.get("key", ""), card["uid"]
        there = known.find(key, uid, fields["name"])
        if there is None:
            contact_book.check_room(len(known))
            origin = self._origin(key, uid, fields, made=bool(self._server))
            contact = await self._book.insert(fields, origin)
            known.put(contact, key or uid)
            return "added", contact, []
        same = _same(there.origin, self._server, key, uid)
        base = there.origin.get("base", {}) if same else {}
        merged, left_out = merge(there.card, base, fields)
        contact_book.check_free(merged["name"], known.others(there, merged["name"]))
        origin = dict(there.origin)
        if self._server or not origin.get("server"):
            ours = origin.get("server") == self._server
            made = bool(self._server) and ours and bool(origin.get("made"))
            origin = self._origin(key, uid or origin.get("uid", ""), fields, made=made)
        contact = KnownContact(there.id, merged, origin)
        if contact != there:
            await self._book.replace(contact)
        known.put(contact, key or uid)
        what = "updated" if merged != dict(there.card) else "unchanged"
        return what, contact, left_out

    def _origin(
        self, key: str, uid: str, base: Mapping[str, Json], *, made: bool
    ) -> dict[str, Json]:
        found = {"server": self._server, "key": key, "uid": uid, "base": dict(base), "made": made}
        return {name: value for name, value in found.items() if value}


class _Known:
    """The contacts, found by what cards have."""

    def __init__(
        self, contacts: Sequence[KnownContact], server: str, here: Collection[str]
    ) -> None:
        self._server = server
        self._here = here
        self._taken: dict[str, str] = {}
        """The card that each contact was stored from in this call."""
        self._by_id: dict[str, KnownContact] = {}
        self._by_key: dict[str, str] = {}
        self._by_uid: dict[str, str] = {}
        self._by_name: dict[str, str] = {}
        for contact in contacts:
            self._index(contact)

    def __len__(self) -> int:
        return len(self._by_id)

    def put(self, contact: KnownContact, card: str) -> None:
        """Note what was stored from a card."""
        if (before := self._by_id.get(contact.id)) is not None:
            self._by_name.pop(folded(before.name), None)
        self._index(contact)
        self._taken[contact.id] = card

    def others(self, contact: KnownContact, name: str) -> list[KnownContact]:
        """Return the other contact of this name, if there is one."""
        found = self._by_name.get(folded(name), contact.id)
        return [] if found == contact.id else [self._by_id[found]]

    def find(self, key: str, uid: str, name: str) -> KnownContact | None:
        """Return the contact of a card: by its place on the server, by its UID, by its name. Raises
        `ToolFailure` if another card of the same file or server has that name.
        """
        for found in (self._by_key.get(key), self._by_uid.get(uid)):
            if found is not None:
                return self._by_id[found]
        if (found := self._by_name.get(folded(name))) is None:
            return None
        contact = self._by_id[found]
        if self._is_anothers(contact, key or uid):
            raise ToolFailure.of(
                ErrorCode.CONFLICT,
                f"There is a contact {contact.name!r} already, from another card",
                suggestion="Give one of the two another name",
            )
        return contact

    def _index(self, contact: KnownContact) -> None:
        origin = contact.origin
        self._by_id[contact.id] = contact
        self._by_name[folded(contact.name)] = contact.id
        if uid := origin.get("uid"):
            self._by_uid[uid] = contact.id
        if (key := origin.get("key")) and origin.get("server") == self._server:
            self._by_key[key] = contact.id

    def _is_anothers(self, contact: KnownContact, card: str) -> bool:
        """Return whether the contact is that of another card of the same file or server."""
        origin = contact.origin
        if self._server and origin.get("server") == self._server:
            return origin.get("key") in self._here
        return self._taken.get(contact.id, card) != card


def merge(
    now: Mapping[str, Json], base: Mapping[str, Json], new: Mapping[str, Json]
) -> tuple[dict[str, Json], list[str]]:
    """Return a contact with what changed in its card from `base` to `new`, and what did not fit.
    What was changed here, from `base` to `now`, stays.
    """
    merged: dict[str, Json] = {}
    left_out = []
    for field in FIELDS:
        mine, before, fresh = now.get(field), base.get(field), new.get(field)
        if field not in MAX_COUNTS:
            merged[field] = fresh if mine == before else mine
            continue
        mine, before, fresh = mine or [], before or [], fresh or []
        values = [value for value in mine if value in fresh or value not in before]
        values += [value for value in fresh if value not in mine and value not in before]
        if len(values) > (many := MAX_COUNTS[field]):
            left_out.append(f"{field}: a contact has at most {many}")
        merged[field] = values[: MAX_COUNTS[field]]
    return {field: value for field, value in merged.items() if value}, left_out


def counts(results: Sequence[Mapping[str, Json]]) -> dict[str, int]:
    """Return how many cards had each result."""
    return {what: sum(one["result"] == what for one in results) for what in WHAT}


def counted(numbers: Mapping[str, int]) -> str:
    """Return the counts in words: those that are not 0."""
    return ", ".join(f"{number} {what}" for what, number in numbers.items() if number)


def _same(origin: Mapping[str, Json], server: str, key: str, uid: str) -> bool:
    """Return whether a contact is known as this very card, not by its name alone."""
    return _of_server(origin, server, key) or bool(uid and origin.get("uid") == uid)


def _of_server(origin: Mapping[str, Json], server: str, key: str) -> bool:
    return bool(key) and origin.get("server") == server and origin.get("key") == key


def _refused(name: str, code: ErrorCode, message: str) -> dict[str, Json]:
    error = ToolFailure.of(code, message).error.type.value
    return {"name": name, "result": "refused", "error": error, "message": message}
