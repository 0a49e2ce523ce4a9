"""Finds tools by keywords."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Give up to `limit` tools, the best first."""
    found = [
        dict(tool)
        for tool in await ctx.toolbox.search(str(args["query"]), int(args.get("limit", 8)))
    ]
    lines = [f"{tool['tool']}: {tool['summary']}" for tool in found]
    return {"data": {"tools": found, "text": "\n".join(lines) or "No tool matches these words"}}
