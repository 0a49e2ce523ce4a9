"""Makes the lens dark. Knows nothing of lenses."""

from collections.abc import Mapping

from tools_cache.tool import Json, ToolContext


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:  # noqa: ARG001 - every handler has this shape
    """Ask for darkness, silently."""
    return {
        "data": {},
        "render": {"display": {"layout": "clear_view"}, "audio": {"suppressVoiceResponse": True}},
    }
