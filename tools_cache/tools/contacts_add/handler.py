"""Adds a contact."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.contact_book import ContactBook


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Store a contact; returns once it is on disk."""
    added = await ContactBook(ctx.db).add(args)
    text = f"Added: {added.name}"
    return {"data": {"id": added.id, "contact": added.to_json(), "text": text}}
