"""Loads tools, so that they are offered to the model."""

from collections.abc import Mapping

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Load what can be loaded; fails only if none could be."""
    done = await ctx.toolbox.load([str(name) for name in args["tools"]])
    loaded, refused = list(done["loaded"]), [dict(one) for one in done["refused"]]
    if not loaded:
        text = "; ".join(f"{one['tool']}: {one['reason']}" for one in refused)
        raise ToolFailure.of(
            ErrorCode.TOOL_NOT_FOUND,
            f"Nothing was loaded: {text}",
            details=refused,
            suggestion="registry:search finds what there is",
        )
    return {"data": {"loaded": loaded, "refused": refused, "text": f"Loaded: {', '.join(loaded)}"}}
