"""Takes a message from the relay."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.pager.receiving import take


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Check, store and announce a message, or the report that one was not delivered."""
    return {"data": await take(args, ctx)}
