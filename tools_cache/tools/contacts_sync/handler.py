"""Reads an address book on a CardDAV server into the contacts."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.contact_sync import ContactSync


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:  # noqa: ARG001 - a handler's form
    """Store what changed on the server; returns once it is on disk."""
    return {"data": await ContactSync(ctx).run()}
