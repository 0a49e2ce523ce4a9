"""Takes a message from the relay."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext
from tools_cache.everyday.pager.receiving import take


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Check, store and announce a message; the same one again is answered as before."""
    return {"data": await take(args, ctx)}
