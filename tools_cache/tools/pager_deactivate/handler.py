"""Switches one of the user's own pagers off."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.pager.book import CHANGING, PagerBook
from tools_cache.everyday.pager.inbox import Inbox


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Deactivate a pager: it sends and takes nothing any more."""
    await Inbox(ctx.db).cleanup_expired(ctx.now())
    async with CHANGING:
        off = await PagerBook(ctx.db).deactivate(args["pager"])
    return {"data": {**off.to_json(), "text": f"{off.id} is off for good"}}
