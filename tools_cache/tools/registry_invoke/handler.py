"""Calls another tool by name, with all the checks of any call."""

import json
from collections.abc import Mapping

from tools_cache.api.tool import ErrorCode, Json, ToolContext, ToolFailure


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:
    """Return the other tool's answer unchanged; if it fails, this call fails."""
    inner, name = _arguments(args.get("args", {})), str(args["tool"])
    answer = await ctx.call_tool(name, inner)
    if answer.error is not None:
        raise ToolFailure(answer.error)
    await ctx.toolbox.load([name], passing=True)
    return {"ok": True, "data": answer.data}


def _arguments(given: Json) -> Mapping[str, Json]:
    """Read arguments that models send as an object or as its JSON text. Raises `ToolFailure`."""
    if isinstance(given, str):
        try:
            given = json.loads(given) if given.strip() else {}
        except (ValueError, RecursionError) as e:
            raise _wrong(f"args is not JSON: {e}") from None
    if not isinstance(given, Mapping):
        raise _wrong("args must be a JSON object")
    return given


def _wrong(problem: str) -> ToolFailure:
    return ToolFailure.of(
        ErrorCode.INVALID_ARGUMENTS,
        f"Invalid parameters: {problem}",
        suggestion='for example {"text": "milk"}',
    )
