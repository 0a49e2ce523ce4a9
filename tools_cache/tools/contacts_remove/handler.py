"""Removes a contact."""

from collections.abc import Mapping

from tools_cache.api.notes import folded
from tools_cache.api.tool import ErrorCode, Json, Named, ToolContext, ToolFailure
from tools_cache.everyday.contact_book import ContactBook, KnownContact, named


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Remove a contact; returns once it is gone from disk."""
    book = ContactBook(ctx.db)
    contact = await _find(book, args)
    await book.remove(contact)
    return {"data": {"id": contact.id, "text": f"Removed: {contact.name}"}}


async def name_arguments(args: Mapping[str, Json], ctx: ToolContext) -> dict[str, Named]:
    """Return the name of the contact that is meant."""
    book = ContactBook(ctx.db)
    return await named(book, await _find(book, args))


async def _find(book: ContactBook, args: Mapping[str, Json]) -> KnownContact:
    """Return the contact of this name or id. Raise `ToolFailure`."""
    word = " ".join(args["contact"].split())
    contact = await book.resolve(word, field="contact")
    if folded(word) not in (contact.id, folded(contact.name)):
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            f"Invalid parameters: /contact {word!r} is only a part of {contact.name!r}",
            suggestion="Give the whole name, so that it is clear what is confirmed",
            for_wearer=f"Say the whole name: “{contact.name}”.",
        )
    return contact
