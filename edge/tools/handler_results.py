"""Converts what a handler returned to the envelope, or to the error for an invalid result.

Other forms end here: `success` of older tools does not occur inside the daemon.
"""

import json
import logging
from typing import Final

from msgspec.structs import replace

from edge.core.results import storage_unavailable
from tools_cache.api.tool import ErrorCode, Json, ToolDefinition, ToolError, ToolResponse

MAX_RESULT_BYTES: Final = 192 * 1024
"""A result must fit one MQTT message (256 KiB) with its envelope."""
_PARTS: Final = frozenset({"data", "render", "intents"})
_SUCCESS: Final = frozenset({"success", "data", "error", "message", "render", "intents"})

logger = logging.getLogger("edge.tools.local")


def to_response(tool: str, result: Json) -> ToolResponse:
    """Convert `{data, render?, intents?}`, a whole envelope, or any other JSON to a response."""
    try:
        return _envelope(result)
    except (ValueError, TypeError, RecursionError) as e:
        logger.error("Invalid result structure for tool %s: %s", tool, e)  # noqa: TRY400 - the result is at fault
        return internal(tool, side_effects=True)


def internal(tool: str, *, side_effects: bool) -> ToolResponse:
    """Return the error for a tool that failed; the reason is in the log only."""
    return ToolResponse.failure(
        ErrorCode.HANDLER_ERROR,
        f"Internal error executing {tool}",
        partial_side_effects=side_effects,
        suggestion="glassd doctor, or the daemon's log",
    )


def too_slow(definition: ToolDefinition, limit_s: float) -> ToolResponse:
    return ToolResponse.failure(
        ErrorCode.TIMEOUT,
        f"Tool execution timeout after {round(limit_s * 1000)}ms",
        partial_side_effects=not definition.read_only,
    )


def disk_unavailable(why: object, *, side_effects: bool) -> ToolResponse:
    """Return the error for a full disk: the same call may succeed when there is room again."""
    return ToolResponse(error=replace(storage_unavailable(why), partial_side_effects=side_effects))


def nothing_fits(why: object) -> ToolResponse:
    """Return the error for a full storage of this tool; only deleting helps."""
    return ToolResponse.failure(
        ErrorCode.TOOL_UNAVAILABLE,
        f"Nothing more can be kept: {why}",
        suggestion="Free some disk space, or delete what is no longer needed",
    )


def _envelope(result: Json) -> ToolResponse:
    text = json.dumps(result, allow_nan=False)
    if len(text) > MAX_RESULT_BYTES:
        raise ValueError(f"{len(text)} bytes; at most {MAX_RESULT_BYTES} fit a message")
    result = json.loads(text)  # a copy of its own, with text for keys
    if not isinstance(result, dict):
        return ToolResponse(data=result)
    if isinstance(result.get("success"), bool) and result.keys() <= _SUCCESS and "ok" not in result:
        result = _from_success(result)
    if not ("ok" in result or (result.keys() & _PARTS and result.keys() <= _PARTS)):
        return ToolResponse(data=result)
    if not isinstance(result.get("intents", []), list):
        raise ValueError("intents: must be a list of objects")
    if "ok" in result:
        return _whole(result)
    return ToolResponse.from_json({"ok": True, **result})


def _from_success(result: dict[str, Json]) -> dict[str, Json]:
    """Convert `{success, data | error | message}` to `ok` with its data or its error."""
    rest = {key: value for key, value in result.items() if key in _PARTS}
    if result["success"]:
        named = {"data": result["message"]} if "message" in result and "data" not in result else {}
        return {"ok": True, **named, **rest}
    error = result.get("error", result.get("message"))
    if isinstance(error, str):
        error = {"message": error}
    if not isinstance(error, dict):
        raise ValueError("error: must be text or {code?, message}")
    rest.pop("data", None)
    return {"ok": False, **rest, "error": {**_error(error), **error}}


def _error(error: dict[str, Json]) -> dict[str, Json]:
    """Return type and code of a failure that names only a code, or nothing: it is final."""
    named = str(error.get("code"))
    code = ErrorCode(named) if named in ErrorCode.__members__ else ErrorCode.TOOL_UNAVAILABLE
    made = ToolError.of(code, "")
    return {"type": made.type.value, "code": code.value, "retryable": made.retryable}


def _whole(result: dict[str, Json]) -> ToolResponse:
    """Read a complete envelope; `retryable` must be true or false."""
    error = result.get("error")
    if isinstance(error, dict) and not isinstance(error.get("retryable", False), bool):
        raise ValueError("error.retryable: must be true or false")
    return ToolResponse.from_json(result)
