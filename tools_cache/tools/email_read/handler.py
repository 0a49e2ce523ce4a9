"""Reads a message."""

import re
from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday import mail

_BLANK_LINES = re.compile(r"\n\s*\n")
"""They would take rows of the lens."""
NAMED = 5
"""Attachments that the lens names."""
HEAD = ("id", "from", "to", "subject", "date", "attachments", "attachments_total", "cut", "reply")


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return a page of a message; its head too."""
    wanted = {"id": args["id"]} if "id" in args else {}
    found = await mail.ask(ctx, "read", **wanted)
    if found.get("none"):
        return {"data": {"text": "No unread mail"}}
    await mail.remember(ctx, [found])
    body, offset = found["body"], args.get("offset", 0)
    page = body[offset : offset + mail.PAGE]
    data = {name: found[name] for name in HEAD}
    data |= {"offset": offset, "total_characters": len(body)}
    if offset + len(page) < len(body):
        data["next_offset"] = offset + len(page)
    elif names := [part["name"] for part in found["attachments"]]:
        more = found["attachments_total"] - len(names[:NAMED])
        page += "\nAttached: " + ", ".join(names[:NAMED]) + (f", {more} more" if more else "")
    title = f"{mail.sender(found)}: {found['subject'] or 'no subject'}\n"
    shown = _BLANK_LINES.sub("\n", page)
    return {"data": {**data, "text": ("" if offset else title) + (shown or "No text")}}
