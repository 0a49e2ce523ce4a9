"""Changes a contact."""

from collections.abc import Mapping

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure
from tools_cache.everyday.contact_book import FIELDS, ContactBook, name_arguments

__all__ = ["execute", "name_arguments"]


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
