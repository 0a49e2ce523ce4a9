"""Describes one tool."""

from collections.abc import Mapping

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return its documentation as text, and its other properties."""
    name = str(args["tool"])
    told = await ctx.toolbox.describe(name)
    if told is None:
        raise ToolFailure.of(
            ErrorCode.TOOL_NOT_FOUND,
            f"Tool {name} not found",
            suggestion="registry:search finds what there is",
        )
    return {"data": {**told, "text": told["documentation"] or told["description"]}}
