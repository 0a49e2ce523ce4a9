"""Clears the lens."""

from collections.abc import Mapping

from tools_cache.api.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:  # noqa: ARG001 - every handler has this shape
    """Clear the lens, without speech."""
    return {
        "data": {},
        "render": {"display": {"layout": "clear_view"}, "audio": {"suppressVoiceResponse": True}},
    }
