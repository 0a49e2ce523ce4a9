"""The seed's REST shape on the way out; what comes in is read by `tools_cache/answers.py`, whose
words are found here too.

Refuses to do I/O.
"""

from collections.abc import Mapping
from typing import Final

from tools_cache.answers import classify, clean, of_app, of_status, timed_out
from tools_cache.tool import ErrorCode, Json, ToolError, ToolResponse

__all__ = ["classify", "clean", "of_app", "of_status", "timed_out", "to_seed"]

_STATUS: Final[Mapping[ErrorCode, int]] = {
    ErrorCode.TOOL_NOT_FOUND: 404,
    ErrorCode.INVALID_ARGUMENTS: 400,
    ErrorCode.INVALID_REQUEST: 400,
}
"""S0-30 and S0-31; anything else is 500, an invalid tool name and a timeout too (C-12)."""


def to_seed(response: ToolResponse) -> tuple[int, dict[str, Json]]:
    """(HTTP status, MCPToolResult) for `POST /api/tools/execute`."""
    if response.error is None:
        body: dict[str, Json] = {"success": True, "content": response.data}
        extensions = _extensions_of_render(response.render)
        return 200, body | ({"mentraExtensions": extensions} if extensions else {})
    return _STATUS.get(response.error.code, 500), {
        "success": False,
        "error": _seed_error(response.error),
    }


def _seed_error(error: ToolError) -> dict[str, Json]:
    out: dict[str, Json] = {"code": error.code.value, "message": error.message}
    if error.code is not ErrorCode.TOOL_NOT_FOUND:  # S0-47: this one has no retryable key
        out["retryable"] = error.retryable
    if error.details is not None:
        out["details"] = error.details
    return out


def _extensions_of_render(render: Mapping[str, Json] | None) -> dict[str, Json]:
    found: dict[str, Json] = {}
    if render is None:
        return found
    audio = render.get("audio")
    if isinstance(audio, dict) and audio.get("suppressVoiceResponse") is True:
        found["suppressVoiceResponse"] = True
    if render.get("suggestedFollowUps"):
        found["suggestedFollowUps"] = render["suggestedFollowUps"]
    return found
