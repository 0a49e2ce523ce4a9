"""`get_pending_result`: our own tool, for clients that cannot wait: a call's answer once it has
one.

Refuses to know which call it was.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from edge.mcp.server import results
from edge.mcp.server.calls import Calls, code_of
from edge.runtime.errors import UserError

MAX_WAIT_S: Final = 50.0
_ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
PENDING: Final[dict[str, Any]] = {
    "name": results.GET_PENDING,
    "title": "Result of a pending call",
    "description": (
        "Give the result of a call that was answered `pending`, "
        "or that waits for the wearer's yes, once there is one."
    ),
    "inputSchema": {
        "type": "object",
        "additionalProperties": False,
        "required": ["id"],
        "properties": {
            "id": {
                "type": "string",
                "minLength": 1,
                "maxLength": 64,
                "description": "The call's id: pendingToolCallId, or callId.",
            },
            "wait_s": {
                "type": "number",
                "minimum": 0,
                "maximum": MAX_WAIT_S,
                "default": 0,
                "description": "Seconds to wait for it.",
            },
        },
    },
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}


async def pending(calls: Calls, args: Mapping[str, Any], *, modern: bool) -> dict[str, Any]:
    """Give the CallToolResult of that call, or `pending` again."""
    problem, call_id, wait_s = _read(args)
    if problem:
        return results.result(
            results.refused(
                "INVALID_ARGUMENTS", "VALIDATION", problem, "See the tool's input schema"
            )
        )
    try:
        envelope = await calls.story(call_id, max(wait_s, 0.05))
    except UserError as e:
        code, kind = ("TOOL_NOT_FOUND", "NOT_FOUND") if e.code == "NOT_FOUND" else code_of(e)
        again = kind in {"TRANSIENT", "RATE_LIMIT"}  # it only looks
        return results.result(
            results.refused(code, kind, e.message, e.fix[:1].upper() + e.fix[1:], retryable=again)
        )
    waiting = {
        "ok": True,
        "data": {"status": "pending", "pendingToolCallId": call_id},
        "meta": {"callId": call_id},
    }
    return results.result(envelope or waiting, modern=modern)


def _read(args: Mapping[str, Any]) -> tuple[str, str, float]:
    call_id, wait_s = args.get("id"), args.get("wait_s", 0)
    unknown = next((key for key in args if key not in {"id", "wait_s"}), None)
    if unknown is not None:
        return f"Invalid parameters: {unknown[:40]} is unknown", "", 0.0
    if not isinstance(call_id, str) or not _ID.fullmatch(call_id):
        return "Invalid parameters: id must be the id of a call", "", 0.0
    if (
        isinstance(wait_s, bool)
        or not isinstance(wait_s, int | float)
        or not 0 <= wait_s <= MAX_WAIT_S
    ):
        return f"Invalid parameters: wait_s must be 0 to {MAX_WAIT_S:g}", "", 0.0
    return "", call_id, float(wait_s)
