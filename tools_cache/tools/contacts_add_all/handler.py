"""Adds several contacts."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext, ToolFailure
from tools_cache.everyday.contact_book import ContactBook


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Store each contact that can be stored; returns once they are on disk."""
    book = ContactBook(ctx.db)
    results = [await _add(book, card) for card in args["contacts"]]
    added = sum(result["added"] for result in results)
    text = f"Added {added} of {len(results)} contacts"
    return {"data": {"added": added, "results": results, "text": text}}


async def _add(book: ContactBook, card: Mapping[str, Json]) -> dict[str, Json]:
    try:
        added = await book.add(card)
    except ToolFailure as failure:
        error = failure.error
        return {
            "name": card.get("name", ""),
            "added": False,
            "error": error.type.value,
            "message": error.message,
        }
    return {"name": added.name, "added": True, "id": added.id}
