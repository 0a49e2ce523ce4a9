"""Changes a contact."""

from collections.abc import Mapping

from tools_cache.api.tool import ErrorCode, Json, Named, ToolContext, ToolFailure
from tools_cache.everyday.contact_book import FIELDS, ContactBook, named


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Store the changed contact; returns once it is on disk."""
    changes = {field: args[field] for field in FIELDS if field in args}
    if not changes:
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            "Invalid parameters: nothing to change was given",
            suggestion=f"Give one of {', '.join(FIELDS)}",
        )
    book = ContactBook(ctx.db)
    contact = await book.resolve(args["contact"], field="contact")
    changed = await book.change(contact, changes)
    text = f"Changed: {changed.name}"
    return {"data": {"id": changed.id, "contact": changed.to_json(), "text": text}}


async def name_arguments(args: Mapping[str, Json], ctx: ToolContext) -> dict[str, Named]:
    """Return the name of the contact that is meant."""
    book = ContactBook(ctx.db)
    return await named(book, await book.resolve(args["contact"], field="contact"))
