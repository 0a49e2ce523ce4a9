"""Fetches a page as readable text."""

from collections.abc import Mapping
from typing import Final

from tools_cache.api.knowledge import cut
from tools_cache.api.shortening import is_data, shortened
from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure

DATA: Final = "Data for programs"
"""What the lens shows of a page that is JSON."""
DEADLINE_S: Final = 20.0
MAX_CHARACTERS: Final = 20_000
SHOWN: Final = 500
"""Characters of the page on the lens; a model reads the rest in `content`."""


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return the text of the page from `offset`, and where it goes on."""
    request = {"do": "fetch", "url": args["url"], "hosts": ctx.config.get("hosts", [])}
    page = await ctx.workers.ask("web", request, deadline_s=DEADLINE_S)
    whole, offset = page.pop("content"), args.get("offset", 0)
    if offset >= max(1, len(whole)):
        raise ToolFailure.of(
            ErrorCode.INVALID_ARGUMENTS,
            f"Invalid parameters: /offset the page has {len(whole)} characters",
            suggestion="Use the next_offset of an earlier answer",
        )
    content = cut(whole, offset, MAX_CHARACTERS)
    end = offset + len(content)
    shown = DATA if is_data(content) else shortened(content, SHOWN)
    title = "" if content.startswith(page["title"]) else page["title"]
    return {
        "data": {
            **page,
            "content": content,
            "total_chars": len(whole),
            **({"next_offset": end} if end < len(whole) else {}),
            "text": "\n".join(filter(None, (title, shown))),
        }
    }
