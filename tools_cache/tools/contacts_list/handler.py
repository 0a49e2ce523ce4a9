"""Lists contacts."""

from collections.abc import Mapping

from tools_cache.api.notes import folded
from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.contact_book import ContactBook


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return names and ids, in order."""
    contacts = await ContactBook(ctx.db).all()
    after = folded(args.get("after", ""))
    rest = [contact for contact in contacts if not after or folded(contact.name) > after]
    part = rest[: args.get("limit", 50)]
    more = {"next": part[-1].name} if len(rest) > len(part) else {}
    listed = [{"id": contact.id, "name": contact.name} for contact in part]
    text = "\n".join(f"- {contact.name}" for contact in part) or "No contacts"
    return {"data": {"contacts": listed, "total": len(contacts), **more, "text": text}}
