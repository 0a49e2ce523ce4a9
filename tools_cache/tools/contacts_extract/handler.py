"""Extracts contacts from a text."""

from collections.abc import Mapping

from tools_cache.api.contacts import extract
from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:  # noqa: ARG001 - a handler's form
    """Return the contacts in text order."""
    found = extract(args["text"])
    lines = [", ".join(filter(None, [one.name, *one.emails, *one.written])) for one in found]
    return {
        "data": {
            "contacts": [one.to_json() for one in found],
            "total": len(found),
            "text": "\n".join(lines) or "No contacts in this text",
        }
    }
