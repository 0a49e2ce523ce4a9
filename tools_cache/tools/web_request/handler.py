"""Sends an HTTP request. The user confirmed the call before it runs."""

from collections.abc import Mapping
from typing import Final

from tools_cache.api.knowledge import cut
from tools_cache.api.shortening import is_data, shortened
from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure

DEADLINE_S: Final = 20.0
MAX_CHARACTERS: Final = 64 * 1024
SHOWN: Final = 300
"""Characters of the answer on the lens, none of data for programs; all is in `content`."""
SAFE: Final = ("GET", "HEAD")


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return status, headers and content of the answer, whatever its status is."""
    method = args.get("method", "GET")
    if method not in ctx.config.get("methods", []):
        raise ToolFailure.of(
            ErrorCode.DENIED,
            f"The settings allow no {method} requests",
            suggestion=f'Add "{method}" to methods in [tool.web.request]',
        )
    request = {
        "do": "request",
        "url": args["url"],
        "method": method,
        "headers": args.get("headers", {}),
        "body": args.get("body"),
        "hosts": ctx.config.get("hosts", []),
    }
    writes = method not in SAFE
    answer = await ctx.workers.ask("web", request, deadline_s=DEADLINE_S, writes=writes)
    content = cut(answer["content"], 0, MAX_CHARACTERS)
    answer["truncated"] = answer["truncated"] or len(content) < len(answer["content"])
    shown = "" if is_data(content) else shortened(content, SHOWN)
    first = f"{answer['host']} answered {answer['status']}"
    text = "\n".join(filter(None, (first, shown)))
    return {"data": {**answer, "content": content, "text": text}}
