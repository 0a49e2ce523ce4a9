"""Converts a `ToolResponse` to the published REST form; incoming forms are read by
`tools_cache/app_results.py`.
"""

from collections.abc import Mapping
from typing import Final

from tools_cache.api.tool import ErrorCode, Json, ToolError, ToolResponse
from tools_cache.app_results import classify, clean, of_app, of_status, timed_out

__all__ = ["classify", "clean", "of_app", "of_status", "timed_out", "to_seed"]

_STATUS: Final[Mapping[ErrorCode, int]] = {
    ErrorCode.TOOL_NOT_FOUND: 404,
    ErrorCode.INVALID_ARGUMENTS: 400,
    ErrorCode.INVALID_REQUEST: 400,
}
"""HTTP status per error; anything else is 500, including an invalid tool name and a timeout."""


def to_seed(response: ToolResponse) -> tuple[int, dict[str, Json]]:
    """Return (HTTP status, MCPToolResult) for `POST /api/tools/execute`."""
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
    if (
        error.code is not ErrorCode.TOOL_NOT_FOUND
    ):  # in this error the REST form has no retryable key
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
