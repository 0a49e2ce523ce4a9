"""Finds contacts."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.contact_book import MOST_NAMED, ContactBook


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return the contacts that match best, ten at most."""
    found = await ContactBook(ctx.db).matches(args["query"])
    named = found[:MOST_NAMED]
    if len(found) == 1:
        text = found[0].lines()
    elif found:
        text = f"{len(found)} contacts\n" + "\n".join(f"- {contact.name}" for contact in named)
    else:
        text = f"No contact found: {args['query']}"
    listed = [contact.to_json() for contact in named]
    return {"data": {"contacts": listed, "total": len(found), "text": text}}
