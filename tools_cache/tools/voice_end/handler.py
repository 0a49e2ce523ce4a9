"""Ends the voice session, by an intent."""

from collections.abc import Mapping

from tools_cache.api.tool import FAREWELL, ErrorCode, Json, ToolContext, ToolFailure


async def execute(args: Mapping[str, Json], ctx: ToolContext) -> Json:  # noqa: ARG001 - a handler's form
    """Return the intent to end the session, after the farewell."""
    if not ctx.voice_active:
        raise ToolFailure.of(ErrorCode.SESSION_INACTIVE, "There is no voice session")
    return {
        "data": {"text": "Goodbye"},
        "intents": [{"type": "END_VOICE_SESSION", "after": FAREWELL}],
    }
