"""Creates a pager."""

from collections.abc import Mapping
from typing import Final

from tools_cache.api.tool import Json, ToolContext
from tools_cache.errors import ErrorCode, ToolFailure
from tools_cache.everyday.pager.book import CHANGING, OwnPager, PagerBook
from tools_cache.everyday.pager.inbox import Inbox
from tools_cache.everyday.pager.messages import invalid, readable
from tools_cache.everyday.pager.sending import register

ATTEMPTS: Final = 3


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Create a pager with a key of its own, under an id that the relay gave to nobody else."""
    name = readable(args["name"])
    if not name:
        raise invalid("/name there is nothing in it that can be read", "Give a name")
    await Inbox(ctx.db).cleanup_expired(ctx.now())
    new, registered = await _create(name, ctx)
    later = "" if registered else "\nOthers reach it once the cloud knows it."
    data = {**new.to_json(), "registered": registered}
    return {"data": {**data, "text": f"Your pager: {new.id}{later}"}}


async def _create(name: str, ctx: ToolContext) -> tuple[OwnPager, bool]:
    book = PagerBook(ctx.db)
    for _ in range(ATTEMPTS):
        async with CHANGING:
            new = await book.add(name)
        try:
            return new, await register(new, ctx)
        except ToolFailure as e:
            if e.error.code is not ErrorCode.CONFLICT:
                raise
            await book.remove(new)
    raise ToolFailure.of(ErrorCode.CONFLICT, "The relay gave every id that was tried to others")
